/* Datagram sockets: made, given their options, bound. */
#include "net/udp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "net/option_internal.h"
#include "net/redirect.h"
#include "net/socket.h"
#include "net/sockopt.h"

static atomic_flag warned_reuse_port = ATOMIC_FLAG_INIT;
static atomic_flag warned_interface = ATOMIC_FLAG_INIT;
static atomic_flag warned_local = ATOMIC_FLAG_INIT;
static atomic_flag warned_fragments = ATOMIC_FLAG_INIT;

static enum ss_status set_int(int fd, int level, int option, int value)
{
    if (setsockopt(fd, level, option, &value, sizeof value) == 0)
        return SS_OK;
    return ss_status_from_errno(errno);
}

/* Lets received datagrams tell the local address. An IPv6 socket that serves IPv4 as well tells
 * both kinds in IPv6's form. */
static enum ss_status want_local(int fd, int family)
{
    if (family == AF_INET6)
        return set_int(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
#if defined(IP_PKTINFO)
    return set_int(fd, IPPROTO_IP, IP_PKTINFO, 1);
#elif defined(IP_RECVDSTADDR)
    return set_int(fd, IPPROTO_IP, IP_RECVDSTADDR, 1);
#else
    return SS_ERR_UNSUPPORTED;
#endif
}

/* Datagrams of one sender may be handed over together; where the kernel can't, they come singly. */
static void want_joined(int fd)
{
#if defined(__linux__) && defined(UDP_GRO)
    (void)set_int(fd, IPPROTO_UDP, UDP_GRO, 1);
#else
    (void)fd;
#endif
}

/* Whether datagrams larger than the way's MTU are cut into fragments or refused. */
static enum ss_status set_fragments(int fd, int family, bool ipv6_only, bool forbidden)
{
    enum ss_status status = SS_OK;

#if defined(IPV6_MTU_DISCOVER)
    if (family == AF_INET6)
        status = set_int(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER,
                         forbidden ? IPV6_PMTUDISC_DO : IPV6_PMTUDISC_DONT);
#elif defined(IPV6_DONTFRAG)
    if (family == AF_INET6)
        status = set_int(fd, IPPROTO_IPV6, IPV6_DONTFRAG, forbidden);
#endif
    if (status != SS_OK || (family == AF_INET6 && ipv6_only))
        return status;
#if defined(IP_MTU_DISCOVER)
    return set_int(fd, IPPROTO_IP, IP_MTU_DISCOVER, forbidden ? IP_PMTUDISC_DO : IP_PMTUDISC_DONT);
#elif defined(IP_DONTFRAG)
    return family == AF_INET6 ? SS_OK : set_int(fd, IPPROTO_IP, IP_DONTFRAG, forbidden);
#else
    return SS_ERR_UNSUPPORTED;
#endif
}

/* As a proxy that is reached by, or answers from, addresses of others. Failing is fatal: without it
 * nothing would come, or go. */
static enum ss_status set_redirected(int fd, enum ss_family family,
                                     const struct ss_udp_socket_options *options)
{
    enum ss_status status = SS_OK;

    if (options->transparent)
        status = ss_redirect_make_transparent(fd, family);
    if (status == SS_OK && options->wants_original)
        status = ss_redirect_want_originals(fd, family, !options->ipv6_only);
    return status;
}

/* What can be set at any time, and is gone on without. */
static void set_options(int fd, const struct ss_addr *addr,
                        const struct ss_udp_socket_options *options)
{
    int family = addr->ip.family == SS_FAMILY_IPV6 ? AF_INET6 : AF_INET;
    enum ss_status status;

    if (options->wants_local) {
        status = want_local(fd, family);
        if (status != SS_OK)
            ss_option_refused(&warned_local, "the local address of received datagrams", status);
    }
    /* Where errors are not told, silence is all that there is to go by. */
    if (options->keep_errors)
        (void)!ss_sockopt_keep_errors(fd, addr->ip.family);
    status = set_fragments(fd, family, options->ipv6_only, options->dont_fragment);
    if (status != SS_OK)
        ss_option_refused(&warned_fragments, "control of fragmentation", status);
    want_joined(fd);
    if (options->burst > 0)
        ss_sockopt_burst(fd, options->sndbuf > 0 ? 0 : options->burst,
                         options->rcvbuf > 0 ? 0 : options->burst);
    ss_option_buffers(fd, options->sndbuf, options->rcvbuf);
    ss_option_outgoing(fd, addr->ip.family, options->mark, options->tos);
}

/* SO_REUSEADDR is not set on ports that are listened on: with it a second instance would bind the
 * port as well, and take the datagrams of the first. */
enum ss_status ss_udp_open(int *out, const struct ss_addr *addr,
                           const struct ss_udp_socket_options *options, const char **error_text)
{
    struct sockaddr_storage storage;
    socklen_t len = ss_addr_to_sockaddr(addr, &storage);
    int family = storage.ss_family;
    enum ss_status status;
    int fd;

    *out = -1;
    errno = 0;
    fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        goto system_failed;
    if (family == AF_INET6) {
        int only = options->ipv6_only;

        if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only) != 0)
            goto system_failed;
    }
    if (options->reuse_port) {
        status = ss_sockopt_reuse_port(fd);
        if (status != SS_OK)
            ss_option_refused(&warned_reuse_port, "sharing a port", status);
    }
    if (options->reuse_address) {
        int on = 1;

        if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0)
            goto system_failed;
    }
    status = set_redirected(fd, addr->ip.family, options);
    if (status != SS_OK) {
        if (error_text != NULL)
            *error_text = ss_status_text(status);
        goto failed;
    }
    if (options->interface != NULL) {
        status = ss_sockopt_interface(fd, options->interface);
        if (status != SS_OK && options->interface_required) {
            if (error_text != NULL)
                *error_text = ss_status_text(status);
            goto failed;
        }
        if (status != SS_OK)
            ss_option_refused(&warned_interface, "binding to the interface", status);
    }
    set_options(fd, addr, options);
    if (bind(fd, (const struct sockaddr *)&storage, len) != 0) {
        if (errno != EACCES || options->binder == NULL)
            goto system_failed;
        close(fd);
        fd = -1;
        status = options->binder->bind(options->binder->owner, &fd, addr, true, options->ipv6_only,
                                       options->reuse_port, false, error_text);
        if (status != SS_OK)
            goto failed;
        set_options(fd, addr, options);
    }
    *out = fd;
    return SS_OK;

system_failed:
    status = ss_status_from_errno(errno);
    if (error_text != NULL)
        *error_text = strerror(errno);
failed:
    if (fd >= 0)
        close(fd);
    return status;
}
