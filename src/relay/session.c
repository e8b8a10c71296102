/* The events of a session: accepted, learned its target, connected, ended. */
#include "relay/session.h"

#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "net/socket.h"
#include "net/sockopt.h"
#include "net/tcp.h"
#include "relay/access.h"
#include "relay/dialer.h"
#include "relay/engine_internal.h"
#include "relay/ingress.h"
#include "relay/session_limits.h"

static void remember(struct ss_session *session)
{
    struct ss_worker *worker = session->worker;

    session->next = worker->open;
    if (worker->open != NULL)
        worker->open->prev = session;
    worker->open = session;
}

/*
 * Those that have not proved anything may hold half of the places; above that the oldest goes, in
 * the manner of its protocol, so that a flood of silent connections does not shut clients out.
 */
static void make_way_for_the_unproven(struct ss_worker *worker)
{
    struct ss_deadline *oldest;

    if (worker->unproven <= worker->unproven_max)
        return;
    oldest = ss_deadline_first(&worker->handshake);
    if (oldest != NULL)
        ss_session_deadline(SS_CONTAINER_OF(oldest, struct ss_session, deadline));
}

/* For `-v`, in the classic words. */
static void log_target(const struct ss_session *session, const struct ss_target *target)
{
    char text[SS_TARGET_TEXT_MAX];

    if (ss_log_get_level() < SS_LOG_DEBUG)
        return;
    ss_target_format(target, text);
    if (session->role->options.ingress == SS_INGRESS_SHADOWSOCKS)
        ss_log_info("[%u] connect to %s", session->listener->bound.port, text);
    else if (session->role->options.ingress == SS_INGRESS_REDIRECT)
        ss_log_info("redir to %s", text);
    else
        ss_log_info("connect to %s", text);
}

void ss_session_dial(struct ss_session *session, const struct ss_target *target,
                     const struct ss_ip *addresses, size_t count)
{
    bool sends_at_once = session->up.waiting.len != 0 && !session->bypassed;

    if (ss_session_has_upstream(session)) {
        if (session->up.waiting.len == 0)
            ss_worker_start_deadline(session->worker, &session->worker->first_payload,
                                     &session->first_payload);
        sends_at_once = true; /* the header, if nothing else */
    }
    if (!ss_dial_start(session, target, addresses, count, sends_at_once))
        ss_session_abort(session);
}

static void reach(struct ss_session *session, const struct ss_target *target)
{
    log_target(session, target);
    ss_session_enter(session, SS_PHASE_DIAL);
    ss_access_begin(session, target);
    if (session->phase == SS_PHASE_DIAL)
        ss_flow_read(&session->up);
}

struct ss_session *ss_session_new(struct ss_worker *worker, const struct ss_handoff *handoff)
{
    struct ss_listener *listener = handoff->listener;
    const struct ss_ingress *ingress = listener->ingress;
    struct ss_session *session = ss_pool_acquire(worker->sessions);

    if (session ==
        NULL) { /* the engine's limit is not above the pool's: only after a failed mmap */
        ss_socket_close(handoff->fd);
        ss_session_place_is_free(worker, listener, handoff->role);
        return NULL;
    }
    memset(session, 0, sizeof *session);
    session->worker = worker;
    session->listener = listener;
    session->role = handoff->role;
    session->counters = &listener->counters[worker->index];
    session->peer = handoff->peer;
    session->active_ms = uv_now(&worker->loop);
    session->phase = SS_PHASE_CLOSING; /* until there is something to close */
    session->up.session = session->down.session = session;
    session->up.work = ingress->up;
    session->down.work = ingress->down;
    if (session->role->options.egress == SS_EGRESS_UPSTREAM) {
        session->up.work = SS_FLOW_SEAL;
        session->down.work = SS_FLOW_OPEN;
    }
    remember(session);
    ss_count(&session->counters->opened, 1);

    session->inbound = ss_conn_open(worker, session, handoff->fd);
    ss_session_enter(session, SS_PHASE_REQUEST);
    if (session->inbound == NULL) {
        ss_session_close(session);
        ss_session_release_closed(worker); /* no handle will do it */
        return NULL;
    }
    session->inbound->flow = &session->up;
    session->up.source = session->down.sink = session->inbound;
    return session;
}

