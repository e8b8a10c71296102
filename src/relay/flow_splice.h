/*
 * Flows whose bytes nobody looks at: those of a bypassed target, of method `none` behind its
 * header, of a user that is passed on. In bulk they go from socket to socket inside the kernel. For
 * this folder alone.
 */
#ifndef SS_RELAY_FLOW_SPLICE_H
#define SS_RELAY_FLOW_SPLICE_H

#include <stdbool.h>

struct ss_flow;

/* From reads of so many bytes on. Below, two copies cost no more than passing pages on. */
#define SS_SPLICE_MIN (16u * 1024u)

/* Whether what comes next is to be spliced. */
bool ss_flow_may_splice(const struct ss_flow *flow);

/* Splices up to `splice_room` bytes, which it sets back to 0. May end the session. */
void ss_flow_splice(struct ss_flow *flow);

#endif
