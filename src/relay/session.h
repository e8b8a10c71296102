/*
 * A session: one relayed TCP connection, both of its sides. An ingress learns its target, an egress
 * reaches it, two flows carry the bytes. For this folder alone.
 */
#ifndef SS_RELAY_SESSION_H
#define SS_RELAY_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/container.h"
#include "base/deadline.h"
#include "codec/codec.h"
#include "proto/target.h"
#include "relay/conn.h"
#include "relay/counters.h"
#include "relay/flow.h"
#include "relay/listener.h"
#include "relay/role.h"
#include "relay/worker.h"

enum ss_phase {
    SS_PHASE_REQUEST,   /* the target is being learned */
    SS_PHASE_REFUSED,   /* the start was bad: what comes is read and dropped until the deadline */
    SS_PHASE_ASSOCIATE, /* keeps its client's UDP associations alive */
    SS_PHASE_DIAL,      /* the target is being reached: look-up and connect */
    SS_PHASE_STREAM,    /* both sides are there */
    SS_PHASE_HALF,      /* one side has ended */
    SS_PHASE_CLOSING,
    SS_PHASE_COUNT
};

struct ss_control;
struct ss_decision;
struct ss_dial;

struct ss_session {
    struct ss_worker *worker;
    struct ss_listener *listener; /* held */
    struct ss_role *role;         /* held: the one that it began with */
    struct ss_counters *counters;
    struct ss_user_counters *user;  /* whose traffic it is; NULL where there are no users */
    struct ss_session *prev, *next; /* in the worker's list */
    struct ss_conn *inbound;
    struct ss_conn *outbound;
    struct ss_control *control;   /* in SS_PHASE_ASSOCIATE */
    struct ss_dial *dial;         /* while in SS_PHASE_DIAL */
    struct ss_decision *decision; /* there, too: a name is looked up for the access control list */
    struct ss_flow up;            /* inbound to outbound */
    struct ss_flow down;          /* outbound to inbound */
    struct ss_deadline deadline;
    struct ss_deadline check;         /* of what is looked at again soon; see ss_session_check */
    struct ss_deadline settle;        /* until it has lived so long that it may be an idle one */
    struct ss_deadline first_payload; /* a client's header waits for it, shortly */
    uint64_t active_ms;               /* when bytes moved last */
    struct ss_addr peer;
    uint8_t phase;
    uint8_t ingress_step;  /* the ingress's own */
    bool unproven;         /* counted among those that have not completed a request */
    bool header_sent;      /* client of an upstream */
    bool bypassed;         /* a client's, whose target is reached without its upstream servers */
    bool passed_on;        /* another server opens it: both ways as it is */
    bool fast_opened;      /* writing began before the other side had answered */
    uint8_t upstream;      /* the one that was reached */
    bool in_port, in_user; /* counted by their limiters */
    size_t in_flight;      /* bytes on their way when the deadline was looked at last */
};

/* The codec lies behind the session in its slot. */
#define SS_SESSION_CODEC_OFFSET ((sizeof(struct ss_session) + 63) / 64 * 64)

static inline struct ss_codec *ss_session_codec(struct ss_session *session)
{
    return (struct ss_codec *)(void *)((char *)session + SS_SESSION_CODEC_OFFSET);
}

/* A session in the phase of its request, reading nothing yet; NULL when there is no place, and its
 * descriptor is closed then. */
struct ss_session *ss_session_new(struct ss_worker *worker, const struct ss_handoff *handoff);

/* Begins a session with an accepted connection; owns its descriptor and what it holds. */
void ss_session_start(struct ss_worker *worker, const struct ss_handoff *handoff);

/* A session is over for good, or did not come about: lets its listener and role go. */
void ss_session_place_is_free(struct ss_worker *worker, struct ss_listener *listener,
                              struct ss_role *role);

/*
 * The client asked for UDP ASSOCIATE: answers, and keeps the connection as a control on loop 0, to
 * which it is handed if it is elsewhere. False when the listener has no UDP beside it. `target` is
 * the request's.
 */
bool ss_session_associate(struct ss_session *session, const struct ss_target *target);
/* Those that were kept for a UDP port, which goes: loop 0's. */
void ss_sessions_end_associate(struct ss_worker *worker, const struct ss_addr *bound);
/* Such a connection has come to loop 0. Owns its descriptor. */
void ss_session_start_associate(struct ss_worker *worker, const struct ss_handoff *handoff);

/* The one place where the phase changes; sets the phase's deadline. */
void ss_session_enter(struct ss_session *session, enum ss_phase next);

/* Bytes moved: the idle time begins anew. */
static inline void ss_session_touch(struct ss_session *session)
{
    session->active_ms = uv_now(&session->worker->loop);
}

/* Says why what a peer sent could not be opened, where that is worth a line. */
void ss_session_log_opening(struct ss_session *session, enum ss_status status);

/* What has come of a request that is not complete, or after a bad one. */
void ss_session_request_bytes(struct ss_session *session, struct ss_span bytes);

/* A side has said its end (FIN), or is gone. */
void ss_session_source_ended(struct ss_session *session, struct ss_flow *flow, bool broken);

/* The phase's deadline may have passed: acts on it, or waits on if there was traffic meanwhile. */
void ss_session_deadline(struct ss_session *session);
/* Whether bytes moved since the phase's deadline was set; it then is set anew. */
bool ss_session_was_active(struct ss_session *session);
/* Something is to be looked at again: an address that is slow to connect, a server that has not
 * answered a fast open, a sink that still takes the bytes of a broken stream. */
void ss_session_check(struct ss_session *session);
/* No payload came within the time that a header may wait. */
void ss_session_first_payload_deadline(struct ss_session *session);

/* It has lived for a while: its outgoing connection gets keep-alive. */
void ss_session_settle(struct ss_session *session);

/* Whether it goes through an upstream server. */
static inline bool ss_session_has_upstream(const struct ss_session *session)
{
    return session->role->options.egress == SS_EGRESS_UPSTREAM && !session->bypassed;
}

/* Goes to the target, in SS_PHASE_DIAL. Without an upstream `addresses` are those of the target, if
 * they are known; else it is looked up. */
void ss_session_dial(struct ss_session *session, const struct ss_target *target,
                     const struct ss_ip *addresses, size_t count);

/* What the dialer came to. `profile` is the upstream's, NULL without one; `target` is the
 * session's. */
void ss_session_connected(struct ss_session *session, struct ss_conn *outbound,
                          const struct ss_profile *profile, const struct ss_target *target);
void ss_session_unreachable(struct ss_session *session, enum ss_status status);

static inline bool ss_session_is_over(const struct ss_session *session)
{
    return session->up.shut && session->down.shut;
}

/* A flow has ended: from here on the time of a half-open session runs. */
void ss_session_half_open(struct ss_session *session);

/* A flow is shut: closes when both are. */
void ss_session_flow_shut(struct ss_session *session);

/*
 * Ends the session, from any callback and twice. Its slot goes back when libuv has closed a handle
 * of it: callers that called down look at the phase and then leave the session alone.
 */
void ss_session_close(struct ss_session *session);
/* The same when its connection was handed on: the client must not notice. */
void ss_session_leave(struct ss_session *session);
/* The program stops: a stream that is cut must not look complete. */
void ss_session_stop(struct ss_session *session);
/* The same with RST towards both sides. */
void ss_session_abort(struct ss_session *session);

/* Sessions whose slots may be used again: called when no callback is on the stack any more. */
void ss_session_release_closed(struct ss_worker *worker);

#endif
