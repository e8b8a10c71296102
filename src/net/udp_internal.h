/*
 * What both ways of moving datagrams (many a call, one a call) have in common: the memory of an
 * inbox, and addresses to and from the form that the system calls take.
 */
#ifndef SS_NET_UDP_INTERNAL_H
#define SS_NET_UDP_INTERNAL_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "net/udp.h"

/* What a slot can receive: more than any datagram, so that none is ever cut. */
#define SS_UDP_SLOT_PAYLOAD 65535

/* Room for the control messages that carry a local address, the original destination and the length
 * of joined datagrams, aligned as such. */
union ss_udp_control {
    struct cmsghdr align;
    uint8_t bytes[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(struct sockaddr_in6)) +
                  CMSG_SPACE(sizeof(int))];
};

/* An address and a control message that a message header points at. */
struct ss_udp_ends {
    struct sockaddr_storage name;
    union ss_udp_control control;
};

/* Slots that keep the pages of a large datagram: a few at a time are served without asking the
 * system for pages again. */
#define SS_UDP_SLOTS_KEPT_WHOLE 8

/* The slots of an inbox, each on pages of its own. */
struct ss_udp_slots {
    uint8_t *start;
    size_t stride;
    uint64_t stretched; /* bit i: slot i holds more pages than it is to keep */
};

_Static_assert(SS_UDP_BATCH <= 64, "a bit for each slot");

SS_CHECKED enum ss_status ss_udp_slots_init(struct ss_udp_slots *slots);
void ss_udp_slots_clear(struct ss_udp_slots *slots);

/* Where a payload of slot `index` is received to; SS_UDP_SLOT_PAYLOAD bytes. */
uint8_t *ss_udp_slot(const struct ss_udp_slots *slots, size_t index);

/* Notes how much was received into a slot. */
void ss_udp_slot_filled(struct ss_udp_slots *slots, size_t index, size_t len);

/* Before the next receiving: gives back what an earlier burst of large datagrams made resident. */
void ss_udp_slots_trim(struct ss_udp_slots *slots);

/* Points a header at `ends`, ready to receive. */
void ss_udp_prepare_receive(struct msghdr *header, struct ss_udp_ends *ends);

/* Peer and local address of a message that was received. */
void ss_udp_read_ends(struct msghdr *header, struct ss_datagram *datagram);

/* Points a header at `ends`, to send to `to` from `from`. False when a socket of that family can't
 * reach the address. */
bool ss_udp_prepare_send(struct msghdr *header, struct ss_udp_ends *ends,
                         enum ss_family socket_family, const struct ss_addr *to,
                         const struct ss_ip *from);

#endif
