/*
 * Traffic that the system's rules have brought here: where it was going, and answering in the name
 * of an address that is not ours.
 *
 * REDIRECT (NAT) rewrites the destination, which the system remembers for each connection; TPROXY
 * leaves it, so a connection's local address is the destination, and a datagram comes with it.
 */
#ifndef SS_NET_REDIRECT_H
#define SS_NET_REDIRECT_H

#include <stdbool.h>

#include "base/addr.h"
#include "base/status.h"

/*
 * Lets the socket be bound to, and be reached by, addresses that are not this machine's. Before
 * bind. SS_ERR_PERMISSION without CAP_NET_RAW or CAP_NET_ADMIN, SS_ERR_UNSUPPORTED where the system
 * has no such thing.
 */
SS_CHECKED enum ss_status ss_redirect_make_transparent(int fd, enum ss_family family);

/* Whether that would be allowed now. */
SS_CHECKED enum ss_status ss_redirect_may_be_transparent(void);

/* Lets a UDP socket's datagrams tell where they were going (struct ss_datagram's `original`);
 * `both`: the socket, of IPv6, serves IPv4 as well. */
SS_CHECKED enum ss_status ss_redirect_want_originals(int fd, enum ss_family family, bool both);

/* Whether a control message of that kind carries such a destination, as a socket address. */
bool ss_redirect_carries_original(int level, int type);

/*
 * Where an accepted connection was going before REDIRECT. Of one that was not redirected it is the
 * local address. IPv4-mapped addresses come as IPv4; family 0 when the system does not say.
 */
void ss_redirect_original(int fd, struct ss_addr *original);

/* Whether the address is one of this machine's own. Opens a socket for a moment, sends nothing. */
bool ss_redirect_is_local(const struct ss_ip *ip);

#endif
