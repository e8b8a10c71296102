/*
 * Sockets of the system: made, bound, accepted, connected to. Every descriptor that comes from here
 * is non-blocking and closed on exec. Errors of the system become ours here.
 */
#ifndef SS_NET_SOCKET_H
#define SS_NET_SOCKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/addr.h"
#include "base/status.h"

enum ss_status ss_status_from_errno(int error);

/* Returns the length that the socket calls want; 0 when the address has no family. */
socklen_t ss_addr_to_sockaddr(const struct ss_addr *addr, struct sockaddr_storage *out);
/* IPv4-mapped IPv6 addresses come out as IPv4. */
void ss_addr_from_sockaddr(struct ss_addr *addr, const struct sockaddr *from);

/*
 * Whoever binds ports that this process may not: asked when the system refuses for want of rights.
 * *fd is a bound socket then, non-blocking and closed on exec. With an error *error_text may be
 * set.
 */
struct ss_binder {
    enum ss_status (*bind)(void *owner, int *fd, const struct ss_addr *addr, bool udp,
                           bool ipv6_only, bool reuse_port, bool mptcp, const char **error_text);
    void *owner;
};

struct ss_listen_options {
    const struct ss_binder *binder; /* NULL: nobody */
    int backlog;
    bool ipv6_only;
    bool reuse_port;
    bool fast_open;
    bool mptcp;
    uint32_t keep_alive_s; /* see ss_socket_keep_alive */
    bool transparent;      /* is reached by addresses of others too (TPROXY) */
    int sndbuf, rcvbuf;    /* bytes, of the accepted connections; 0: the system's */
};

/*
 * A listening TCP socket. Connections accepted from it have keep-alive and no-delay on, inherited,
 * so that accepting costs no further calls. Options that the kernel refuses are warned of once and
 * left out. After a failure *error_text is what the system said.
 */
SS_CHECKED enum ss_status ss_socket_listen(int *fd, const struct ss_addr *addr,
                                           const struct ss_listen_options *options,
                                           const char **error_text);

/*
 * SS_NEED_INPUT when none is waiting; SS_ERR_LIMIT when descriptors or memory are out, so that
 * trying again at once would be in vain.
 */
SS_CHECKED enum ss_status ss_socket_accept(int listening, int *fd, struct ss_addr *peer);

struct ss_dial_options {
    bool mptcp;
    bool fast_open;             /* connecting sends nothing; the first write carries the request */
    const char *interface;      /* NULL: any */
    bool interface_required;    /* whether to fail when the interface can't be used */
    const struct ss_ip *source; /* NULL or family 0: any */
    int sndbuf, rcvbuf;
    uint32_t mark; /* for the system's rules; 0: none */
    uint8_t tos;   /* the byte with the DSCP; 0: the system's */
};

/* Makes a fresh socket of `family` ready to connect with; `mptcp` is not looked at. It has no
 * keep-alive yet: four system calls, which a short connection can do without. */
SS_CHECKED enum ss_status ss_socket_prepare_dial(int fd, enum ss_family family,
                                                 const struct ss_dial_options *options);

/* Makes one as well, with multipath TCP where that is asked for and to be had. */
SS_CHECKED enum ss_status ss_socket_for_dial(int *fd, enum ss_family family,
                                             const struct ss_dial_options *options);

/* Keep-alive: after `idle_s` of silence five probes, 20 s apart, or less where `idle_s` is less.
 * 0: none. */
void ss_socket_keep_alive(int fd, uint32_t idle_s);

/* Whether the system knows a way to this address. Opens a socket for a moment, sends nothing. */
bool ss_socket_has_route(const struct ss_addr *addr);

/*
 * A port of this address that is free at this moment, for the transports asked for, into
 * addr->port. Nothing keeps it from being taken before it is bound. SS_ERR_UNREACHABLE when there
 * is no such local address, SS_ERR_LIMIT, ...
 */
SS_CHECKED enum ss_status ss_socket_free_port(struct ss_addr *addr, bool tcp, bool udp);

/* Whether an error waits to be told by the next call; it goes on waiting. */
bool ss_socket_has_error(int fd);

/* The local end of a socket; family 0 when the system does not say. */
void ss_socket_local(int fd, struct ss_addr *addr);

/* Another descriptor of the same socket, closed on exec; -1 when there is none to be had. */
int ss_socket_duplicate(int fd);

void ss_socket_close(int fd);

#endif
