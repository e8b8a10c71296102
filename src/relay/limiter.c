/* Limits, as arithmetic on atomic numbers. */
#include "relay/limiter.h"

#define NS_A_SECOND UINT64_C(1000000000)

/* A grant of a slow rate: so much of the bucket, so that several sessions share it. */
#define GRANTS_A_BUCKET 4

static uint64_t load(const _Atomic uint64_t *number)
{
    return atomic_load_explicit(number, memory_order_relaxed);
}

void ss_limiter_set(struct ss_limiter *limiter, const struct ss_limits *limits, int64_t now_s)
{
    bool active = limits->quota != 0 || limits->rate != 0 || limits->max_connections != 0 ||
                  limits->expires_s != 0;

    atomic_store(&limiter->quota, limits->quota);
    atomic_store(&limiter->rate, limits->rate);
    atomic_store(&limiter->max_connections, limits->max_connections);
    atomic_store(&limiter->expires_s, limits->expires_s);
    if (atomic_exchange(&limiter->period_s, limits->quota_period_s) != limits->quota_period_s)
        atomic_store(&limiter->period_end_s,
                     limits->quota_period_s != 0 ? now_s + limits->quota_period_s : 0);
    atomic_store(&limiter->active, active);
}

uint64_t ss_limiter_used(const struct ss_limiter *limiter, int64_t *period_end_s)
{
    *period_end_s = atomic_load(&limiter->period_end_s);
    return atomic_load(&limiter->used);
}

void ss_limiter_set_used(struct ss_limiter *limiter, uint64_t used, int64_t period_end_s)
{
    atomic_store(&limiter->used, used);
    if (atomic_load(&limiter->period_s) != 0 && period_end_s != 0)
        atomic_store(&limiter->period_end_s, period_end_s);
}

/* One thread alone begins the next period: the one whose exchange succeeds. */
static void begin_period_if_due(struct ss_limiter *limiter, int64_t now_s)
{
    uint32_t period_s = atomic_load(&limiter->period_s);
    int64_t end_s = atomic_load(&limiter->period_end_s);

    if (period_s == 0 || now_s < end_s)
        return;
    if (atomic_compare_exchange_strong(&limiter->period_end_s, &end_s,
                                       end_s + ((now_s - end_s) / period_s + 1) * period_s))
        atomic_store(&limiter->used, 0);
}

enum ss_limit_reason ss_limiter_reason(struct ss_limiter *limiter, int64_t now_s)
{
    int64_t expires_s = atomic_load(&limiter->expires_s);
    uint64_t quota;

    begin_period_if_due(limiter, now_s);
    quota = load(&limiter->quota);
    if (expires_s != 0 && now_s >= expires_s)
        return SS_LIMIT_EXPIRED;
    return quota != 0 && load(&limiter->used) >= quota ? SS_LIMIT_QUOTA : SS_LIMIT_NONE;
}

/* Up to `want` bytes of the quota; 0 when it is used up. */
static size_t draw_quota(struct ss_limiter *limiter, size_t want)
{
    uint64_t used = load(&limiter->used);

    for (;;) {
        uint64_t quota = load(&limiter->quota);
        uint64_t left = quota > used ? quota - used : 0;
        size_t take = quota == 0 || left > want ? want : (size_t)left;

        if (take == 0 || atomic_compare_exchange_weak(&limiter->used, &used, used + take))
            return take;
    }
}

/*
 * Whether the bucket holds so much now; it is taken then. A full one gives more than it holds and
 * is in debt afterwards: else a rate would be a limit of size, too.
 */
static bool draw_rate(struct ss_limiter *limiter, size_t bytes, uint64_t now_ns)
{
    uint64_t busy = load(&limiter->busy_until_ns);

    for (;;) {
        uint64_t rate = load(&limiter->rate);
        uint64_t from = busy > now_ns ? busy : now_ns;
        uint64_t room_ns, holds;

        if (rate == 0)
            return true;
        room_ns = from - now_ns < SS_RATE_BURST_NS ? SS_RATE_BURST_NS - (from - now_ns) : 0;
        /* At most a tenth of the rate, and no step overflows. */
        holds = rate / NS_A_SECOND * room_ns + rate % NS_A_SECOND * room_ns / NS_A_SECOND;
        if (holds < bytes && from != now_ns)
            return false;
        if (atomic_compare_exchange_weak(&limiter->busy_until_ns, &busy,
                                         from + (uint64_t)bytes * NS_A_SECOND / rate))
            return true;
    }
}

size_t ss_limiter_draw(struct ss_limiter *limiter, size_t want, uint64_t now_ns, bool *wait)
{
    uint64_t rate = load(&limiter->rate);
    size_t granted;

    *wait = false;
    if (want > SS_GRANT_MAX)
        want = SS_GRANT_MAX;
    if (rate != 0) {
        uint64_t share = rate / (NS_A_SECOND / SS_RATE_BURST_NS) / GRANTS_A_BUCKET + 1;

        if (share < want)
            want = (size_t)share;
    }
    granted = draw_quota(limiter, want);
    if (granted == 0 || draw_rate(limiter, granted, now_ns))
        return granted;
    ss_limiter_return(limiter, granted);
    *wait = true;
    return 0;
}

void ss_limiter_return(struct ss_limiter *limiter, uint64_t unused)
{
    uint64_t used = load(&limiter->used);

    /* After a new period has begun there is less to take away from. */
    while (!atomic_compare_exchange_weak(&limiter->used, &used, used > unused ? used - unused : 0))
        continue;
}

void ss_limiter_charge(struct ss_limiter *limiter, uint64_t bytes, uint64_t now_ns)
{
    uint64_t rate = load(&limiter->rate);

    atomic_fetch_add(&limiter->used, bytes);
    if (rate != 0) {
        uint64_t busy = load(&limiter->busy_until_ns);

        while (!atomic_compare_exchange_weak(&limiter->busy_until_ns, &busy,
                                             (busy > now_ns ? busy : now_ns) +
                                                 bytes * NS_A_SECOND / rate))
            continue;
    }
}

bool ss_limiter_take(struct ss_limiter *limiter, size_t bytes, uint64_t now_ns)
{
    size_t got;

    if (bytes == 0)
        return true;
    got = draw_quota(limiter, bytes);
    if (got == bytes && draw_rate(limiter, bytes, now_ns))
        return true;
    ss_limiter_return(limiter, got);
    return false;
}

bool ss_limiter_enter(struct ss_limiter *limiter)
{
    uint32_t count = atomic_load(&limiter->connections);

    for (;;) {
        uint32_t most = atomic_load(&limiter->max_connections);

        if (most != 0 && count >= most)
            return false;
        if (atomic_compare_exchange_weak(&limiter->connections, &count, count + 1))
            return true;
    }
}

void ss_limiter_leave(struct ss_limiter *limiter)
{
    atomic_fetch_sub(&limiter->connections, 1);
}
