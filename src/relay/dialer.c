/*
 * Reaching an endpoint (RFC 8305). A dial has two attempts. The second begins when the first is
 * late, and either goes on with the next address or server when what it tried has failed. Nothing
 * is sent before one of them is connected, and then the other is closed.
 */
#include "relay/dialer.h"

#include <string.h>

#include "base/container.h"
#include "base/log.h"
#include "base/pool.h"
#include "net/tcp.h"
#include "relay/dial_places.h"
#include "relay/engine_internal.h"
#include "relay/flow.h"
#include "relay/outgoing.h"
#include "relay/probe.h"

/* So long an upstream server whose fast open failed is dialled in the plain way. */
#define PLAIN_AFTER_FAILURE_MS 60000

/* The next address is tried beside one that has not answered for so long (RFC 8305, section 8). */
#define STAGGER_MS 250

/* With both attempts under way, the older makes way for the next address when it is so old. */
#define ATTEMPT_MS 2000

#define ATTEMPTS 2

_Static_assert(SS_DIAL_PLACES_MAX >= SS_ADDRESSES_MAX + SS_UPSTREAM_ADDRESSES_MAX,
               "two servers' addresses");

struct attempt {
    uv_connect_t request;
    struct ss_dial *dial;
    struct ss_query *query; /* the server's or target's name is being looked up */
    struct ss_conn *conn;   /* being connected; NULL: it waits for nothing, or was given up */
    uint64_t begun_us;
    uint64_t begun_ms; /* by the clock of the loop, which deadlines go by */
    struct ss_dial_place place;
    bool with_libuv; /* `request` is: its callback will come */
    bool fast_open;
};

struct ss_dial {
    struct ss_worker *worker;
    struct ss_session *session; /* NULL: over, waits for callbacks */
    struct attempt attempts[ATTEMPTS];
    struct ss_dial_places places;
    struct ss_upstream_bits tried;
    size_t untried;          /* servers */
    enum ss_status last;     /* why the latest attempt failed */
    struct ss_target target; /* the session's, for the header */
    bool first_write;        /* bytes will follow at once */
    bool clock_runs;         /* the time to connect has begun */
    bool racing;             /* two attempts: counted by the engine */
};

static void proceed(struct attempt *attempt, bool late);

size_t ss_dial_size(void)
{
    return sizeof(struct ss_dial);
}

/* -- what is where -- */

static bool through_upstream(const struct ss_dial *dial)
{
    return ss_session_has_upstream(dial->session);
}

static struct ss_upstream_state *state_of(const struct attempt *attempt)
{
    return attempt->dial->session->role->upstreams.states[attempt->place.server];
}

static uint64_t now_ms(const struct ss_dial *dial)
{
    return uv_now(&dial->worker->loop);
}

static uint64_t now_us(void)
{
    return uv_hrtime() / 1000;
}

static void start_clock(struct attempt *attempt)
{
    attempt->begun_us = now_us();
    attempt->begun_ms = now_ms(attempt->dial);
}

/* Never less than the wait of a deadline that was set when it began, and is due. */
static uint64_t age_ms(const struct attempt *attempt)
{
    return now_ms(attempt->dial) - attempt->begun_ms;
}

static struct attempt *other_than(struct attempt *attempt)
{
    return &attempt->dial->attempts[attempt == &attempt->dial->attempts[0]];
}

/* It looks a name up or connects. */
static bool is_busy(const struct attempt *attempt)
{
    return attempt->query != NULL || attempt->conn != NULL;
}

static bool is_free(const struct attempt *attempt)
{
    return !is_busy(attempt) && !attempt->with_libuv;
}

/* -- the number of races: each may take a descriptor more -- */

static bool begin_race(struct ss_dial *dial)
{
    struct ss_engine *engine = dial->worker->engine;

    if (dial->racing)
        return true;
    if (atomic_fetch_add_explicit(&engine->races, 1, memory_order_relaxed) >= engine->max_races) {
        atomic_fetch_sub_explicit(&engine->races, 1, memory_order_relaxed);
        return false;
    }
    dial->racing = true;
    return true;
}

