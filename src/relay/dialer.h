/*
 * Reaching an endpoint: look the name up, race its addresses, go to another upstream server when
 * one is late or can't be reached, hand over the first connection. For this folder alone.
 */
#ifndef SS_RELAY_DIALER_H
#define SS_RELAY_DIALER_H

#include "proto/target.h"
#include "relay/session.h"

/*
 * Dials the target (direct) or the role's upstream servers for the session, which is in
 * SS_PHASE_DIAL. The result comes through ss_session_connected or ss_session_unreachable, which
 * may be called from inside: look at the session's phase afterwards. With `count` a direct target
 * is not looked up: these are its addresses. `first_write` tells that bytes will be sent as soon as
 * it is connected, which fast open needs. False when no dial can be had; the session is to be
 * closed then.
 */
bool ss_dial_start(struct ss_session *session, const struct ss_target *target,
                   const struct ss_ip *addresses, size_t count, bool first_write);

/* There is no connection yet and there is more to try: tries it beside what is under way. */
void ss_dial_is_late(struct ss_dial *dial);

/* A connection that was fast opened came to nothing: its server is dialled plainly for a while. */
void ss_dial_fast_open_failed(struct ss_session *session);

/* Gives up, because nobody waits any more or (`timed_out`) because the time is over; no result
 * comes any more. NULL is fine. */
void ss_dial_cancel(struct ss_dial *dial, bool timed_out);

/* Bytes of a dial, for the worker's pool. */
size_t ss_dial_size(void);

/* Descriptors that a dial may hold beside the one that its session will have. */
#define SS_DIAL_EXTRA_DESCRIPTORS 1

#endif
