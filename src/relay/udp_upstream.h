/*
 * Which upstream server an association sends to, and what is seen of servers by their datagrams.
 * For this folder alone.
 */
#ifndef SS_RELAY_UDP_UPSTREAM_H
#define SS_RELAY_UDP_UPSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/status.h"

struct ss_association;
struct ss_packet_codec;
struct ss_udp_port;
struct ss_upstream_state;

/* What a port keeps of one of its role's upstream servers. */
struct ss_udp_server {
    struct ss_packet_codec *codec; /* that of an earlier one with the same profile, or its own */
    bool owns_codec, takes_codec;  /* takes: it is another role's, as long as this one may fail */
    bool has_sessions;   /* its datagrams are of sessions: associations have links to them */
    struct ss_addr addr; /* family 0: its name is to be looked up */
    uint32_t unanswered; /* datagrams since the last that came from it */
    uint64_t since_ms;   /* when the first of these was sent */
};

/* Chooses a server for a new association: its `upstream`. */
void ss_udp_upstream_choose(struct ss_association *association);

/*
 * Before a datagram goes through the association's server. When that is avoided meanwhile, an
 * association that never had an answer, or has had none for some seconds, goes to another. False
 * when that failed; the association is closed then.
 */
bool ss_udp_upstream_is_right(struct ss_association *association);

/* A datagram is about to leave for its server. */
void ss_udp_upstream_sending(struct ss_association *association);

/* A datagram that can only be from its server has come. */
void ss_udp_upstream_answered(struct ss_association *association);

/* A datagram to this address could not be delivered. */
void ss_udp_upstream_refused(struct ss_association *association, const struct ss_addr *to);

/* The state of the association's server; NULL where there is none. */
struct ss_upstream_state *ss_udp_upstream_state(const struct ss_association *association);

#endif