static void settle_race(struct ss_dial *dial)
{
    if (!dial->racing || (is_busy(&dial->attempts[0]) && is_busy(&dial->attempts[1])))
        return;
    dial->racing = false;
    atomic_fetch_sub_explicit(&dial->worker->engine->races, 1, memory_order_relaxed);
}

/* -- the end of a dial -- */

static void give_up(struct attempt *attempt)
{
    ss_resolver_cancel(attempt->query);
    attempt->query = NULL;
    ss_conn_close(attempt->conn, SS_CONN_LEAVE);
    attempt->conn = NULL;
}

static void release_when_idle(struct ss_dial *dial)
{
    if (is_free(&dial->attempts[0]) && is_free(&dial->attempts[1]))
        ss_pool_release(dial->worker->dials, dial);
}

/* The session has its result, or wants none. */
static void finish(struct ss_dial *dial)
{
    dial->session = NULL;
    for (int i = 0; i < ATTEMPTS; i++)
        give_up(&dial->attempts[i]);
    settle_race(dial);
    release_when_idle(dial);
}

/* -- what is seen of servers -- */

static void server_failed(const struct attempt *attempt, bool sure)
{
    struct ss_dial *dial = attempt->dial;
    struct ss_upstream_state *state = state_of(attempt);
    char text[SS_ENDPOINT_TEXT_MAX];

    if (ss_upstream_failed(state, SS_TRANSPORT_TCP, sure, attempt->begun_us / 1000, now_ms(dial)) &&
        dial->session->role->upstreams.count > 1)
        ss_log_limited(&dial->worker->engine->dial_log, now_ms(dial), SS_LOG_WARN,
                       "server %s is not reached; others take its place",
                       ss_endpoint_format(ss_upstream_state_endpoint(state), text));
}

/* One address of a server is of no use; the server only when there is no other left. */
static void address_failed(struct attempt *attempt)
{
    const struct ss_dial *dial = attempt->dial;
    const struct attempt *other = other_than(attempt);

    if (!through_upstream(dial))
        return;
    if (is_busy(other) && other->place.server == attempt->place.server)
        return;
    if (!ss_dial_places_have(&dial->places, attempt->place.server))
        server_failed(attempt, true);
}

/* The other was there first. Late is a server that others would have been preferred to. */
static void overtaken(const struct attempt *loser, const struct attempt *winner)
{
    if (loser->conn == NULL || !through_upstream(loser->dial) ||
        loser->place.server == winner->place.server)
        return;
    if (age_ms(loser) >= ss_upstream_patience_ms(state_of(loser)))
        server_failed(loser, false);
}

static void server_connected(struct ss_session *session, const struct attempt *attempt)
{
    struct ss_upstream_state *state = state_of(attempt);
    uint64_t took_us = now_us() - attempt->begun_us;
    char text[SS_ENDPOINT_TEXT_MAX];

    if (session->fast_opened) {
        (void)ss_upstream_connected(state, 0, now_ms(attempt->dial));
        return;
    }
    ss_upstream_prefer(state, &attempt->place.ip, now_ms(attempt->dial));
    if (ss_upstream_connected(state, took_us != 0 ? took_us : 1, now_ms(attempt->dial)) &&
        session->role->upstreams.count > 1)
        ss_log_limited(&session->worker->engine->dial_log, now_ms(attempt->dial), SS_LOG_INFO,
                       "server %s is reached again",
                       ss_endpoint_format(ss_upstream_state_endpoint(state), text));
}

/* -- addresses -- */

static void add_places(struct attempt *attempt, const struct ss_ip *addresses, size_t count,
                       uint16_t port)
{
    ss_dial_places_add(&attempt->dial->places, attempt->place.server, addresses, count, port);
}

