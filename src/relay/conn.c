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

struct ss_conn *ss_conn_open(struct ss_worker *worker, struct ss_session *session, int fd)
{
    struct ss_conn *conn = ss_pool_acquire(worker->conns);
    enum ss_status status;

    if (conn == NULL) {
        ss_socket_close(fd);
        return NULL;
    }
    conn->worker = worker;
    conn->session = session;
    conn->flow = NULL;
    status = ss_tcp_adopt(&worker->loop, &conn->tcp, fd);
    conn->tcp.data = conn;
    if (status != SS_OK) {
        conn->session = NULL;
        uv_close((uv_handle_t *)&conn->tcp, on_closed);
        return NULL;
    }
    return conn;
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
