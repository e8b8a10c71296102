/*
 * The exact salts of the last minute: entries in the order in which they came, and a hash table
 * over them that grows one bucket at a time (linear hashing), so that no call takes long and memory
 * grows with what is stored.
 */
#include "codec/salt_pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/pages.h"
#include "codec/method.h"
#include "codec/stamps.h"
#include "crypto/kdf.h"
#include "crypto/random.h"

#define BUCKETS_MIN 64

/* Entries that one call drops or puts back at most, so that the first after a pause does not take
 * long. */
#define LOOKS_MAX 32

/* An empty pool that has used more entries than this gives its memory back. */
#define KEPT_ENTRIES 2048

/* Entries are named by their index + 1; 0 is none. */
struct entry {
    uint8_t salt[SS_SALT_MAX]; /* a shorter one ends in zeroes */
    int64_t stored_s;
    uint32_t hash;
    uint32_t hash_next;
    uint32_t newer; /* of a free entry: the next free one */
};

struct ss_salt_pool {
    pthread_mutex_t lock;
    uint8_t seed[16];
    uint32_t capacity;
    struct entry *entries;
    uint32_t *buckets;
    uint32_t bucket_count;
    uint32_t count;
    uint32_t touched; /* entries that were ever used */
    uint32_t free;
    uint32_t oldest, newest;
    int64_t fresh_s; /* see stamps.h */
};

static size_t entries_size(const struct ss_salt_pool *pool)
{
    return (size_t)pool->capacity * sizeof pool->entries[0];
}

static size_t buckets_size(const struct ss_salt_pool *pool)
{
    size_t most = pool->capacity > BUCKETS_MIN ? pool->capacity : BUCKETS_MIN;

    return most * sizeof pool->buckets[0];
}

struct ss_salt_pool *ss_salt_pool_new(size_t capacity)
{
    struct ss_salt_pool *pool;

    if (capacity == 0 || capacity > SS_SALT_POOL_MAX)
        return NULL;
    pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return NULL;
    pool->capacity = (uint32_t)capacity;
    pool->bucket_count = BUCKETS_MIN;
    ss_random_bytes(pool->seed, sizeof pool->seed);
    (void)pthread_mutex_init(&pool->lock, NULL); /* a plain mutex: can't fail on Linux */
    pool->entries = ss_pages_reserve(entries_size(pool));
    pool->buckets = ss_pages_reserve(buckets_size(pool));
    if (pool->entries == NULL || pool->buckets == NULL) {
        ss_salt_pool_free(pool);
        return NULL;
    }
    return pool;
}

void ss_salt_pool_free(struct ss_salt_pool *pool)
{
    if (pool == NULL)
        return;
    ss_pages_release(pool->entries, entries_size(pool));
    ss_pages_release(pool->buckets, buckets_size(pool));
    (void)pthread_mutex_destroy(&pool->lock);
    free(pool);
}

static struct entry *entry_of(struct ss_salt_pool *pool, uint32_t name)
{
    return &pool->entries[name - 1];
}

/* With a power of two of buckets, the bits of the hash; between two powers, the buckets that were
 * split already look at one bit more. */
static uint32_t *bucket_of(struct ss_salt_pool *pool, uint32_t hash)
{
    uint32_t power = BUCKETS_MIN;
    uint32_t bucket;

    while (power < pool->bucket_count)
        power *= 2;
    bucket = hash & (power - 1);
    return &pool->buckets[bucket < pool->bucket_count ? bucket : bucket & (power / 2 - 1)];
}

/* Adds a bucket and moves there what belongs to it from the one that had it until now. */
static void split_bucket(struct ss_salt_pool *pool)
{
    uint32_t power = BUCKETS_MIN;
    uint32_t *from, name;

    while (power * 2 <= pool->bucket_count)
        power *= 2;
    from = &pool->buckets[pool->bucket_count - power];
    name = *from;
    *from = 0;
    pool->bucket_count++;
    while (name != 0) {
        struct entry *entry = entry_of(pool, name);
        uint32_t next = entry->hash_next;
        uint32_t *to = bucket_of(pool, entry->hash);

        entry->hash_next = *to;
        *to = name;
        name = next;
    }
}

/* The list of entries, each behind those that came before it. */

