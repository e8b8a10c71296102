/*
 * The way of datagrams: from a port to an association's own socket and back. All of it is on loop
 * 0. For this folder alone.
 */
#ifndef SS_RELAY_UDP_RELAY_H
#define SS_RELAY_UDP_RELAY_H

#include <stdbool.h>

#include <uv.h>

#include "codec/packet.h"
#include "net/udp.h"
#include "relay/association.h"
#include "relay/control.h"
#include "relay/counters.h"
#include "relay/engine.h"
#include "relay/udp_redirect.h"
#include "relay/udp_upstream.h"
#include "relay/worker.h"

/* A listening UDP port with its role. */
struct ss_udp_port {
    struct ss_udp_relay *relay;
    struct ss_udp_port *next;
    struct ss_role *role; /* held */
    struct ss_counters *counters;
    struct ss_udp_server *servers; /* upstream: one each of the role's */
    size_t server_count;           /* 0 without upstream servers */
    struct ss_packet_codec *codec; /* of clients; NULL where they don't speak Shadowsocks */
    bool has_sessions; /* their datagrams are of sessions: associations have links to them */
    struct ss_addr bound;
    uint8_t address[SS_TARGET_MAX]; /* of the fixed target, as on the wire */
    size_t address_len;
    uv_poll_t poll; /* its `data` is the port */
    int fd;
    enum ss_family family; /* of the socket */
    bool reuse_port;
};

/* One an engine, made when the first port is. */
struct ss_udp_relay {
    struct ss_engine *engine;
    struct ss_worker *worker; /* of loop 0 */
    struct ss_udp_port *ports;
    struct ss_associations associations;
    struct ss_controls controls;
    struct ss_udp_answers *answers;      /* of redirected datagrams; NULL without */
    struct ss_packet_sessions *sessions; /* of clients, under the 2022 methods; NULL without */
    struct ss_udp_inbox *inbox;
    struct ss_udp_outbox *outbox;
    struct ss_packet_foreseen *foreseen; /* of what is in the inbox */
    uint32_t asking;                     /* names that are being looked up for the first time */
    uint32_t waiting;                    /* blocks that hold datagrams for them */
    uint8_t *scratch; /* one sealed datagram of those that waited for a look-up */
    size_t scratch_len;
};

/* Handles are closed, in the thread of loop 0; memory stays until ss_udp_relay_free. */
void ss_udp_relay_close(struct ss_udp_relay *relay);
void ss_udp_relay_free(struct ss_udp_relay *relay); /* NULL is fine */

/* Ends what has been idle for its time; and when the next one will have been (0: there is none). */
void ss_udp_relay_expire(struct ss_udp_relay *relay, uint64_t now_ms);
uint64_t ss_udp_relay_due_ms(struct ss_udp_relay *relay);

/* Batches in one round of events, then others have their turn. */
#define SS_UDP_BATCHES_MAX 4

/* Tells a codec of a batch that it will open. */
void ss_udp_foresee(struct ss_udp_relay *relay, struct ss_packet_codec *codec,
                    const struct ss_datagram *got, size_t count);

/* In front of a SOCKS5 datagram: two reserved bytes and the fragment number. */
#define SS_SOCKS5_UDP_PREFIX 3

/* Whether a payload is above the MTU that was set, after a line that says so. */
bool ss_udp_is_too_large(const struct ss_udp_port *port, size_t payload_len);

/* The poll callback of a port: what clients send. */
void ss_udp_port_readable(uv_poll_t *poll, int status, int events);

/* Takes what has come for a port, at its own socket or at one that was reached as `original` (NULL:
 * the datagrams tell). */
void ss_udp_port_receive(struct ss_udp_port *port, int fd, const struct ss_addr *original);

/* The port that serves the UDP of a SOCKS5 listener, or NULL. */
struct ss_udp_port *ss_udp_port_beside(struct ss_udp_relay *relay, const struct ss_addr *listener);

/* Datagrams that waited. `bytes` is the payload; with its address, of `address_len`, in front it is
 * sealed for an upstream server, which is at `to`. */
void ss_udp_send_waiting(struct ss_association *association, const struct ss_addr *to,
                         size_t address_len, struct ss_view bytes);
/* To the role's upstream server, whose name may have to be looked up in turn. */
void ss_udp_send_upstream(struct ss_association *association, size_t address_len,
                          struct ss_view bytes);
/* From a client program to the target itself. */
void ss_udp_send_direct(struct ss_association *association, const struct ss_addr *to,
                        struct ss_view payload);

#endif
