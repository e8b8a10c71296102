/* Sockets of a POSIX system. */
#include "net/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "net/option_internal.h"
#include "net/redirect.h"
#include "net/sockopt.h"

#define KEEP_ALIVE_INTERVAL_S 20
#define KEEP_ALIVE_COUNT      5

#define FAST_OPEN_QUEUE 256

enum ss_status ss_status_from_errno(int error)
{
    switch (error) {
    case 0:
        return SS_OK;
    case EAGAIN:
#if EWOULDBLOCK != EAGAIN
    case EWOULDBLOCK:
#endif
    case EINPROGRESS:
        return SS_NEED_INPUT;
    case EADDRINUSE:
        return SS_ERR_IN_USE;
    case EACCES:
    case EPERM:
        return SS_ERR_PERMISSION;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
        return SS_ERR_LIMIT;
    case ENOMEM:
        return SS_ERR_MEMORY;
    case ETIMEDOUT:
        return SS_ERR_TIMEOUT;
    case ECONNREFUSED:
        return SS_ERR_REFUSED;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case EADDRNOTAVAIL:
    case ENETDOWN:
        return SS_ERR_UNREACHABLE;
    case ECONNRESET:
    case EPIPE:
    case ECONNABORTED:
        return SS_ERR_RESET;
    case ENOPROTOOPT:
    case EOPNOTSUPP:
    case EPROTONOSUPPORT:
    case EAFNOSUPPORT:
    case ENOSYS:
        return SS_ERR_UNSUPPORTED;
    case ENODEV:
    case ENOENT:
        return SS_ERR_NOT_FOUND;
    default:
        return SS_ERR_IO;
    }
}

socklen_t ss_addr_to_sockaddr(const struct ss_addr *addr, struct sockaddr_storage *out)
{
    memset(out, 0, sizeof *out);
    if (addr->ip.family == SS_FAMILY_IPV4) {
        struct sockaddr_in *in = (struct sockaddr_in *)out;

        in->sin_family = AF_INET;
        in->sin_port = htons(addr->port);
        memcpy(&in->sin_addr, addr->ip.bytes, 4);
        return sizeof *in;
    }
    if (addr->ip.family == SS_FAMILY_IPV6) {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;

        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(addr->port);
        in6->sin6_scope_id = addr->ip.scope;
        memcpy(&in6->sin6_addr, addr->ip.bytes, 16);
        return sizeof *in6;
    }
    return 0;
}

void ss_addr_from_sockaddr(struct ss_addr *addr, const struct sockaddr *from)
{
    memset(addr, 0, sizeof *addr);
    if (from->sa_family == AF_INET) {
        struct sockaddr_in in;

        memcpy(&in, from, sizeof in);
        addr->ip.family = SS_FAMILY_IPV4;
        memcpy(addr->ip.bytes, &in.sin_addr, 4);
        addr->port = ntohs(in.sin_port);
    } else if (from->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;

        memcpy(&in6, from, sizeof in6);
        addr->ip.family = SS_FAMILY_IPV6;
        memcpy(addr->ip.bytes, &in6.sin6_addr, 16);
        addr->ip.scope = in6.sin6_scope_id;
        addr->port = ntohs(in6.sin6_port);
        ss_ip_unmap(&addr->ip);
    }
}

void ss_option_refused(atomic_flag *warned, const char *what, enum ss_status status)
{
    if (!atomic_flag_test_and_set(warned))
        ss_log_warn("%s is not available here (%s); going on without it", what,
                    ss_status_text(status));
}

static atomic_flag warned_mptcp = ATOMIC_FLAG_INIT;
static atomic_flag warned_fast_open = ATOMIC_FLAG_INIT;
static atomic_flag warned_no_delay = ATOMIC_FLAG_INIT;
static atomic_flag warned_keep_alive = ATOMIC_FLAG_INIT;
static atomic_flag warned_reuse_port = ATOMIC_FLAG_INIT;
static atomic_flag warned_interface = ATOMIC_FLAG_INIT;
static atomic_flag warned_buffers = ATOMIC_FLAG_INIT;
static atomic_flag warned_mark = ATOMIC_FLAG_INIT;
static atomic_flag warned_tos = ATOMIC_FLAG_INIT;
/* Once refused, fast open is not asked for again. */
static atomic_bool fast_open_refused;

