/*
 * Datagrams in batches: many a system call where the system can, one where it can't. Hides control
 * messages and segmentation offload (UDP_GRO, UDP_SEGMENT) from the relay: what comes in and goes
 * out are single datagrams.
 *
 * A batch owns the memory of its datagrams. Around each there is room, so that headers, salts and
 * tags are put around a payload where it lies and nothing is copied on its way through.
 */
#ifndef SS_NET_UDP_H
#define SS_NET_UDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/span.h"
#include "base/status.h"

/* Datagrams a batch. */
#define SS_UDP_BATCH 64

/* Room in front of and behind each received datagram, in bytes: for a salt, the longest target, a
 * nonce and packet header in front; a tag behind. */
#define SS_UDP_HEADROOM 448
#define SS_UDP_TAILROOM 64

/* The largest payload of a datagram over IPv4; IPv6 allows 20 bytes more, which are not used. */
#define SS_UDP_PAYLOAD_MAX 65507

struct ss_binder;

struct ss_udp_socket_options {
    const struct ss_binder *binder; /* for ports that this process may not bind; NULL: nobody */
    bool ipv6_only;                 /* for an IPv6 address; false serves IPv4 as well (mapped) */
    bool reuse_port;
    bool wants_local;      /* received datagrams tell which local address they were sent to */
    bool dont_fragment;    /* else fragmentation is allowed (IP_PMTUDISC_DONT) */
    const char *interface; /* NULL: any */
    bool interface_required;
    int sndbuf, rcvbuf;  /* bytes asked for; 0: `burst` */
    int burst;           /* bytes that both should hold, as far as the system allows; 0: its own */
    bool transparent;    /* bound to, or reached by, addresses of others too (TPROXY) */
    bool reuse_address;  /* beside sockets of others that allow it, too */
    bool wants_original; /* received datagrams tell where they were going */
    bool keep_errors;    /* see ss_sockopt_next_unreachable */
    uint32_t mark;       /* of what is sent, for the system's rules; 0: none */
    uint8_t tos;         /* the byte with the DSCP; 0: the system's */
};

/* A bound socket (port 0: one that the system chooses), non-blocking, closed on exec. After a
 * failure *error_text (may be NULL) is what the system said. */
SS_CHECKED enum ss_status ss_udp_open(int *fd, const struct ss_addr *addr,
                                      const struct ss_udp_socket_options *options,
                                      const char **error_text);

/* One datagram of a batch. */
struct ss_datagram {
    struct ss_addr peer;     /* from whom; IPv4-mapped addresses come as IPv4 */
    struct ss_ip local;      /* to which of our addresses, where asked for; else family 0 */
    struct ss_addr original; /* where it was going before it was redirected; the same */
    struct ss_span bytes;    /* may be moved within the room around it and changed */
};

/* Received datagrams. Address space for full-sized ones, resident where touched. */
struct ss_udp_inbox;

struct ss_udp_inbox *ss_udp_inbox_new(void);
void ss_udp_inbox_free(struct ss_udp_inbox *inbox); /* NULL is fine */

/*
 * Receives what is waiting, up to SS_UDP_BATCH datagrams, into the inbox; those that it handed out
 * before are gone. `got` is an array of SS_UDP_BATCH; returns how many of it were filled: 0 when
 * none is waiting. What one call of the system brought may be more than one call of this returns:
 * as long as ss_udp_holds_more, go on with the same descriptor, or lose the rest.
 * Errors that the kernel reports for earlier sends (ICMP) are swallowed. A datagram that was cut
 * because it did not fit is left out.
 */
size_t ss_udp_receive(struct ss_udp_inbox *inbox, int fd, struct ss_datagram *got);
bool ss_udp_holds_more(const struct ss_udp_inbox *inbox);

/*
 * Datagrams on their way out: gathered for one socket, sent together. The bytes are borrowed until
 * the flush, so the inbox that they lie in must not receive before.
 */
struct ss_udp_outbox;

struct ss_udp_outbox *ss_udp_outbox_new(void);
void ss_udp_outbox_free(
    struct ss_udp_outbox *outbox); /* NULL is fine; drops what was not flushed */

/*
 * Adds a datagram. Flushes by itself first when the outbox is full or holds datagrams of another
 * socket. `socket_family` is the family that `fd` was opened with (an IPv4 peer of an IPv6 socket
 * is sent to as mapped); `from` is the local address to send from, family 0: the system's choice.
 */
void ss_udp_send(struct ss_udp_outbox *outbox, int fd, enum ss_family socket_family,
                 const struct ss_addr *to, const struct ss_ip *from, struct ss_view bytes);

/* Sends what is gathered. What the kernel does not take is dropped and counted: a network may lose
 * datagrams, and one that fails costs no other. */
void ss_udp_flush(struct ss_udp_outbox *outbox);

/* Dropped by flushes so far. */
uint64_t ss_udp_dropped(const struct ss_udp_outbox *outbox);

#endif
