/* The engine: workers, their threads, and the budget of descriptors. */
#include "relay/engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "relay/dialer.h"
#include "relay/engine_internal.h"
#include "relay/ingress.h"
#include "relay/probe.h"

/* Descriptors beside those of sessions: standard streams, log, signals, listeners; and a loop's own
 * with its pipe and those of its resolver. */
#define RESERVE_PROCESS 16
#define RESERVE_LOOP    (4 + SS_PROBES_MAX + SS_SPLICE_DESCRIPTORS)

/* With fewer, UDP is not begun while running. */
#define LATE_ASSOCIATIONS_MIN 16

/* A session's two sockets. */
#define DESCRIPTORS_A_SESSION 2

/* Of so many sessions one may dial two addresses at once, however few descriptors there are. */
#define SESSIONS_A_RACE 16

static uint32_t sockets_an_association(const struct ss_engine_options *options)
{
    return options->bind_ipv4.family || options->bind_ipv6.family ? 2 : 1;
}

static uint32_t sessions_covered(uint32_t descriptors, uint32_t max_connections)
{
    uint32_t unit = SESSIONS_A_RACE * DESCRIPTORS_A_SESSION + SS_DIAL_EXTRA_DESCRIPTORS;
    uint64_t covered = (uint64_t)descriptors * SESSIONS_A_RACE / unit;

    return covered < max_connections ? (uint32_t)covered : max_connections;
}

/* What sessions leave is for races, up to one each, and half of what is above the least of them for
 * ports and UDP that come while running. */
static void share_out_rest(struct ss_engine *engine, uint32_t sessions, uint32_t descriptors)
{
    uint32_t rest = descriptors - sessions * DESCRIPTORS_A_SESSION;
    uint32_t races = sessions / SESSIONS_A_RACE;

    races += (rest - races) / 2;
    engine->max_races = races < sessions ? races : sessions;
    engine->spare_descriptors = rest - engine->max_races * SS_DIAL_EXTRA_DESCRIPTORS;
}

/* How many sessions the descriptors allow: the engine never meets EMFILE of its own making. */
static uint32_t budget(struct ss_engine *engine)
{
    struct ss_engine_options *options = &engine->options;
    unsigned asked = options->workers;
    const uint32_t a_worker = RESERVE_LOOP + ss_resolver_descriptors(options->nameservers);
    uint32_t sockets = sockets_an_association(options);
    uint32_t reserve, covered;

    if (options->bypasses)
        sockets *= 2;

    /* A small limit is better spent on sessions than on loops. */
    while (options->workers > 1 &&
           RESERVE_PROCESS + a_worker * options->workers > options->descriptors / 4)
        options->workers--;
    if (options->workers < asked)
        ss_log_info("workers are lowered from %u to %u: there are %u descriptors", asked,
                    options->workers, options->descriptors);
    reserve = RESERVE_PROCESS + a_worker * options->workers;
    if (options->udp_at_start) {
        engine->max_associations = options->max_associations;
        if (engine->max_associations > options->descriptors / 4 / sockets)
            engine->max_associations = options->descriptors / 4 / sockets;
        reserve += engine->max_associations * sockets;
    }
    if (options->max_answers > options->descriptors / 8)
        options->max_answers = options->descriptors / 8;
    reserve += options->max_answers;
    if (reserve >= options->descriptors)
        return 0;
    covered = sessions_covered(options->descriptors - reserve, options->max_connections);
    if (covered < options->max_connections)
        ss_log_debug("max_connections is lowered from %u to %u, which %u descriptors cover",
                     options->max_connections, covered, options->descriptors);
    share_out_rest(engine, covered, options->descriptors - reserve);
    return covered;
}

enum ss_status ss_engine_reserve_udp(struct ss_engine *engine)
{
    uint32_t sockets = sockets_an_association(&engine->options);
    uint32_t most = engine->spare_descriptors / sockets;

    if (most > engine->options.descriptors / 4 / sockets)
        most = engine->options.descriptors / 4 / sockets;
    if (most < LATE_ASSOCIATIONS_MIN)
        return SS_ERR_LIMIT;
    engine->max_associations =
        engine->options.max_associations < most ? engine->options.max_associations : most;
    engine->spare_descriptors -= engine->max_associations * sockets;
    return SS_OK;
}

/* Descriptors that sessions give for listening sockets. */
static uint32_t lack(const struct ss_engine *engine, uint32_t sockets)
{
    uint64_t there = (uint64_t)engine->options.listeners + engine->spare_descriptors;

    return sockets > there ? (uint32_t)(sockets - there) : 0;
}

bool ss_engine_has_room_for_socket(const struct ss_engine *engine)
{
    return lack(engine, engine->sockets + 1) / DESCRIPTORS_A_SESSION + 1 < engine->pool_sessions;
}

