/* The target is where the system's rules took the connection from (ss-redir): every byte is
 * payload. */
#include "relay/ingress.h"

#include "base/log.h"
#include "net/redirect.h"
#include "net/socket.h"
#include "net/tcp.h"
#include "relay/engine_internal.h"

static enum ss_status find(struct ss_session *session, struct ss_target *target)
{
    struct ss_worker *worker = session->worker;
    int fd = ss_tcp_descriptor(&session->inbound->tcp);
    uint64_t now_ms = uv_now(&worker->loop);
    struct ss_addr original;

    if (session->role->options.tproxy)
        ss_socket_local(fd, &original);
    else
        ss_redirect_original(fd, &original);
    if (original.ip.family == SS_FAMILY_NONE) {
        ss_log_limited(&worker->engine->dial_log, now_ms, SS_LOG_ERROR,
                       "getdestaddr: the system does not know where a connection was going");
        return SS_ERR_NOT_FOUND;
    }
    if (ss_loop_guard_refuses(worker->engine->guard, &worker->dialed, session->role, false,
                              &session->peer, &original, now_ms))
        return SS_ERR_REFUSED;
    ss_loop_guard_learn(worker, session->role, &session->peer, &original);
    ss_target_from_addr(target, &original);
    return SS_OK;
}

const struct ss_ingress ss_ingress_redirect = {
    .up = SS_FLOW_COPY,
    .down = SS_FLOW_COPY,
    .find = find,
};
