/* A worker: its loop, its timer, and what other threads send to it. */
#include "relay/worker.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "codec/codec.h"
#include "acl/acl.h"
#include "net/socket.h"
#include "relay/access.h"
#include "relay/dialer.h"
#include "relay/ending.h"
#include "relay/engine_internal.h"
#include "relay/probe.h"
#include "relay/session.h"
#include "relay/session_limits.h"
#include "relay/udp_name.h"

/* How long a client's header waits for the first payload, beside the connecting. */
#define FIRST_PAYLOAD_MS 20

/* Connections that live shorter never wait for a keep-alive probe. */
#define SETTLE_MS 10000

/* What a look-up may add to the time of a dial. */
#define LOOK_UP_MS 10000

/* In rising order. */
static const uint32_t attempt_waits_ms[SS_ATTEMPT_WAITS] = {100, 150, 250, 500, 1000, 2000};

/* How often a source that is not read, since its sink takes nothing, is asked whether it is there.
 */
#define STALL_MS 2000

/* How often a broken stream's sink is asked whether it has got everything. */
#define DRAIN_MS 200

/* How often pools are asked to give back what was not needed. */
#define TRIM_MS 1000
/* And while memory is short. */
#define TRIM_SHORT_MS 100

/* Slots and blocks that stay resident though free. */
#define KEEP_SESSIONS 32
#define KEEP_BLOCKS   8

/* Blocks a session, on average, for which there is address space. */
#define BLOCKS_A_SESSION 4

/* More than sealing adds to a read: the salt, the header, and what each chunk adds. */
#define SEALED_EXTRA (16u * 1024u)

static void arm(struct ss_worker *worker);

/* -- deadlines -- */

static void run_session_queue(struct ss_worker *worker, struct ss_deadline_queue *queue)
{
    struct ss_deadline *due;

    while ((due = ss_deadline_pop(queue, uv_now(&worker->loop))) != NULL)
        ss_session_deadline(SS_CONTAINER_OF(due, struct ss_session, deadline));
}

static void run_check_queue(struct ss_worker *worker, struct ss_deadline_queue *queue)
{
    struct ss_deadline *due;

    while ((due = ss_deadline_pop(queue, uv_now(&worker->loop))) != NULL)
        ss_session_check(SS_CONTAINER_OF(due, struct ss_session, check));
}

static void run_throttle_queue(struct ss_worker *worker)
{
    struct ss_deadline *due;

    while ((due = ss_deadline_pop(&worker->throttle, uv_now(&worker->loop))) != NULL)
        ss_flow_read(SS_CONTAINER_OF(due, struct ss_flow, throttle));
}

/* The relay of datagrams, if this is its worker. */
static struct ss_udp_relay *udp_of(struct ss_worker *worker)
{
    return worker->index == 0 ? worker->engine->udp : NULL;
}

static uint64_t trim_ms(const struct ss_worker *worker)
{
    return ss_pressure_of(worker->engine) == SS_PRESSURE_NONE ? TRIM_MS : TRIM_SHORT_MS;
}

static void trim(struct ss_worker *worker)
{
    struct ss_udp_relay *udp = udp_of(worker);
    uint32_t left = ss_pool_trim(worker->blocks) + ss_pool_trim(worker->sessions) +
                    ss_pool_trim(worker->conns) + ss_pool_trim(worker->dials) +
                    ss_pool_trim(worker->probes) + ss_pool_trim(worker->decisions);
    bool in_use = worker->open != NULL;

    if (udp != NULL) {
        left += ss_associations_trim(&udp->associations);
        if (udp->sessions != NULL)
            left += ss_packet_sessions_trim(udp->sessions);
        left += ss_udp_answers_trim(udp->answers);
        in_use = in_use || ss_deadline_first(&udp->associations.idle) != NULL;
    }
    worker->trim_due_ms = left != 0 || in_use ? uv_now(&worker->loop) + trim_ms(worker) : 0;
}