static void append(struct ss_salt_pool *pool, uint32_t name)
{
    entry_of(pool, name)->newer = 0;
    if (pool->newest != 0)
        entry_of(pool, pool->newest)->newer = name;
    else
        pool->oldest = name;
    pool->newest = name;
}

static uint32_t take_oldest(struct ss_salt_pool *pool)
{
    uint32_t name = pool->oldest;

    pool->oldest = entry_of(pool, name)->newer;
    if (pool->oldest == 0)
        pool->newest = 0;
    return name;
}

static void drop_oldest(struct ss_salt_pool *pool)
{
    uint32_t name = take_oldest(pool);
    struct entry *entry = entry_of(pool, name);
    uint32_t *link = bucket_of(pool, entry->hash);

    while (*link != name)
        link = &entry_of(pool, *link)->hash_next;
    *link = entry->hash_next;
    ss_note_forgotten(&pool->fresh_s, entry->stored_s);
    entry->newer = pool->free;
    pool->free = name;
    pool->count--;
}

static void drop_expired(struct ss_salt_pool *pool, int64_t now_s)
{
    for (int i = 0; i < LOOKS_MAX && pool->oldest != 0; i++) {
        int64_t stored_s = entry_of(pool, pool->oldest)->stored_s;

        if (ss_may_forget(stored_s, now_s))
            drop_oldest(pool);
        else if (ss_is_ahead(stored_s, now_s))
            append(pool, take_oldest(pool)); /* out of the way of those that come and go */
        else
            break;
    }
    if (pool->count == 0 && pool->touched > KEPT_ENTRIES) {
        ss_pages_discard(pool->entries, ss_pages_round(entries_size(pool)));
        ss_pages_discard(pool->buckets, ss_pages_round(buckets_size(pool)));
        pool->bucket_count = BUCKETS_MIN;
        pool->touched = 0;
        pool->free = 0;
    }
}

/* One that only waits to be dropped counts as well. */
static bool is_there(struct ss_salt_pool *pool, const uint8_t salt[SS_SALT_MAX], uint32_t hash)
{
    uint32_t name = *bucket_of(pool, hash);

    while (name != 0) {
        const struct entry *entry = entry_of(pool, name);

        if (entry->hash == hash && memcmp(entry->salt, salt, SS_SALT_MAX) == 0)
            return true;
        name = entry->hash_next;
    }
    return false;
}

static void add(struct ss_salt_pool *pool, const uint8_t salt[SS_SALT_MAX], uint32_t hash,
                int64_t now_s)
{
    uint32_t name = pool->free;
    struct entry *entry;
    uint32_t *bucket;

    if (name != 0)
        pool->free = entry_of(pool, name)->newer;
    else
        name = ++pool->touched;
    pool->count++;
    if (pool->count > pool->bucket_count)
        split_bucket(pool);
    entry = entry_of(pool, name);
    bucket = bucket_of(pool, hash);
    memcpy(entry->salt, salt, SS_SALT_MAX);
    entry->hash = hash;
    entry->stored_s = now_s;
    entry->hash_next = *bucket;
    *bucket = name;
    append(pool, name);
}

enum ss_status ss_salt_pool_store(struct ss_salt_pool *pool, const uint8_t *salt, size_t len,
                                  int64_t stamp_s, int64_t now_s)
{
    uint8_t padded[SS_SALT_MAX] = {0};
    uint32_t hash;
    enum ss_status status = SS_OK;

    memcpy(padded, salt, len);
    hash = (uint32_t)ss_fingerprint(pool->seed, padded, sizeof padded);
    (void)pthread_mutex_lock(&pool->lock);
    drop_expired(pool, now_s);
    if (is_there(pool, padded, hash))
        status = SS_ERR_REPLAY;
    else if (stamp_s < pool->fresh_s)
        status = SS_ERR_CLOCK;
    else if (pool->count == pool->capacity)
        status = SS_ERR_LIMIT;
    else
        add(pool, padded, hash, now_s);
    (void)pthread_mutex_unlock(&pool->lock);
    return status;
}

size_t ss_salt_pool_count(struct ss_salt_pool *pool)
{
    size_t count;

    (void)pthread_mutex_lock(&pool->lock);
    count = pool->count;
    (void)pthread_mutex_unlock(&pool->lock);
    return count;
}
