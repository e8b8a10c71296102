/*
 * Asking a server that fails whether it is there again: a bare connection beside the traffic, so
 * that no client pays for finding out. For this folder alone.
 */
#ifndef SS_RELAY_PROBE_H
#define SS_RELAY_PROBE_H

#include "relay/upstreams.h"
#include "relay/worker.h"

struct ss_probe;

/* Probes that a worker has under way at once; each takes a descriptor. */
#define SS_PROBES_MAX 2

/* Probes those of the servers that are to be probed now. Only called when there is traffic. */
void ss_probe_where_due(struct ss_worker *worker, struct ss_upstream_set *set);

/* Those whose time is over; all of them. */
void ss_probes_expire(struct ss_worker *worker);
void ss_probes_close(struct ss_worker *worker);

size_t ss_probe_size(void);

#endif
