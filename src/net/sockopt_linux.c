/* Socket options of Linux. Each is tested for by its own name, since C libraries lag behind. */
#include "net/sockopt.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <linux/errqueue.h>

#include "net/socket.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#ifndef TCP_FASTOPEN_CONNECT
#define TCP_FASTOPEN_CONNECT 30
#endif
#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

static enum ss_status set_int(int fd, int level, int option, int value)
{
    if (setsockopt(fd, level, option, &value, sizeof value) == 0)
        return SS_OK;
    return ss_status_from_errno(errno);
}

enum ss_status ss_sockopt_fast_open_listen(int fd, int queue)
{
    return set_int(fd, IPPROTO_TCP, TCP_FASTOPEN, queue);
}

enum ss_status ss_sockopt_fast_open_connect(int fd)
{
    return set_int(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1);
}

enum ss_status ss_sockopt_reuse_port(int fd)
{
    return set_int(fd, SOL_SOCKET, SO_REUSEPORT, 1);
}

enum ss_status ss_sockopt_interface(int fd, const char *name)
{
    if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, (socklen_t)strlen(name) + 1) == 0)
        return SS_OK;
    return ss_status_from_errno(errno);
}

enum ss_status ss_sockopt_mark(int fd, uint32_t mark)
{
    return set_int(fd, SOL_SOCKET, SO_MARK, (int)mark);
}

enum ss_status ss_sockopt_tos(int fd, enum ss_family family, uint8_t tos)
{
    if (family == SS_FAMILY_IPV6)
        return set_int(fd, IPPROTO_IPV6, IPV6_TCLASS, tos);
    return set_int(fd, IPPROTO_IP, IP_TOS, tos);
}

enum ss_status ss_sockopt_keep_alive(int fd, int idle_s, int interval_s, int count)
{
    enum ss_status status = set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);

    if (status == SS_OK)
        status = set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle_s);
    if (status == SS_OK)
        status = set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, interval_s);
    if (status == SS_OK)
        status = set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, count);
    return status;
}

bool ss_sockopt_peer_has_ended(int fd)
{
    struct tcp_info info;
    socklen_t len = sizeof info;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
        return false;
    switch (info.tcpi_state) {
    case TCP_CLOSE:
    case TCP_CLOSE_WAIT:
    case TCP_LAST_ACK:
    case TCP_CLOSING:
    case TCP_TIME_WAIT:
        return true;
    default:
        return false;
    }
}

enum ss_status ss_sockopt_bind_no_port(int fd)
{
    return set_int(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
}

enum ss_status ss_sockopt_keep_errors(int fd, enum ss_family family)
{
    enum ss_status status = set_int(fd, IPPROTO_IP, IP_RECVERR, 1);

    /* An IPv6 socket that serves IPv4 as well needs both. */
    return family == SS_FAMILY_IPV6 ? set_int(fd, IPPROTO_IPV6, IPV6_RECVERR, 1) : status;
}

/* Whether one of the messages tells that a router or the other end has refused a datagram. */
static bool tells_unreachable(struct msghdr *header)
{
    for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part != NULL;
         part = CMSG_NXTHDR(header, part)) {
        struct sock_extended_err error;

        if (!(part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_RECVERR) &&
            !(part->cmsg_level == IPPROTO_IPV6 && part->cmsg_type == IPV6_RECVERR))
            continue;
        if (part->cmsg_len < CMSG_LEN(sizeof error))
            continue;
        memcpy(&error, CMSG_DATA(part), sizeof error);
        if ((error.ee_origin == SO_EE_ORIGIN_ICMP || error.ee_origin == SO_EE_ORIGIN_ICMP6) &&
            (error.ee_errno == ECONNREFUSED || error.ee_errno == EHOSTUNREACH ||
             error.ee_errno == ENETUNREACH || error.ee_errno == EACCES))
            return true;
    }
    return false;
}

bool ss_sockopt_next_unreachable(int fd, struct ss_addr *to)
{
    union {
        struct cmsghdr align;
        char bytes[512];
    } control;
    struct sockaddr_storage destination;
    struct msghdr header;

    for (;;) {
        header = (struct msghdr){.msg_name = &destination,
                                 .msg_namelen = sizeof destination,
                                 .msg_control = &control,
                                 .msg_controllen = sizeof control};
        /* The datagram itself is not wanted: it is cut to nothing. */
        if (recvmsg(fd, &header, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
            return false;
        if (tells_unreachable(&header) && header.msg_namelen != 0) {
            ss_addr_from_sockaddr(to, (const struct sockaddr *)&destination);
            return true;
        }
    }
}

int ss_sockopt_mptcp_protocol(void)
{
    return IPPROTO_MPTCP;
}

/* Above the system's bound where this process may, else up to it. */
static void grow(int fd, int forced, int option, int bytes)
{
    if (bytes > 0 && setsockopt(fd, SOL_SOCKET, forced, &bytes, sizeof bytes) != 0)
        (void)setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof bytes);
}

void ss_sockopt_burst(int fd, int sndbuf, int rcvbuf)
{
    grow(fd, SO_SNDBUFFORCE, SO_SNDBUF, sndbuf);
    grow(fd, SO_RCVBUFFORCE, SO_RCVBUF, rcvbuf);
}
