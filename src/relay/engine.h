/*
 * The relay engine: event loops in threads, their pools, deadlines and resolvers, and the listeners
 * that feed them. It knows no program, reads no file, parses no option and ends no process.
 *
 * Loop 0 runs in the caller's thread and accepts for all; an accepted connection goes to the worker
 * with the fewest sessions. The calls below are for the thread of loop 0.
 */
#ifndef SS_RELAY_ENGINE_H
#define SS_RELAY_ENGINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "base/addr.h"
#include "base/status.h"
#include "relay/role.h"

struct ss_engine;
struct ss_listener;
struct ss_udp_port;

/* Texts are copied. */
struct ss_binder;

struct ss_engine_options {
    const struct ss_binder *binder; /* for ports that the process may not bind; NULL: nobody */
    unsigned workers;               /* loops, at least 1 */
    uint32_t max_connections;       /* at least 1: TCP sessions of all workers together */
    uint32_t descriptors; /* the process's limit; max_connections is lowered to fit (logged) */

    /* Milliseconds. */
    uint32_t handshake_timeout_ms; /* until the request is complete, absolute, from accept */
    uint32_t connect_timeout_ms;   /* look-up apart */
    uint32_t tcp_idle_timeout_ms;
    uint32_t keep_alive_s;         /* of outgoing connections; 0: none */
    uint32_t half_open_timeout_ms; /* without traffic, once one side has ended */

    uint32_t listeners; /* sockets that `descriptors` are already reckoned without */

    uint32_t max_associations; /* UDP. Lowered to a quarter of the descriptors */
    bool udp_at_start;         /* else descriptors are set aside when the first UDP port opens */
    uint32_t udp_timeout_ms;   /* of an association without traffic */
    uint32_t mtu;              /* larger datagrams are dropped, none is fragmented; 0: no limit */

    /* A ceiling on private memory, kept by back-pressure; 0: none. How much there is now is asked
     * of `private_bytes`, from loop 0. */
    uint64_t max_memory;
    uint64_t (*private_bytes)(void);

    bool ipv6_first;
    const char *nameservers;  /* NULL: the system's */
    const char *hosts_path;   /* NULL: /etc/hosts */
    uint32_t max_dns_queries; /* names that are looked up at once, all workers together; 0: 1,024 */

    /* Outgoing connections. */
    bool fast_open;
    bool mptcp;            /* towards upstream servers */
    const char *interface; /* NULL: any */
    /* With an interface that can't be used: true ends the connection, false goes on without. */
    bool interface_required;
    struct ss_ip bind_ipv4, bind_ipv6;    /* source addresses; family 0: any */
    int outgoing_sndbuf, outgoing_rcvbuf; /* bytes; 0: the system's */
    uint32_t mark;                        /* for the system's rules; 0: none */

    /* Sockets at once that answer redirected datagrams in the name of where they were going; 0
     * where there are none. Lowered to an eighth of the descriptors. */
    uint32_t max_answers;

    /* The largest codec among the profiles that listeners will use (ss_codec_size); 0: none. */
    size_t codec_size;
    /* The same of links between associations and sessions of datagrams (ss_packet_link_size). */
    size_t packet_link_size;
    /* Some role has an access control list that sends targets around its upstream servers: an
     * association may then have a socket more. */
    bool bypasses;
};

/*
 * What a user of identity headers has used (SIP023): the `tag` of a struct ss_user points to one,
 * or is NULL. It belongs to whoever made the list of users, lives as long as any list that names it
 * (ss_user_options.release), and begins as zero. All workers write it.
 */
struct ss_user_counters {
    _Atomic uint64_t rx_bytes,
        tx_bytes;              /* payload, as in struct ss_traffic; sealed when passed on */
    _Atomic uint64_t sessions; /* opened so far: connections, and sessions of datagrams */
    struct ss_limiter limiter; /* what the user may use */
};

/* A listening address. */
struct ss_listener_options {
    struct ss_addr address;
    struct ss_role *role; /* the listener holds it */
    int backlog;
    bool ipv6_only;
    bool reuse_port;
    bool fast_open;
    bool mptcp;
    uint32_t keep_alive_s;                /* of accepted connections; 0: none */
    int incoming_sndbuf, incoming_rcvbuf; /* bytes, of accepted connections; 0: the system's */
};

/* A datagram of P bytes of payload fits an MTU of P + 95: addresses, salt and tags are reckoned in.
 */
#define SS_UDP_MTU_OVERHEAD 95

/* Totals of the whole process, or of one listener. */
struct ss_traffic {
    uint64_t sessions_opened, sessions_closed;
    uint64_t rx_bytes;      /* payload from clients towards targets */
    uint64_t tx_bytes;      /* payload from targets towards clients */
    uint64_t rx_wire_bytes; /* from clients, as it came: with salts, headers and tags */
    uint64_t handshakes_failed;
    uint64_t rx_datagrams, tx_datagrams; /* the same ways as the bytes, which count both */
    uint64_t associations_opened, associations_closed;
};

