/*
 * Records: a name with what is known of it and who waits for it, and the table that finds them.
 *
 * A record is in the table while its answer may serve whoever asks for its name. One that is not
 * (an address as text, a name of the hosts file, a lookup that others are not to join) serves only
 * those who wait for it already. What nobody waits for stays as a cache, within a fixed number: the
 * one not used for the longest time makes way. Nothing here allocates once the table is made.
 */
#ifndef SS_RESOLVER_RECORD_H
#define SS_RESOLVER_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/deadline.h"
#include "base/pool.h"
#include "base/status.h"
#include "resolver/channel.h"

/* Where a record stands; each but the first is a queue of the resolver's, or the cache's. */
enum ss_record_place {
    SS_PLACE_NONE,    /* answered, or with the name servers for so long that it no longer counts */
    SS_PLACE_WAITING, /* for its turn */
    SS_PLACE_ASKED,   /* with the name servers, counted in the window */
    SS_PLACE_PARTIAL, /* has addresses of one family, waits a little for the other */
    SS_PLACE_CACHED,
    SS_PLACE_COUNT
};

struct ss_lookups;
struct ss_record;

/* One family's half of a record. */
struct ss_record_half {
    struct ss_channel_lookup lookup;
    struct ss_record *record;
    bool outstanding; /* with the channel */
    enum ss_status status;
    uint64_t until_ms; /* what is known holds so long */
    uint32_t count;
    struct ss_ip ips[SS_ADDRESSES_MAX];
};

struct ss_record {
    struct ss_deadline entry; /* in the queue of its place */
    enum ss_record_place place;
    bool listed; /* in the table */
    struct ss_record *next_in_bucket;
    uint64_t hash;
    uint64_t asked_ms;                /* when a half was last given to the channel */
    uint64_t begun_ms;                /* when someone wanted it first */
    struct ss_lookups *lookups;       /* of the resolver that it belongs to */
    struct ss_deadline_queue waiters; /* those that still have to wait */
    uint32_t waiter_count;            /* all of them */
    uint32_t ready_count;             /* of those, the ones that the next turn answers */
    struct ss_record_half halves[2];  /* the preferred family first */
    char name[SS_HOST_MAX + 2];       /* lower case, with a final dot */
};

struct ss_records {
    struct ss_pool *pool;
    struct ss_record **buckets;
    uint32_t bucket_count; /* a power of two */
    uint8_t seed[16];      /* so that nobody can choose names for one bucket */
    struct ss_deadline_queue cached;
    uint32_t cached_count, cached_max;
};

/* `capacity` records in all, of which at most `cached_max` are kept for a name that nobody waits
 * for. Needs ss_random_start. */
SS_CHECKED enum ss_status ss_records_init(struct ss_records *records, uint32_t capacity,
                                          uint32_t cached_max);

/* Nobody may wait for a record any more. Fine when the table was not made. */
void ss_records_free(struct ss_records *records);

/* The record of a name (with a final dot), or NULL. */
struct ss_record *ss_records_find(const struct ss_records *records, const char *name);

/* A record of no name that knows nothing; NULL when all are taken. */
struct ss_record *ss_records_acquire(struct ss_records *records);

/* Puts a record, whose name is not in the table, there. */
void ss_records_list(struct ss_records *records, struct ss_record *record);

/* From here on it serves only those who wait for it. Fine when it is not in the table. */
void ss_records_unlist(struct ss_records *records, struct ss_record *record);

/* Into the cache, as the one used last; what the cache has no room for is released. */
void ss_records_keep(struct ss_records *records, struct ss_record *record, uint64_t now_ms);

/* Out of the cache, to be used; fine when it is not there. */
void ss_records_take(struct ss_records *records, struct ss_record *record);

/* Gives back a record that nobody waits for and no channel knows. */
void ss_records_release(struct ss_records *records, struct ss_record *record);

/* Unlists all: the cache is empty, and what is being looked up will not be kept. */
void ss_records_forget(struct ss_records *records);

/* Whether what is known of a family may still be used. */
static inline bool ss_record_is_fresh(const struct ss_record_half *half, uint64_t now_ms)
{
    return now_ms < half->until_ms;
}

/* Whether that family would have to be asked for. */
bool ss_record_is_missing(const struct ss_record *record, int half, uint64_t now_ms);

/* Whether there are addresses that may be used while the other family is being asked for. */
bool ss_record_has_addresses(const struct ss_record *record);

/* What those who wait for it are told; up to SS_ADDRESSES_MAX addresses in the order in which to
 * try them. SS_OK, or why there is none. */
enum ss_status ss_record_result(const struct ss_record *record, struct ss_ip *addresses,
                                size_t *count);

static inline bool ss_record_is_outstanding(const struct ss_record *record)
{
    return record->halves[0].outstanding || record->halves[1].outstanding;
}

/* Whether someone has to wait for it still. */
static inline bool ss_record_is_awaited(struct ss_record *record)
{
    return ss_deadline_first(&record->waiters) != NULL;
}

#endif
