/*
 * A connection on its way out: a socket as the engine's options ask for it, connecting. For this
 * folder alone.
 */
#ifndef SS_RELAY_OUTGOING_H
#define SS_RELAY_OUTGOING_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/addr.h"
#include "base/status.h"
#include "relay/conn.h"

struct ss_outgoing {
    struct ss_addr to;
    bool upstream; /* towards a Shadowsocks server, not a target */
    bool fast_open;
    uint8_t tos; /* 0: the system's */
};

/*
 * Begins to connect for a session (NULL: for nobody). With SS_OK `done` comes once, with `request`,
 * also after the connection was closed: until then the request must stay. A failure was met at
 * once, without a word from the other side.
 */
SS_CHECKED enum ss_status ss_outgoing_connect(struct ss_worker *worker, struct ss_session *session,
                                              const struct ss_outgoing *outgoing,
                                              uv_connect_t *request, uv_connect_cb done,
                                              struct ss_conn **conn);

#endif