/* The next address to try, of the attempt's server or (`any`) of whichever. */
static bool take_place(struct attempt *attempt, bool any)
{
    const struct attempt *other = other_than(attempt);
    enum ss_family waited_for =
        other->conn != NULL ? (enum ss_family)other->place.ip.family : SS_FAMILY_NONE;

    return ss_dial_places_take(&attempt->dial->places, &attempt->place, any, waited_for);
}

static bool has_more(const struct ss_dial *dial)
{
    return dial->places.count != 0 || dial->untried != 0;
}

/* -- looking up -- */

static void log_unresolved(struct ss_dial *dial, const char *name, enum ss_status status)
{
    struct ss_log_limit *limit = &dial->worker->engine->dial_log;

    ss_log_limited(limit, now_ms(dial), SS_LOG_ERROR, "getaddrinfo: %s: %s", name,
                   ss_status_text(status));
    ss_log_limited(limit, now_ms(dial), SS_LOG_ERROR, "failed to resolve the provided hostname");
}

/* The addresses that a server's name had before: how many. */
static size_t recall(struct attempt *attempt)
{
    struct ss_ip addresses[SS_UPSTREAM_ADDRESSES_MAX];
    struct ss_upstream_state *state = state_of(attempt);
    size_t count = ss_upstream_addresses(state, addresses, now_ms(attempt->dial));

    add_places(attempt, addresses, count, ss_upstream_state_endpoint(state)->port);
    return count;
}

static void server_unresolved(struct attempt *attempt, enum ss_status status)
{
    if (recall(attempt) != 0)
        return;
    attempt->dial->last = status;
    log_unresolved(attempt->dial, ss_upstream_state_endpoint(state_of(attempt))->host, status);
    server_failed(attempt, true);
}

static void on_resolved(void *owner, enum ss_status status, const struct ss_ip *addresses,
                        size_t count)
{
    struct attempt *attempt = owner;
    struct ss_dial *dial = attempt->dial;
    struct ss_ip found[SS_ADDRESSES_MAX];

    attempt->query = NULL;
    if (status == SS_OK) {
        count = count < SS_ADDRESSES_MAX ? count : SS_ADDRESSES_MAX;
        memcpy(found, addresses, count * sizeof *addresses);
    }
    if (!through_upstream(dial)) {
        dial->last = status;
        if (status == SS_OK)
            add_places(attempt, found, count, dial->target.port);
    } else if (status == SS_OK) {
        struct ss_upstream_state *state = state_of(attempt);

        ss_upstream_remember(state, found, count);
        ss_upstream_sort(state, found, count, now_ms(dial));
        add_places(attempt, found, count, ss_upstream_state_endpoint(state)->port);
    } else {
        server_unresolved(attempt, status);
    }
    proceed(attempt, false);
}

static bool ask(struct attempt *attempt, const char *name)
{
    start_clock(attempt);
    attempt->query = ss_resolver_ask(attempt->dial->worker->resolver, name, on_resolved, attempt);
    return attempt->query != NULL;
}

/* Goes to another server. True: its name is being looked up. Else there are addresses of it to try,
 * or it is of no use. */
static bool enter_server(struct attempt *attempt)
{
    struct ss_dial *dial = attempt->dial;
    struct ss_upstream_set *set = &dial->session->role->upstreams;
    struct ss_upstream_state *state;

    attempt->place.server =
        (uint8_t)ss_upstreams_choose(set, SS_TRANSPORT_TCP, &dial->tried, now_ms(dial));
    dial->untried--;
    state = state_of(attempt);
    start_clock(attempt);
    if (!ss_upstream_has_name(state)) {
        (void)recall(attempt);
        return false;
    }
    if (ask(attempt, ss_upstream_state_endpoint(state)->host))
        return true;
    server_unresolved(attempt, SS_ERR_NOT_FOUND);
    return false;
}

/* -- connecting -- */

