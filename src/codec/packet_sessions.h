/*
 * The datagram sessions of a server under the 2022 methods, found by the ID that the client chose
 * (SIP022, 3.2): who it is, and which packets have come.
 *
 * They outlive the sockets that serve them: an entry stays until the clock is 60 s past the last
 * valid packet, so that no packet is taken again while its time stamp is good, and when the clock
 * is set back none from before that. A fixed number of them; when the table is full, new sessions
 * are refused. One table serves one event loop and all of its ports; it is not thread-safe, and
 * allocates nothing once it is made.
 */
#ifndef SS_CODEC_PACKET_SESSIONS_H
#define SS_CODEC_PACKET_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/replay_window.h"
#include "codec/users.h"

struct ss_packet_codec;
struct ss_packet_link;
struct ss_packet_sessions;

#define SS_SESSION_ID_LEN 8

struct ss_packet_session {
    /* The caller's. An entry with an owner is kept; ss_packet_link_end takes it away. */
    void *owner; /* its association, which knows where replies go */
    /* The codec's. */
    int64_t seen_s;             /* Unix time, the latest at which a valid one came */
    const struct ss_user *user; /* NULL where there are no users */
    struct ss_packet_link *link;
    struct ss_packet_codec *codec; /* of its port */
    uint8_t id[SS_SESSION_ID_LEN];
    uint8_t own_id[SS_SESSION_ID_LEN];
    uint64_t sent; /* packets: the ID of the next one */
    struct ss_replay_window window;
    /* The table's. */
    struct ss_packet_session *hash_next, *newer, *older;
};

/* NULL when memory is out. */
struct ss_packet_sessions *ss_packet_sessions_new(uint32_t capacity);
void ss_packet_sessions_free(struct ss_packet_sessions *sessions); /* NULL is fine */

uint32_t ss_packet_sessions_count(const struct ss_packet_sessions *sessions);

/* Gives back what was not needed lately, as ss_pool_trim. */
uint32_t ss_packet_sessions_trim(struct ss_packet_sessions *sessions);

/* -- for the packet codec; `codec` tells the sessions of one port from those of another -- */

/* The present Unix time, before the calls below. */
void ss_packet_sessions_set_time(struct ss_packet_sessions *sessions, int64_t now_s);

struct ss_packet_session *ss_packet_sessions_find(struct ss_packet_sessions *sessions,
                                                  const struct ss_packet_codec *codec,
                                                  const uint8_t id[SS_SESSION_ID_LEN]);

/* Whether a packet with this time stamp can't be of a session that was there and was forgotten:
 * else the clock was set back. */
bool ss_packet_sessions_is_fresh(const struct ss_packet_sessions *sessions, int64_t stamp_s);

/* A session that is not there yet; all of it zero but for its names and its own ID, which is drawn.
 * NULL when the table is full. */
struct ss_packet_session *ss_packet_sessions_add(struct ss_packet_sessions *sessions,
                                                 struct ss_packet_codec *codec,
                                                 const uint8_t id[SS_SESSION_ID_LEN]);

/* A valid datagram: its time begins anew. */
void ss_packet_sessions_touch(struct ss_packet_sessions *sessions,
                              struct ss_packet_session *session);

/* From the oldest on, by `newer`. */
struct ss_packet_session *ss_packet_sessions_oldest(struct ss_packet_sessions *sessions);

void ss_packet_sessions_remove(struct ss_packet_sessions *sessions,
                               struct ss_packet_session *session);

#endif
