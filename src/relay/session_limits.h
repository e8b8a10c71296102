/*
 * How sessions keep to the limits of their port and of their user. TCP waits at a rate and ends at
 * a quota; datagrams above either are dropped. For this folder alone.
 */
#ifndef SS_RELAY_SESSION_LIMITS_H
#define SS_RELAY_SESSION_LIMITS_H

#include <stdbool.h>
#include <stddef.h>

struct ss_flow;
struct ss_role;
struct ss_session;
struct ss_user_counters;
struct ss_worker;

/* How often a flow that waits for its rate looks again, in milliseconds; in turn, each a grant. */
#define SS_THROTTLE_MS 20

/* The request is authentic and its user known: whether there is room for the session. */
bool ss_session_admit(struct ss_session *session);
/* The session ends: gives back what it holds. Its user must still be there. */
void ss_session_leave_limits(struct ss_session *session);

/* Up to how many of `want` bytes may be read now; 0: none, and reading is to stop; then
 * ss_flow_starve once libuv has been told. */
size_t ss_flow_granted(struct ss_flow *flow, size_t want);
/* Payload was relayed. */
void ss_flow_use_grant(struct ss_flow *flow, size_t len);
/* Waits, or ends the session. */
void ss_flow_starve(struct ss_flow *flow);

bool ss_datagram_is_granted(const struct ss_role *role, struct ss_user_counters *user, size_t len,
                            const struct ss_worker *worker);

#endif
