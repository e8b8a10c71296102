/* Reaching an endpoint: look-up, then its addresses in turn. */
#include "relay/dialer.h"

#include <string.h>

#include "base/container.h"
#include "base/log.h"
#include "base/pool.h"
#include "net/socket.h"
#include "net/tcp.h"
#include "relay/engine_internal.h"

/* So long an upstream server whose fast open failed is dialled in the plain way. */
#define PLAIN_AFTER_FAILURE_MS 60000

struct ss_dial {
    uv_connect_t request;
    struct ss_session *session; /* NULL: given up, waits for its last callback */
    struct ss_query *query;
    struct ss_conn *conn; /* being connected */
    struct ss_ip addresses[SS_ADDRESSES_MAX];
    size_t count, next;
    uint32_t upstream;       /* the one being tried */
    uint32_t upstreams_left; /* to try after it */
    enum ss_status last;     /* why the latest attempt failed */
    struct ss_target target; /* the session's, for the header */
    uint16_t port;
    bool fast_open;     /* bytes will follow at once */
    bool fast_open_now; /* the attempt under way makes use of it */
    bool clock_runs;    /* the time to connect has begun */
    bool connecting;    /* `request` is with libuv */
};

static void try_next(struct ss_dial *dial);

size_t ss_dial_size(void)
{
    return sizeof(struct ss_dial);
}

static void release(struct ss_dial *dial, struct ss_worker *worker)
{
    ss_pool_release(worker->dials, dial);
}

static bool through_upstream(const struct ss_dial *dial)
{
    return dial->session->role->options.egress == SS_EGRESS_UPSTREAM;
}

static void unreachable(struct ss_dial *dial)
{
    struct ss_session *session = dial->session;
    enum ss_status why = dial->last;

    release(dial, session->worker);
    ss_session_unreachable(session, why);
}

static void on_resolved(void *owner, enum ss_status status, const struct ss_ip *addresses,
                        size_t count)
{
    struct ss_dial *dial = owner;

    dial->query = NULL;
    dial->count = dial->next = 0;
    if (status == SS_OK) {
        dial->count = count < SS_ADDRESSES_MAX ? count : SS_ADDRESSES_MAX;
        memcpy(dial->addresses, addresses, dial->count * sizeof *addresses);
    } else {
        dial->last = status;
        if (through_upstream(dial)) {
            struct ss_worker *worker = dial->session->worker;

            ss_log_limited(&worker->engine->dial_log, uv_now(&worker->loop), SS_LOG_ERROR,
                           "failed to resolve the provided hostname");
            ss_log_limited(&worker->engine->dial_log, uv_now(&worker->loop), SS_LOG_ERROR,
                           "getaddrinfo: %s: %s",
                           dial->session->role->options.upstreams[dial->upstream].endpoint.host,
                           ss_status_text(status));
        }
    }
    try_next(dial);
}

/* Fills the list of addresses, now or when the look-up is done. */
static void find_addresses(struct ss_dial *dial, const char *name, const struct ss_ip *ip)
{
    dial->count = dial->next = 0;
    if (ip != NULL) {
        dial->addresses[0] = *ip;
        dial->count = 1;
        try_next(dial);
        return;
    }
    dial->query = ss_resolver_ask(dial->session->worker->resolver, name, on_resolved, dial);
    if (dial->query == NULL) {
        dial->last = SS_ERR_NOT_FOUND;
        try_next(dial);
    }
}

static void dial_upstream(struct ss_dial *dial)
{
    const struct ss_endpoint *endpoint =
        &dial->session->role->options.upstreams[dial->upstream].endpoint;
    struct ss_ip ip;

    dial->port = endpoint->port;
    find_addresses(dial, endpoint->host, ss_ip_parse(&ip, endpoint->host) == SS_OK ? &ip : NULL);
}

static void on_connected(uv_connect_t *request, int result)
{
    struct ss_dial *dial = SS_CONTAINER_OF(request, struct ss_dial, request);
    struct ss_conn *conn = request->handle->data;
    struct ss_session *session = dial->session;

    dial->connecting = false;
    if (session == NULL) {
        release(dial, conn->worker);
        return;
    }
    if (conn != dial->conn) { /* that attempt took too long and was closed */
        try_next(dial);
        return;
    }
    dial->conn = NULL;
    if (result == 0) {
        struct ss_target target = dial->target;
        const struct ss_profile *profile =
            through_upstream(dial) ? session->role->options.upstreams[dial->upstream].profile
                                   : NULL;

        session->fast_opened = dial->fast_open_now;
        session->upstream = (uint8_t)dial->upstream;
        release(dial, session->worker);
        ss_session_connected(session, conn, profile, &target);
        return;
    }
    dial->last = ss_status_from_uv(result);
    ss_conn_close(conn, SS_CONN_FIN);
    try_next(dial);
}

/* With fast open nothing is known of the server before it answers, so one that failed to is not
 * trusted with it again for a while. */
static bool may_fast_open(const struct ss_dial *dial)
{
    const struct ss_session *session = dial->session;
    const struct ss_engine_options *options = &session->worker->engine->options;

    if (!options->fast_open || !dial->fast_open)
        return false;
    return !through_upstream(dial) ||
           atomic_load_explicit(&session->role->upstream_states[dial->upstream].plain_until_ms,
                                memory_order_relaxed) <= uv_now(&session->worker->loop);
}

