/* A listening port: accepts on loop 0 and hands connections to workers. For this folder alone. */
#ifndef SS_RELAY_LISTENER_H
#define SS_RELAY_LISTENER_H

#include <stdbool.h>

#include <uv.h>

#include "relay/counters.h"
#include "relay/engine.h"

struct ss_ingress;

struct ss_listener {
    struct ss_engine *engine;
    struct ss_listener *next;
    struct ss_role *role; /* of connections to come; held */
    const struct ss_ingress *ingress;
    struct ss_counters *counters; /* one a worker */
    struct ss_addr bound;
    uv_poll_t poll; /* its `data` is the listener */
    int fd;
    bool accepting;
    bool crowded; /* more than one connection was waiting lately */
    uint8_t turn;
    _Atomic bool udp_beside;  /* a UDP port stands beside it, for ASSOCIATE; loop 0 writes it */
    bool removed;             /* waits for its sessions to end */
    _Atomic uint32_t holders; /* sessions, also those on their way to a worker, and the handle */
};

/* Takes connections again after a pause, if the budget allows. */
void ss_listener_resume(struct ss_listener *listener);
void ss_listener_pause(struct ss_listener *listener);

/* Closes the socket; the memory stays. */
void ss_listener_close(struct ss_listener *listener);

/* Sessions hold their listener. Any thread. */
void ss_listener_hold(struct ss_listener *listener);
void ss_listener_release(struct ss_listener *listener);

/* Loop 0: frees those that were removed and have no session any more. */
void ss_engine_sweep_listeners(struct ss_engine *engine);
void ss_listener_free(struct ss_listener *listener);

#endif
