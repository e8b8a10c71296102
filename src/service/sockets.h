/*
 * Sockets that are open, by address and transport, and the change from those that there are to
 * those that are wanted: all of it or nothing. For this folder; of the thread of loop 0.
 *
 * A socket that is wanted again stays open and gets another role; its sessions go on, but those of
 * a server whose key has changed. What is no longer wanted is closed, and its sessions go on too.
 */
#ifndef SS_SERVICE_SOCKETS_H
#define SS_SERVICE_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "relay/engine.h"

struct ss_wanted_socket {
    struct ss_listener_options options; /* with a role, which the caller holds */
    bool udp;
    uint16_t port; /* the one that people know: a plugin's is not the one that is bound */
    bool may_fail; /* without it the others are wanted nevertheless */
    /* Outcome: */
    bool is_bound;        /* it is open now */
    bool is_new;          /* it was not before */
    enum ss_status error; /* why one that may fail has failed */
    const char *error_text;
};

struct ss_open_socket {
    struct ss_listener_options options; /* the role is the one of now; held by the engine */
    bool udp;
    uint16_t port;
    struct ss_listener *listener; /* of the two the one that it is */
    struct ss_udp_port *udp_port;
};

/* All zero to begin with, but for the engine. */
struct ss_sockets {
    struct ss_engine *engine;
    struct ss_open_socket *list;
    size_t count;
    struct ss_traffic past; /* of those that were closed */
};

struct ss_sockets_change {
    size_t opened, closed;
    size_t changed; /* of those that stayed: what they are for is another thing */
    /* When it failed: */
    const struct ss_wanted_socket *failed; /* the one that could not be had; NULL: none of them */
    const char *error_text;                /* the system's words; may be NULL */
    size_t lost; /* those from before that had to make way and could not be opened again */
};

/*
 * SS_ERR_IN_USE, SS_ERR_PERMISSION and so on of the socket that failed; SS_ERR_ARGUMENT when the
 * engine has no room for a method; SS_ERR_MEMORY. Then all is as before.
 */
SS_CHECKED enum ss_status ss_sockets_change(struct ss_sockets *sockets,
                                            struct ss_wanted_socket *wanted, size_t count,
                                            struct ss_sockets_change *change);

/* Closes all; their sessions go on, unless `end_sessions`. */
void ss_sockets_close(struct ss_sockets *sockets, bool end_sessions);

/* Forgets them, after the engine has closed them itself. */
void ss_sockets_clear(struct ss_sockets *sockets);

void ss_open_socket_traffic(const struct ss_open_socket *socket, struct ss_traffic *traffic);

/* Of all, with those that were closed. */
void ss_sockets_traffic(const struct ss_sockets *sockets, struct ss_traffic *traffic);

#endif
