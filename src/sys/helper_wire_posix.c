/* Messages with descriptors over a socket pair. */
#include "sys/helper_internal.h"

#include <errno.h>
#include <string.h>

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

union control {
    struct cmsghdr head;
    char room[CMSG_SPACE(SS_WIRE_DESCRIPTORS_MAX * sizeof(int))];
};

enum ss_wire_result ss_wire_send(int fd, const void *head, size_t head_len, const void *text,
                                 size_t text_len, const int *descriptors, size_t count, bool wait)
{
    struct iovec parts[2] = {{.iov_base = (void *)(uintptr_t)head, .iov_len = head_len},
                             {.iov_base = (void *)(uintptr_t)text, .iov_len = text_len}};
    union control control;
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = text_len != 0 ? 2 : 1};
    ssize_t sent;

    if (count != 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(&control.head), descriptors, count * sizeof(int));
    }
    do
        sent = sendmsg(fd, &message, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
    while (sent < 0 && errno == EINTR);
    if (sent >= 0)
        return SS_WIRE_OK;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? SS_WIRE_NONE
                                                                       : SS_WIRE_GONE;
}

static void take_descriptors(struct msghdr *message, int *descriptors, size_t *count)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
        size_t have;

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        have = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < have; i++) {
            int one;

            memcpy(&one, CMSG_DATA(c) + i * sizeof one, sizeof one);
            if (*count < SS_WIRE_DESCRIPTORS_MAX)
                descriptors[(*count)++] = one;
            else
                close(one);
        }
    }
}

enum ss_wire_result ss_wire_receive(int fd, void *buffer, size_t size, size_t *len,
                                    int *descriptors, size_t *count)
{
    struct iovec part = {.iov_base = buffer, .iov_len = size};
    union control control;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t got;

    *count = 0;
    do
        got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? SS_WIRE_NONE : SS_WIRE_GONE;
    take_descriptors(&message, descriptors, count);
    if (got == 0 || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
        for (size_t i = 0; i < *count; i++)
            close(descriptors[i]);
        *count = 0;
        return SS_WIRE_GONE;
    }
    *len = (size_t)got;
    return SS_WIRE_OK;
}
