/* The table of datagram sessions: by ID, and in the order of their last packets. */
#include "codec/packet_sessions.h"

#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "codec/stamps.h"
#include "crypto/kdf.h"
#include "crypto/random.h"
#include "crypto/secret.h"

#define KEEP 16 /* free entries that stay resident */

/* Entries that one call looks at, at most. */
#define EXPIRED_MAX 16

_Static_assert(sizeof(struct ss_packet_session) <= 256, "a session costs no more than that");

struct ss_packet_sessions {
    struct ss_pool *pool;
    struct ss_packet_session **buckets;
    uint32_t bucket_mask;
    uint8_t seed[16]; /* so that a client can't choose where its session lies */
    struct ss_packet_session *oldest, *newest;
    int64_t now_s;
    int64_t fresh_s; /* see stamps.h */
};

struct ss_packet_sessions *ss_packet_sessions_new(uint32_t capacity)
{
    struct ss_packet_sessions *sessions = calloc(1, sizeof *sessions);
    uint32_t buckets = 64;

    if (sessions == NULL)
        return NULL;
    while (buckets < capacity && buckets < UINT32_C(1) << 30)
        buckets *= 2;
    sessions->bucket_mask = buckets - 1;
    ss_random_bytes(sessions->seed, sizeof sessions->seed);
    sessions->buckets = calloc(buckets, sizeof(struct ss_packet_session *));
    sessions->pool = ss_pool_new(&(struct ss_pool_options){
        .slot_size = sizeof(struct ss_packet_session), .capacity = capacity, .keep = KEEP});
    if (sessions->buckets == NULL || sessions->pool == NULL) {
        ss_packet_sessions_free(sessions);
        return NULL;
    }
    return sessions;
}

void ss_packet_sessions_free(struct ss_packet_sessions *sessions)
{
    if (sessions == NULL)
        return;
    while (sessions->oldest != NULL)
        ss_packet_sessions_remove(sessions, sessions->oldest);
    free(sessions->buckets);
    ss_pool_free(sessions->pool);
    free(sessions);
}

uint32_t ss_packet_sessions_count(const struct ss_packet_sessions *sessions)
{
    return ss_pool_used(sessions->pool);
}

uint32_t ss_packet_sessions_trim(struct ss_packet_sessions *sessions)
{
    return ss_pool_trim(sessions->pool);
}

void ss_packet_sessions_set_time(struct ss_packet_sessions *sessions, int64_t now_s)
{
    sessions->now_s = now_s;
}

static struct ss_packet_session **bucket_of(struct ss_packet_sessions *sessions,
                                            const struct ss_packet_codec *codec, const uint8_t *id)
{
    uint8_t key[sizeof codec + SS_SESSION_ID_LEN];

    memcpy(key, &codec, sizeof codec);
    memcpy(key + sizeof codec, id, SS_SESSION_ID_LEN);
    return &sessions
                ->buckets[ss_fingerprint(sessions->seed, key, sizeof key) & sessions->bucket_mask];
}

struct ss_packet_session *ss_packet_sessions_find(struct ss_packet_sessions *sessions,
                                                  const struct ss_packet_codec *codec,
                                                  const uint8_t id[SS_SESSION_ID_LEN])
{
    struct ss_packet_session *session = *bucket_of(sessions, codec, id);

    while (session != NULL &&
           (session->codec != codec || memcmp(session->id, id, SS_SESSION_ID_LEN) != 0))
        session = session->hash_next;
    return session;
}

static void append(struct ss_packet_sessions *sessions, struct ss_packet_session *session)
{
    session->newer = NULL;
    session->older = sessions->newest;
    if (sessions->newest != NULL)
        sessions->newest->newer = session;
    else
        sessions->oldest = session;
    sessions->newest = session;
}

static void unlink_session(struct ss_packet_sessions *sessions, struct ss_packet_session *session)
{
    if (session->older != NULL)
        session->older->newer = session->newer;
    else
        sessions->oldest = session->newer;
    if (session->newer != NULL)
        session->newer->older = session->older;
    else
        sessions->newest = session->older;
}

void ss_packet_sessions_remove(struct ss_packet_sessions *sessions,
                               struct ss_packet_session *session)
{
    struct ss_packet_session **link = bucket_of(sessions, session->codec, session->id);

    while (*link != session)
        link = &(*link)->hash_next;
    *link = session->hash_next;
    unlink_session(sessions, session);
    ss_wipe(session, sizeof *session);
    ss_pool_release(sessions->pool, session);
}

/* To the other end of the list; a clock that was set back does not make it older. */
static void renew(struct ss_packet_sessions *sessions, struct ss_packet_session *session)
{
    if (session->seen_s < sessions->now_s)
        session->seen_s = sessions->now_s;
    unlink_session(sessions, session);
    append(sessions, session);
}

/* Of the oldest. One whose association lives is as good as touched, and one from before the clock
 * was set back is not to stand in the way of others. */
static void remove_expired(struct ss_packet_sessions *sessions)
{
    for (int i = 0; i < EXPIRED_MAX && sessions->oldest != NULL; i++) {
        struct ss_packet_session *session = sessions->oldest;
        bool may_forget = ss_may_forget(session->seen_s, sessions->now_s);

        if (!may_forget && !ss_is_ahead(session->seen_s, sessions->now_s))
            return;
        if (!may_forget || session->owner != NULL || session->link != NULL) {
            renew(sessions, session);
        } else {
            ss_note_forgotten(&sessions->fresh_s, session->seen_s);
            ss_packet_sessions_remove(sessions, session);
        }
    }
}

bool ss_packet_sessions_is_fresh(const struct ss_packet_sessions *sessions, int64_t stamp_s)
{
    return stamp_s >= sessions->fresh_s;
}

struct ss_packet_session *ss_packet_sessions_add(struct ss_packet_sessions *sessions,
                                                 struct ss_packet_codec *codec,
                                                 const uint8_t id[SS_SESSION_ID_LEN])
{
    static const uint8_t zero[SS_SESSION_ID_LEN];
    struct ss_packet_session **bucket;
    struct ss_packet_session *session;

    remove_expired(sessions);
    session = ss_pool_acquire(sessions->pool);
    if (session == NULL)
        return NULL;
    memset(session, 0, sizeof *session);
    session->codec = codec;
    memcpy(session->id, id, SS_SESSION_ID_LEN);
    do
        ss_random_bytes(session->own_id, SS_SESSION_ID_LEN);
    while (memcmp(session->own_id, id, SS_SESSION_ID_LEN) == 0 ||
           memcmp(session->own_id, zero, SS_SESSION_ID_LEN) == 0);
    bucket = bucket_of(sessions, codec, id);
    session->hash_next = *bucket;
    *bucket = session;
    session->seen_s = sessions->now_s;
    append(sessions, session);
    return session;
}

void ss_packet_sessions_touch(struct ss_packet_sessions *sessions,
                              struct ss_packet_session *session)
{
    if (session->seen_s == sessions->now_s)
        return; /* and it is among the newest */
    renew(sessions, session);
}

struct ss_packet_session *ss_packet_sessions_oldest(struct ss_packet_sessions *sessions)
{
    return sessions->oldest;
}