static void fit_sessions(struct ss_engine *engine)
{
    uint32_t missing = lack(engine, engine->sockets) + DESCRIPTORS_A_SESSION - 1;

    engine->max_sessions = engine->pool_sessions - missing / DESCRIPTORS_A_SESSION;
}

void ss_engine_socket_opened(struct ss_engine *engine)
{
    engine->sockets++;
    fit_sessions(engine);
}

void ss_engine_socket_closed(struct ss_engine *engine)
{
    engine->sockets--;
    fit_sessions(engine);
    if (atomic_load(&engine->listeners_paused))
        ss_engine_resume_listeners(engine);
}

void ss_engine_match_udp(struct ss_engine *engine)
{
    for (struct ss_listener *l = engine->listeners; l != NULL; l = l->next)
        if (l->ingress == &ss_ingress_socks5)
            atomic_store_explicit(&l->udp_beside,
                                  ss_udp_port_beside(engine->udp, &l->bound) != NULL,
                                  memory_order_relaxed);
}

static bool copy_text(const char **text)
{
    if (*text == NULL)
        return true;
    *text = strdup(*text);
    return *text != NULL;
}

/* All of them, or NULL where it did not succeed. */
static bool copy_texts(struct ss_engine_options *options)
{
    bool nameservers = copy_text(&options->nameservers);
    bool hosts = copy_text(&options->hosts_path);
    bool interface = copy_text(&options->interface);

    return nameservers && hosts && interface;
}

static void free_texts(struct ss_engine_options *options)
{
    free((char *)(uintptr_t)options->nameservers);
    free((char *)(uintptr_t)options->hosts_path);
    free((char *)(uintptr_t)options->interface);
}

enum ss_status ss_engine_new(struct ss_engine **out, const struct ss_engine_options *options)
{
    struct ss_engine *engine = calloc(1, sizeof *engine);
    enum ss_status status = SS_ERR_MEMORY;

    *out = NULL;
    if (engine == NULL)
        return SS_ERR_MEMORY;
    engine->options = *options;
    if (engine->options.workers == 0)
        engine->options.workers = 1;
    if (!copy_texts(&engine->options)) {
        free_texts(&engine->options);
        free(engine);
        return SS_ERR_MEMORY;
    }
    engine->max_sessions = budget(engine);
    if (engine->max_sessions == 0) {
        free_texts(&engine->options);
        free(engine);
        return SS_ERR_LIMIT;
    }
    engine->workers = calloc(engine->options.workers, sizeof *engine->workers);
    if (engine->workers == NULL) {
        free(engine);
        return SS_ERR_MEMORY;
    }
    for (unsigned i = 0; i < engine->options.workers; i++) {
        status = ss_worker_init(&engine->workers[i], engine, i);
        if (status != SS_OK)
            goto failed;
    }
    engine->pool_sessions = engine->max_sessions;
    status = ss_upstream_names_new(&engine->upstream_names, engine);
    if (status != SS_OK)
        goto failed;
    uv_timer_init(&engine->workers[0].loop, &engine->accept_retry);
    engine->accept_retry.data = engine;
    ss_pressure_start(engine);
    *out = engine;
    return SS_OK;

failed:
    for (unsigned i = 0; i < engine->workers_ready; i++) {
        ss_worker_close(&engine->workers[i]);
        uv_run(&engine->workers[i].loop, UV_RUN_DEFAULT);
        ss_worker_clear(&engine->workers[i]);
    }
    free(engine->workers);
    free_texts(&engine->options);
    free(engine);
    return status;
}

static void run_worker(void *argument)
{
    struct ss_worker *worker = argument;

    uv_run(&worker->loop, UV_RUN_DEFAULT);
}

enum ss_status ss_engine_guard(struct ss_engine *engine, const struct ss_role *role, bool udp,
                               uint16_t port)
{
    if (role->options.ingress != SS_INGRESS_REDIRECT)
        return SS_OK;
    if (engine->guard == NULL)
        engine->guard = ss_loop_guard_new();
    if (engine->guard == NULL)
        return SS_ERR_MEMORY;
    ss_loop_guard_add_port(engine->guard, udp, port);
    return SS_OK;
}

enum ss_status ss_engine_start_workers(struct ss_engine *engine)
{
    for (unsigned i = 1; i < engine->options.workers; i++) {
        struct ss_worker *worker = &engine->workers[i];

        if (uv_thread_create(&worker->thread, run_worker, worker) != 0)
            return SS_ERR_LIMIT;
        engine->threads++;
    }
    return SS_OK;
}

uv_loop_t *ss_engine_loop(struct ss_engine *engine)
{
    return &engine->workers[0].loop;
}

