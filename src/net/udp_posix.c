/* Datagrams one a system call, for systems that have no call for many. */
#include "net/udp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "net/udp_internal.h"

/* How often receiving is tried again after an error that belongs to an earlier send. */
#define RECEIVE_ATTEMPTS 8

struct ss_udp_inbox {
    struct ss_udp_slots slots;
    struct ss_udp_ends ends;
};

/* Nothing is gathered: a datagram leaves when it is given. */
struct ss_udp_outbox {
    uint64_t dropped;
    struct ss_udp_ends ends;
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
    return inbox;
}

void ss_udp_inbox_free(struct ss_udp_inbox *inbox)
{
    if (inbox == NULL)
        return;
    ss_udp_slots_clear(&inbox->slots);
    free(inbox);
}

/* Whether one was received. */
static bool receive_one(int fd, struct msghdr *header, struct ss_udp_ends *ends, size_t *len)
{
    for (int attempt = 0; attempt < RECEIVE_ATTEMPTS; attempt++) {
        ssize_t count;

        ss_udp_prepare_receive(header, ends);
        count = recvmsg(fd, header, MSG_DONTWAIT);
        if (count >= 0) {
            *len = (size_t)count;
            return true;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return false;
    }
    return false;
}

size_t ss_udp_receive(struct ss_udp_inbox *inbox, int fd, struct ss_datagram *got)
{
    size_t kept = 0;

    ss_udp_slots_trim(&inbox->slots);
    while (kept < SS_UDP_BATCH) {
        struct iovec vector = {ss_udp_slot(&inbox->slots, kept), SS_UDP_SLOT_PAYLOAD};
        struct msghdr header;
        size_t len;

        memset(&header, 0, sizeof header);
        header.msg_iov = &vector;
        header.msg_iovlen = 1;
        if (!receive_one(fd, &header, &inbox->ends, &len))
            break;
        ss_udp_slot_filled(&inbox->slots, kept, len);
        if (header.msg_flags & MSG_TRUNC)
            continue;
        ss_udp_read_ends(&header, &got[kept]);
        got[kept].bytes = (struct ss_span){vector.iov_base, len};
        kept++;
    }
    return kept;
}

bool ss_udp_holds_more(const struct ss_udp_inbox *inbox)
{
    (void)inbox;
    return false;
}

struct ss_udp_outbox *ss_udp_outbox_new(void)
{
    return calloc(1, sizeof(struct ss_udp_outbox));
}

void ss_udp_outbox_free(struct ss_udp_outbox *outbox)
{
    free(outbox);
}

void ss_udp_send(struct ss_udp_outbox *outbox, int fd, enum ss_family socket_family,
                 const struct ss_addr *to, const struct ss_ip *from, struct ss_view bytes)
{
    /* The kernel only reads from it; the type has no word for that. */
    struct iovec vector = {(void *)(uintptr_t)bytes.ptr, bytes.len};
    struct msghdr header;
    ssize_t sent = -1;

    memset(&header, 0, sizeof header);
    header.msg_iov = &vector;
    header.msg_iovlen = 1;
    if (ss_udp_prepare_send(&header, &outbox->ends, socket_family, to, from)) {
        do
            sent = sendmsg(fd, &header, MSG_DONTWAIT);
        while (sent < 0 && errno == EINTR);
    }
    if (sent < 0)
        outbox->dropped++;
}

void ss_udp_flush(struct ss_udp_outbox *outbox)
{
    (void)outbox;
}

uint64_t ss_udp_dropped(const struct ss_udp_outbox *outbox)
{
    return outbox->dropped;
}
