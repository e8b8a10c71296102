/* Listening ports. */
#include "relay/listener.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "codec/codec.h"
#include "codec/packet.h"
#include "net/socket.h"
#include "relay/access.h"
#include "relay/engine_internal.h"
#include "relay/ingress.h"

/* Taken in one round of events, then others have their turn. */
#define ACCEPT_BATCH 64

/* How often a listener that sees single connections looks whether more than one is waiting. */
#define CROWD_CHECK 32

/* So long nothing is accepted after the system was out of descriptors or memory. */
#define ACCEPT_RETRY_MS 100
/* And so seldom it is said. */
#define ACCEPT_LOG_MS 1000

static const struct ss_ingress *const ingresses[] = {
    [SS_INGRESS_SOCKS5] = &ss_ingress_socks5,
    [SS_INGRESS_FIXED] = &ss_ingress_fixed,
    [SS_INGRESS_SHADOWSOCKS] = &ss_ingress_shadowsocks,
    [SS_INGRESS_REDIRECT] = &ss_ingress_redirect,
};

const struct ss_ingress *ss_ingress_of(enum ss_ingress_kind kind)
{
    return ingresses[kind];
}

/* The worker with the fewest sessions; of equals the first, whose pools are warm. */
static struct ss_worker *least_busy(struct ss_engine *engine)
{
    struct ss_worker *best = &engine->workers[0];
    uint32_t fewest = atomic_load_explicit(&best->session_count, memory_order_relaxed);

    for (unsigned i = 1; i < engine->workers_ready; i++) {
        struct ss_worker *worker = &engine->workers[i];
        uint32_t count = atomic_load_explicit(&worker->session_count, memory_order_relaxed);

        if (count < fewest) {
            best = worker;
            fewest = count;
        }
    }
    return best;
}

static void dispatch(struct ss_engine *engine, const struct ss_handoff *handoff)
{
    struct ss_worker *worker = least_busy(engine);

    ss_listener_hold(handoff->listener);
    ss_role_hold(handoff->role);
    atomic_fetch_add_explicit(&engine->sessions, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&worker->session_count, 1, memory_order_relaxed);
    if (worker->index != 0) {
        if (ss_worker_hand_over(worker, handoff))
            return;
        /* It does not keep up: loop 0 takes this one. */
        atomic_fetch_sub_explicit(&worker->session_count, 1, memory_order_relaxed);
        worker = &engine->workers[0];
        atomic_fetch_add_explicit(&worker->session_count, 1, memory_order_relaxed);
    }
    ss_worker_take(worker, handoff);
}

static void on_accept_retry(uv_timer_t *timer)
{
    ss_engine_resume_listeners(timer->data);
}

static void out_of_descriptors(struct ss_engine *engine)
{
    uint64_t now_ms = uv_now(&engine->workers[0].loop);

    if (engine->accept_logged_ms + ACCEPT_LOG_MS <= now_ms) {
        engine->accept_logged_ms = now_ms;
        ss_log_limited(&engine->accept_log, now_ms, SS_LOG_ERROR,
                       "accept: the system is out of descriptors or memory; trying again");
    }
    for (struct ss_listener *l = engine->listeners; l != NULL; l = l->next)
        ss_listener_pause(l);
    atomic_store(&engine->listeners_paused, true);
    uv_timer_start(&engine->accept_retry, on_accept_retry, ACCEPT_RETRY_MS, 0);
}

/* No place for another connection: the kernel's queue holds what comes until a session ends. */
static void wait_for_room(struct ss_engine *engine)
{
    for (struct ss_listener *l = engine->listeners; l != NULL; l = l->next)
        ss_listener_pause(l);
    atomic_store(&engine->listeners_paused, true);
    /* One may have ended since we looked, and not have seen that we pause. */
    if (!ss_engine_is_full(engine))
        ss_engine_resume_listeners(engine);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct ss_listener *listener = poll->data;
    struct ss_engine *engine = listener->engine;

    (void)status;
    (void)events;
    for (int i = 0; i < ACCEPT_BATCH && listener->accepting; i++) {
        struct ss_handoff handoff = {.listener = listener, .role = listener->role};
        enum ss_status result;

        if (ss_engine_is_full(engine)) {
            wait_for_room(engine);
            return;
        }
        result = ss_socket_accept(listener->fd, &handoff.fd, &handoff.peer);
        if (result == SS_NEED_INPUT) {
            listener->crowded = i > 1;
            return;
        }
        if (result == SS_ERR_LIMIT) {
            out_of_descriptors(engine);
            return;
        }
        if (result == SS_OK && ss_access_refuses_client(engine, listener->role, &handoff.peer.ip))
            ss_socket_close(handoff.fd);
        else if (result == SS_OK)
            dispatch(engine, &handoff);
        if (i == 0 && !listener->crowded && !(listener->turn++ % CROWD_CHECK == 0))
            return; /* seldom is there a second; polling tells if there is */
    }
}

void ss_listener_resume(struct ss_listener *listener)
{
    if (listener->accepting || listener->fd < 0)
        return;
    listener->accepting = uv_poll_start(&listener->poll, UV_READABLE, on_readable) == 0;
}

void ss_listener_pause(struct ss_listener *listener)
{
    if (!listener->accepting)
        return;
    listener->accepting = false;
    uv_poll_stop(&listener->poll);
}

static void on_closed(uv_handle_t *handle)
{
    ss_listener_release(handle->data);
}

void ss_listener_close(struct ss_listener *listener)
{
    if (listener->fd < 0)
        return;
    ss_listener_pause(listener);
    uv_close((uv_handle_t *)&listener->poll, on_closed);
    ss_socket_close(listener->fd);
    listener->fd = -1;
}

