/*
 * Controls: the SOCKS5 connections that asked for UDP ASSOCIATE. Datagrams are taken only from an
 * address that has one (RFC 1928 section 7), and an association ends with its control. On loop 0.
 * For this folder alone.
 */
#ifndef SS_RELAY_CONTROL_H
#define SS_RELAY_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/pool.h"
#include "base/status.h"

struct ss_association;

struct ss_control {
    struct ss_control *prev, *next;      /* in its bucket */
    struct ss_association *associations; /* that live with it */
    struct ss_ip client;                 /* of the connection */
    struct ss_addr from;                 /* where datagrams will come from; zero parts: any */
};

#define SS_CONTROL_BUCKETS 256

struct ss_controls {
    struct ss_pool *pool;
    struct ss_control *buckets[SS_CONTROL_BUCKETS];
    uint8_t seed[16];
};

SS_CHECKED enum ss_status ss_controls_init(struct ss_controls *controls, uint32_t capacity);
void ss_controls_clear(struct ss_controls *controls);

/* NULL when there is no place. */
struct ss_control *ss_control_open(struct ss_controls *controls, const struct ss_ip *client,
                                   const struct ss_addr *from);

/* Its associations end, but for those that another control lets in. NULL is fine. */
void ss_control_close(struct ss_controls *controls, struct ss_control *control);

/* The control that lets datagrams from this address in, best one that named its port; or NULL. */
struct ss_control *ss_control_find(struct ss_controls *controls, const struct ss_addr *client);

void ss_control_attach(struct ss_control *control, struct ss_association *association);
/* Fine when it has none. */
void ss_control_detach(struct ss_association *association);

#endif
