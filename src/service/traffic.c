/* What SIGUSR1 logs. */
#include "service/service_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "base/heap.h"
#include "base/log.h"

/* Lines of ports, and of users: so many, with the most traffic. */
#define LINES_MAX 50

static void log_totals(const struct ss_engine *engine, bool udp)
{
    struct ss_traffic traffic;

    ss_engine_traffic(engine, &traffic);
    ss_log_info("traffic: sessions %" PRIu32 " open, %" PRIu64 " total; received %" PRIu64
                " bytes, sent %" PRIu64 " bytes",
                ss_engine_sessions(engine), traffic.sessions_opened, traffic.rx_bytes,
                traffic.tx_bytes);
    if (udp)
        ss_log_info("traffic: UDP associations %" PRIu64 " open, %" PRIu64
                    " total; received %" PRIu64 " datagrams, sent %" PRIu64 " datagrams",
                    traffic.associations_opened - traffic.associations_closed,
                    traffic.associations_opened, traffic.rx_datagrams, traffic.tx_datagrams);
}

/* A port, or a user. */
struct line {
    const char *name; /* of a user */
    uint16_t port;    /* of a port; of a user where several servers have users */
    uint64_t sessions, rx_bytes, tx_bytes;
};

static int by_traffic(const void *one, const void *other)
{
    const struct line *a = one, *b = other;
    uint64_t a_bytes = a->rx_bytes + a->tx_bytes, b_bytes = b->rx_bytes + b->tx_bytes;

    return (a_bytes < b_bytes) - (a_bytes > b_bytes);
}

static void log_lines(struct line *lines, size_t count, const char *plural)
{
    if (count == 0)
        return;
    qsort(lines, count, sizeof *lines, by_traffic);
    for (size_t i = 0; i < count && i < LINES_MAX; i++) {
        const struct line *line = &lines[i];

        if (line->name == NULL)
            ss_log_info("port %u: %" PRIu64 " sessions; received %" PRIu64 " bytes, sent %" PRIu64
                        " bytes",
                        line->port, line->sessions, line->rx_bytes, line->tx_bytes);
        else if (line->port == 0)
            ss_log_info("user %s: %" PRIu64 " sessions; received %" PRIu64 " bytes, sent %" PRIu64
                        " bytes",
                        line->name, line->sessions, line->rx_bytes, line->tx_bytes);
        else
            ss_log_info("user %s of port %u: %" PRIu64 " sessions; received %" PRIu64
                        " bytes, sent %" PRIu64 " bytes",
                        line->name, line->port, line->sessions, line->rx_bytes, line->tx_bytes);
    }
    if (count > LINES_MAX)
        ss_log_info("%zu other %s had less traffic", count - LINES_MAX, plural);
}

static int by_port(const void *one, const void *other)
{
    const struct line *a = one, *b = other;

    return (a->port > b->port) - (a->port < b->port);
}

/* Lines of the same port become one, and those of ports without traffic go. How many are left;
 * *ports: how many different ones there are. */
static size_t join_ports(struct line *lines, size_t count, size_t *ports)
{
    size_t kept = 0;

    *ports = 0;
    qsort(lines, count, sizeof *lines, by_port);
    for (size_t from = 0; from < count;) {
        struct line sum = lines[from++];

        for (; from < count && lines[from].port == sum.port; from++) {
            sum.sessions += lines[from].sessions;
            sum.rx_bytes += lines[from].rx_bytes;
            sum.tx_bytes += lines[from].tx_bytes;
        }
        ++*ports;
        if (sum.sessions != 0)
            lines[kept++] = sum;
    }
    return kept;
}

/* All addresses and both transports of a port together, where there are several ports. */
static void log_ports(const struct ss_sockets *sockets)
{
    struct line *lines = calloc(sockets->count + 1, sizeof *lines);
    size_t count = 0, ports;

    if (lines == NULL)
        return;
    for (size_t i = 0; i < sockets->count; i++) {
        struct ss_traffic traffic;

        ss_open_socket_traffic(&sockets->list[i], &traffic);
        lines[count++] =
            (struct line){.port = sockets->list[i].port,
                          .sessions = traffic.sessions_opened + traffic.associations_opened,
                          .rx_bytes = traffic.rx_bytes,
                          .tx_bytes = traffic.tx_bytes};
    }
    count = join_ports(lines, count, &ports);
    if (ports > 1)
        log_lines(lines, count, "ports");
    free(lines);
}