struct ss_addr ss_listener_address(const struct ss_listener *listener)
{
    return listener->bound;
}

void ss_listener_hold(struct ss_listener *listener)
{
    atomic_fetch_add_explicit(&listener->holders, 1, memory_order_relaxed);
}

void ss_listener_release(struct ss_listener *listener)
{
    struct ss_engine *engine = listener->engine;

    /* The handle holds it while it listens. From here on it is loop 0's to free. */
    if (atomic_fetch_sub_explicit(&listener->holders, 1, memory_order_acq_rel) != 1)
        return;
    atomic_store(&engine->sweep_wanted, true);
    if (!atomic_load(&engine->stop_wanted))
        uv_async_send(&engine->workers[0].wake);
}

void ss_listener_free(struct ss_listener *listener)
{
    ss_role_release(listener->role);
    free(listener->counters);
    free(listener);
}

void ss_engine_sweep_listeners(struct ss_engine *engine)
{
    struct ss_listener **link = &engine->listeners;

    while (*link != NULL) {
        struct ss_listener *listener = *link;

        if (!listener->removed ||
            atomic_load_explicit(&listener->holders, memory_order_acquire) != 0) {
            link = &listener->next;
            continue;
        }
        *link = listener->next;
        ss_engine_keep_traffic(engine, listener->counters, engine->options.workers);
        ss_listener_free(listener);
    }
}

void ss_engine_unlisten(struct ss_engine *engine, struct ss_listener *listener)
{
    ss_listener_close(listener);
    /* What it was for may go; sessions hold theirs. */
    ss_role_release(listener->role);
    listener->role = NULL;
    listener->removed = true;
    ss_engine_socket_closed(engine);
}

/* Whether sessions have room for the codecs of all profiles. */
static bool codecs_fit(const struct ss_engine *engine, const struct ss_role_options *options)
{
    size_t room = engine->options.codec_size;

    for (size_t i = 0; i < options->upstream_count; i++)
        if (ss_codec_size(options->upstreams[i].profile) > room)
            return false;
    return options->profile == NULL || ss_codec_size(options->profile) <= room;
}

bool ss_engine_fits(const struct ss_engine *engine, const struct ss_role *role)
{
    const struct ss_role_options *options = &role->options;
    size_t room = engine->options.packet_link_size;

    if (options->profile != NULL && ss_packet_link_size(options->profile) > room)
        return false;
    for (size_t i = 0; i < options->upstream_count; i++)
        if (ss_packet_link_size(options->upstreams[i].profile) > room)
            return false;
    return codecs_fit(engine, options);
}

enum ss_status ss_listener_set_role(struct ss_listener *listener, struct ss_role *role)
{
    if (role->options.ingress != listener->role->options.ingress ||
        !codecs_fit(listener->engine, &role->options))
        return SS_ERR_ARGUMENT;
    ss_upstream_names_watch(listener->engine->upstream_names, role);
    ss_role_hold(role);
    ss_role_release(listener->role);
    listener->role = role;
    return SS_OK;
}

enum ss_status ss_engine_listen(struct ss_engine *engine, const struct ss_listener_options *options,
                                struct ss_listener **out, const char **error_text)
{
    const struct ss_listen_options how = {
        .binder = engine->options.binder,
        .backlog = options->backlog,
        .ipv6_only = options->ipv6_only,
        .reuse_port = options->reuse_port,
        .fast_open = options->fast_open,
        .mptcp = options->mptcp,
        .keep_alive_s = options->keep_alive_s,
        .transparent = options->role->options.tproxy,
        .sndbuf = options->incoming_sndbuf,
        .rcvbuf = options->incoming_rcvbuf,
    };
    struct ss_listener *listener = calloc(1, sizeof *listener);
    size_t counters_size = engine->options.workers * sizeof(struct ss_counters);
    enum ss_status status = SS_ERR_MEMORY;

    if (out != NULL)
        *out = NULL;
    if (listener == NULL)
        return SS_ERR_MEMORY;
    if (!codecs_fit(engine, &options->role->options)) {
        free(listener);
        return SS_ERR_ARGUMENT;
    }
    listener->engine = engine;
    listener->ingress = ss_ingress_of(options->role->options.ingress);
    listener->fd = -1;
    listener->counters = aligned_alloc(_Alignof(struct ss_counters), counters_size);
    if (listener->counters == NULL)
        goto failed;
    memset(listener->counters, 0, counters_size);

    status = SS_ERR_LIMIT;
    if (!ss_engine_has_room_for_socket(engine))
        goto failed;
    status = ss_socket_listen(&listener->fd, &options->address, &how, error_text);
    if (status != SS_OK)
        goto failed;
    ss_socket_local(listener->fd, &listener->bound);
    status = ss_engine_guard(engine, options->role, false, listener->bound.port);
    if (status != SS_OK)
        goto failed;
    status = SS_ERR_MEMORY;
    if (uv_poll_init(&engine->workers[0].loop, &listener->poll, listener->fd) != 0)
        goto failed;
    listener->poll.data = listener;
    listener->role = ss_role_hold(options->role);
    ss_upstream_names_watch(engine->upstream_names, listener->role);
    atomic_init(&listener->holders, 1); /* the handle */
    listener->next = engine->listeners;
    engine->listeners = listener;
    ss_engine_socket_opened(engine);
    ss_engine_match_udp(engine);
    ss_listener_resume(listener);
    if (out != NULL)
        *out = listener;
    return SS_OK;

failed:
    ss_socket_close(listener->fd);
    free(listener->counters);
    free(listener);
    return status;
}