void ss_session_start(struct ss_worker *worker, const struct ss_handoff *handoff)
{
    const struct ss_ingress *ingress = handoff->listener->ingress;
    struct ss_session *session = ss_session_new(worker, handoff);

    if (session == NULL)
        return;
    if (ingress->up == SS_FLOW_OPEN &&
        ss_codec_begin(ss_session_codec(session), session->role->options.profile,
                       SS_CODEC_SERVER) != SS_OK) {
        ss_session_abort(session);
        return;
    }
    if (ingress->find != NULL) {
        struct ss_target target;

        if (ingress->find(session, &target) == SS_OK)
            reach(session, &target);
        else
            ss_session_close(session);
        return;
    }
    make_way_for_the_unproven(worker);
    if (session->phase == SS_PHASE_REQUEST)
        ss_flow_read(&session->up);
}

void ss_session_log_opening(struct ss_session *session, enum ss_status status)
{
    struct ss_worker *worker = session->worker;
    struct ss_log_limit *limit = &worker->engine->opening_log;
    uint64_t now_ms = uv_now(&worker->loop);
    char peer[SS_IP_TEXT_MAX];

    switch (status) {
    case SS_ERR_STALE:
        ss_log_limited(limit, now_ms, SS_LOG_ERROR,
                       "%s: the clocks differ by %" PRId64 " s, and 30 s are allowed: set both",
                       session->outbound != NULL ? "server" : ss_ip_format(&session->peer.ip, peer),
                       ss_codec_clock_difference(ss_session_codec(session)));
        break;
    case SS_ERR_CLOCK:
        ss_log_limited(limit, now_ms, SS_LOG_ERROR,
                       "the clock was set back: new connections are refused until it is where it "
                       "was, because they might be repeats");
        break;
    case SS_ERR_LIMIT:
        ss_log_limited(limit, now_ms, SS_LOG_ERROR,
                       "the salt pool is full: new connections are refused; raise salt_pool");
        break;
    default:
        ss_log_debug("what a peer sent could not be opened: %s", ss_status_text(status));
    }
}

static void refuse(struct ss_session *session, enum ss_status status)
{
    ss_flow_drop_rest(&session->up);
    ss_count(&session->counters->handshakes_failed, 1);
    session->listener->ingress->refuse(session, status);
}

void ss_session_request_bytes(struct ss_session *session, struct ss_span bytes)
{
    const struct ss_ingress *ingress = session->listener->ingress;
    struct ss_opened early = {0};
    struct ss_target target;
    enum ss_status status;

    if (session->phase != SS_PHASE_REQUEST)
        return; /* refused, or a control: what comes means nothing */
    status = ingress->learn(session, bytes, &early, &target);
    if (session->phase != SS_PHASE_REQUEST)
        return;
    if (status != SS_OK && status != SS_NEED_INPUT) {
        refuse(session, status);
        return;
    }
    if (!ss_flow_keep_rest(&session->up, bytes.ptr + bytes.len - early.rest_len, early.rest_len)) {
        ss_session_abort(session);
        return;
    }
    if (status == SS_NEED_INPUT)
        return;
    if (!ss_session_admit(session)) {
        ss_log_debug("a session is refused: the limit of its port or user is reached");
        ss_session_close(session);
        return;
    }
    ss_flow_count(&session->up, early.payload_len);
    ss_flow_deliver(&session->up, early.payload, early.count);
    if (session->phase == SS_PHASE_REQUEST)
        reach(session, &target);
}

void ss_session_source_ended(struct ss_session *session, struct ss_flow *flow, bool broken)
{
    if (session->phase <= SS_PHASE_ASSOCIATE) {
        ss_log_debug("a connection ended before its request was complete");
        ss_session_close(session);
        return;
    }
    /* A client that is gone for good needs no connection made for it. */
    if (session->phase == SS_PHASE_DIAL && broken) {
        ss_session_abort(session);
        return;
    }
    ss_flow_end(flow, broken);
}

