/*
 * A c-ares channel on a libuv loop: the sockets it opens, its time-outs, and one lookup for one
 * family. It keeps no queue and knows no query; a channel with nothing to look up holds no socket
 * and no active timer. Its name servers never change.
 */
#ifndef SS_RESOLVER_CHANNEL_H
#define SS_RESOLVER_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "base/addr.h"
#include "base/status.h"
#include "resolver/answer.h"
#include "resolver/nameservers.h"

struct ss_channel;

struct ss_channel_options {
    struct ss_nameservers servers; /* none: the one of this host */
    uint32_t timeout_ms;           /* of the first try; c-ares doubles it with each round */
    uint32_t tries;                /* rounds through the name servers */
    uint32_t mark;                 /* of the queries; 0: none */
    uint32_t *sockets_left;        /* how many more may be open; shared by channels */
};

/* Told to the channel's owner. */
struct ss_channel_events {
    /* c-ares has worked on answers and time-outs and is left again: now act on what came. */
    void (*worked)(void *owner, struct ss_channel *channel);
    /* The last thing that comes of a channel. */
    void (*closed)(void *owner, struct ss_channel *channel);
};

/* A lookup for one family under way; lies in its owner's struct. */
struct ss_channel_lookup {
    /* Set by the owner. The name is valid (ss_host_is_valid), ends with a dot, so that it is
     * absolute, and stays where it is until the end. */
    const char *name;
    enum ss_family family;
    /*
     * The end: the answer, or in its status why there is none: SS_ERR_TIMEOUT, SS_ERR_UNREACHABLE
     * when no name server could be reached, SS_ERR_RESET when the channel was cancelled or closed,
     * SS_ERR_MEMORY, SS_ERR_IO when they failed,
     * SS_ERR_FORMAT when what they said can't be read. Called from within c-ares, also from inside
     * ss_channel_ask: note what came and return, call nothing of the channel.
     */
    void (*answered)(struct ss_channel_lookup *lookup, const struct ss_answer *answer);
    struct ss_channel *channel;
};

/* SS_ERR_ARGUMENT when c-ares can't take the name servers, SS_ERR_MEMORY, SS_ERR_IO. */
SS_CHECKED enum ss_status ss_channel_new(struct ss_channel **out, uv_loop_t *loop,
                                         const struct ss_channel_options *options,
                                         const struct ss_channel_events *events, void *owner);

/*
 * Whether a lookup may be begun now. Sockets need a place each, and those that c-ares has closed
 * keep theirs until the loop turns: where servers refuse, a burst could use up all. If not,
 * `worked` comes when there is room again.
 */
bool ss_channel_has_room(struct ss_channel *channel);

/* `lookup->answered` is called once, at the latest before `closed`; a lookup can't be taken back.
 */
void ss_channel_ask(struct ss_channel *channel, struct ss_channel_lookup *lookup);

/* Ends all lookups, from inside this call, and closes its sockets. Not from within c-ares. */
void ss_channel_cancel(struct ss_channel *channel);

/* Whether it has nothing to look up, and so no socket. */
bool ss_channel_is_idle(const struct ss_channel *channel);

/* Questions since it was idle last: its source ports are those of the first of them. */
uint32_t ss_channel_asked(const struct ss_channel *channel);

/* For how long nothing has come from any name server though something is asked; 0 when idle. */
uint64_t ss_channel_silent_ms(const struct ss_channel *channel);

/* Safe from any callback: lookups end, and memory goes, when the loop has run the close callbacks.
 */
void ss_channel_close(struct ss_channel *channel);

#endif
