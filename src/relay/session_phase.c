/* The phases of a session: legal successors, deadlines, and the way out. */
#include <assert.h>

#include "base/log.h"
#include "net/tcp.h"
#include "relay/access.h"
#include "relay/dialer.h"
#include "relay/engine_internal.h"
#include "relay/session.h"
#include "relay/session_limits.h"

#define BIT(phase) (1u << (phase))

static const struct {
    const char *name;
    unsigned next; /* legal successors; any phase may also go to closing */
} phases[SS_PHASE_COUNT] = {
    [SS_PHASE_REQUEST] = {"request",
                          BIT(SS_PHASE_REFUSED) | BIT(SS_PHASE_ASSOCIATE) | BIT(SS_PHASE_DIAL)},
    [SS_PHASE_REFUSED] = {"refused", 0},
    [SS_PHASE_ASSOCIATE] = {"associate", 0},
    [SS_PHASE_DIAL] = {"dial", BIT(SS_PHASE_STREAM)},
    [SS_PHASE_STREAM] = {"stream", BIT(SS_PHASE_HALF)},
    [SS_PHASE_HALF] = {"half", 0},
    [SS_PHASE_CLOSING] = {"closing", BIT(SS_PHASE_REQUEST)}, /* a new session in the slot */
};

/* The queue whose duration is the phase's, or NULL when the phase has no deadline of its own. */
static struct ss_deadline_queue *queue_of(struct ss_worker *worker, enum ss_phase phase)
{
    switch (phase) {
    case SS_PHASE_REQUEST:
        return &worker->handshake;
    case SS_PHASE_DIAL:
        return &worker->dial;
    case SS_PHASE_STREAM:
        return &worker->idle;
    case SS_PHASE_HALF:
        return &worker->half_open;
    default:
        return NULL;
    }
}

static void count_unproven(struct ss_session *session, bool unproven)
{
    if (session->unproven == unproven)
        return;
    session->unproven = unproven;
    if (unproven)
        session->worker->unproven++;
    else
        session->worker->unproven--;
}

void ss_session_enter(struct ss_session *session, enum ss_phase next)
{
    struct ss_worker *worker = session->worker;
    struct ss_deadline_queue *queue = queue_of(worker, next);

    assert(next == SS_PHASE_CLOSING || (phases[session->phase].next & BIT(next)) != 0);
    ss_log_debug("session %p: %s -> %s", (void *)session, phases[session->phase].name,
                 phases[next].name);
    session->phase = (uint8_t)next;
    count_unproven(session, next <= SS_PHASE_REFUSED);
    if (next == SS_PHASE_REFUSED)
        return; /* the deadline of the request stands, whatever was sent */
    if (queue != NULL)
        ss_worker_start_deadline(worker, queue, &session->deadline);
    else
        ss_deadline_stop(&session->deadline);
}

/* Bytes on their way to either side. A slow reader takes them without our noticing: what waits in
 * the kernel shrinks long before it takes more of us. */
static size_t in_flight(const struct ss_session *session)
{
    return ss_tcp_in_flight(&session->inbound->tcp) + ss_tcp_in_flight(&session->outbound->tcp);
}

bool ss_session_was_active(struct ss_session *session)
{
    struct ss_worker *worker = session->worker;
    struct ss_deadline_queue *queue = queue_of(worker, session->phase);
    size_t before = session->in_flight;

    if (session->active_ms + queue->duration_ms > uv_now(&worker->loop)) {
        ss_deadline_start_since(queue, &session->deadline, session->active_ms);
        return true;
    }
    session->in_flight = in_flight(session);
    if (session->in_flight == before || session->in_flight == 0)
        return false;
    ss_worker_start_deadline(worker, queue, &session->deadline);
    return true;
}

static void forget(struct ss_session *session)
{
    if (session->prev != NULL)
        session->prev->next = session->next;
    else
        session->worker->open = session->next;
    if (session->next != NULL)
        session->next->prev = session->prev;
}

/* `from` is the flow that reads this side: after its FIN nothing more can have arrived. */
static void close_side(struct ss_conn *conn, const struct ss_flow *from, enum ss_conn_end how)
{
    ss_conn_close(conn, how == SS_CONN_FIN && from->ended && !from->broken ? SS_CONN_LEAVE : how);
}

static void end(struct ss_session *session, enum ss_conn_end how)
{
    struct ss_worker *worker = session->worker;

    if (session->phase == SS_PHASE_CLOSING)
        return;
    ss_session_enter(session, SS_PHASE_CLOSING);
    ss_session_leave_limits(session);
    ss_deadline_stop(&session->settle);
    ss_deadline_stop(&session->first_payload);
    ss_deadline_stop(&session->check);
    ss_access_cancel(session);
    ss_dial_cancel(session->dial, false);
    session->dial = NULL;
    if (session->control != NULL)
        ss_control_close(&worker->engine->udp->controls, session->control);
    session->control = NULL;
    ss_flow_clear(&session->up);
    ss_flow_clear(&session->down);
    close_side(session->inbound, &session->up, how);
    close_side(session->outbound, &session->down, how);
    ss_codec_end(ss_session_codec(session));

    forget(session);
    session->next = worker->closed;
    worker->closed = session;
    ss_count(&session->counters->closed, 1);
}

void ss_session_close(struct ss_session *session)
{
    end(session, SS_CONN_FIN);
}

void ss_session_stop(struct ss_session *session)
{
    if (session->phase == SS_PHASE_STREAM || session->phase == SS_PHASE_HALF)
        ss_session_abort(session);
    else
        ss_session_close(session);
}

void ss_session_leave(struct ss_session *session)
{
    end(session, SS_CONN_LEAVE);
}

void ss_session_abort(struct ss_session *session)
{
    end(session, SS_CONN_RESET);
}

void ss_session_place_is_free(struct ss_worker *worker, struct ss_listener *listener,
                              struct ss_role *role)
{
    ss_role_release(role);
    ss_listener_release(listener);
    atomic_fetch_sub_explicit(&worker->session_count, 1, memory_order_relaxed);
    ss_engine_session_ended(worker->engine);
}

void ss_session_release_closed(struct ss_worker *worker)
{
    struct ss_listener *listener;
    struct ss_role *role;

    while (worker->closed != NULL) {
        struct ss_session *session = worker->closed;

        worker->closed = session->next;
        listener = session->listener;
        role = session->role;
        ss_pool_release(worker->sessions, session);
        /* Only now there is a place for another. */
        ss_session_place_is_free(worker, listener, role);
    }
}
