/* A system without these options: each says so, and the caller goes on without. */
#include "net/sockopt.h"

#include <sys/socket.h>

enum ss_status ss_sockopt_fast_open_listen(int fd, int queue)
{
    (void)fd;
    (void)queue;
    return SS_ERR_UNSUPPORTED;
}

enum ss_status ss_sockopt_fast_open_connect(int fd)
{
    (void)fd;
    return SS_ERR_UNSUPPORTED;
}

enum ss_status ss_sockopt_reuse_port(int fd)
{
    (void)fd;
    return SS_ERR_UNSUPPORTED;
}

enum ss_status ss_sockopt_interface(int fd, const char *name)
{
    (void)fd;
    (void)name;
    return SS_ERR_UNSUPPORTED;
}

enum ss_status ss_sockopt_mark(int fd, uint32_t mark)
{
    (void)fd;
    (void)mark;
    return SS_ERR_UNSUPPORTED;
}

enum ss_status ss_sockopt_tos(int fd, enum ss_family family, uint8_t tos)
{
    (void)fd;
    (void)family;
    (void)tos;
    return SS_ERR_UNSUPPORTED;
}

enum ss_status ss_sockopt_keep_alive(int fd, int idle_s, int interval_s, int count)
{
    (void)fd;
    (void)idle_s;
    (void)interval_s;
    (void)count;
    return SS_ERR_UNSUPPORTED;
}

bool ss_sockopt_peer_has_ended(int fd)
{
    (void)fd;
    return false;
}

enum ss_status ss_sockopt_bind_no_port(int fd)
{
    (void)fd;
    return SS_ERR_UNSUPPORTED;
}

int ss_sockopt_mptcp_protocol(void)
{
    return -1;
}

/* Where the system's bound is exceeded, its own size stays. */
void ss_sockopt_burst(int fd, int sndbuf, int rcvbuf)
{
    if (sndbuf > 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &sndbuf, sizeof sndbuf);
    if (rcvbuf > 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, sizeof rcvbuf);
}

enum ss_status ss_sockopt_keep_errors(int fd, enum ss_family family)
{
    (void)fd;
    (void)family;
    return SS_ERR_UNSUPPORTED;
}

bool ss_sockopt_next_unreachable(int fd, struct ss_addr *to)
{
    (void)fd;
    (void)to;
    return false;
}
