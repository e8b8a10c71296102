/*
 * What the access control list of a role says of TCP: which clients are taken, which targets are
 * refused, and which ones a client program reaches itself. Names whose addresses decide are looked
 * up first, and what was judged is what is dialled. For this folder alone.
 */
#ifndef SS_RELAY_ACCESS_H
#define SS_RELAY_ACCESS_H

#include "proto/target.h"
#include "relay/session.h"

struct ss_engine;
struct ss_role;

/* Whether the clients of a server may not come from this address, after a line that says so. Loop
 * 0. */
bool ss_access_refuses_client(struct ss_engine *engine, const struct ss_role *role,
                              const struct ss_ip *client);

/*
 * For a session in SS_PHASE_DIAL: ends in ss_session_dial, or in the session's end, now or when a
 * look-up is done. Look at the session's phase afterwards.
 */
void ss_access_begin(struct ss_session *session, const struct ss_target *target);

/* The look-up takes long: a client's target then goes through the server, which gives nothing
 * away; a server's has its time. */
void ss_access_is_late(struct ss_session *session);

/* Gives the look-up up. Fine when there is none. */
void ss_access_cancel(struct ss_session *session);

/* Says for `-v` that a target was refused or is reached directly. */
void ss_access_log(const char *what, const struct ss_target *target);

/* Bytes of a look-up under way, for the worker's pool. */
size_t ss_access_size(void);

#endif
