/* Sessions that keep UDP associations alive (RFC 1928 section 7). All UDP is on loop 0. */
#include "base/log.h"
#include "net/socket.h"
#include "net/tcp.h"
#include "relay/engine_internal.h"
#include "relay/ingress.h"
#include "relay/session.h"
#include "relay/udp_relay.h"

/* On loop 0: answers and waits for the client's end. */
static void become_control(struct ss_session *session, const struct ss_addr *from)
{
    struct ss_udp_relay *relay = session->worker->engine->udp;
    struct ss_udp_port *port = ss_udp_port_beside(relay, &session->listener->bound);
    struct ss_addr bound = {0};

    if (port == NULL) { /* it was closed while the connection was on its way here */
        ss_session_close(session);
        return;
    }
    session->control = ss_control_open(&relay->controls, &session->peer.ip, from);
    if (session->control == NULL) {
        ss_session_abort(session);
        return;
    }
    ss_socket_local(ss_tcp_descriptor(&session->inbound->tcp), &bound);
    if (port->role->options.advertised.family != SS_FAMILY_NONE)
        bound.ip = port->role->options.advertised;
    bound.port = port->bound.port;
    ss_session_enter(session, SS_PHASE_ASSOCIATE);
    ss_log_debug("udp assc request accepted");
    if (ss_socks5_answer_associate(session, &bound) != SS_OK)
        ss_session_abort(session);
}

static bool hand_to_first_loop(struct ss_session *session, const struct ss_addr *from)
{
    struct ss_engine *engine = session->worker->engine;
    struct ss_worker *first = &engine->workers[0];
    struct ss_handoff handoff = {.listener = session->listener,
                                 .role = session->role,
                                 .peer = session->peer,
                                 .from = *from,
                                 .associate = true};

    handoff.fd = ss_socket_duplicate(ss_tcp_descriptor(&session->inbound->tcp));
    if (handoff.fd < 0)
        return false;
    ss_listener_hold(handoff.listener);
    ss_role_hold(handoff.role);
    atomic_fetch_add_explicit(&engine->sessions, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&first->session_count, 1, memory_order_relaxed);
    if (ss_worker_hand_over(first, &handoff))
        return true;
    ss_session_place_is_free(first, handoff.listener, handoff.role);
    ss_socket_close(handoff.fd);
    return false;
}

bool ss_session_associate(struct ss_session *session, const struct ss_target *target)
{
    struct ss_addr from = {.port = target->port};

    if (!atomic_load_explicit(&session->listener->udp_beside, memory_order_relaxed))
        return false;
    (void)ss_target_ip(target, &from.ip); /* a name says no more than nothing */
    if (session->worker->index == 0)
        become_control(session, &from);
    else if (hand_to_first_loop(session, &from))
        ss_session_leave(session);
    else
        ss_session_abort(session);
    return true;
}

void ss_sessions_end_associate(struct ss_worker *worker, const struct ss_addr *bound)
{
    struct ss_session *session = worker->open;

    while (session != NULL) {
        struct ss_session *next = session->next;

        if (session->phase == SS_PHASE_ASSOCIATE && session->listener->bound.port == bound->port &&
            ss_ip_equal(&session->listener->bound.ip, &bound->ip))
            ss_session_close(session);
        session = next;
    }
}

void ss_session_start_associate(struct ss_worker *worker, const struct ss_handoff *handoff)
{
    struct ss_session *session = ss_session_new(worker, handoff);

    if (session == NULL)
        return;
    become_control(session, &handoff->from);
    if (session->phase == SS_PHASE_ASSOCIATE)
        ss_flow_read(&session->up);
}
