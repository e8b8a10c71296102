/* Where a session's target comes from: one table a kind. For this folder alone. */
#ifndef SS_RELAY_INGRESS_H
#define SS_RELAY_INGRESS_H

#include "base/span.h"
#include "base/status.h"
#include "codec/codec.h"
#include "relay/engine.h"
#include "relay/session.h"

struct ss_ingress {
    /* The work of the flow from the client, and of the one back to it. */
    enum ss_flow_work up, down;
    /*
     * Where the target is known without reading, else NULL: says it, and none of the others is
     * called. After an error, which it has logged, the session is closed.
     */
    enum ss_status (*find)(struct ss_session *session, struct ss_target *target);
    /*
     * Looks at what the client has sent so far, and may answer it. `early` gets the payload that
     * came along (inside `bytes`) and how much of the end is to be kept.
     *
     * SS_OK: *target is set, valid until the session ends or `bytes` change.
     * SS_NEED_INPUT: more is needed.
     * Any other: refused; `refuse` is called next.
     */
    enum ss_status (*learn)(struct ss_session *session, struct ss_span bytes,
                            struct ss_opened *early, struct ss_target *target);
    /* Ends or parks a session whose request was bad, in the manner of its protocol. */
    void (*refuse)(struct ss_session *session, enum ss_status status);
    /* The time for a request is over. */
    void (*expire)(struct ss_session *session);
};

/* The answer to UDP ASSOCIATE: where datagrams are to be sent. */
SS_CHECKED enum ss_status ss_socks5_answer_associate(struct ss_session *session,
                                                     const struct ss_addr *bound);

const struct ss_ingress *ss_ingress_of(enum ss_ingress_kind kind);

extern const struct ss_ingress ss_ingress_socks5;
extern const struct ss_ingress ss_ingress_fixed;
extern const struct ss_ingress ss_ingress_shadowsocks;
extern const struct ss_ingress ss_ingress_redirect;

#endif
