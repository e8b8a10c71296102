/* The engine's inside, for this folder alone. */
#ifndef SS_RELAY_ENGINE_INTERNAL_H
#define SS_RELAY_ENGINE_INTERNAL_H

#include <stdatomic.h>

#include "base/log.h"
#include "relay/engine.h"
#include "relay/listener.h"
#include "relay/pressure.h"
#include "relay/loop_guard.h"
#include "relay/udp_relay.h"
#include "relay/upstream_names.h"
#include "relay/worker.h"

struct ss_engine {
    struct ss_engine_options options;
    struct ss_worker *workers; /* options.workers of them */
    unsigned workers_ready;    /* initialised */
    unsigned threads;          /* running, besides the caller's */
    struct ss_listener *listeners;
    struct ss_traffic past;   /* of ports that were closed */
    struct ss_udp_relay *udp; /* NULL without a UDP port; of loop 0 */
    uint32_t max_sessions;
    uint32_t max_races; /* dials that hold a second connection */
    uint32_t max_associations;
    uint32_t pool_sessions;      /* max_sessions of the start, for which there is room */
    uint32_t spare_descriptors;  /* those that nothing is set aside for */
    uint32_t sockets;            /* listening */
    struct ss_loop_guard *guard; /* NULL where nothing is redirected; set before threads start */
    uint64_t accept_logged_ms;
    uv_timer_t pressure_timer;
    struct ss_upstream_names *upstream_names;
    uv_timer_t accept_retry; /* after the system was out of descriptors */
    bool stopping;

    /* Shared between threads. */
    _Atomic uint8_t pressure; /* enum ss_pressure */
    _Atomic bool stop_wanted;
    _Atomic bool listeners_paused;
    _Atomic bool sweep_wanted; /* a closed listener has lost its last session */
    _Atomic uint32_t sessions;
    _Atomic uint32_t races;

    struct ss_log_limit memory_log, accept_log, handshake_log, dial_log, opening_log, denied_log,
        blocked_log;
};

/* A port of a role is open: where it is redirected to, it is guarded against loops. */
SS_CHECKED enum ss_status ss_engine_guard(struct ss_engine *engine, const struct ss_role *role,
                                          bool udp, uint16_t port);

/* A session has ended: counts, and wakes the listeners if they pause for want of room. Any thread.
 */
void ss_engine_session_ended(struct ss_engine *engine);

/* The traffic of a port that goes stays in the totals. */
void ss_engine_keep_traffic(struct ss_engine *engine, const struct ss_counters *counters,
                            size_t count);

/*
 * Listening sockets beyond those of the start take spare descriptors, and then those of sessions.
 */
bool ss_engine_has_room_for_socket(const struct ss_engine *engine);
void ss_engine_socket_opened(struct ss_engine *engine);
void ss_engine_socket_closed(struct ss_engine *engine);

/* Sets descriptors aside for UDP, for which there were none at the start. SS_ERR_LIMIT. */
SS_CHECKED enum ss_status ss_engine_reserve_udp(struct ss_engine *engine);

/* Ports have come or gone: which listeners have one for UDP beside them. */
void ss_engine_match_udp(struct ss_engine *engine);

/* Whether there is no place for another session, or no memory. */
bool ss_engine_is_full(const struct ss_engine *engine);

/* Takes connections again where there is room. Loop 0. */
void ss_engine_resume_listeners(struct ss_engine *engine);

#endif