static void won(struct attempt *attempt)
{
    struct ss_dial *dial = attempt->dial;
    struct ss_session *session = dial->session;
    struct ss_conn *conn = attempt->conn;
    const struct ss_profile *profile = NULL;
    struct ss_target target = dial->target;

    session->fast_opened = attempt->fast_open && !ss_tcp_is_established(&conn->tcp);
    if (through_upstream(dial)) {
        session->upstream = attempt->place.server;
        profile = session->role->options.upstreams[attempt->place.server].profile;
        server_connected(session, attempt);
    }
    overtaken(other_than(attempt), attempt);
    attempt->conn = NULL;
    finish(dial);
    ss_session_connected(session, conn, profile, &target);
}

static void on_connected(uv_connect_t *request, int result)
{
    struct attempt *attempt = SS_CONTAINER_OF(request, struct attempt, request);
    struct ss_dial *dial = attempt->dial;

    attempt->with_libuv = false;
    if (dial->session == NULL) {
        release_when_idle(dial);
        return;
    }
    if (attempt->conn == NULL) { /* it took too long and was closed */
        proceed(attempt, true);
        return;
    }
    if (result == 0) {
        won(attempt);
        return;
    }
    dial->last = ss_status_from_uv(result);
    give_up(attempt);
    address_failed(attempt);
    proceed(attempt, false);
}

/* With fast open nothing is known of the other side before it answers: no race is won by it, and a
 * server that failed is not trusted with it. */
static bool may_fast_open(const struct attempt *attempt)
{
    const struct ss_dial *dial = attempt->dial;

    if (!dial->worker->engine->options.fast_open || !dial->first_write || dial->racing)
        return false;
    return !through_upstream(dial) || !ss_upstream_is_plain(state_of(attempt), now_ms(dial));
}

void ss_dial_fast_open_failed(struct ss_session *session)
{
    uint64_t now = uv_now(&session->worker->loop);
    struct ss_upstream_state *state;

    if (!ss_session_has_upstream(session))
        return;
    state = session->role->upstreams.states[session->upstream];
    ss_upstream_set_plain(state, now + PLAIN_AFTER_FAILURE_MS);
    (void)ss_upstream_failed(state, SS_TRANSPORT_TCP, false, now, now);
}

/* Begins to connect to the attempt's place. What fails at once is in dial->last. */
static bool connect_now(struct attempt *attempt)
{
    struct ss_dial *dial = attempt->dial;
    struct ss_session *session = dial->session;
    const struct ss_outgoing outgoing = {
        .to = {.ip = attempt->place.ip, .port = attempt->place.port},
        .upstream = through_upstream(dial),
        .fast_open = may_fast_open(attempt),
        .tos = session->role->options.tos,
    };

    attempt->fast_open = outgoing.fast_open;
    start_clock(attempt);
    dial->last = ss_outgoing_connect(dial->worker, session, &outgoing, &attempt->request,
                                     on_connected, &attempt->conn);
    if (dial->last != SS_OK)
        return false;
    attempt->with_libuv = true;
    ss_flow_read_ahead(attempt->conn);
    if (!dial->clock_runs)
        ss_worker_start_deadline(dial->worker, &dial->worker->connect, &session->deadline);
    dial->clock_runs = true;
    return true;
}

/* -- what comes next -- */

/*
 * Gives a free attempt something to do. After a failure the next address of the same server goes
 * before the next server, after a delay it is the other way round. False when nothing is left.
 */
static bool begin(struct attempt *attempt, bool late)
{
    struct ss_dial *dial = attempt->dial;

    for (;;) {
        bool taken = !late && take_place(attempt, false);

        if (!taken && dial->untried != 0) {
            if (enter_server(attempt))
                return true;
            taken = take_place(attempt, false);
            if (!taken)
                continue;
        }
        if (!taken && !take_place(attempt, true))
            return false;
        if (connect_now(attempt))
            return true;
        late = false;
    }
}

static bool is_asking(const struct ss_dial *dial)
{
    return dial->attempts[0].query != NULL || dial->attempts[1].query != NULL;
}

