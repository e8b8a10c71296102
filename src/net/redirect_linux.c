/* Redirected traffic on Linux. The options are named here, since C libraries lag behind. */
#include "net/redirect.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/socket.h"

#ifndef IP_TRANSPARENT
#define IP_TRANSPARENT 19
#endif
#ifndef IPV6_TRANSPARENT
#define IPV6_TRANSPARENT 75
#endif
#ifndef IP_RECVORIGDSTADDR
#define IP_RECVORIGDSTADDR 20
#endif
#ifndef IPV6_RECVORIGDSTADDR
#define IPV6_RECVORIGDSTADDR 74
#endif
/* The same number at the level of IPv4 and of IPv6. */
#define ORIGINAL_DESTINATION 80

static enum ss_status set_on(int fd, int level, int option)
{
    int on = 1;

    if (setsockopt(fd, level, option, &on, sizeof on) == 0)
        return SS_OK;
    return ss_status_from_errno(errno);
}

enum ss_status ss_redirect_make_transparent(int fd, enum ss_family family)
{
    if (family == SS_FAMILY_IPV6)
        return set_on(fd, IPPROTO_IPV6, IPV6_TRANSPARENT);
    return set_on(fd, IPPROTO_IP, IP_TRANSPARENT);
}

enum ss_status ss_redirect_may_be_transparent(void)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    enum ss_status status;

    if (fd < 0)
        return ss_status_from_errno(errno);
    status = ss_redirect_make_transparent(fd, SS_FAMILY_IPV4);
    close(fd);
    return status;
}

enum ss_status ss_redirect_want_originals(int fd, enum ss_family family, bool both)
{
    enum ss_status status = SS_OK;

    if (family == SS_FAMILY_IPV6)
        status = set_on(fd, IPPROTO_IPV6, IPV6_RECVORIGDSTADDR);
    if (status == SS_OK && (family == SS_FAMILY_IPV4 || both))
        status = set_on(fd, IPPROTO_IP, IP_RECVORIGDSTADDR);
    return status;
}

bool ss_redirect_carries_original(int level, int type)
{
    return (level == IPPROTO_IP && type == IP_RECVORIGDSTADDR) ||
           (level == IPPROTO_IPV6 && type == IPV6_RECVORIGDSTADDR);
}

void ss_redirect_original(int fd, struct ss_addr *original)
{
    struct sockaddr_storage storage = {0};
    socklen_t len = sizeof storage;

    /* By the family of the connection, not of the socket: IPv4 on a socket for both is of IPv4.
     * What the system has no record of was not redirected. */
    ss_socket_local(fd, original);
    if (getsockopt(fd, original->ip.family == SS_FAMILY_IPV6 ? IPPROTO_IPV6 : IPPROTO_IP,
                   ORIGINAL_DESTINATION, &storage, &len) == 0)
        ss_addr_from_sockaddr(original, (const struct sockaddr *)&storage);
}

bool ss_redirect_is_local(const struct ss_ip *ip)
{
    const struct ss_addr to = {.ip = *ip, .port = 9};
    struct sockaddr_storage storage;
    socklen_t len = ss_addr_to_sockaddr(&to, &storage);
    struct ss_addr from = {0};
    int fd;

    if (ip->family == SS_FAMILY_IPV4 && ip->bytes[0] == 127)
        return true;
    /* The system talks to itself from the very address that it talks to. */
    fd = socket(storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    if (connect(fd, (const struct sockaddr *)&storage, len) == 0)
        ss_socket_local(fd, &from);
    close(fd);
    return ss_ip_equal(&from.ip, ip);
}