/* The users of a server that have relayed anything; how many lines there are then. */
static size_t add_users(struct line *lines, size_t count, const struct ss_users *users,
                        uint16_t port)
{
    for (size_t i = 0; i < ss_users_count(users); i++) {
        const struct ss_user *user = ss_users_get(users, i);
        struct ss_user_counters *counters = user->tag;
        const struct line line = {
            .name = user->name,
            .port = port,
            .sessions = atomic_load_explicit(&counters->sessions, memory_order_relaxed),
            .rx_bytes = atomic_load_explicit(&counters->rx_bytes, memory_order_relaxed),
            .tx_bytes = atomic_load_explicit(&counters->tx_bytes, memory_order_relaxed)};

        if (line.sessions != 0)
            lines[count++] = line;
    }
    return count;
}

static void log_users(const struct ss_service *service)
{
    const struct ss_config *config = service->config;
    size_t all = 0, count = 0, servers = 0;
    struct line *lines;

    for (size_t i = 0; i < config->server_count; i++) {
        all += config->servers[i].identity_count;
        servers += config->servers[i].identity_count != 0;
    }
    lines = all != 0 ? calloc(all, sizeof *lines) : NULL;
    for (size_t i = 0; lines != NULL && i < config->server_count; i++) {
        struct ss_users *users = ss_profile_hold_users(service->keyings[i].profile);

        if (users != NULL)
            count = add_users(lines, count, users,
                              servers > 1 ? config->servers[i].addresses[0].port : 0);
        ss_users_release(users);
    }
    if (lines != NULL)
        log_lines(lines, count, "users");
    free(lines);
}

static void log_upstream(const struct ss_upstream *upstream, uint64_t now_ms, bool udp)
{
    char endpoint[SS_ENDPOINT_TEXT_MAX];
    struct ss_upstream_view view;
    char time[32] = "not measured", avoided[48] = "", over_udp[96] = "", udp_avoided[48] = "";

    ss_upstream_state_view(upstream->state, now_ms, &view);
    if (view.connect_us != 0)
        snprintf(time, sizeof time, "%" PRIu32 ".%" PRIu32 " ms", view.connect_us / 1000,
                 view.connect_us / 100 % 10);
    if (view.avoided_ms != 0)
        snprintf(avoided, sizeof avoided, ", avoided for %" PRIu32 " s",
                 (view.avoided_ms + 999) / 1000);
    if (view.udp_avoided_ms != 0)
        snprintf(udp_avoided, sizeof udp_avoided, ", avoided for %" PRIu32 " s",
                 (view.udp_avoided_ms + 999) / 1000);
    if (udp)
        snprintf(over_udp, sizeof over_udp,
                 "; UDP chosen %" PRIu64 " times, %" PRIu64 " failures%s", view.associations,
                 view.udp_failures, udp_avoided);
    ss_log_info("traffic: server %s: chosen %" PRIu64 " times, %" PRIu64 " connects, %" PRIu64
                " failures, %s%s%s",
                ss_endpoint_format(&upstream->endpoint, endpoint), view.chosen, view.connects,
                view.failures, time, avoided, over_udp);
}

/* The upstream servers of a client: those for TCP, and those for UDP alone. */
static void log_upstreams(const struct ss_service *service, struct ss_engine *engine)
{
    const struct ss_upstreams *tcp = &service->tcp_upstreams, *udp = &service->udp_upstreams;
    uint64_t now_ms = uv_now(ss_engine_loop(engine));

    for (size_t i = 0; i < tcp->count; i++)
        log_upstream(&tcp->list[i], now_ms,
                     service->udp_bound != 0 &&
                         ss_upstreams_find(udp->list, udp->count, &tcp->list[i].endpoint) != NULL);
    for (size_t i = 0; i < udp->count; i++)
        if (ss_upstreams_find(tcp->list, tcp->count, &udp->list[i].endpoint) == NULL)
            log_upstream(&udp->list[i], now_ms, true);
}

struct ss_port_traffic *ss_service_port_traffic(const struct ss_sockets *sockets, size_t *count)
{
    struct ss_port_traffic *ports = ss_heap_calloc(sockets->count + 1, sizeof *ports);

    *count = 0;
    for (size_t i = 0; ports != NULL && i < sockets->count; i++) {
        const struct ss_open_socket *socket = &sockets->list[i];
        struct ss_traffic traffic;
        size_t at = 0;

        ss_open_socket_traffic(socket, &traffic);
        while (at < *count && ports[at].port != socket->port)
            at++;
        if (at == *count)
            ports[(*count)++].port = socket->port;
        ports[at].rx_bytes += traffic.rx_wire_bytes;
        ports[at].tx_bytes += traffic.tx_bytes;
    }
    return ports;
}

void ss_service_log_traffic(const struct ss_service *service, const struct ss_sockets *sockets)
{
    log_totals(sockets->engine, service->udp_bound != 0);
    if (service->config->program != SS_PROGRAM_SERVER) {
        log_upstreams(service, sockets->engine);
        return;
    }
    log_ports(sockets);
    log_users(service);
}
