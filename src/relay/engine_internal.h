/* The engine's inside, for this folder alone. */
#ifndef SS_RELAY_ENGINE_INTERNAL_H
#define SS_RELAY_ENGINE_INTERNAL_H

#include <stdatomic.h>

#include "base/log.h"
#include "relay/engine.h"
#include "relay/listener.h"
#include "relay/udp_relay.h"
#include "relay/worker.h"

struct ss_engine {
    struct ss_engine_options options;
    struct ss_worker *workers; /* options.workers of them */
    unsigned workers_ready;    /* initialised */
    unsigned threads;          /* running, besides the caller's */
    struct ss_listener *listeners;
    struct ss_traffic past;   /* of ports that were closed */
    struct ss_udp_relay *udp; /* NULL without a UDP port; set before threads start */
    uint32_t max_sessions;
    uint32_t max_associations;
    uint64_t accept_logged_ms;
    uv_timer_t accept_retry; /* after the system was out of descriptors */
    bool stopping;

    /* Shared between threads. */
    _Atomic bool stop_wanted;
    _Atomic bool listeners_paused;
    _Atomic uint32_t sessions;

    struct ss_log_limit accept_log, handshake_log, dial_log, opening_log;
};

/* A session has ended: counts, and wakes the listeners if they pause for want of room. Any thread.
 */
void ss_engine_session_ended(struct ss_engine *engine);

/* The traffic of a port that goes stays in the totals. */
void ss_engine_keep_traffic(struct ss_engine *engine, const struct ss_counters *counters,
                            size_t count);

/* Takes connections again where there is room. Loop 0. */
void ss_engine_resume_listeners(struct ss_engine *engine);

#endif
