/* The state of an upstream server: counters, connect time, pauses, addresses. */
#include "relay/upstream_state.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

/* A mean in which the latest connect time counts for a quarter. */
#define LATEST_SHARE 4

/* Bounds of the time before another server is dialled beside this one, and that of a server that
 * was never reached (RFC 8305, section 8). */
#define PATIENCE_LEAST_MS   100
#define PATIENCE_MOST_MS    2000
#define PATIENCE_UNKNOWN_MS 250

/* A connect time that is older is found out anew with the next connection. */
#define MEASURED_FOR_MS 600000

/* One dial at a time finds out whether a server is there again; after so long another may. */
#define TRIAL_MS 2000

/* How long the address that was connected to goes before the name server's order. */
#define PREFERRED_FOR_MS 600000

/* A server whose datagrams came lately is not avoided for what happened to TCP. */
#define ANSWERED_LATELY_MS 30000

struct health {
    _Atomic uint64_t chosen, failed; /* totals */
    _Atomic uint32_t failures;       /* in a row */
    _Atomic uint64_t avoided_until_ms;
    _Atomic uint64_t trial_until_ms; /* somebody finds out */
    _Atomic bool said;               /* that it fails */
};

struct ss_upstream_state {
    _Atomic uint32_t holders;
    struct ss_endpoint endpoint;
    struct health health[2]; /* by transport */
    _Atomic uint64_t connects;
    _Atomic uint32_t connect_us;
    _Atomic uint64_t measured_ms, measuring_ms;
    _Atomic uint64_t probed_ms;
    _Atomic uint64_t plain_until_ms;
    _Atomic uint64_t answered_ms;
    bool has_name;

    uv_mutex_t lock; /* of what follows; held for a copy */
    struct ss_ip addresses[SS_UPSTREAM_ADDRESSES_MAX];
    size_t address_count;
    struct ss_ip preferred; /* family 0: none */
    uint64_t preferred_ms;
};

#define LOAD(field)         atomic_load_explicit(&(field), memory_order_relaxed)
#define STORE(field, value) atomic_store_explicit(&(field), (value), memory_order_relaxed)
#define ADD(field)          ((void)atomic_fetch_add_explicit(&(field), 1, memory_order_relaxed))

/* True to the one thread that changes the field from what it was. */
static bool change(_Atomic uint64_t *field, uint64_t from, uint64_t to)
{
    return atomic_compare_exchange_strong_explicit(field, &from, to, memory_order_relaxed,
                                                   memory_order_relaxed);
}

struct ss_upstream_state *ss_upstream_state_new(const struct ss_endpoint *endpoint)
{
    struct ss_upstream_state *state = calloc(1, sizeof *state);
    struct ss_ip ip;

    if (state == NULL)
        return NULL;
    if (uv_mutex_init(&state->lock) != 0) {
        free(state);
        return NULL;
    }
    state->endpoint = *endpoint;
    atomic_init(&state->holders, 1);
    state->has_name = ss_ip_parse(&ip, endpoint->host) != SS_OK;
    if (!state->has_name) {
        state->addresses[0] = ip;
        state->address_count = 1;
    }
    return state;
}

struct ss_upstream_state *ss_upstream_state_hold(struct ss_upstream_state *state)
{
    ADD(state->holders);
    return state;
}

void ss_upstream_state_release(struct ss_upstream_state *state)
{
    /* Whoever frees it must see all that the others did with it. */
    if (state == NULL || atomic_fetch_sub_explicit(&state->holders, 1, memory_order_acq_rel) != 1)
        return;
    uv_mutex_destroy(&state->lock);
    free(state);
}

bool ss_upstream_state_is_last(const struct ss_upstream_state *state)
{
    return LOAD(state->holders) == 1;
}

const struct ss_endpoint *ss_upstream_state_endpoint(const struct ss_upstream_state *state)
{
    return &state->endpoint;
}

/* -- what happened -- */

void ss_upstream_chosen(struct ss_upstream_state *state, enum ss_transport transport)
{
    ADD(state->health[transport].chosen);
}

/* It is there: nothing is held against it any more. True when its failing had been said. */
static bool make_good(struct health *health)
{
    if (LOAD(health->failures) == 0)
        return false;
    STORE(health->failures, 0);
    STORE(health->avoided_until_ms, 0);
    STORE(health->trial_until_ms, 0);
    return atomic_exchange_explicit(&health->said, false, memory_order_relaxed);
}