static int new_stream_socket(int family, bool mptcp)
{
    int fd = -1;

    if (mptcp) {
        int protocol = ss_sockopt_mptcp_protocol();

        if (protocol >= 0)
            fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
        else
            errno = EPROTONOSUPPORT;
        if (fd >= 0 || errno == EMFILE || errno == ENFILE)
            return fd;
        ss_option_refused(&warned_mptcp, "multipath TCP", ss_status_from_errno(errno));
    }
    return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

void ss_option_buffers(int fd, int sndbuf, int rcvbuf)
{
    int failed = 0;

    if (sndbuf > 0)
        failed |= setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &sndbuf, sizeof sndbuf);
    if (rcvbuf > 0)
        failed |= setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, sizeof rcvbuf);
    if (failed)
        ss_option_refused(&warned_buffers, "a socket buffer of the size asked for",
                          ss_status_from_errno(errno));
}

void ss_option_outgoing(int fd, enum ss_family family, uint32_t mark, uint8_t tos)
{
    enum ss_status status;

    if (mark != 0) {
        status = ss_sockopt_mark(fd, mark);
        if (status != SS_OK)
            ss_option_refused(&warned_mark, "the mark of outgoing packets", status);
    }
    if (tos != 0) {
        status = ss_sockopt_tos(fd, family, tos);
        if (status != SS_OK)
            ss_option_refused(&warned_tos, "the DSCP of outgoing packets", status);
    }
}

static void set_no_delay(int fd)
{
    int on = 1;

    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        ss_option_refused(&warned_no_delay, "TCP no-delay", ss_status_from_errno(errno));
}

void ss_socket_keep_alive(int fd, uint32_t idle_s)
{
    uint32_t interval_s = idle_s < KEEP_ALIVE_INTERVAL_S ? idle_s : KEEP_ALIVE_INTERVAL_S;
    enum ss_status status;

    if (idle_s == 0)
        return;
    status = ss_sockopt_keep_alive(fd, (int)idle_s, (int)interval_s, KEEP_ALIVE_COUNT);
    if (status != SS_OK)
        ss_option_refused(&warned_keep_alive, "TCP keep-alive", status);
}

static void set_accepting(int fd, const struct ss_listen_options *options)
{
    set_no_delay(fd);
    ss_socket_keep_alive(fd, options->keep_alive_s);
    ss_option_buffers(fd, options->sndbuf, options->rcvbuf);
}

enum ss_status ss_socket_listen(int *out, const struct ss_addr *addr,
                                const struct ss_listen_options *options, const char **error_text)
{
    struct sockaddr_storage storage;
    socklen_t len = ss_addr_to_sockaddr(addr, &storage);
    int on = 1;
    int only = options->ipv6_only;
    int fd = new_stream_socket(storage.ss_family, options->mptcp);
    enum ss_status status;

    *out = -1;
    if (fd < 0)
        goto failed;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0)
        goto failed;
    if (storage.ss_family == AF_INET6 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only) != 0)
        goto failed;
    if (options->reuse_port) {
        status = ss_sockopt_reuse_port(fd);
        if (status != SS_OK)
            ss_option_refused(&warned_reuse_port, "sharing a port", status);
    }
    set_accepting(fd, options);
    if (options->transparent) {
        status = ss_redirect_make_transparent(fd, addr->ip.family);
        if (status != SS_OK)
            goto failed_with_status;
    }
    if (bind(fd, (const struct sockaddr *)&storage, len) != 0) {
        if (errno != EACCES || options->binder == NULL)
            goto failed;
        close(fd);
        fd = -1;
        status = options->binder->bind(options->binder->owner, &fd, addr, false, options->ipv6_only,
                                       options->reuse_port, options->mptcp, error_text);
        if (status != SS_OK)
            goto failed_with_status;
        set_accepting(fd, options);
    }
    if (options->fast_open) {
        status = ss_sockopt_fast_open_listen(fd, FAST_OPEN_QUEUE);
        if (status != SS_OK)
            ss_option_refused(&warned_fast_open, "TCP fast open", status);
    }
    if (listen(fd, options->backlog) != 0)
        goto failed;
    *out = fd;
    return SS_OK;

failed:
    status = ss_status_from_errno(errno);
    if (error_text != NULL)
        *error_text = strerror(errno);
failed_with_status:
    if (fd >= 0)
        close(fd);
    return status;
}

enum ss_status ss_socket_accept(int listening, int *out, struct ss_addr *peer)
{
    struct sockaddr_storage storage;
    socklen_t len = sizeof storage;
    int fd = accept4(listening, (struct sockaddr *)&storage, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0) {
        switch (errno) {
        case EMFILE:
        case ENFILE:
        case ENOBUFS:
        case ENOMEM:
            return SS_ERR_LIMIT;
        case EAGAIN:
            return SS_NEED_INPUT;
        default:
            /* The connection was gone before we took it: there may be another behind it. */
            return SS_ERR_RESET;
        }
    }
    ss_addr_from_sockaddr(peer, (const struct sockaddr *)&storage);
    *out = fd;
    return SS_OK;
}

