/*
 * Sending on Linux: many datagrams a system call (sendmmsg), and with UDP_SEGMENT neighbours of one
 * length for one receiver as one message, which the kernel takes apart at the last moment.
 *
 * The kernel refuses that where a datagram would be larger than the way's MTU, and where the device
 * can't do checksums; then, and whenever such a message fails, its datagrams are sent plainly, and
 * those of that length stay so for a while.
 */
#include "net/udp.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "net/udp_internal.h"

/* What one message may carry: the largest payload of a datagram, less some room for headers. */
#define JOINED_MAX 65000

/* Flushes until it is tried again to join what could not be. */
#define RETRY_FLUSHES 1024

/* Lengths that the kernel takes as `gso_size`. */
#define PART_MAX UINT16_MAX

/* A message for the kernel: one datagram, or several. */
struct run {
    unsigned first, count;
};

struct ss_udp_outbox {
    int fd;
    unsigned count;
    uint64_t dropped;
    struct mmsghdr messages[SS_UDP_BATCH];
    struct iovec vectors[SS_UDP_BATCH];
    struct ss_udp_ends ends[SS_UDP_BATCH];
    /* Joined; a message's vectors are those of its datagrams. */
    struct mmsghdr joined[SS_UDP_BATCH];
    struct run runs[SS_UDP_BATCH];
    union ss_udp_control controls[SS_UDP_BATCH];
    size_t plain_from; /* datagrams of this length and above are not joined; 0: any */
    unsigned retry_in; /* flushes; 0: all is tried */
};

struct ss_udp_outbox *ss_udp_outbox_new(void)
{
    struct ss_udp_outbox *outbox = calloc(1, sizeof *outbox);

    if (outbox == NULL)
        return NULL;
    for (size_t i = 0; i < SS_UDP_BATCH; i++) {
        outbox->messages[i].msg_hdr.msg_iov = &outbox->vectors[i];
        outbox->messages[i].msg_hdr.msg_iovlen = 1;
    }
    outbox->plain_from = PART_MAX;
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

/* Sends headers of one datagram each; SS_OK, or SS_ERR_LIMIT when the kernel takes no more now. A
 * call ends at the first datagram that fails and tells the reason only when that was the first of
 * the call. So the next call begins with it, and after its error goes on behind it. */
static enum ss_status send_plainly(struct ss_udp_outbox *outbox, unsigned first, unsigned count)
{
    unsigned at = first, end = first + count;

    while (at < end) {
        int sent = sendmmsg(outbox->fd, outbox->messages + at, end - at, MSG_DONTWAIT);

        if (sent > 0) {
            at += (unsigned)sent;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            outbox->dropped += end - at;
            return SS_ERR_LIMIT;
        } else if (errno != EINTR) {
            outbox->dropped++;
            at++;
        }
    }
    return SS_OK;
}

#if defined(UDP_SEGMENT)

static bool same_ends(const struct msghdr *one, const struct msghdr *other)
{
    return one->msg_namelen == other->msg_namelen && one->msg_controllen == other->msg_controllen &&
           memcmp(one->msg_name, other->msg_name, one->msg_namelen) == 0 &&
           (one->msg_controllen == 0 ||
            memcmp(one->msg_control, other->msg_control, one->msg_controllen) == 0);
}

/* How many datagrams from `first` on can be one message: of one length, but for the last, which may
 * be shorter. */
static unsigned run_from(const struct ss_udp_outbox *outbox, unsigned first)
{
    size_t len = outbox->vectors[first].iov_len, sum = len;
    unsigned next = first + 1;

    if (len == 0 || len >= outbox->plain_from)
        return 1;
    while (next < outbox->count) {
        size_t other = outbox->vectors[next].iov_len;

        if (other == 0 || other > len || sum + other > JOINED_MAX ||
            !same_ends(&outbox->messages[first].msg_hdr, &outbox->messages[next].msg_hdr))
            break;
        sum += other;
        next++;
        if (other < len)
            break;
    }
    return next - first;
}

/* The same receiver and source, and the length of the datagrams. */
static void join(struct ss_udp_outbox *outbox, unsigned at, unsigned first, unsigned count)
{
    struct msghdr *header = &outbox->joined[at].msg_hdr;
    union ss_udp_control *control = &outbox->controls[at];
    uint16_t len = (uint16_t)outbox->vectors[first].iov_len;
    struct cmsghdr *entry;

    *header = outbox->messages[first].msg_hdr;
    outbox->runs[at] = (struct run){first, count};
    if (count == 1)
        return;
    header->msg_iovlen = count;
    memset(control, 0, sizeof *control);
    if (header->msg_controllen != 0)
        memcpy(control->bytes, header->msg_control, header->msg_controllen);
    entry = (struct cmsghdr *)(void *)(control->bytes + header->msg_controllen);
    entry->cmsg_level = IPPROTO_UDP;
    entry->cmsg_type = UDP_SEGMENT;
    entry->cmsg_len = CMSG_LEN(sizeof len);
    memcpy(CMSG_DATA(entry), &len, sizeof len);
    header->msg_control = control->bytes;
    header->msg_controllen += CMSG_SPACE(sizeof len);
}

/* How many messages there are; 0 when nothing could be joined. */
static unsigned join_all(struct ss_udp_outbox *outbox)
{
    unsigned runs = 0;

    for (unsigned first = 0; first < outbox->count; runs++) {
        unsigned count = run_from(outbox, first);

        join(outbox, runs, first, count);
        first += count;
    }
    return runs < outbox->count ? runs : 0;
}

static void learn_of_failure(struct ss_udp_outbox *outbox, const struct run *run, int error)
{
    if (error == EIO)
        outbox->plain_from = 0;
    else if (error == EINVAL || error == EMSGSIZE)
        outbox->plain_from = outbox->vectors[run->first].iov_len;
    else
        return; /* of this receiver, or of an earlier datagram */
    outbox->retry_in = RETRY_FLUSHES;
}

static void send_joined(struct ss_udp_outbox *outbox, unsigned runs)
{
    unsigned at = 0;

    while (at < runs) {
        int sent = sendmmsg(outbox->fd, outbox->joined + at, runs - at, MSG_DONTWAIT);

        if (sent > 0) {
            at += (unsigned)sent;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            outbox->dropped += outbox->count - outbox->runs[at].first;
            return;
        } else if (errno != EINTR) {
            const struct run *run = &outbox->runs[at++];

            learn_of_failure(outbox, run, errno);
            if (run->count == 1)
                outbox->dropped++;
            else if (send_plainly(outbox, run->first, run->count) != SS_OK) {
                outbox->dropped += outbox->count - (run->first + run->count);
                return;
            }
        }
    }
}

#else

static unsigned join_all(struct ss_udp_outbox *outbox)
{
    (void)outbox;
    return 0;
}

static void send_joined(struct ss_udp_outbox *outbox, unsigned runs)
{
    (void)outbox;
    (void)runs;
}

#endif

void ss_udp_flush(struct ss_udp_outbox *outbox)
{
    unsigned runs;

    if (outbox->count == 0)
        return;
    if (outbox->retry_in != 0 && --outbox->retry_in == 0)
        outbox->plain_from = PART_MAX;
    runs = outbox->count > 1 ? join_all(outbox) : 0;
    if (runs != 0)
        send_joined(outbox, runs);
    else
        (void)send_plainly(outbox, 0, outbox->count);
    outbox->count = 0;
}

uint64_t ss_udp_dropped(const struct ss_udp_outbox *outbox)
{
    return outbox->dropped;
}