void ss_engine_run(struct ss_engine *engine)
{
    uv_run(&engine->workers[0].loop, UV_RUN_DEFAULT);
    for (unsigned i = 1; i <= engine->threads; i++)
        uv_thread_join(&engine->workers[i].thread);
    engine->threads = 0;
}

void ss_engine_stop(struct ss_engine *engine)
{
    if (engine->stopping)
        return;
    engine->stopping = true;
    atomic_store(&engine->stop_wanted, true);
    for (struct ss_listener *l = engine->listeners; l != NULL; l = l->next)
        ss_listener_close(l);
    uv_close((uv_handle_t *)&engine->accept_retry, NULL);
    ss_pressure_stop(engine);
    ss_upstream_names_close(engine->upstream_names);
    ss_udp_relay_close(engine->udp);
    for (unsigned i = 1; i <= engine->threads; i++)
        uv_async_send(&engine->workers[i].wake);
    ss_worker_close(&engine->workers[0]);
}

void ss_engine_free(struct ss_engine *engine)
{
    if (engine == NULL)
        return;
    /* Never run, or left before it was stopped: unwind here. */
    ss_engine_stop(engine);
    ss_engine_run(engine);
    for (unsigned i = 1; i < engine->workers_ready; i++) {
        ss_worker_close(&engine->workers[i]); /* those whose thread was never started */
        uv_run(&engine->workers[i].loop, UV_RUN_DEFAULT);
    }
    for (unsigned i = 0; i < engine->workers_ready; i++)
        ss_worker_clear(&engine->workers[i]);
    ss_udp_relay_free(engine->udp);
    while (engine->listeners != NULL) {
        struct ss_listener *listener = engine->listeners;

        engine->listeners = listener->next;
        ss_listener_free(listener);
    }
    ss_loop_guard_free(engine->guard);
    free(engine->workers);
    free_texts(&engine->options);
    free(engine);
}

void ss_engine_session_ended(struct ss_engine *engine)
{
    atomic_fetch_sub(&engine->sessions, 1);
    if (atomic_load(&engine->listeners_paused) && !atomic_load(&engine->stop_wanted))
        uv_async_send(&engine->workers[0].wake);
}

bool ss_engine_is_full(const struct ss_engine *engine)
{
    return atomic_load(&engine->sessions) >= engine->max_sessions ||
           ss_pressure_of(engine) == SS_PRESSURE_AT;
}

void ss_engine_resume_listeners(struct ss_engine *engine)
{
    if (engine->stopping || ss_engine_is_full(engine))
        return;
    atomic_store(&engine->listeners_paused, false);
    for (struct ss_listener *l = engine->listeners; l != NULL; l = l->next)
        ss_listener_resume(l);
}

static void add(struct ss_traffic *traffic, const struct ss_counters *counters)
{
    traffic->sessions_opened += ss_counted(&counters->opened);
    traffic->sessions_closed += ss_counted(&counters->closed);
    traffic->rx_bytes += ss_counted(&counters->rx_bytes);
    traffic->tx_bytes += ss_counted(&counters->tx_bytes);
    traffic->rx_wire_bytes += ss_counted(&counters->rx_wire_bytes);
    traffic->handshakes_failed += ss_counted(&counters->handshakes_failed);
    traffic->rx_datagrams += ss_counted(&counters->rx_datagrams);
    traffic->tx_datagrams += ss_counted(&counters->tx_datagrams);
    traffic->associations_opened += ss_counted(&counters->associations_opened);
    traffic->associations_closed += ss_counted(&counters->associations_closed);
}

void ss_engine_keep_traffic(struct ss_engine *engine, const struct ss_counters *counters,
                            size_t count)
{
    for (size_t i = 0; i < count; i++)
        add(&engine->past, &counters[i]);
}

static void add_listener(struct ss_traffic *traffic, const struct ss_listener *listener)
{
    for (unsigned i = 0; i < listener->engine->options.workers; i++)
        add(traffic, &listener->counters[i]);
}

void ss_listener_traffic(const struct ss_listener *listener, struct ss_traffic *traffic)
{
    memset(traffic, 0, sizeof *traffic);
    add_listener(traffic, listener);
}

void ss_udp_port_traffic(const struct ss_udp_port *port, struct ss_traffic *traffic)
{
    memset(traffic, 0, sizeof *traffic);
    add(traffic, port->counters);
}

void ss_engine_traffic(const struct ss_engine *engine, struct ss_traffic *traffic)
{
    *traffic = engine->past;
    for (const struct ss_listener *l = engine->listeners; l != NULL; l = l->next)
        add_listener(traffic, l);
    if (engine->udp != NULL)
        for (const struct ss_udp_port *port = engine->udp->ports; port != NULL; port = port->next)
            add(traffic, port->counters);
}

uint32_t ss_engine_sessions(const struct ss_engine *engine)
{
    return atomic_load_explicit(&engine->sessions, memory_order_relaxed);
}
