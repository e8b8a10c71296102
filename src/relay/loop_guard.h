/*
 * Keeps redirected traffic from going round in a loop: what is sent to a port of our own, and what
 * this machine sends to an upstream server, our own connections first of all. One a process whose
 * listeners are redirected to. For this folder alone.
 */
#ifndef SS_RELAY_LOOP_GUARD_H
#define SS_RELAY_LOOP_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "relay/role.h"

struct ss_loop_guard;
struct ss_worker;

/* NULL when memory is out. */
struct ss_loop_guard *ss_loop_guard_new(void);
void ss_loop_guard_free(struct ss_loop_guard *guard); /* NULL is fine */

/* A port of our own is open from now on. */
void ss_loop_guard_add_port(struct ss_loop_guard *guard, bool udp, uint16_t port);

/* The addresses of upstream servers that one worker has turned to lately, named ones too. */
struct ss_dialed {
    struct ss_addr addresses[16];
    uint32_t next;       /* to be overwritten */
    bool asking;         /* a name is being looked up for it, */
    uint16_t asked_port; /* of a server at this port */
};

void ss_dialed_note(struct ss_dialed *dialed, const struct ss_addr *server);

/*
 * Whether traffic from `client` to `destination` would only come back to us. Then it says so, at
 * most once a minute for each cause. `dialed` is the calling worker's. Any thread.
 */
bool ss_loop_guard_refuses(struct ss_loop_guard *guard, const struct ss_dialed *dialed,
                           const struct ss_role *role, bool udp, const struct ss_addr *client,
                           const struct ss_addr *destination, uint64_t now_ms);

/*
 * For what was not refused: where it may be a plugin's own connection to a server that is known by
 * name, the name is looked up, so that the next one is recognised. In the worker's thread.
 */
void ss_loop_guard_learn(struct ss_worker *worker, const struct ss_role *role,
                         const struct ss_addr *client, const struct ss_addr *destination);

#endif
