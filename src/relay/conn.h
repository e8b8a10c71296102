/* One end of a session: an open TCP connection on a worker's loop. */
#ifndef SS_RELAY_CONN_H
#define SS_RELAY_CONN_H

#include <uv.h>

#include "base/addr.h"
#include "base/status.h"

struct ss_worker;
struct ss_session;
struct ss_flow;

/*
 * From a worker's pool, and back to it in the close callback: a connection may outlive its session
 * by the rest of a loop iteration, so sessions need not wait for their handles.
 */
struct ss_conn {
    uv_tcp_t tcp; /* its `data` is the conn */
    struct ss_worker *worker;
    struct ss_session *session; /* NULL once it is closing */
    struct ss_flow *flow;       /* what is read here goes this way */
};

/* Takes over `fd`, also when it fails; NULL then. */
struct ss_conn *ss_conn_open(struct ss_worker *worker, struct ss_session *session, int fd);

/* With a fresh socket to connect to an address of `family` with. */
SS_CHECKED enum ss_status ss_conn_open_new(struct ss_worker *worker, struct ss_session *session,
                                           enum ss_family family, struct ss_conn **conn);

enum ss_conn_end {
    SS_CONN_FIN,   /* what has arrived is discarded, so that the peer sees a normal end */
    SS_CONN_RESET, /* RST: the stream is broken */
    SS_CONN_LEAVE  /* as it is: nothing is left to read, or another descriptor holds it open */
};

/* From here on no callback sees the session. NULL is fine. */
void ss_conn_close(struct ss_conn *conn, enum ss_conn_end end);

#endif
