/*
 * What has been seen of an upstream server, over TCP and over UDP: how long connecting takes, how
 * often it failed, until when it is avoided, and the addresses that its name last had. Counted by
 * its holders, so that it outlives the role that it was made for; every thread reads and writes it.
 *
 * Time is passed in: milliseconds of the clock that event loops have. That of another thread may be
 * a little off.
 */
#ifndef SS_RELAY_UPSTREAM_STATE_H
#define SS_RELAY_UPSTREAM_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/status.h"

struct ss_upstream_state;

enum ss_transport { SS_TRANSPORT_TCP, SS_TRANSPORT_UDP };

/* Addresses of a name that are remembered. */
#define SS_UPSTREAM_ADDRESSES_MAX 8

/* A server that failed is avoided this long, twice as long after each further failure, and at most
 * so long. */
#define SS_AVOIDED_FIRST_MS 1000
#define SS_AVOIDED_MOST_MS  300000

/* An avoided server is asked whether it is there again, beside the traffic, at most so often. */
#define SS_PROBE_EVERY_MS 60000

/* NULL when memory is out. The caller holds it. */
struct ss_upstream_state *ss_upstream_state_new(const struct ss_endpoint *endpoint);
struct ss_upstream_state *ss_upstream_state_hold(struct ss_upstream_state *state);
void ss_upstream_state_release(struct ss_upstream_state *state); /* NULL is fine */
/* Whether the caller is the last who holds it. */
bool ss_upstream_state_is_last(const struct ss_upstream_state *state);

const struct ss_endpoint *ss_upstream_state_endpoint(const struct ss_upstream_state *state);

/* -- what happened -- */

/* A dial or an association goes there. */
void ss_upstream_chosen(struct ss_upstream_state *state, enum ss_transport transport);

/* Connected within `took_us` microseconds: it is there. With 0, which is what fast open tells,
 * nothing is known of it and it is only counted. True when its failing had been said. */
bool ss_upstream_connected(struct ss_upstream_state *state, uint64_t took_us, uint64_t now_ms);

/* A datagram that can only be from it has come. The same result. */
bool ss_upstream_answered(struct ss_upstream_state *state, uint64_t now_ms);

/*
 * An attempt that began at `begun_ms` came to nothing: avoided from now on, unless it began before
 * the last pause ended, for then that failure is known. True when that is to be said: once in a row
 * of failures, and not for the first when it was merely late (`sure` is false), as may happen.
 */
bool ss_upstream_failed(struct ss_upstream_state *state, enum ss_transport transport, bool sure,
                        uint64_t begun_ms, uint64_t now_ms);

/* -- what that comes to -- */

/* Nothing speaks against it: it has not failed, or its pause is over and nobody finds out yet
 * whether it is there again. */
bool ss_upstream_is_usable(const struct ss_upstream_state *state, enum ss_transport transport,
                           uint64_t now_ms);

/* Takes on finding that out where it is open, so that others stay away meanwhile. False when
 * another was faster. */
bool ss_upstream_claim(struct ss_upstream_state *state, enum ss_transport transport,
                       uint64_t now_ms);

/* 0: not avoided. */
uint64_t ss_upstream_avoided_until(const struct ss_upstream_state *state,
                                   enum ss_transport transport);

/* Whether its last failure was not made good yet. */
bool ss_upstream_is_failing(const struct ss_upstream_state *state, enum ss_transport transport);

/* Whether a datagram of it has come within the last `ms`. */
bool ss_upstream_answered_within(const struct ss_upstream_state *state, uint64_t ms,
                                 uint64_t now_ms);

/* The mean of the latest connect times, in microseconds; 0: none yet. */
uint32_t ss_upstream_connect_time(const struct ss_upstream_state *state);

/* How long to wait for a connection before another server is dialled beside it. */
uint32_t ss_upstream_patience_ms(const struct ss_upstream_state *state);

/* Whether its connect time is unknown or old: true once in a while, to one caller. */
bool ss_upstream_wants_measuring(struct ss_upstream_state *state, uint64_t now_ms);

/* Whether a failing server is to be probed now: true once a minute, to one caller. */
bool ss_upstream_wants_probe(struct ss_upstream_state *state, uint64_t now_ms);

/* Fast open came to nothing there: not to be used before this time. */
void ss_upstream_set_plain(struct ss_upstream_state *state, uint64_t until_ms);
bool ss_upstream_is_plain(const struct ss_upstream_state *state, uint64_t now_ms);

/* -- addresses of its name -- */

/* What a name server said. */
void ss_upstream_remember(struct ss_upstream_state *state, const struct ss_ip *addresses,
                          size_t count);
/* One of them was connected to; it goes first for a while. */
void ss_upstream_prefer(struct ss_upstream_state *state, const struct ss_ip *ip, uint64_t now_ms);
/*
 * The address of a literal, or those last remembered, in the order in which to try them; how many
 * there are, of SS_UPSTREAM_ADDRESSES_MAX.
 */
size_t ss_upstream_addresses(struct ss_upstream_state *state, struct ss_ip *addresses,
                             uint64_t now_ms);
/* Brings the preferred address to the front, if it is among these. */
void ss_upstream_sort(struct ss_upstream_state *state, struct ss_ip *addresses, size_t count,
                      uint64_t now_ms);
bool ss_upstream_has_name(const struct ss_upstream_state *state);

/* -- for people -- */

struct ss_upstream_view {
    uint64_t chosen, connects, failures; /* TCP */
    uint64_t associations, udp_failures;
    uint32_t connect_us;     /* 0: not measured */
    uint32_t avoided_ms;     /* from now; 0: not avoided */
    uint32_t udp_avoided_ms; /* the same of UDP */
};

void ss_upstream_state_view(const struct ss_upstream_state *state, uint64_t now_ms,
                            struct ss_upstream_view *view);

#endif