bool ss_upstream_connected(struct ss_upstream_state *state, uint64_t took_us, uint64_t now_ms)
{
    uint32_t before = LOAD(state->connect_us);
    uint32_t latest =
        took_us < UINT32_MAX / LATEST_SHARE ? (uint32_t)took_us : UINT32_MAX / LATEST_SHARE;
    bool first = now_ms - LOAD(state->measured_ms) > MEASURED_FOR_MS;

    ADD(state->connects);
    if (took_us == 0)
        return false;
    if (before == 0 || first)
        STORE(state->connect_us, latest);
    else /* never 0, which stands for none */
        STORE(state->connect_us, before - before / LATEST_SHARE + (latest + 3) / LATEST_SHARE);
    STORE(state->measured_ms, now_ms);
    return make_good(&state->health[SS_TRANSPORT_TCP]);
}

bool ss_upstream_answered(struct ss_upstream_state *state, uint64_t now_ms)
{
    STORE(state->answered_ms, now_ms);
    return make_good(&state->health[SS_TRANSPORT_UDP]);
}

static uint64_t pause_after(uint32_t failures)
{
    uint64_t pause_ms = SS_AVOIDED_FIRST_MS;

    while (failures-- > 1 && pause_ms < SS_AVOIDED_MOST_MS)
        pause_ms *= 2;
    return pause_ms < SS_AVOIDED_MOST_MS ? pause_ms : SS_AVOIDED_MOST_MS;
}

bool ss_upstream_failed(struct ss_upstream_state *state, enum ss_transport transport, bool sure,
                        uint64_t begun_ms, uint64_t now_ms)
{
    struct health *health = &state->health[transport];
    uint64_t until_ms = LOAD(health->avoided_until_ms);
    uint32_t failures = LOAD(health->failures);

    ADD(health->failed);
    if (begun_ms < until_ms ||
        !change(&health->avoided_until_ms, until_ms, now_ms + pause_after(failures + 1)))
        return false;
    STORE(health->failures, failures + 1);
    STORE(health->trial_until_ms, 0);
    if (transport == SS_TRANSPORT_TCP)
        STORE(state->probed_ms, now_ms); /* there is no need to ask at once */
    return (sure || failures != 0) &&
           !atomic_exchange_explicit(&health->said, true, memory_order_relaxed);
}

/* -- what that comes to -- */

static bool is_open(const struct health *health, uint64_t now_ms)
{
    return LOAD(health->failures) == 0 ||
           (LOAD(health->avoided_until_ms) <= now_ms && LOAD(health->trial_until_ms) <= now_ms);
}

bool ss_upstream_is_usable(const struct ss_upstream_state *state, enum ss_transport transport,
                           uint64_t now_ms)
{
    if (!is_open(&state->health[transport], now_ms))
        return false;
    if (transport == SS_TRANSPORT_TCP)
        return true;
    /* A server that TCP does not reach is hardly there for UDP, unless it says so. */
    return LOAD(state->health[SS_TRANSPORT_TCP].avoided_until_ms) <= now_ms ||
           ss_upstream_answered_within(state, ANSWERED_LATELY_MS, now_ms);
}

bool ss_upstream_claim(struct ss_upstream_state *state, enum ss_transport transport,
                       uint64_t now_ms)
{
    struct health *health = &state->health[transport];
    uint64_t until_ms = LOAD(health->trial_until_ms);

    if (LOAD(health->failures) == 0)
        return true;
    return until_ms <= now_ms && change(&health->trial_until_ms, until_ms, now_ms + TRIAL_MS);
}

uint64_t ss_upstream_avoided_until(const struct ss_upstream_state *state,
                                   enum ss_transport transport)
{
    uint64_t own = LOAD(state->health[transport].avoided_until_ms);
    uint64_t tcp = LOAD(state->health[SS_TRANSPORT_TCP].avoided_until_ms);

    return own > tcp ? own : tcp;
}

bool ss_upstream_is_failing(const struct ss_upstream_state *state, enum ss_transport transport)
{
    return LOAD(state->health[transport].failures) != 0;
}

bool ss_upstream_answered_within(const struct ss_upstream_state *state, uint64_t ms,
                                 uint64_t now_ms)
{
    uint64_t answered_ms = LOAD(state->answered_ms);

    return answered_ms != 0 && now_ms < answered_ms + ms;
}

uint32_t ss_upstream_connect_time(const struct ss_upstream_state *state)
{
    return LOAD(state->connect_us);
}

uint32_t ss_upstream_patience_ms(const struct ss_upstream_state *state)
{
    uint32_t usual_ms = LOAD(state->connect_us) / 1000;

    if (LOAD(state->connect_us) == 0)
        return PATIENCE_UNKNOWN_MS;
    if (usual_ms > PATIENCE_MOST_MS / 3)
        return PATIENCE_MOST_MS;
    return 3 * usual_ms > PATIENCE_LEAST_MS ? 3 * usual_ms : PATIENCE_LEAST_MS;
}

/* Whether something was not done for so long; then it is done now, by one thread. */
static bool is_due(_Atomic uint64_t *last_ms, uint64_t every_ms, uint64_t now_ms)
{
    uint64_t last = LOAD(*last_ms);

    return (last == 0 || now_ms - last >= every_ms) && now_ms >= last &&
           change(last_ms, last, now_ms);
}