void ss_dial_fast_open_failed(struct ss_session *session)
{
    struct ss_role *role = session->role;

    if (role->options.egress != SS_EGRESS_UPSTREAM)
        return;
    atomic_store_explicit(&role->upstream_states[session->upstream].plain_until_ms,
                          uv_now(&session->worker->loop) + PLAIN_AFTER_FAILURE_MS,
                          memory_order_relaxed);
}

static const struct ss_ip *source_for(const struct ss_engine_options *options,
                                      enum ss_family family)
{
    return family == SS_FAMILY_IPV4 ? &options->bind_ipv4 : &options->bind_ipv6;
}

/* What listens on this machine for us (a plugin) is reached as it is, whatever interface or source
 * the way to the server is to have. */
static bool is_near(const struct ss_dial *dial, const struct ss_ip *ip)
{
    static const struct ss_ip loopback6 = {.family = SS_FAMILY_IPV6, .bytes = {[15] = 1}};

    return through_upstream(dial) &&
           (ip->family == SS_FAMILY_IPV4 ? ip->bytes[0] == 127 : ss_ip_equal(ip, &loopback6));
}

/* Begins to connect to one address. What fails at once is in dial->last. */
static bool connect_to(struct ss_dial *dial, const struct ss_addr *addr)
{
    struct ss_session *session = dial->session;
    struct ss_worker *worker = session->worker;
    const struct ss_engine_options *options = &worker->engine->options;
    bool near = is_near(dial, &addr->ip);
    const struct ss_dial_options how = {
        .mptcp = options->mptcp && through_upstream(dial) && !near,
        .fast_open = dial->fast_open_now,
        .interface = near ? NULL : options->interface,
        .interface_required = options->interface_required,
        .source = near ? NULL : source_for(options, addr->ip.family),
        .sndbuf = options->outgoing_sndbuf,
        .rcvbuf = options->outgoing_rcvbuf,
    };
    int fd;

    dial->last = ss_socket_for_dial(&fd, addr->ip.family, &how);
    if (dial->last != SS_OK) {
        if (how.interface != NULL || (how.source != NULL && how.source->family != SS_FAMILY_NONE))
            ss_log_limited(&worker->engine->dial_log, uv_now(&worker->loop), SS_LOG_ERROR,
                           "cannot bind socket: %s", ss_status_text(dial->last));
        return false;
    }
    dial->conn = ss_conn_open(worker, session, fd);
    if (dial->conn == NULL) {
        dial->last = SS_ERR_LIMIT;
        return false;
    }
    dial->last = ss_tcp_connect(&dial->request, &dial->conn->tcp, addr, on_connected);
    if (dial->last != SS_OK) {
        ss_conn_close(dial->conn, SS_CONN_FIN);
        dial->conn = NULL;
        return false;
    }
    dial->connecting = true;
    if (!dial->clock_runs)
        ss_worker_start_deadline(worker, &worker->connect, &session->deadline);
    dial->clock_runs = true;
    if (dial->next < dial->count || dial->upstreams_left != 0)
        ss_worker_start_deadline(worker, &worker->attempt, &session->check);
    return true;
}

static void try_next(struct ss_dial *dial)
{
    struct ss_session *session = dial->session;

    ss_deadline_stop(&session->check);
    while (dial->next < dial->count) {
        struct ss_addr addr = {.ip = dial->addresses[dial->next++], .port = dial->port};

        dial->fast_open_now = may_fast_open(dial);
        if (connect_to(dial, &addr))
            return;
    }
    if (through_upstream(dial) && dial->upstreams_left != 0) {
        dial->upstreams_left--;
        dial->upstream = (dial->upstream + 1) % (uint32_t)session->role->options.upstream_count;
        dial_upstream(
            dial); /* at most one level deeper for each upstream, of which there are few */
        return;
    }
    unreachable(dial);
}

bool ss_dial_start(struct ss_session *session, const struct ss_target *target, bool first_write)
{
    struct ss_worker *worker = session->worker;
    struct ss_dial *dial = ss_pool_acquire(worker->dials);
    struct ss_ip ip;

    if (dial == NULL)
        return false;
    memset(dial, 0, sizeof *dial);
    dial->session = session;
    dial->target = *target;
    dial->fast_open = first_write;
    dial->last = SS_ERR_NOT_FOUND;
    session->dial = dial;

    if (session->role->options.egress == SS_EGRESS_UPSTREAM) {
        uint32_t count = (uint32_t)session->role->options.upstream_count;

        dial->upstream =
            atomic_fetch_add_explicit(&session->role->next_upstream, 1, memory_order_relaxed) %
            count;
        dial->upstreams_left = count - 1;
        dial_upstream(dial);
        return true;
    }
    dial->port = target->port;
    find_addresses(dial, target->name, ss_target_ip(target, &ip) ? &ip : NULL);
    return true;
}

void ss_dial_attempt_expired(struct ss_dial *dial)
{
    struct ss_conn *conn = dial->conn;

    dial->last = SS_ERR_TIMEOUT;
    dial->conn = NULL;
    ss_conn_close(conn, SS_CONN_FIN); /* goes on in on_connected, which is told of the cancelling */
}

void ss_dial_cancel(struct ss_dial *dial)
{
    struct ss_worker *worker;

    if (dial == NULL)
        return;
    worker = dial->session->worker;
    ss_resolver_cancel(dial->query);
    ss_conn_close(dial->conn, SS_CONN_FIN);
    if (dial->connecting)
        dial->session = NULL; /* its callback gives it back */
    else
        release(dial, worker);
}
