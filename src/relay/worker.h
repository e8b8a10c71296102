/*
 * One event loop with all that its sessions need: pools, scratch, deadlines, resolver. A worker's
 * things are used in its own thread only, but for what says otherwise. For this folder alone.
 */
#ifndef SS_RELAY_WORKER_H
#define SS_RELAY_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/addr.h"
#include "base/deadline.h"
#include "base/pool.h"
#include "net/splice.h"
#include "relay/loop_guard.h"
#include "resolver/resolver.h"

struct ss_acl_scratch;
struct ss_ending;
struct ss_engine;
struct ss_listener;
struct ss_role;
struct ss_session;

/* Bytes of one read, and of one after a write that the kernel did not take whole. */
#define SS_READ_SIZE        (256u * 1024u)
#define SS_NARROW_READ_SIZE (64u * 1024u)
/* Bytes that are sealed and written at a time: less than is read, so that what was read, what it is
 * sealed to and the kernel's copies of both do not drive one another out of the processor's cache. */
#define SS_SEAL_SIZE (SS_READ_SIZE / 3 + 1)
/* And of one of sealed bytes: what a read is when it was sealed. */
#define SS_SEALED_READ_SIZE (SS_READ_SIZE + 1024u)

/* Waits before a dial is looked at again; see ss_worker_start_attempt. */
#define SS_ATTEMPT_WAITS 6

/* A connection on its way to a worker. */
struct ss_handoff {
    struct ss_listener *listener; /* held, as is the role */
    struct ss_role *role;
    struct ss_addr peer;
    struct ss_addr from; /* of a UDP ASSOCIATE: where its datagrams will come from */
    int fd;
    bool associate; /* the request was read already: only loop 0 gets these */
};

struct ss_worker {
    struct ss_engine *engine;
    unsigned index;

    uv_loop_t loop;
    uv_thread_t thread;
    uv_async_t wake;  /* thread-safe: handed-over connections, stop, room for new ones */
    uv_timer_t timer; /* one for all deadlines */
    uint64_t timer_due_ms;
    uint64_t trim_due_ms; /* 0: no pool has anything to give back */
    bool closing;

    struct ss_resolver *resolver;
    struct ss_acl_scratch *acl_scratch;

    struct ss_pool *sessions;
    struct ss_pool *conns;
    struct ss_pool *dials;
    struct ss_pool *probes;
    struct ss_pool *decisions;
    struct ss_pool *blocks;
    struct ss_session *open;   /* all sessions */
    struct ss_session *closed; /* to be released when no callback is on the stack */

    uint8_t *read_scratch;  /* room for an incomplete chunk in front of a read */
    uint8_t *write_scratch; /* room for a sealed read */
    size_t write_scratch_len;

    struct ss_splice splice; /* for what needs no cipher */

    struct ss_deadline_queue handshake;
    struct ss_deadline_queue connect;
    struct ss_deadline_queue idle;
    struct ss_deadline_queue half_open;
    struct ss_deadline_queue first_payload;
    struct ss_deadline_queue settle;                     /* before a connection gets keep-alive */
    struct ss_deadline_queue dial;                       /* look-ups and all */
    struct ss_deadline_queue attempts[SS_ATTEMPT_WAITS]; /* when there is more to try */
    struct ss_deadline_queue probing;
    struct ss_deadline_queue fast_open; /* until the server has answered */
    struct ss_deadline_queue stall;     /* while a sink takes nothing */
    struct ss_deadline_queue throttle;  /* flows whose rate has none just now */
    struct ss_deadline_queue drain;     /* before a reset is passed on */

    struct ss_dialed dialed; /* where traffic is redirected from */

    uint32_t unproven;     /* sessions without a complete request */
    uint32_t unproven_max; /* its share of half of all places */

    /* Shared with other threads. */
    _Atomic uint32_t session_count; /* also those that are on their way here */
    uv_mutex_t handoff_lock;
    struct ss_handoff *handoffs; /* a ring, with a place for each session */
    uint32_t handoff_cap, handoff_first, handoff_count;
    struct ss_ending *endings; /* sessions that are to end; under the same lock */
};

SS_CHECKED enum ss_status ss_worker_init(struct ss_worker *worker, struct ss_engine *engine,
                                         unsigned index);

/* Hands an accepted connection over, from loop 0; false when the worker's queue is full. */
bool ss_worker_hand_over(struct ss_worker *worker, const struct ss_handoff *handoff);

/* Begins a session with a connection that was handed over, in the worker's thread. */
void ss_worker_take(struct ss_worker *worker, const struct ss_handoff *handoff);

/* Something may be given back to the system soon. */
void ss_worker_start_trimming(struct ss_worker *worker);

/* Makes the timer go off by `due_ms` at the latest. */
void ss_worker_arm(struct ss_worker *worker, uint64_t due_ms);

/* Puts the entry into one of the worker's queues, from now on. */
void ss_worker_start_deadline(struct ss_worker *worker, struct ss_deadline_queue *queue,
                              struct ss_deadline *entry);

/* A dial is to be looked at again (its session's `check`), after `wait_ms` or a little later:
 * entries of a queue wait equally long, and there are a few queues. */
void ss_worker_start_attempt(struct ss_worker *worker, struct ss_deadline *entry, uint32_t wait_ms);

/* Closes all sessions and handles, in the worker's thread: its loop then runs out. */
void ss_worker_close(struct ss_worker *worker);

/* After the loop has run out. */
void ss_worker_clear(struct ss_worker *worker);

#endif
