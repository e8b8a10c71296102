/* Sockets for outgoing connections. */
#include "relay/outgoing.h"

#include "base/log.h"
#include "net/socket.h"
#include "net/tcp.h"
#include "relay/engine_internal.h"

static const struct ss_ip *source_for(const struct ss_engine_options *options,
                                      enum ss_family family)
{
    return family == SS_FAMILY_IPV4 ? &options->bind_ipv4 : &options->bind_ipv6;
}

/* What listens on this machine for us (a plugin) is reached as it is, whatever interface or source
 * the way to the server is to have. */
static bool is_near(const struct ss_outgoing *outgoing)
{
    static const struct ss_ip loopback6 = {.family = SS_FAMILY_IPV6, .bytes = {[15] = 1}};
    const struct ss_ip *ip = &outgoing->to.ip;

    return outgoing->upstream &&
           (ip->family == SS_FAMILY_IPV4 ? ip->bytes[0] == 127 : ss_ip_equal(ip, &loopback6));
}

static enum ss_status open_socket(struct ss_worker *worker, struct ss_session *session,
                                  enum ss_family family, const struct ss_dial_options *how,
                                  struct ss_conn **conn)
{
    enum ss_status status;
    int fd;

    if (how->mptcp) { /* libuv makes no such sockets, and asks once more that ours do not block */
        status = ss_socket_for_dial(&fd, family, how);
        if (status == SS_OK && (*conn = ss_conn_open(worker, session, fd)) == NULL)
            status = SS_ERR_LIMIT;
        return status;
    }
    status = ss_conn_open_new(worker, session, family, conn);
    if (status != SS_OK)
        return status;
    status = ss_socket_prepare_dial(ss_tcp_descriptor(&(*conn)->tcp), family, how);
    if (status != SS_OK) {
        ss_conn_close(*conn, SS_CONN_LEAVE);
        *conn = NULL;
    }
    return status;
}

enum ss_status ss_outgoing_connect(struct ss_worker *worker, struct ss_session *session,
                                   const struct ss_outgoing *outgoing, uv_connect_t *request,
                                   uv_connect_cb done, struct ss_conn **conn)
{
    const struct ss_engine_options *options = &worker->engine->options;
    bool near = is_near(outgoing);
    const struct ss_dial_options how = {
        .mptcp = options->mptcp && outgoing->upstream,
        .fast_open = outgoing->fast_open,
        .interface = near ? NULL : options->interface,
        .interface_required = options->interface_required,
        .source = near ? NULL : source_for(options, outgoing->to.ip.family),
        .sndbuf = options->outgoing_sndbuf,
        .rcvbuf = options->outgoing_rcvbuf,
        .mark = options->mark,
        .tos = outgoing->tos,
    };
    enum ss_status status;

    *conn = NULL;
    if (worker->engine->guard != NULL)
        ss_dialed_note(&worker->dialed, &outgoing->to);
    status = open_socket(worker, session, outgoing->to.ip.family, &how, conn);
    if (status != SS_OK) {
        if (how.interface != NULL || (how.source != NULL && how.source->family != SS_FAMILY_NONE))
            ss_log_limited(&worker->engine->dial_log, uv_now(&worker->loop), SS_LOG_ERROR,
                           "cannot bind socket: %s", ss_status_text(status));
        return status;
    }
    status = ss_tcp_connect(request, &(*conn)->tcp, &outgoing->to, done);
    if (status != SS_OK) {
        ss_conn_close(*conn, SS_CONN_FIN);
        *conn = NULL;
    }
    return status;
}
