/*
 * A c-ares channel on a libuv loop: the sockets it opens, its time-outs, and one lookup for one
 * family. It keeps no queue and knows no query; a channel with nothing to look up holds no socket
 * and no active timer.
 *
 * To change name servers, make a second channel, close the first one when its lookups have ended.
 */
#ifndef SS_RESOLVER_CHANNEL_H
#define SS_RESOLVER_CHANNEL_H

#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "base/addr.h"
#include "base/status.h"
#include "resolver/answer.h"

struct ss_channel;

struct ss_channel_options {
    const char *nameservers; /* "ip[:port],…"; NULL: the system's */
    uint32_t timeout_ms;     /* of the first try; c-ares doubles it with each round */
    uint32_t tries;          /* rounds through the name servers */
    uint32_t mark;           /* of the queries; 0: none */
};

/* Told to the channel's owner. */
struct ss_channel_events {
    /* c-ares has worked on answers and time-outs and is left again: now act on what came. */
    void (*worked)(void *owner);
    /* The last thing that comes of a channel. */
    void (*closed)(void *owner);
};

/* A lookup for one family under way; lies in its owner's struct. */
struct ss_channel_lookup {
    /* Set by the owner. The name is valid (ss_host_is_valid), ends with a dot, so that it is
     * absolute, and stays where it is until the end. */
    const char *name;
    enum ss_family family;
    /*
     * The end: the answer, or in its status why there is none: SS_ERR_TIMEOUT, SS_ERR_UNREACHABLE
     * when no name server could be reached, SS_ERR_MEMORY, SS_ERR_IO when they failed,
     * SS_ERR_FORMAT when what they said can't be read. Called from within c-ares, also from inside
     * ss_channel_ask: note what came and return, call nothing of the channel.
     */
    void (*answered)(struct ss_channel_lookup *lookup, const struct ss_answer *answer);
    struct ss_channel *channel;
};

/* SS_ERR_ARGUMENT when the name servers can't be read, SS_ERR_MEMORY, SS_ERR_IO. */
SS_CHECKED enum ss_status ss_channel_new(struct ss_channel **out, uv_loop_t *loop,
                                         const struct ss_channel_options *options,
                                         const struct ss_channel_events *events, void *owner);

/* `lookup->answered` is called once, at the latest before `closed`; a lookup can't be taken back.
 */
void ss_channel_ask(struct ss_channel *channel, struct ss_channel_lookup *lookup);

/* Safe from any callback: lookups end, and memory goes, when the loop has run the close callbacks.
 */
void ss_channel_close(struct ss_channel *channel);

#endif
