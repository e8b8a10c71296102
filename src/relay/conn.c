/* Connections from the worker's pool, and back to it. */
#include "relay/conn.h"

#include "base/pool.h"
#include "net/socket.h"
#include "net/tcp.h"
#include "relay/session.h"
#include "relay/worker.h"

static void on_closed(uv_handle_t *handle)
{
    struct ss_conn *conn = handle->data;
    struct ss_worker *worker = conn->worker;

    ss_pool_release(worker->conns, conn);
    ss_session_release_closed(worker);
}

static void belongs_to(struct ss_conn *conn, struct ss_worker *worker, struct ss_session *session)
{
    conn->worker = worker;
    conn->session = session;
    conn->flow = NULL;
    conn->tcp.data = conn;
}

struct ss_conn *ss_conn_open(struct ss_worker *worker, struct ss_session *session, int fd)
{
    struct ss_conn *conn = ss_pool_acquire(worker->conns);

    if (conn == NULL) {
        ss_socket_close(fd);
        return NULL;
    }
    if (ss_tcp_adopt(&worker->loop, &conn->tcp, fd) != SS_OK) {
        belongs_to(conn, worker, NULL);
        uv_close((uv_handle_t *)&conn->tcp, on_closed);
        return NULL;
    }
    belongs_to(conn, worker, session);
    return conn;
}

enum ss_status ss_conn_open_new(struct ss_worker *worker, struct ss_session *session,
                                enum ss_family family, struct ss_conn **out)
{
    struct ss_conn *conn = ss_pool_acquire(worker->conns);
    enum ss_status status;

    *out = NULL;
    if (conn == NULL)
        return SS_ERR_LIMIT;
    status = ss_tcp_open_new(&worker->loop, &conn->tcp, family);
    if (status != SS_OK) {
        ss_pool_release(worker->conns, conn);
        return status;
    }
    belongs_to(conn, worker, session);
    *out = conn;
    return SS_OK;
}

void ss_conn_close(struct ss_conn *conn, enum ss_conn_end end)
{
    if (conn == NULL)
        return;
    conn->session = NULL;
    if (end == SS_CONN_RESET)
        ss_tcp_close_will_reset(&conn->tcp);
    else if (end == SS_CONN_FIN)
        ss_tcp_discard(&conn->tcp);
    uv_close((uv_handle_t *)&conn->tcp, on_closed);
}