/* When to look again, once there is an attempt and more to try. */
static void watch(const struct attempt *attempt)
{
    struct ss_dial *dial = attempt->dial;
    uint32_t wait_ms = STAGGER_MS;

    if (attempt->fast_open)
        wait_ms = ATTEMPT_MS;
    else if (dial->untried != 0 && !dial->racing && attempt->query == NULL)
        wait_ms = ss_upstream_patience_ms(state_of(attempt));
    if (has_more(dial) || (through_upstream(dial) && is_asking(dial)))
        ss_worker_start_attempt(dial->worker, &dial->session->check, wait_ms);
}

static void proceed(struct attempt *attempt, bool late)
{
    struct ss_dial *dial = attempt->dial;
    struct ss_session *session = dial->session;
    enum ss_status why;

    ss_deadline_stop(&session->check);
    if (begin(attempt, late)) {
        watch(attempt);
        return;
    }
    settle_race(dial);
    if (!is_free(other_than(attempt)))
        return;
    why = dial->last;
    finish(dial);
    ss_session_unreachable(session, why);
}

/* The addresses that a name had before are used when a name server takes its time. */
static bool stop_waiting_for_names(struct ss_dial *dial)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        struct attempt *attempt = &dial->attempts[i];

        if (attempt->query == NULL || !through_upstream(dial) || recall(attempt) == 0)
            continue;
        ss_resolver_cancel(attempt->query);
        attempt->query = NULL;
        proceed(attempt, false);
        return true;
    }
    return false;
}

/* The older of two attempts makes way, or the only one where there may be no second. */
static void replace(struct attempt *attempt)
{
    bool connecting = attempt->conn != NULL;

    attempt->dial->last = SS_ERR_TIMEOUT;
    if (connecting)
        address_failed(attempt);
    give_up(attempt);
    if (!connecting) /* else on_connected goes on, which is told of the cancelling */
        proceed(attempt, true);
}

void ss_dial_is_late(struct ss_dial *dial)
{
    struct attempt *first = &dial->attempts[0], *second = &dial->attempts[1];
    struct attempt *older = first;

    if (stop_waiting_for_names(dial) || !has_more(dial))
        return;
    if (!is_busy(first) || (is_busy(second) && second->begun_us < first->begun_us))
        older = second;
    if (is_free(other_than(older)) && !older->fast_open && begin_race(dial)) {
        proceed(other_than(older), true);
        return;
    }
    if (age_ms(older) >= ATTEMPT_MS)
        replace(older);
    else
        ss_worker_start_attempt(dial->worker, &dial->session->check, STAGGER_MS);
}

bool ss_dial_start(struct ss_session *session, const struct ss_target *target,
                   const struct ss_ip *addresses, size_t count, bool first_write)
{
    struct ss_worker *worker = session->worker;
    struct ss_dial *dial = ss_pool_acquire(worker->dials);
    struct attempt *attempt;
    struct ss_ip ip;

    if (dial == NULL)
        return false;
    memset(dial, 0, sizeof *dial);
    dial->worker = worker;
    dial->session = session;
    dial->target = *target;
    dial->first_write = first_write;
    dial->last = SS_ERR_NOT_FOUND;
    for (int i = 0; i < ATTEMPTS; i++)
        dial->attempts[i].dial = dial;
    session->dial = dial;
    attempt = &dial->attempts[0];

    if (through_upstream(dial)) {
        dial->untried = session->role->upstreams.count;
        ss_probe_where_due(worker, &session->role->upstreams);
    } else if (count != 0) {
        add_places(attempt, addresses, count, target->port);
    } else if (ss_target_ip(target, &ip)) {
        add_places(attempt, &ip, 1, target->port);
    } else if (ask(attempt, target->name)) {
        return true;
    }
    proceed(attempt, false);
    return true;
}

void ss_dial_cancel(struct ss_dial *dial, bool timed_out)
{
    if (dial == NULL)
        return;
    for (int i = 0; timed_out && i < ATTEMPTS; i++) {
        struct attempt *attempt = &dial->attempts[i];

        if (is_busy(attempt) && through_upstream(dial))
            server_failed(attempt, true);
    }
    finish(dial);
}
