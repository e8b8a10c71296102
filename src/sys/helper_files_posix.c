/* What the helper opens and binds. */
#include "sys/helper_internal.h"

#include <errno.h>
#include <string.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

int ss_helper_open_path(const char *path)
{
    /* A pipe that nobody writes to must not hold the helper up. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd >= 0)
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
}

static socklen_t fill_address(struct sockaddr_storage *to, const struct ss_addr *addr)
{
    memset(to, 0, sizeof *to);
    if (addr->ip.family == SS_FAMILY_IPV4) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(addr->port)};

        memcpy(&in.sin_addr, addr->ip.bytes, 4);
        memcpy(to, &in, sizeof in);
        return sizeof in;
    }
    if (addr->ip.family == SS_FAMILY_IPV6) {
        struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
                                   .sin6_port = htons(addr->port),
                                   .sin6_scope_id = addr->ip.scope};

        memcpy(&in6.sin6_addr, addr->ip.bytes, 16);
        memcpy(to, &in6, sizeof in6);
        return sizeof in6;
    }
    return 0;
}

int ss_helper_bind_socket(const struct ss_addr *to, uint32_t flags)
{
    struct sockaddr_storage address;
    socklen_t len = fill_address(&address, to);
    bool udp = (flags & SS_BIND_UDP) != 0;
    int on = 1, v6only = (flags & SS_BIND_IPV6_ONLY) != 0, protocol = 0, fd, error;
    int type = (udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_NONBLOCK | SOCK_CLOEXEC;

    if (len == 0) {
        errno = EAFNOSUPPORT;
        return -1;
    }
#ifdef IPPROTO_MPTCP
    if ((flags & SS_BIND_MPTCP) != 0 && !udp)
        protocol = IPPROTO_MPTCP;
#endif
    fd = socket(address.ss_family, type, protocol);
    if (fd < 0 && protocol != 0)
        fd = socket(address.ss_family, type, 0);
    if (fd < 0)
        return -1;
    /* As when the program binds itself: with SO_REUSEADDR a UDP port could be had twice. */
    if ((udp || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0) &&
        ((flags & SS_BIND_REUSE_PORT) == 0 ||
         setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0) &&
        (address.ss_family != AF_INET6 ||
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, sizeof v6only) == 0) &&
        bind(fd, (struct sockaddr *)&address, len) == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}
