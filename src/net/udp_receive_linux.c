/*
 * Receiving on Linux: many datagrams a system call (recvmmsg), and with UDP_GRO many a message.
 *
 * A message that the kernel has put together from datagrams of one sender is taken apart again:
 * they lie in it one behind the other, without the room around each that a datagram is to have, so
 * each is copied to a place of its own.
 */
#include "net/udp.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/pages.h"
#include "net/udp_internal.h"

/* How often receiving is tried again after an error that belongs to an earlier send. */
#define RECEIVE_ATTEMPTS 8

/* Messages a call while senders' datagrams come joined: each may hold 64 KiB, and so many slots
 * keep pages for that. */
#define JOINED_BATCH SS_UDP_SLOTS_KEPT_WHOLE

/* A joined message has two parts at least. */
#define PART_MAX   (SS_UDP_SLOT_PAYLOAD / 2 + 1)
#define PART_ALIGN 64

/* Of the places of parts so much stays resident. */
#define PLACES_KEPT (256u * 1024u)

struct ss_udp_inbox {
    struct ss_udp_slots slots;
    struct mmsghdr messages[SS_UDP_BATCH];
    struct iovec vectors[SS_UDP_BATCH];
    struct ss_udp_ends ends[SS_UDP_BATCH];
    /* What the latest call of the system has brought, as far as it was not handed out yet. */
    int fd;
    size_t count, next; /* messages */
    size_t taken;       /* bytes of message `next` */
    bool joined;        /* one of them was of several datagrams */
    /* Places of parts. */
    uint8_t *places;
    size_t places_len, used, resident;
};

struct ss_udp_inbox *ss_udp_inbox_new(void)
{
    struct ss_udp_inbox *inbox = calloc(1, sizeof *inbox);

    if (inbox == NULL)
        return NULL;
    inbox->places_len =
        ss_pages_round(SS_UDP_BATCH * (SS_UDP_HEADROOM + PART_MAX + SS_UDP_TAILROOM + PART_ALIGN));
    inbox->places = ss_pages_reserve(inbox->places_len);
    if (inbox->places == NULL || ss_udp_slots_init(&inbox->slots) != SS_OK) {
        ss_pages_release(inbox->places, inbox->places_len);
        free(inbox);
        return NULL;
    }
    for (size_t i = 0; i < SS_UDP_BATCH; i++) {
        inbox->vectors[i].iov_base = ss_udp_slot(&inbox->slots, i);
        inbox->vectors[i].iov_len = SS_UDP_SLOT_PAYLOAD;
        inbox->messages[i].msg_hdr.msg_iov = &inbox->vectors[i];
        inbox->messages[i].msg_hdr.msg_iovlen = 1;
        ss_udp_prepare_receive(&inbox->messages[i].msg_hdr, &inbox->ends[i]);
    }
    return inbox;
}

void ss_udp_inbox_free(struct ss_udp_inbox *inbox)
{
    if (inbox == NULL)
        return;
    ss_udp_slots_clear(&inbox->slots);
    ss_pages_release(inbox->places, inbox->places_len);
    free(inbox);
}

/* Into the slots, of which the headers of those used last are made ready again. */
static void ask_system(struct ss_udp_inbox *inbox, int fd)
{
    unsigned most = inbox->joined ? JOINED_BATCH : SS_UDP_BATCH;

    ss_udp_slots_trim(&inbox->slots);
    for (size_t i = 0; i < inbox->count; i++)
        ss_udp_prepare_receive(&inbox->messages[i].msg_hdr, &inbox->ends[i]);
    inbox->fd = fd;
    inbox->count = inbox->next = inbox->taken = 0;
    inbox->joined = false;
    for (int attempt = 0; attempt < RECEIVE_ATTEMPTS; attempt++) {
        int count = recvmmsg(fd, inbox->messages, most, MSG_DONTWAIT, NULL);

        if (count >= 0) {
            inbox->count = (size_t)count;
            break;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            break;
    }
    for (size_t i = 0; i < inbox->count; i++)
        ss_udp_slot_filled(&inbox->slots, i, inbox->messages[i].msg_len);
}

/* How long each datagram of a joined message is, but for the last, which may be shorter; 0 for one
 * that is not joined. */
static size_t part_len(struct msghdr *header)
{
#if defined(UDP_GRO)
    for (struct cmsghdr *at = CMSG_FIRSTHDR(header); at != NULL; at = CMSG_NXTHDR(header, at)) {
        if (at->cmsg_level == IPPROTO_UDP && at->cmsg_type == UDP_GRO) {
            int len;

            memcpy(&len, CMSG_DATA(at), sizeof len);
            return len > 0 ? (size_t)len : 0;
        }
    }
#else
    (void)header;
#endif
    return 0;
}

/* The places are free again: those of the datagrams that were handed out before. */
static void empty_places(struct ss_udp_inbox *inbox)
{
    if (inbox->resident > PLACES_KEPT)
        ss_pages_discard(inbox->places + PLACES_KEPT, inbox->places_len - PLACES_KEPT);
    inbox->used = inbox->resident = 0;
}

static uint8_t *copy_to_place(struct ss_udp_inbox *inbox, const uint8_t *bytes, size_t len)
{
    uint8_t *place = inbox->places + inbox->used + SS_UDP_HEADROOM;

    inbox->used +=
        (SS_UDP_HEADROOM + len + SS_UDP_TAILROOM + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
    inbox->resident = inbox->used;
    memcpy(place, bytes, len);
    return place;
}

/* The next datagram of what the system brought. False when there is none, or it was cut. */
static bool take_next(struct ss_udp_inbox *inbox, struct ss_datagram *datagram)
{
    struct mmsghdr *message = &inbox->messages[inbox->next];
    uint8_t *bytes = ss_udp_slot(&inbox->slots, inbox->next);
    size_t len = message->msg_len, part = part_len(&message->msg_hdr);

    if (message->msg_hdr.msg_flags & MSG_TRUNC) {
        inbox->next++;
        return false;
    }
    ss_udp_read_ends(&message->msg_hdr, datagram);
    if (part == 0 || part >= len) {
        datagram->bytes = (struct ss_span){bytes, len};
        inbox->next++;
        return true;
    }
    inbox->joined = true;
    if (part > len - inbox->taken)
        part = len - inbox->taken;
    datagram->bytes = (struct ss_span){copy_to_place(inbox, bytes + inbox->taken, part), part};
    inbox->taken += part;
    if (inbox->taken == len) {
        inbox->taken = 0;
        inbox->next++;
    }
    return true;
}

bool ss_udp_holds_more(const struct ss_udp_inbox *inbox)
{
    return inbox->next < inbox->count;
}

size_t ss_udp_receive(struct ss_udp_inbox *inbox, int fd, struct ss_datagram *got)
{
    size_t kept = 0;

    empty_places(inbox);
    if (!ss_udp_holds_more(inbox) || inbox->fd != fd)
        ask_system(inbox, fd);
    /* Where every datagram of a batch had to be left out, there may be others behind it. */
    while (kept == 0 && inbox->count != 0) {
        while (kept < SS_UDP_BATCH && ss_udp_holds_more(inbox))
            kept += take_next(inbox, &got[kept]);
        if (kept == 0)
            ask_system(inbox, fd);
    }
    return kept;
}
