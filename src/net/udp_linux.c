/* Datagrams on Linux: many a system call (recvmmsg, sendmmsg). */
#include "net/udp.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "net/udp_internal.h"

/* How often receiving is tried again after an error that belongs to an earlier send. */
#define RECEIVE_ATTEMPTS 8

/* Vectors and headers stand in arrays of their own: the kernel walks them, and neighbouring
 * datagrams can become one message of several vectors. */
struct ss_udp_inbox {
    struct ss_udp_slots slots;
    struct mmsghdr messages[SS_UDP_BATCH];
    struct iovec vectors[SS_UDP_BATCH];
    struct ss_udp_ends ends[SS_UDP_BATCH];
};

struct ss_udp_outbox {
    int fd;
    unsigned count;
    uint64_t dropped;
    struct mmsghdr messages[SS_UDP_BATCH];
    struct iovec vectors[SS_UDP_BATCH];
    struct ss_udp_ends ends[SS_UDP_BATCH];
};

struct ss_udp_inbox *ss_udp_inbox_new(void)
{
    struct ss_udp_inbox *inbox = calloc(1, sizeof *inbox);

    if (inbox == NULL)
        return NULL;
    if (ss_udp_slots_init(&inbox->slots) != SS_OK) {
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
    free(inbox);
}

static int receive_some(struct ss_udp_inbox *inbox, int fd)
{
    for (int attempt = 0; attempt < RECEIVE_ATTEMPTS; attempt++) {
        int count = recvmmsg(fd, inbox->messages, SS_UDP_BATCH, MSG_DONTWAIT, NULL);

        if (count >= 0)
            return count;
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return 0;
    }
    return 0;
}

size_t ss_udp_receive(struct ss_udp_inbox *inbox, int fd, struct ss_datagram *got)
{
    size_t count;
    size_t kept = 0;

    ss_udp_slots_trim(&inbox->slots);
    do {
        /* Where every datagram of a batch had to be left out, there may be others behind it. */
        count = (size_t)receive_some(inbox, fd);
        for (size_t i = 0; i < count; i++) {
            struct mmsghdr *message = &inbox->messages[i];

            ss_udp_slot_filled(&inbox->slots, i, message->msg_len);
            if (!(message->msg_hdr.msg_flags & MSG_TRUNC)) {
                ss_udp_read_ends(&message->msg_hdr, &got[kept]);
                got[kept].bytes = (struct ss_span){ss_udp_slot(&inbox->slots, i), message->msg_len};
                kept++;
            }
            ss_udp_prepare_receive(&message->msg_hdr, &inbox->ends[i]);
        }
    } while (count > 0 && kept == 0);
    return kept;
}

struct ss_udp_outbox *ss_udp_outbox_new(void)
{
    struct ss_udp_outbox *outbox = calloc(1, sizeof *outbox);

    if (outbox == NULL)
        return NULL;
    for (size_t i = 0; i < SS_UDP_BATCH; i++) {
        outbox->messages[i].msg_hdr.msg_iov = &outbox->vectors[i];
        outbox->messages[i].msg_hdr.msg_iovlen = 1;
    }
    return outbox;
}

void ss_udp_outbox_free(struct ss_udp_outbox *outbox)
{
    free(outbox);
}

void ss_udp_send(struct ss_udp_outbox *outbox, int fd, enum ss_family socket_family,
                 const struct ss_addr *to, const struct ss_ip *from, struct ss_view bytes)
{
    unsigned at;

    if (outbox->count == SS_UDP_BATCH || (outbox->count > 0 && outbox->fd != fd))
        ss_udp_flush(outbox);
    at = outbox->count;
    if (!ss_udp_prepare_send(&outbox->messages[at].msg_hdr, &outbox->ends[at], socket_family, to,
                             from)) {
        outbox->dropped++;
        return;
    }
    /* The kernel only reads from it; the type has no word for that. */
    outbox->vectors[at].iov_base = (void *)(uintptr_t)bytes.ptr;
    outbox->vectors[at].iov_len = bytes.len;
    outbox->fd = fd;
    outbox->count++;
}

/* A call ends at the first datagram that fails and tells the reason only when that was the first
 * of the call. So the next call begins with it, and after its error goes on behind it. */
void ss_udp_flush(struct ss_udp_outbox *outbox)
{
    unsigned at = 0;

    while (at < outbox->count) {
        int sent = sendmmsg(outbox->fd, outbox->messages + at, outbox->count - at, MSG_DONTWAIT);

        if (sent > 0) {
            at += (unsigned)sent;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            outbox->dropped += outbox->count - at;
            break;
        } else if (errno != EINTR) {
            outbox->dropped++;
            at++;
        }
    }
    outbox->count = 0;
}

uint64_t ss_udp_dropped(const struct ss_udp_outbox *outbox)
{
    return outbox->dropped;
}