static enum ss_status bind_source(int fd, const struct ss_ip *source)
{
    struct ss_addr addr = {.ip = *source};
    struct sockaddr_storage storage;
    socklen_t len = ss_addr_to_sockaddr(&addr, &storage);

    if (ss_sockopt_bind_no_port(fd) != SS_OK)
        ss_log_debug("ports of a bound source address can't be shared");
    if (bind(fd, (const struct sockaddr *)&storage, len) != 0)
        return ss_status_from_errno(errno);
    return SS_OK;
}

enum ss_status ss_socket_prepare_dial(int fd, enum ss_family family,
                                      const struct ss_dial_options *options)
{
    enum ss_status status;

    set_no_delay(fd);
    ss_option_buffers(fd, options->sndbuf, options->rcvbuf);
    ss_option_outgoing(fd, family, options->mark, options->tos);
    if (options->interface != NULL) {
        status = ss_sockopt_interface(fd, options->interface);
        if (status != SS_OK) {
            if (options->interface_required)
                return status;
            ss_option_refused(&warned_interface, "binding to the interface", status);
        }
    }
    if (options->source != NULL && options->source->family == family) {
        status = bind_source(fd, options->source);
        if (status != SS_OK)
            return status;
    }
    if (options->fast_open && !atomic_load_explicit(&fast_open_refused, memory_order_relaxed)) {
        status = ss_sockopt_fast_open_connect(fd);
        if (status != SS_OK) {
            atomic_store_explicit(&fast_open_refused, true, memory_order_relaxed);
            ss_option_refused(&warned_fast_open, "TCP fast open", status);
        }
    }
    return SS_OK;
}

enum ss_status ss_socket_for_dial(int *out, enum ss_family family,
                                  const struct ss_dial_options *options)
{
    int fd = new_stream_socket(family == SS_FAMILY_IPV4 ? AF_INET : AF_INET6, options->mptcp);
    enum ss_status status;

    *out = -1;
    if (fd < 0)
        return ss_status_from_errno(errno);
    status = ss_socket_prepare_dial(fd, family, options);
    if (status != SS_OK) {
        close(fd);
        return status;
    }
    *out = fd;
    return SS_OK;
}

bool ss_socket_has_route(const struct ss_addr *addr)
{
    struct sockaddr_storage storage;
    socklen_t len = ss_addr_to_sockaddr(addr, &storage);
    int fd = socket(storage.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool found;

    if (fd < 0)
        return false;
    found = connect(fd, (const struct sockaddr *)&storage, len) == 0;
    close(fd);
    return found;
}

/* A socket of `type` bound there, and the port that it came to; -1: *status. */
static int bind_for_port(struct ss_addr *addr, int type, enum ss_status *status)
{
    struct sockaddr_storage storage;
    socklen_t len = ss_addr_to_sockaddr(addr, &storage);
    int fd = socket(storage.ss_family, type | SOCK_CLOEXEC, 0);
    struct ss_addr bound;

    if (fd < 0 || bind(fd, (const struct sockaddr *)&storage, len) != 0) {
        *status = ss_status_from_errno(errno);
        ss_socket_close(fd);
        return -1;
    }
    ss_socket_local(fd, &bound);
    addr->port = bound.port;
    *status = SS_OK;
    return fd;
}

enum ss_status ss_socket_free_port(struct ss_addr *addr, bool tcp, bool udp)
{
    enum ss_status status = SS_ERR_IN_USE;

    /* A port that is free for the one may be taken for the other. */
    for (int tries = 0; status == SS_ERR_IN_USE && tries < 16; tries++) {
        int first, second = -1;

        addr->port = 0;
        first = bind_for_port(addr, tcp ? SOCK_STREAM : SOCK_DGRAM, &status);
        if (first >= 0 && tcp && udp)
            second = bind_for_port(addr, SOCK_DGRAM, &status);
        ss_socket_close(first);
        ss_socket_close(second);
    }
    return status;
}

bool ss_socket_has_error(int fd)
{
    struct pollfd entry = {.fd = fd};

    return poll(&entry, 1, 0) == 1 && (entry.revents & POLLERR) != 0;
}

void ss_socket_local(int fd, struct ss_addr *addr)
{
    struct sockaddr_storage storage;
    socklen_t len = sizeof storage;

    memset(addr, 0, sizeof *addr);
    if (getsockname(fd, (struct sockaddr *)&storage, &len) == 0)
        ss_addr_from_sockaddr(addr, (const struct sockaddr *)&storage);
}

int ss_socket_duplicate(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

void ss_socket_close(int fd)
{
    if (fd >= 0)
        close(fd);
}
