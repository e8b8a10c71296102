/*
 * Limits of a port or of a user, drawn from by all workers: payload bytes in a period, bytes a
 * second, connections at once, and an end in time. Whoever wants to relay draws a grant first and
 * relays no more than that, so what a limit lets through is exact but for what was granted and not
 * used yet.
 *
 * A limiter is atomic numbers alone: no lock, no memory of its own, and all zero is one that limits
 * nothing. Time is handed in. Settings may change at any moment and act on the next draw.
 */
#ifndef SS_RELAY_LIMITER_H
#define SS_RELAY_LIMITER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 0: without that limit. */
struct ss_limits {
    uint64_t quota;          /* bytes of payload, up and down together */
    uint32_t quota_period_s; /* after which the count begins anew; 0: never */
    uint64_t rate;           /* bytes a second, up and down together */
    uint32_t max_connections;
    int64_t expires_s; /* Unix time */
};

enum ss_limit_reason {
    SS_LIMIT_NONE,
    SS_LIMIT_QUOTA,
    SS_LIMIT_EXPIRED,
    SS_LIMIT_CONNECTIONS, /* only for new ones */
};

struct ss_limiter {
    _Atomic uint64_t quota, used; /* bytes; `used` includes grants that are out */
    _Atomic uint64_t rate;
    _Atomic uint64_t
        busy_until_ns; /* of the monotonic clock: when the bucket would be full again */
    _Atomic uint32_t max_connections, connections;
    _Atomic int64_t expires_s;
    _Atomic uint32_t period_s;
    _Atomic int64_t period_end_s;
    _Atomic bool active; /* any limit is set */
    bool begun;          /* of whoever sets it: it has been set before */
    int64_t reached_s;   /* of whoever ends the sessions: since when one is reached; 0: none */
};

/* A draw at once, at most, in bytes; what a bucket holds, in time. */
#define SS_GRANT_MAX     (16u * 1024u)
#define SS_RATE_BURST_NS UINT64_C(100000000)

/* What a new limiter begins with, or another setting of one in use: what was used stays used. */
void ss_limiter_set(struct ss_limiter *limiter, const struct ss_limits *limits, int64_t now_s);
/* Bytes of the quota in this period, grants that are out among them, and its end (0: none). */
uint64_t ss_limiter_used(const struct ss_limiter *limiter, int64_t *period_end_s);

/* What was relayed before this process began, from a state that was saved. */
void ss_limiter_set_used(struct ss_limiter *limiter, uint64_t used, int64_t period_end_s);

static inline bool ss_limiter_is_active(const struct ss_limiter *limiter)
{
    return limiter != NULL && atomic_load_explicit(&limiter->active, memory_order_relaxed);
}

/* Whether relaying has to end, and why. Begins a new period where one is due. */
enum ss_limit_reason ss_limiter_reason(struct ss_limiter *limiter, int64_t now_s);

/* A grant of 1 to `want` bytes. 0 when there is none: the quota is used up, or, with *wait, the
 * rate has none just now. */
size_t ss_limiter_draw(struct ss_limiter *limiter, size_t want, uint64_t now_ns, bool *wait);

/* Gives back what of a grant was not used: to the quota alone, since time has gone. */
void ss_limiter_return(struct ss_limiter *limiter, uint64_t unused);

/* Relayed without a grant, or beyond it. */
void ss_limiter_charge(struct ss_limiter *limiter, uint64_t bytes, uint64_t now_ns);

/* A datagram: all of it or nothing. */
bool ss_limiter_take(struct ss_limiter *limiter, size_t bytes, uint64_t now_ns);

/* A connection begins. False when there are as many as may be; else ss_limiter_leave ends it. */
bool ss_limiter_enter(struct ss_limiter *limiter);
void ss_limiter_leave(struct ss_limiter *limiter);

#endif
