/*
 * Several upstream servers, and which of them a dial or an association goes to. Every thread may
 * ask; nothing here blocks, allocates once it is made, or reads a clock.
 */
#ifndef SS_RELAY_UPSTREAMS_H
#define SS_RELAY_UPSTREAMS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/status.h"
#include "relay/upstream_state.h"

struct ss_profile;

enum ss_balance {
    SS_BALANCE_FASTEST, /* the shortest connect time; changed only for one clearly better */
    SS_BALANCE_RANDOM,  /* any, in proportion to the weights */
};

/* More would not fit into the bits below. */
#define SS_UPSTREAMS_MAX 256

#define SS_WEIGHT_ONE 1000

/* A Shadowsocks server that a client-side program sends to. */
struct ss_upstream {
    struct ss_endpoint endpoint;
    const struct ss_profile *profile;
    uint32_t weight;                 /* thousandths; 0: SS_WEIGHT_ONE */
    struct ss_upstream_state *state; /* held by whoever made this; NULL: the role makes its own */
};

struct ss_upstream_set {
    const struct ss_upstream *list; /* borrowed */
    size_t count;
    enum ss_balance balance;
    struct ss_upstream_state **states; /* one an upstream, held */
    _Atomic uint32_t favourite;        /* of SS_BALANCE_FASTEST */
};

/* SS_ERR_ARGUMENT with more than SS_UPSTREAMS_MAX, SS_ERR_MEMORY. None at all is fine. */
SS_CHECKED enum ss_status ss_upstream_set_init(struct ss_upstream_set *set,
                                               const struct ss_upstream *list, size_t count,
                                               enum ss_balance balance);
void ss_upstream_set_clear(struct ss_upstream_set *set);

/* The state of the server at this endpoint, or NULL: for a new list that it stays on. */
struct ss_upstream_state *ss_upstreams_find(const struct ss_upstream *list, size_t count,
                                            const struct ss_endpoint *endpoint);

/* A bit for each server. */
struct ss_upstream_bits {
    uint64_t words[SS_UPSTREAMS_MAX / 64];
};

static inline bool ss_upstream_bit(const struct ss_upstream_bits *bits, size_t index)
{
    return (bits->words[index / 64] >> index % 64 & 1) != 0;
}

#define SS_UPSTREAM_NONE SIZE_MAX

/*
 * The next server for somebody who has been to those in `tried`, which it is added to and counted
 * as chosen; SS_UPSTREAM_NONE when there is none left. One that is avoided is chosen only after all
 * others.
 */
size_t ss_upstreams_choose(struct ss_upstream_set *set, enum ss_transport transport,
                           struct ss_upstream_bits *tried, uint64_t now_ms);

/* Whether there is a server that nothing speaks against. */
bool ss_upstreams_any_usable(const struct ss_upstream_set *set, enum ss_transport transport,
                             uint64_t now_ms);

#endif