static void on_timer(uv_timer_t *timer)
{
    struct ss_worker *worker = timer->data;
    struct ss_deadline *due;

    worker->timer_due_ms = 0;
    while ((due = ss_deadline_pop(&worker->first_payload, uv_now(&worker->loop))) != NULL)
        ss_session_first_payload_deadline(SS_CONTAINER_OF(due, struct ss_session, first_payload));
    while ((due = ss_deadline_pop(&worker->settle, uv_now(&worker->loop))) != NULL)
        ss_session_settle(SS_CONTAINER_OF(due, struct ss_session, settle));
    run_throttle_queue(worker);
    run_check_queue(worker, &worker->drain);
    run_check_queue(worker, &worker->stall);
    for (size_t i = 0; i < SS_ATTEMPT_WAITS; i++)
        run_check_queue(worker, &worker->attempts[i]);
    ss_probes_expire(worker);
    run_check_queue(worker, &worker->fast_open);
    run_session_queue(worker, &worker->connect);
    run_session_queue(worker, &worker->dial);
    run_session_queue(worker, &worker->handshake);
    run_session_queue(worker, &worker->half_open);
    run_session_queue(worker, &worker->idle);
    if (udp_of(worker) != NULL)
        ss_udp_relay_expire(udp_of(worker), uv_now(&worker->loop));
    if (worker->trim_due_ms != 0 && worker->trim_due_ms <= uv_now(&worker->loop))
        trim(worker);
    arm(worker);
}

