/* Which upstream server is next. */
#include "relay/upstreams.h"

#include <stdlib.h>
#include <string.h>

#include "crypto/random.h"

/* The connect time that is assumed of a server that was never reached. */
#define UNKNOWN_US 250000

/* Added to every connect time, so that differences of a few milliseconds mean nothing. */
#define GRAIN_US 10000

/* The favourite makes way for one whose cost is below three quarters of its own. */
#define BETTER_NUMERATOR   3
#define BETTER_DENOMINATOR 4

enum ss_status ss_upstream_set_init(struct ss_upstream_set *set, const struct ss_upstream *list,
                                    size_t count, enum ss_balance balance)
{
    *set = (struct ss_upstream_set){.list = list, .balance = balance};
    if (count > SS_UPSTREAMS_MAX)
        return SS_ERR_ARGUMENT;
    set->states = calloc(count + 1, sizeof *set->states);
    if (set->states == NULL)
        return SS_ERR_MEMORY;
    for (; set->count < count; set->count++) {
        const struct ss_upstream *upstream = &list[set->count];
        struct ss_upstream_state *state = upstream->state != NULL
                                              ? ss_upstream_state_hold(upstream->state)
                                              : ss_upstream_state_new(&upstream->endpoint);

        if (state == NULL) {
            ss_upstream_set_clear(set);
            return SS_ERR_MEMORY;
        }
        set->states[set->count] = state;
    }
    return SS_OK;
}

void ss_upstream_set_clear(struct ss_upstream_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        ss_upstream_state_release(set->states[i]);
    free(set->states);
    set->states = NULL;
    set->count = 0;
}

struct ss_upstream_state *ss_upstreams_find(const struct ss_upstream *list, size_t count,
                                            const struct ss_endpoint *endpoint)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].state != NULL && ss_endpoint_equal(&list[i].endpoint, endpoint))
            return list[i].state;
    return NULL;
}

static uint64_t weight_of(const struct ss_upstream_set *set, size_t index)
{
    uint32_t weight = set->list[index].weight;

    return weight != 0 ? weight : SS_WEIGHT_ONE;
}

static uint64_t cost_of(const struct ss_upstream_set *set, size_t index)
{
    uint64_t connect_us = ss_upstream_connect_time(set->states[index]);

    if (connect_us == 0)
        connect_us = UNKNOWN_US;
    return (connect_us + GRAIN_US) * SS_WEIGHT_ONE / weight_of(set, index);
}

/* What is asked for, and where the asker has been. */
struct question {
    struct ss_upstream_set *set;
    enum ss_transport transport;
    const struct ss_upstream_bits *tried;
    uint64_t now_ms;
};

static bool is_usable(const struct question *q, size_t index)
{
    return !ss_upstream_bit(q->tried, index) &&
           ss_upstream_is_usable(q->set->states[index], q->transport, q->now_ms);
}

/* A server whose connect time is not known: finding it out takes one connection. */
static size_t to_be_measured(const struct question *q)
{
    for (size_t i = 0; i < q->set->count; i++)
        if (is_usable(q, i) && ss_upstream_wants_measuring(q->set->states[i], q->now_ms))
            return i;
    return SS_UPSTREAM_NONE;
}

static size_t fastest(const struct question *q)
{
    size_t favourite = atomic_load_explicit(&q->set->favourite, memory_order_relaxed);
    size_t best = SS_UPSTREAM_NONE;

    for (size_t i = 0; i < q->set->count; i++)
        if (is_usable(q, i) &&
            (best == SS_UPSTREAM_NONE || cost_of(q->set, i) < cost_of(q->set, best)))
            best = i;
    if (best != SS_UPSTREAM_NONE && is_usable(q, favourite) &&
        cost_of(q->set, best) * BETTER_DENOMINATOR >= cost_of(q->set, favourite) * BETTER_NUMERATOR)
        return favourite;
    return best;
}

static size_t random_one(const struct question *q)
{
    uint64_t sum = 0, drawn;

    for (size_t i = 0; i < q->set->count; i++)
        sum += is_usable(q, i) ? weight_of(q->set, i) : 0;
    if (sum == 0)
        return SS_UPSTREAM_NONE;
    drawn = ss_random_below(sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX);
    for (size_t i = 0; i < q->set->count; i++) {
        uint64_t weight = is_usable(q, i) ? weight_of(q->set, i) : 0;

        if (drawn < weight)
            return i;
        drawn -= weight;
    }
    return SS_UPSTREAM_NONE; /* another thread has made one of them unusable meanwhile */
}

/* All that are left are avoided: the one whose pause ends first. */
static size_t least_avoided(const struct question *q)
{
    size_t best = SS_UPSTREAM_NONE;
    uint64_t best_ms = 0;

    for (size_t i = 0; i < q->set->count; i++) {
        uint64_t until_ms = ss_upstream_avoided_until(q->set->states[i], q->transport);

        if (ss_upstream_bit(q->tried, i) || (best != SS_UPSTREAM_NONE && until_ms >= best_ms))
            continue;
        best = i;
        best_ms = until_ms;
    }
    return best;
}

static size_t choose(const struct question *q)
{
    static const struct ss_upstream_bits none;
    bool first = memcmp(q->tried, &none, sizeof none) == 0;
    bool by_time = q->set->balance == SS_BALANCE_FASTEST;
    size_t chosen = SS_UPSTREAM_NONE;

    if (first && by_time && q->set->count > 1 && q->transport == SS_TRANSPORT_TCP)
        chosen = to_be_measured(q);
    if (chosen != SS_UPSTREAM_NONE)
        return chosen;
    /* Another thread may claim one on trial first: it is not usable any more then. */
    do {
        chosen = by_time ? fastest(q) : random_one(q);
        if (chosen == SS_UPSTREAM_NONE)
            return least_avoided(q);
    } while (!ss_upstream_claim(q->set->states[chosen], q->transport, q->now_ms));
    if (first && by_time)
        atomic_store_explicit(&q->set->favourite, (uint32_t)chosen, memory_order_relaxed);
    return chosen;
}

size_t ss_upstreams_choose(struct ss_upstream_set *set, enum ss_transport transport,
                           struct ss_upstream_bits *tried, uint64_t now_ms)
{
    const struct question q = {set, transport, tried, now_ms};
    size_t chosen = choose(&q);

    if (chosen == SS_UPSTREAM_NONE)
        return chosen;
    tried->words[chosen / 64] |= UINT64_C(1) << chosen % 64;
    ss_upstream_chosen(set->states[chosen], transport);
    return chosen;
}

bool ss_upstreams_any_usable(const struct ss_upstream_set *set, enum ss_transport transport,
                             uint64_t now_ms)
{
    for (size_t i = 0; i < set->count; i++)
        if (ss_upstream_is_usable(set->states[i], transport, now_ms))
            return true;
    return false;
}
