/*
 * Names of upstream servers, looked up when a role comes into use, so that a wrong one is said at
 * the start, and the first client finds addresses. What can't be resolved is tried again with
 * growing pauses until it can, or a dial has found it. On loop 0. For this folder alone.
 */
#ifndef SS_RELAY_UPSTREAM_NAMES_H
#define SS_RELAY_UPSTREAM_NAMES_H

#include "base/status.h"

struct ss_engine;
struct ss_role;
struct ss_upstream_names;

SS_CHECKED enum ss_status ss_upstream_names_new(struct ss_upstream_names **out,
                                                struct ss_engine *engine);

/* Looks up what is not known yet. Without memory for that nothing is, until a dial does. */
void ss_upstream_names_watch(struct ss_upstream_names *names, const struct ss_role *role);

/* Ends all look-ups and closes its handle; it is gone when the loop has run the close callback. */
void ss_upstream_names_close(struct ss_upstream_names *names);

#endif