void ss_worker_arm(struct ss_worker *worker, uint64_t due_ms)
{
    uint64_t now_ms = uv_now(&worker->loop);

    if (worker->closing || (worker->timer_due_ms != 0 && worker->timer_due_ms <= due_ms))
        return;
    worker->timer_due_ms = due_ms;
    uv_timer_start(&worker->timer, on_timer, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

/* Sets the timer to what comes first. */
static void arm(struct ss_worker *worker)
{
    struct ss_deadline_queue *const queues[] = {
        &worker->first_payload, &worker->settle,    &worker->throttle,  &worker->stall,
        &worker->drain,         &worker->probing,   &worker->fast_open, &worker->connect,
        &worker->dial,          &worker->handshake, &worker->half_open, &worker->idle};

    for (size_t i = 0; i < sizeof queues / sizeof queues[0]; i++) {
        struct ss_deadline *first = ss_deadline_first(queues[i]);

        if (first != NULL)
            ss_worker_arm(worker, first->due_ms);
    }
    for (size_t i = 0; i < SS_ATTEMPT_WAITS; i++) {
        struct ss_deadline *first = ss_deadline_first(&worker->attempts[i]);

        if (first != NULL)
            ss_worker_arm(worker, first->due_ms);
    }
    if (udp_of(worker) != NULL) {
        uint64_t due_ms = ss_udp_relay_due_ms(udp_of(worker));

        if (due_ms != 0)
            ss_worker_arm(worker, due_ms);
    }
    if (worker->trim_due_ms != 0)
        ss_worker_arm(worker, worker->trim_due_ms);
}

void ss_worker_start_deadline(struct ss_worker *worker, struct ss_deadline_queue *queue,
                              struct ss_deadline *entry)
{
    ss_deadline_start(queue, entry, uv_now(&worker->loop));
    ss_worker_arm(worker, entry->due_ms);
}

void ss_worker_start_attempt(struct ss_worker *worker, struct ss_deadline *entry, uint32_t wait_ms)
{
    size_t i = 0;

    while (i + 1 < SS_ATTEMPT_WAITS && attempt_waits_ms[i] < wait_ms)
        i++;
    ss_worker_start_deadline(worker, &worker->attempts[i], entry);
}

/* -- what comes from other threads -- */

bool ss_worker_hand_over(struct ss_worker *worker, const struct ss_handoff *handoff)
{
    bool taken = false;

    uv_mutex_lock(&worker->handoff_lock);
    if (worker->handoff_count < worker->handoff_cap) {
        uint32_t last = (worker->handoff_first + worker->handoff_count) % worker->handoff_cap;

        worker->handoffs[last] = *handoff;
        worker->handoff_count++;
        taken = true;
    }
    uv_mutex_unlock(&worker->handoff_lock);
    if (taken)
        uv_async_send(&worker->wake);
    return taken;
}

static bool next_handoff(struct ss_worker *worker, struct ss_handoff *handoff)
{
    bool there = false;

    uv_mutex_lock(&worker->handoff_lock);
    if (worker->handoff_count != 0) {
        *handoff = worker->handoffs[worker->handoff_first];
        worker->handoff_first = (worker->handoff_first + 1) % worker->handoff_cap;
        worker->handoff_count--;
        there = true;
    }
    uv_mutex_unlock(&worker->handoff_lock);
    return there;
}

void ss_worker_start_trimming(struct ss_worker *worker)
{
    if (worker->trim_due_ms != 0)
        return;
    worker->trim_due_ms = uv_now(&worker->loop) + TRIM_MS;
    ss_worker_arm(worker, worker->trim_due_ms);
}

void ss_worker_take(struct ss_worker *worker, const struct ss_handoff *handoff)
{
    ss_worker_start_trimming(worker);
    if (handoff->associate)
        ss_session_start_associate(worker, handoff);
    else
        ss_session_start(worker, handoff);
}

static void on_wake(uv_async_t *wake)
{
    struct ss_worker *worker = wake->data;
    struct ss_handoff handoff;

    if (atomic_load(&worker->engine->stop_wanted)) {
        ss_worker_close(worker);
        return;
    }
    while (next_handoff(worker, &handoff))
        ss_worker_take(worker, &handoff);
    ss_worker_end_sessions(worker);
    if (worker->index != 0)
        return;
    if (atomic_exchange(&worker->engine->sweep_wanted, false))
        ss_engine_sweep_listeners(worker->engine);
    if (atomic_load(&worker->engine->listeners_paused))
        ss_engine_resume_listeners(worker->engine);
}

/* -- beginning and end -- */

static void retire_session(void *slot)
{
    ss_codec_retire(ss_session_codec(slot));
}

static enum ss_status make_pools(struct ss_worker *worker)
{
    struct ss_engine *engine = worker->engine;
    uint32_t sessions = engine->max_sessions;
    uint32_t share = (sessions + engine->options.workers - 1) / engine->options.workers;

    /* Any one worker may come to hold all sessions; blocks are reckoned by its share of them. */
    worker->sessions = ss_pool_new(
        &(struct ss_pool_options){.slot_size = SS_SESSION_CODEC_OFFSET + engine->options.codec_size,
                                  .capacity = sessions,
                                  .keep = KEEP_SESSIONS,
                                  .retire = retire_session});
    worker->conns = ss_pool_new(&(struct ss_pool_options){
        .slot_size = sizeof(struct ss_conn), .capacity = 4 * sessions, .keep = 2 * KEEP_SESSIONS});
    worker->dials = ss_pool_new(&(struct ss_pool_options){
        .slot_size = ss_dial_size(), .capacity = 2 * sessions, .keep = KEEP_SESSIONS});
    worker->probes = ss_pool_new(
        &(struct ss_pool_options){.slot_size = ss_probe_size(), .capacity = SS_PROBES_MAX});
    worker->decisions = ss_pool_new(&(struct ss_pool_options){
        .slot_size = ss_access_size(), .capacity = sessions, .keep = KEEP_SESSIONS});
    worker->blocks = ss_pool_new(
        &(struct ss_pool_options){.slot_size = SS_BLOCK_SIZE,
                                  .capacity = share * BLOCKS_A_SESSION + 2 * KEEP_BLOCKS,
                                  .keep = KEEP_BLOCKS});
    if (worker->sessions == NULL || worker->conns == NULL || worker->dials == NULL ||
        worker->probes == NULL || worker->decisions == NULL || worker->blocks == NULL)
        return SS_ERR_MEMORY;
    if (ss_pool_capacity(worker->sessions) < sessions) {
        engine->max_sessions = ss_pool_capacity(worker->sessions);
        ss_log_warn("address space is short: max_connections is lowered to %u",
                    engine->max_sessions);
    }
    return SS_OK;
}

/* A worker's part of what all have together. */
static uint32_t share_of(uint32_t whole, unsigned workers)
{
    return whole / workers + (whole % workers != 0);
}

enum ss_status ss_worker_init(struct ss_worker *worker, struct ss_engine *engine, unsigned index)
{
    const struct ss_engine_options *options = &engine->options;
    const struct ss_resolver_options resolver = {
        .nameservers = options->nameservers,
        .ipv6_first = options->ipv6_first,
        .hosts_path = options->hosts_path,
        .mark = options->mark,
        .max_queries = 2 * engine->max_sessions + SS_UDP_ASKING_MAX,
        .max_names = share_of(options->max_dns_queries, options->workers)};
    enum ss_status status;

    worker->engine = engine;
    worker->index = index;
    if (uv_loop_init(&worker->loop) != 0)
        return SS_ERR_LIMIT;
    if (uv_mutex_init(&worker->handoff_lock) != 0) {
        uv_loop_close(&worker->loop);
        return SS_ERR_MEMORY;
    }
    if (uv_async_init(&worker->loop, &worker->wake, on_wake) != 0) {
        uv_mutex_destroy(&worker->handoff_lock);
        uv_loop_close(&worker->loop);
        return SS_ERR_LIMIT;
    }
    worker->wake.data = worker;
    uv_timer_init(&worker->loop, &worker->timer);
    worker->timer.data = worker;
    engine->workers_ready = index + 1; /* from here on ss_worker_close undoes it */

    ss_deadline_queue_init(&worker->handshake, options->handshake_timeout_ms);
    ss_deadline_queue_init(&worker->connect, options->connect_timeout_ms);
    ss_deadline_queue_init(&worker->idle, options->tcp_idle_timeout_ms);
    ss_deadline_queue_init(&worker->half_open, options->half_open_timeout_ms);
    ss_deadline_queue_init(&worker->first_payload, FIRST_PAYLOAD_MS);
    ss_deadline_queue_init(&worker->settle, SETTLE_MS);
    ss_deadline_queue_init(&worker->dial, LOOK_UP_MS + options->connect_timeout_ms);
    for (size_t i = 0; i < SS_ATTEMPT_WAITS; i++)
        ss_deadline_queue_init(&worker->attempts[i], attempt_waits_ms[i]);
    ss_deadline_queue_init(&worker->probing, options->connect_timeout_ms);
    ss_deadline_queue_init(&worker->fast_open, options->connect_timeout_ms);
    ss_deadline_queue_init(&worker->stall, STALL_MS);
    ss_deadline_queue_init(&worker->drain, DRAIN_MS);
    ss_deadline_queue_init(&worker->throttle, SS_THROTTLE_MS);
    worker->unproven_max = engine->max_sessions / 2 / options->workers;
    if (worker->unproven_max == 0)
        worker->unproven_max = 1;

    status = make_pools(worker);
    if (status != SS_OK)
        return status;
    worker->handoff_cap = engine->max_sessions;
    worker->handoffs = calloc(worker->handoff_cap, sizeof *worker->handoffs);
    if (worker->handoffs == NULL)
        return SS_ERR_MEMORY;
    /* From malloc's mmap: resident where touched, so small traffic costs a page or two. */
    worker->read_scratch = malloc(SS_BLOCK_SIZE + SS_READ_SIZE);
    worker->write_scratch_len = SS_READ_SIZE + SEALED_EXTRA;
    worker->write_scratch = malloc(worker->write_scratch_len);
    worker->acl_scratch = ss_acl_scratch_new();
    if (worker->read_scratch == NULL || worker->write_scratch == NULL ||
        worker->acl_scratch == NULL)
        return SS_ERR_MEMORY;
    return ss_resolver_new(&worker->resolver, &worker->loop, &resolver);
}

void ss_worker_close(struct ss_worker *worker)
{
    struct ss_handoff handoff;

    if (worker->closing)
        return;
    worker->closing = true;
    while (next_handoff(worker, &handoff)) {
        ss_socket_close(handoff.fd);
        ss_session_place_is_free(worker, handoff.listener, handoff.role);
    }
    while (worker->open != NULL)
        ss_session_stop(worker->open);
    ss_probes_close(worker);
    ss_resolver_close(worker->resolver);
    worker->resolver = NULL;
    uv_close((uv_handle_t *)&worker->wake, NULL);
    uv_close((uv_handle_t *)&worker->timer, NULL);
}

void ss_worker_clear(struct ss_worker *worker)
{
    ss_session_release_closed(worker);
    ss_endings_clear(worker);
    uv_loop_close(&worker->loop);
    uv_mutex_destroy(&worker->handoff_lock);
    ss_pool_free(worker->sessions);
    ss_pool_free(worker->conns);
    ss_pool_free(worker->dials);
    ss_pool_free(worker->probes);
    ss_pool_free(worker->decisions);
    ss_acl_scratch_free(worker->acl_scratch);
    ss_pool_free(worker->blocks);
    ss_splice_close(&worker->splice);
    free(worker->handoffs);
    free(worker->read_scratch);
    free(worker->write_scratch);
}
