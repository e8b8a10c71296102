/* The upstream servers of UDP. Silence is the only sign that most dead ones give. */
#include "relay/udp_upstream.h"

#include "base/log.h"
#include "relay/engine_internal.h"
#include "relay/udp_name.h"
#include "relay/udp_relay.h"

/* A server that answers none of so many datagrams for so long is taken for dead. */
#define SILENT_DATAGRAMS 4
#define SILENT_MS        3000

/* For one that was so before, one datagram and this time are enough. */
#define STILL_SILENT_MS 2000

/* Anybody can send an ICMP error: one is believed only when nothing came for so long. */
#define REFUSED_AFTER_MS 1000

static uint64_t now_of(const struct ss_udp_port *port)
{
    return uv_now(&port->relay->worker->loop);
}

static struct ss_udp_server *server_of(const struct ss_association *association)
{
    return &association->port->servers[association->upstream];
}

struct ss_upstream_state *ss_udp_upstream_state(const struct ss_association *association)
{
    if (association->port->server_count == 0)
        return NULL;
    return association->port->role->upstreams.states[association->upstream];
}

static void failed(struct ss_udp_port *port, size_t index, uint64_t begun_ms, const char *how)
{
    struct ss_upstream_state *state = port->role->upstreams.states[index];
    uint64_t now_ms = now_of(port);
    char text[SS_ENDPOINT_TEXT_MAX];

    port->servers[index].unanswered = 0;
    if (ss_upstream_failed(state, SS_TRANSPORT_UDP, true, begun_ms, now_ms) &&
        port->server_count > 1)
        ss_log_limited(&port->relay->engine->dial_log, now_ms, SS_LOG_WARN,
                       "[udp] server %s %s; others take its place",
                       ss_endpoint_format(ss_upstream_state_endpoint(state), text), how);
}

static void judge_silence(struct ss_udp_port *port, size_t index)
{
    struct ss_udp_server *server = &port->servers[index];
    uint64_t now_ms = now_of(port);
    bool failing = ss_upstream_is_failing(port->role->upstreams.states[index], SS_TRANSPORT_UDP);

    if (server->unanswered >= (failing ? 1 : SILENT_DATAGRAMS) &&
        now_ms - server->since_ms >= (failing ? STILL_SILENT_MS : SILENT_MS))
        failed(port, index, server->since_ms, "is silent");
}

void ss_udp_upstream_choose(struct ss_association *association)
{
    struct ss_udp_port *port = association->port;
    struct ss_upstream_bits tried = {0};

    for (size_t i = 0; i < port->server_count; i++)
        judge_silence(port, i);
    association->upstream = (uint8_t)ss_upstreams_choose(&port->role->upstreams, SS_TRANSPORT_UDP,
                                                         &tried, now_of(port));
    association->answered = false;
    association->unanswered = 0;
}

/* What was sealed for one server is nothing for another, and so is what waits for its address. */
static bool move(struct ss_association *association)
{
    ss_association_end_link(association);
    ss_udp_names_clear_servers(association);
    ss_udp_upstream_choose(association);
    if (ss_association_begin_link(association))
        return true;
    ss_association_close(association);
    return false;
}

/* Whether it is better off elsewhere: its server is avoided, and has nothing for it. */
static bool is_lost(const struct ss_association *association)
{
    const struct ss_udp_port *port = association->port;
    uint64_t now_ms = now_of(port);

    if (association->unanswered == 0 ||
        ss_upstream_avoided_until(ss_udp_upstream_state(association), SS_TRANSPORT_UDP) <= now_ms)
        return false;
    if (association->answered && (association->unanswered < SILENT_DATAGRAMS ||
                                  now_ms - association->unanswered_since_ms < SILENT_MS))
        return false;
    return ss_upstreams_any_usable(&port->role->upstreams, SS_TRANSPORT_UDP, now_ms);
}

bool ss_udp_upstream_is_right(struct ss_association *association)
{
    if (association->port->server_count < 2)
        return true;
    judge_silence(association->port, association->upstream);
    return !is_lost(association) || move(association);
}

void ss_udp_upstream_sending(struct ss_association *association)
{
    struct ss_udp_server *server = server_of(association);
    uint64_t now_ms = now_of(association->port);

    if (server->unanswered++ == 0)
        server->since_ms = now_ms;
    if (association->unanswered++ == 0)
        association->unanswered_since_ms = now_ms;
}

void ss_udp_upstream_answered(struct ss_association *association)
{
    const struct ss_udp_port *port = association->port;
    struct ss_upstream_state *state = ss_udp_upstream_state(association);
    char text[SS_ENDPOINT_TEXT_MAX];

    association->answered = true;
    association->unanswered = 0;
    server_of(association)->unanswered = 0;
    if (ss_upstream_answered(state, now_of(port)) && port->server_count > 1)
        ss_log_limited(&port->relay->engine->dial_log, now_of(port), SS_LOG_INFO,
                       "[udp] server %s answers again",
                       ss_endpoint_format(ss_upstream_state_endpoint(state), text));
}

void ss_udp_upstream_refused(struct ss_association *association, const struct ss_addr *to)
{
    struct ss_udp_port *port = association->port;
    struct ss_udp_server *server = server_of(association);

    if (port->server_count < 2 || server->unanswered == 0 ||
        to->port != association->sent_to.port || !ss_ip_equal(&to->ip, &association->sent_to.ip) ||
        ss_upstream_answered_within(ss_udp_upstream_state(association), REFUSED_AFTER_MS,
                                    now_of(port)))
        return;
    failed(port, association->upstream, now_of(port), "can't be reached");
}
