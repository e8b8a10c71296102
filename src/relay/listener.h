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
    struct ss_listener_options options;
    const struct ss_ingress *ingress;
    struct ss_counters *counters; /* one a worker */
    struct ss_addr bound;
    uv_poll_t poll; /* its `data` is the listener */
    int fd;
    bool accepting;
    bool crowded; /* more than one connection was waiting lately */
    uint8_t turn;
    _Atomic uint32_t next_upstream;   /* where the next dial begins */
    _Atomic uint64_t *plain_until_ms; /* for each upstream: no fast open before */
};

/* Takes connections again after a pause, if the budget allows. */
void ss_listener_resume(struct ss_listener *listener);
void ss_listener_pause(struct ss_listener *listener);

/* Closes the socket; the memory stays until the engine is freed. */
void ss_listener_close(struct ss_listener *listener);

#endif
