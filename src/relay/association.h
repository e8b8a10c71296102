/*
 * Associations: the mapping from one client address to one outgoing socket, which is kept for all
 * its targets, so that every target sees the same source port and any of them may answer. A fixed
 * table; the one that was used least recently makes way for a new one. For this folder alone.
 */
#ifndef SS_RELAY_ASSOCIATION_H
#define SS_RELAY_ASSOCIATION_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/addr.h"
#include "base/deadline.h"
#include "base/pool.h"

struct ss_association;
struct ss_udp_name;
struct ss_udp_port;
struct ss_udp_relay;
struct ss_control;
struct ss_packet_codec;
struct ss_packet_link;
struct ss_packet_session;
struct ss_user_counters;

/* An outgoing socket; it goes back to its pool in its close callback. */
struct ss_udp_out {
    uv_poll_t poll; /* its `data` is the ss_udp_out */
    struct ss_udp_relay *relay;
    struct ss_association *association; /* NULL once it is closing */
    bool direct;                        /* of a client: for targets that are bypassed */
    int fd;
    enum ss_family family; /* IPv6 may serve both */
};

struct ss_association {
    struct ss_association *hash_next;
    struct ss_association *control_prev, *control_next;
    struct ss_deadline idle;
    struct ss_udp_port *port;
    struct ss_control *control;        /* the connection that it lives with (SOCKS5), or NULL */
    struct ss_udp_name *names;         /* looked up or being looked up, the latest used first */
    struct ss_udp_out *outs[2][2];     /* through, direct; the first of each serves both families
                                        * where that is possible */
    struct ss_packet_codec *codec;     /* of the port, or of its server; NULL where there is none */
    struct ss_packet_link *link;       /* NULL where datagrams are not of sessions */
    struct ss_packet_session *session; /* on a server, where datagrams are of sessions; else NULL */
    struct ss_user_counters *user;     /* whose traffic it is; NULL where there are no users */
    bool passes_on;                    /* another server opens it: both ways as it is */
    struct ss_addr next;               /* that server, as it was last sent to */
    bool answered;                     /* by its upstream server, ever */
    uint8_t upstream;                  /* which of the role's servers it sends to */
    uint32_t unanswered;               /* datagrams to it since the last that came back */
    uint64_t unanswered_since_ms;      /* when the first of these was sent */
    struct ss_addr sent_to;            /* the address of it that was used last */
    struct ss_addr client;             /* of a session: the sender of its latest datagram */
    struct ss_ip local;                /* where the client sent to: it is answered from there */
    struct ss_addr asked;              /* where its latest redirected datagram was going */
};

struct ss_associations {
    struct ss_pool *pool;
    struct ss_pool *links; /* apart: most methods need none */
    struct ss_pool *outs;
    struct ss_pool *names;
    struct ss_association **buckets;
    uint32_t bucket_mask;
    uint32_t capacity;
    struct ss_deadline_queue idle;
    uint8_t seed[16]; /* so that a client can't choose which bucket it falls into */
};

/* `link_size` is that of the largest link, 0 where there are none. */
SS_CHECKED enum ss_status ss_associations_init(struct ss_associations *table, uint32_t capacity,
                                               uint64_t idle_ms, size_t link_size);
/* All must be closed and their handles gone. */
void ss_associations_clear(struct ss_associations *table);

/* One that is found by its client's address. NULL when there is none. */
struct ss_association *ss_association_find(struct ss_udp_port *port, const struct ss_addr *client);

/*
 * A new one, if need be in the place of the oldest; NULL only when memory is out. With a session of
 * datagrams it is found as that session's owner, and moves with it; without, by the address.
 */
struct ss_association *ss_association_new(struct ss_udp_port *port, const struct ss_addr *client,
                                          struct ss_packet_session *session);

/* Binds it to the codec that it has to use, with a link to a session where there are such; unbinds
 * it. False when there is no room or no randomness. */
bool ss_association_begin_link(struct ss_association *association);
void ss_association_end_link(struct ss_association *association);

/* Traffic: its idle time begins anew. */
void ss_association_touch(struct ss_association *association);

/* Whether it can send to a family: with a source address of one alone, the other is not served. */
bool ss_association_serves(const struct ss_association *association, enum ss_family family);

/*
 * Its socket for targets of a family, opened at the first use; NULL when there can't be one. A
 * client's targets that are bypassed (`direct`) have sockets of their own, so that what comes from
 * a server is never taken for what comes from them.
 */
struct ss_udp_out *ss_association_out(struct ss_association *association, enum ss_family family,
                                      bool direct);

void ss_association_close(struct ss_association *association);
void ss_associations_close_all(struct ss_associations *table);
/* Those of one port, and those that `is_meant` says. */
void ss_associations_close_of(struct ss_associations *table, const struct ss_udp_port *port);
void ss_associations_close_if(struct ss_associations *table,
                              bool (*is_meant)(struct ss_association *association,
                                               const void *owner),
                              const void *owner);
/* The addresses of names that those of one port know, and what waits for them. */
void ss_associations_forget_names_of(struct ss_associations *table, const struct ss_udp_port *port);
/* Those whose idle time is over. */
void ss_associations_expire(struct ss_associations *table, uint64_t now_ms);

/* Gives back what was not needed lately, as ss_pool_trim. */
uint32_t ss_associations_trim(struct ss_associations *table);

#endif
