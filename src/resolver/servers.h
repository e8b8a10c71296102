/*
 * The name servers that a resolver asks, and its channels to them.
 *
 * Lookups go to one channel. Another takes its place for new ones when it has sent many questions
 * from the same ports, or when nothing comes back any more (after the network has changed, a socket
 * may be good for nothing); and when the system's name servers are others than before. What the old
 * one was asked it brings to its end.
 */
#ifndef SS_RESOLVER_SERVERS_H
#define SS_RESOLVER_SERVERS_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/status.h"
#include "resolver/channel.h"

struct ss_servers;

struct ss_servers_options {
    const char *nameservers; /* "ip[:port],…"; NULL: those of the resolv.conf */
    const char *resolv_path; /* borrowed for as long as the servers are used */
    uint32_t timeout_ms;
    uint32_t tries;
    uint32_t mark; /* of the queries; 0: none */
};

/* Told to the owner. */
struct ss_servers_events {
    /* Lookups may have ended, and c-ares is left again: now act on what came. */
    void (*worked)(void *owner);
    /* The last thing that comes. */
    void (*closed)(void *owner);
};

/* SS_ERR_ARGUMENT when the list can't be read, SS_ERR_MEMORY, SS_ERR_IO. */
SS_CHECKED enum ss_status ss_servers_new(struct ss_servers **out, uv_loop_t *loop,
                                         const struct ss_servers_options *options,
                                         const struct ss_servers_events *events, void *owner);

/* Looks, at most once a second, whether the system's name servers are others than before. If so the
 * result is true, and what the old ones have said should not be used for long. */
bool ss_servers_check(struct ss_servers *servers);

/*
 * To be called before lookups are asked for: chooses the channel. May end lookups of another one
 * with SS_ERR_RESET, from inside this call.
 */
void ss_servers_choose(struct ss_servers *servers);

/* As ss_channel_has_room, of the channel in use. */
bool ss_servers_have_room(struct ss_servers *servers);

/* As ss_channel_ask. */
void ss_servers_ask(struct ss_servers *servers, struct ss_channel_lookup *lookup);

/* Safe from any callback: lookups end, and memory goes, when the loop has run the close callbacks.
 */
void ss_servers_close(struct ss_servers *servers);

/* Descriptors that these servers may take at once, sockets and a file that is read. */
uint32_t ss_servers_descriptors(const char *nameservers);

#endif