void ss_session_connected(struct ss_session *session, struct ss_conn *outbound,
                          const struct ss_profile *profile, const struct ss_target *target)
{
    struct ss_flow *up = &session->up;
    bool header_now = !ss_deadline_pending(&session->first_payload);

    session->dial = NULL;
    session->outbound = outbound;
    outbound->flow = &session->down;
    session->down.source = outbound;
    session->down.reading = true; /* ahead, since it began to connect */
    ss_session_touch(session);
    ss_deadline_stop(&session->check);
    ss_session_enter(session, SS_PHASE_STREAM);
    ss_worker_start_deadline(session->worker, &session->worker->settle, &session->settle);
    if (up->ended)
        ss_session_half_open(session);
    if (session->fast_opened)
        ss_worker_start_deadline(session->worker, &session->worker->fast_open, &session->check);
    if (profile != NULL) {
        struct ss_codec *codec = ss_session_codec(session);

        if (ss_codec_begin(codec, profile, SS_CODEC_CLIENT) != SS_OK) {
            ss_session_abort(session);
            return;
        }
        ss_codec_set_target(codec, target);
    }
    ss_flow_connect(up, outbound, header_now);
    if (session->phase != SS_PHASE_CLOSING)
        ss_flow_read(&session->down);
}

void ss_session_settle(struct ss_session *session)
{
    ss_socket_keep_alive(ss_tcp_descriptor(&session->outbound->tcp),
                         session->worker->engine->options.keep_alive_s);
}

void ss_session_unreachable(struct ss_session *session, enum ss_status status)
{
    session->dial = NULL;
    ss_log_debug("target not reached: %s", ss_status_text(status));
    if (status == SS_ERR_RESET) /* it was reached, and cut at once */
        ss_session_abort(session);
    else
        ss_session_close(session);
}

void ss_session_first_payload_deadline(struct ss_session *session)
{
    if (session->up.sink != NULL && session->phase != SS_PHASE_CLOSING)
        ss_flow_send_header(&session->up);
}

void ss_session_half_open(struct ss_session *session)
{
    if (session->phase == SS_PHASE_STREAM)
        ss_session_enter(session, SS_PHASE_HALF);
}

void ss_session_flow_shut(struct ss_session *session)
{
    if (ss_session_is_over(session))
        ss_session_close(session);
}

/* Reading is off while a sink takes nothing, and so nobody tells that the source has left. */
static void check_stalled(struct ss_session *session, struct ss_flow *flow)
{
    int fd = ss_tcp_descriptor(&flow->source->tcp);

    if (!flow->writing || flow->ended || !ss_sockopt_peer_has_ended(fd))
        return;
    /* Bytes may be left to read before the end, of whichever kind it is. */
    if (ss_tcp_error(&flow->source->tcp) != SS_OK)
        flow->suspect = true;
    ss_session_half_open(session);
}

void ss_session_check(struct ss_session *session)
{
    struct ss_worker *worker = session->worker;

    if (session->decision != NULL) {
        ss_access_is_late(session);
    } else if (session->phase == SS_PHASE_DIAL) {
        ss_dial_is_late(session->dial);
    } else if (session->up.broken || session->down.broken) {
        ss_flow_pass_end_on(session->up.broken ? &session->up : &session->down);
    } else if (session->fast_opened && !session->down.moved) {
        if (!session->header_sent && session->up.work == SS_FLOW_SEAL) {
            /* Nothing was sent yet, so nothing can have been answered. */
            ss_worker_start_deadline(worker, &worker->fast_open, &session->check);
        } else if (!ss_tcp_is_established(&session->outbound->tcp)) {
            ss_dial_fast_open_failed(session);
            ss_session_abort(session);
        }
    } else {
        check_stalled(session, &session->up);
        if (session->phase != SS_PHASE_CLOSING)
            check_stalled(session, &session->down);
        if (session->phase != SS_PHASE_CLOSING && !ss_deadline_pending(&session->check) &&
            (session->up.writing || session->down.writing))
            ss_worker_start_deadline(worker, &worker->stall, &session->check);
    }
}

void ss_session_deadline(struct ss_session *session)
{
    switch ((enum ss_phase)session->phase) {
    case SS_PHASE_REQUEST:
    case SS_PHASE_REFUSED:
        session->listener->ingress->expire(session);
        break;
    case SS_PHASE_DIAL:
        ss_access_cancel(session);
        ss_dial_cancel(session->dial, true);
        ss_session_unreachable(session, SS_ERR_TIMEOUT);
        break;
    case SS_PHASE_STREAM:
    case SS_PHASE_HALF:
        if (ss_session_was_active(session))
            break;
        ss_log_debug("TCP connection timeout");
        if (session->in_flight != 0)
            ss_session_abort(session); /* its end must not pass for the stream's */
        else
            ss_session_close(session);
        break;
    case SS_PHASE_ASSOCIATE:
    case SS_PHASE_CLOSING:
    case SS_PHASE_COUNT:
        break;
    }
}