bool ss_upstream_wants_measuring(struct ss_upstream_state *state, uint64_t now_ms)
{
    if (ss_upstream_is_failing(state, SS_TRANSPORT_TCP) ||
        (LOAD(state->connect_us) != 0 && now_ms - LOAD(state->measured_ms) < MEASURED_FOR_MS))
        return false;
    return is_due(&state->measuring_ms, MEASURED_FOR_MS, now_ms);
}

bool ss_upstream_wants_probe(struct ss_upstream_state *state, uint64_t now_ms)
{
    return ss_upstream_is_failing(state, SS_TRANSPORT_TCP) &&
           is_due(&state->probed_ms, SS_PROBE_EVERY_MS, now_ms);
}

void ss_upstream_set_plain(struct ss_upstream_state *state, uint64_t until_ms)
{
    STORE(state->plain_until_ms, until_ms);
}

bool ss_upstream_is_plain(const struct ss_upstream_state *state, uint64_t now_ms)
{
    /* A server that fails must show that it is there, which fast open does not tell. */
    return LOAD(state->plain_until_ms) > now_ms || ss_upstream_is_failing(state, SS_TRANSPORT_TCP);
}

/* -- addresses -- */

bool ss_upstream_has_name(const struct ss_upstream_state *state)
{
    return state->has_name;
}

void ss_upstream_remember(struct ss_upstream_state *state, const struct ss_ip *addresses,
                          size_t count)
{
    if (!state->has_name || count == 0)
        return;
    if (count > SS_UPSTREAM_ADDRESSES_MAX)
        count = SS_UPSTREAM_ADDRESSES_MAX;
    uv_mutex_lock(&state->lock);
    memcpy(state->addresses, addresses, count * sizeof *addresses);
    state->address_count = count;
    uv_mutex_unlock(&state->lock);
}

void ss_upstream_prefer(struct ss_upstream_state *state, const struct ss_ip *ip, uint64_t now_ms)
{
    if (!state->has_name)
        return;
    uv_mutex_lock(&state->lock);
    if (!ss_ip_equal(&state->preferred, ip)) {
        state->preferred = *ip;
        state->preferred_ms = now_ms;
    }
    uv_mutex_unlock(&state->lock);
}

/* With the lock held. */
static void sort(struct ss_upstream_state *state, struct ss_ip *addresses, size_t count,
                 uint64_t now_ms)
{
    if (state->preferred.family == SS_FAMILY_NONE)
        return;
    if (now_ms - state->preferred_ms > PREFERRED_FOR_MS) {
        state->preferred = (struct ss_ip){0};
        return;
    }
    for (size_t i = 1; i < count; i++) {
        if (!ss_ip_equal(&addresses[i], &state->preferred))
            continue;
        memmove(addresses + 1, addresses, i * sizeof *addresses);
        addresses[0] = state->preferred;
        return;
    }
}

size_t ss_upstream_addresses(struct ss_upstream_state *state, struct ss_ip *addresses,
                             uint64_t now_ms)
{
    size_t count;

    if (!state->has_name) {
        addresses[0] = state->addresses[0];
        return 1;
    }
    uv_mutex_lock(&state->lock);
    count = state->address_count;
    memcpy(addresses, state->addresses, count * sizeof *addresses);
    sort(state, addresses, count, now_ms);
    uv_mutex_unlock(&state->lock);
    return count;
}

void ss_upstream_sort(struct ss_upstream_state *state, struct ss_ip *addresses, size_t count,
                      uint64_t now_ms)
{
    if (!state->has_name || count < 2)
        return;
    uv_mutex_lock(&state->lock);
    sort(state, addresses, count, now_ms);
    uv_mutex_unlock(&state->lock);
}

/* -- for people -- */

static uint32_t left(const struct health *health, uint64_t now_ms)
{
    uint64_t until_ms = LOAD(health->avoided_until_ms);

    return until_ms > now_ms ? (uint32_t)(until_ms - now_ms) : 0;
}

void ss_upstream_state_view(const struct ss_upstream_state *state, uint64_t now_ms,
                            struct ss_upstream_view *view)
{
    const struct health *tcp = &state->health[SS_TRANSPORT_TCP];
    const struct health *udp = &state->health[SS_TRANSPORT_UDP];

    *view = (struct ss_upstream_view){.chosen = LOAD(tcp->chosen),
                                      .connects = LOAD(state->connects),
                                      .failures = LOAD(tcp->failed),
                                      .associations = LOAD(udp->chosen),
                                      .udp_failures = LOAD(udp->failed),
                                      .connect_us = LOAD(state->connect_us),
                                      .avoided_ms = left(tcp, now_ms),
                                      .udp_avoided_ms = left(udp, now_ms)};
}
