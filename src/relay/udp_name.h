/*
 * The names that an association sends to: each is looked up once for a while, and what comes
 * meanwhile waits, in order and within a bound. For this folder alone.
 */
#ifndef SS_RELAY_UDP_NAME_H
#define SS_RELAY_UDP_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/span.h"

struct ss_association;

/* Names an association; the one not used for the longest time makes way. */
#define SS_UDP_NAMES_MAX 32

/* Datagrams that wait for one name, if a block holds them. */
#define SS_UDP_WAITING_MAX 64

/* Names that are looked up at once, and those of them for which datagrams wait; of all
 * associations, so that they leave look-ups and blocks to others. */
#define SS_UDP_ASKING_MAX  512
#define SS_UDP_WAITERS_MAX 128

size_t ss_udp_name_size(void);

/* What a name is of. */
enum ss_udp_name_use {
    SS_UDP_NAME_SERVER,        /* where datagrams are sent on to by configuration */
    SS_UDP_NAME_TARGET,        /* of a server's client */
    SS_UDP_NAME_CLIENT_TARGET, /* in a client program: the access control list decides its way */
};

enum ss_udp_way {
    SS_UDP_WAY_NONE,     /* dropped, or kept until more is known */
    SS_UDP_WAY_ADDRESS,  /* to the address */
    SS_UDP_WAY_UPSTREAM, /* of SS_UDP_NAME_CLIENT_TARGET: through the upstream server */
};

/*
 * The way of a datagram. As long as that is unknown, the datagram is kept: `bytes`, of which
 * `address_len` in front are its address for an upstream, go through ss_udp_send_waiting. It is
 * dropped when the name is refused, has no address or too much waits.
 */
enum ss_udp_way ss_udp_name_way(struct ss_association *association, enum ss_udp_name_use use,
                                const char *name, uint16_t port, size_t address_len,
                                struct ss_view bytes, struct ss_ip *ip);

/* Forgets the names of servers, or all, and what waits for them. */
void ss_udp_names_clear_servers(struct ss_association *association);
void ss_udp_names_clear(struct ss_association *association);

#endif