/* SS_ERR_MEMORY, SS_ERR_LIMIT when the descriptors don't even cover one session. */
SS_CHECKED enum ss_status ss_engine_new(struct ss_engine **out,
                                        const struct ss_engine_options *options);

/*
 * Binds and listens at once. SS_ERR_ARGUMENT when a profile needs more room than the engine was
 * made with; SS_ERR_IN_USE, SS_ERR_PERMISSION, SS_ERR_UNREACHABLE (no such local address), …;
 * `error_text` (may be NULL) then points to the system's words. The listener belongs to the engine.
 */
SS_CHECKED enum ss_status ss_engine_listen(struct ss_engine *engine,
                                           const struct ss_listener_options *options,
                                           struct ss_listener **out, const char **error_text);

/*
 * The same for UDP: `backlog`, `fast_open` and `mptcp` mean nothing. A SOCKS5 port beside a
 * listener on the same address makes that listener answer UDP ASSOCIATE.
 */
SS_CHECKED enum ss_status ss_engine_listen_udp(struct ss_engine *engine,
                                               const struct ss_listener_options *options,
                                               struct ss_udp_port **out, const char **error_text);

/* Whether the engine has room for the methods of a role. */
bool ss_engine_fits(const struct ss_engine *engine, const struct ss_role *role);

/*
 * What comes from now on is served by another role; sessions keep the one they began with. UDP
 * associations go on where method, key and upstream server are the same, and end otherwise.
 * SS_ERR_ARGUMENT when a profile needs more room than the engine was made with, or the port's
 * ingress would be another; SS_ERR_MEMORY. The old role then stays.
 */
SS_CHECKED enum ss_status ss_listener_set_role(struct ss_listener *listener, struct ss_role *role);
SS_CHECKED enum ss_status ss_udp_port_set_role(struct ss_udp_port *port, struct ss_role *role);

/*
 * Closes the port at once. TCP sessions go on to their end; UDP associations of the port end, and
 * connections that asked for ASSOCIATE there. The pointer is not valid any more. Not from a
 * callback of the port's own sessions.
 */
void ss_engine_unlisten(struct ss_engine *engine, struct ss_listener *listener);
void ss_engine_unlisten_udp(struct ss_engine *engine, struct ss_udp_port *port);

/* Sessions and associations of servers: those that fit all that is given. */
struct ss_sessions_of {
    struct ss_listener *listener;     /* that began here; NULL: anywhere. Then TCP alone is meant */
    const struct ss_profile *profile; /* under this key; NULL: any */
    const void *user;                 /* whose tag it is; with a profile. NULL: anybody */
};

/*
 * Ends them as a stop does: streams by RST. Each worker is asked, so the last end some moments
 * later; connections that were accepted before this call are meant too. Not from a callback of a
 * session. SS_ERR_MEMORY: nothing was ended.
 */
SS_CHECKED enum ss_status ss_engine_end_sessions(struct ss_engine *engine,
                                                 const struct ss_sessions_of *which);

/*
 * Another list of users takes the place of a profile's (ss_profile_set_users), and sessions end
 * whose users are not on it with the same key and tag. SS_ERR_MEMORY: nothing was done.
 */
SS_CHECKED enum ss_status ss_engine_set_users(struct ss_engine *engine, struct ss_profile *profile,
                                              struct ss_users *users);

/* The address that was bound: with the real port where 0 was asked for. */
struct ss_addr ss_listener_address(const struct ss_listener *listener);

/* Starts the threads of loops 1 to n - 1. */
SS_CHECKED enum ss_status ss_engine_start_workers(struct ss_engine *engine);

/* Loop 0, for the caller's own handles (signals). */
uv_loop_t *ss_engine_loop(struct ss_engine *engine);

/* Runs loop 0 until ss_engine_stop. */
void ss_engine_run(struct ss_engine *engine);

/* Closes every listener and session, ends the threads and lets ss_engine_run return. From a
 * callback of loop 0. The caller closes its own handles first. */
void ss_engine_stop(struct ss_engine *engine);

/* After ss_engine_run has returned. NULL is fine. */
void ss_engine_free(struct ss_engine *engine);

/* Read live, from counters that the workers keep; a moment's view. */
void ss_engine_traffic(const struct ss_engine *engine, struct ss_traffic *traffic);
void ss_listener_traffic(const struct ss_listener *listener, struct ss_traffic *traffic);
void ss_udp_port_traffic(const struct ss_udp_port *port, struct ss_traffic *traffic);
uint32_t ss_engine_sessions(const struct ss_engine *engine);

#endif
