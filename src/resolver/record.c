/* The table of records: buckets by a keyed hash of the name, and the cache in order of use. */
#include "resolver/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "crypto/kdf.h"
#include "crypto/random.h"

#define BUCKETS_MIN 64
#define KEPT_FREE   16 /* records that stay resident though free */

/* How many of the least used ones are looked at, with each new one, for what is no longer true. */
#define SWEEP 2

static struct ss_record *record_of(struct ss_deadline *entry)
{
    return SS_CONTAINER_OF(entry, struct ss_record, entry);
}

enum ss_status ss_records_init(struct ss_records *records, uint32_t capacity, uint32_t cached_max)
{
    const struct ss_pool_options pool = {
        .slot_size = sizeof(struct ss_record), .capacity = capacity, .keep = KEPT_FREE};

    memset(records, 0, sizeof *records);
    records->bucket_count = BUCKETS_MIN;
    while (records->bucket_count < cached_max)
        records->bucket_count *= 2;
    records->buckets = calloc(records->bucket_count, sizeof *records->buckets);
    records->pool = ss_pool_new(&pool);
    if (records->buckets == NULL || records->pool == NULL) {
        ss_records_free(records);
        return SS_ERR_MEMORY;
    }
    records->cached_max = cached_max;
    ss_deadline_queue_init(&records->cached, 0);
    ss_random_bytes(records->seed, sizeof records->seed);
    return SS_OK;
}

void ss_records_free(struct ss_records *records)
{
    if (records->pool != NULL && records->buckets != NULL)
        ss_records_forget(records);
    ss_pool_free(records->pool);
    free(records->buckets);
    memset(records, 0, sizeof *records);
}

static uint64_t hash_of(const struct ss_records *records, const char *name)
{
    return ss_fingerprint(records->seed, name, strlen(name));
}

static struct ss_record **bucket_of(const struct ss_records *records, uint64_t hash)
{
    return &records->buckets[hash & (records->bucket_count - 1)];
}

struct ss_record *ss_records_find(const struct ss_records *records, const char *name)
{
    const uint64_t hash = hash_of(records, name);
    struct ss_record *record = *bucket_of(records, hash);

    while (record != NULL && (record->hash != hash || strcmp(record->name, name) != 0))
        record = record->next_in_bucket;
    return record;
}

struct ss_record *ss_records_acquire(struct ss_records *records)
{
    struct ss_record *record = ss_pool_acquire(records->pool);

    if (record == NULL)
        return NULL;
    memset(record, 0, offsetof(struct ss_record, halves));
    ss_deadline_queue_init(&record->waiters, 0);
    for (int i = 0; i < 2; i++) {
        struct ss_record_half *half = &record->halves[i];

        memset(half, 0, offsetof(struct ss_record_half, ips));
        half->record = record;
        half->status = SS_ERR_NOT_FOUND;
    }
    record->name[0] = '\0';
    return record;
}

void ss_records_list(struct ss_records *records, struct ss_record *record)
{
    struct ss_record **bucket;

    record->hash = hash_of(records, record->name);
    bucket = bucket_of(records, record->hash);
    record->next_in_bucket = *bucket;
    *bucket = record;
    record->listed = true;
}

void ss_records_unlist(struct ss_records *records, struct ss_record *record)
{
    struct ss_record **link;

    if (!record->listed)
        return;
    link = bucket_of(records, record->hash);
    while (*link != record)
        link = &(*link)->next_in_bucket;
    *link = record->next_in_bucket;
    record->listed = false;
}

void ss_records_take(struct ss_records *records, struct ss_record *record)
{
    if (record->place != SS_PLACE_CACHED)
        return;
    ss_deadline_stop(&record->entry);
    record->place = SS_PLACE_NONE;
    records->cached_count--;
}

void ss_records_release(struct ss_records *records, struct ss_record *record)
{
    ss_records_take(records, record);
    ss_records_unlist(records, record);
    ss_pool_release(records->pool, record);
}

void ss_records_keep(struct ss_records *records, struct ss_record *record, uint64_t now_ms)
{
    struct ss_deadline *oldest;

    ss_deadline_start(&records->cached, &record->entry, now_ms);
    record->place = SS_PLACE_CACHED;
    records->cached_count++;
    for (int i = 0; i < SWEEP && (oldest = ss_deadline_first(&records->cached)) != NULL; i++) {
        struct ss_record *last = record_of(oldest);

        if (records->cached_count > records->cached_max ||
            (!ss_record_is_fresh(&last->halves[0], now_ms) &&
             !ss_record_is_fresh(&last->halves[1], now_ms)))
            ss_records_release(records, last);
    }
}

void ss_records_forget(struct ss_records *records)
{
    for (uint32_t i = 0; i < records->bucket_count; i++) {
        struct ss_record *record;

        while ((record = records->buckets[i]) != NULL) {
            ss_records_unlist(records, record);
            if (record->place == SS_PLACE_CACHED)
                ss_records_release(records, record);
        }
    }
}

static void add_address(struct ss_ip *out, size_t *count, const struct ss_ip *ip)
{
    size_t i = 0;

    while (i < *count && !ss_ip_equal(&out[i], ip))
        i++;
    if (i == *count && i < SS_ADDRESSES_MAX)
        out[(*count)++] = *ip;
}

/* The families by turns, the preferred one first, so that who tries one after the other soon comes
 * to the one that works (RFC 8305, 4). */
static size_t merge(const struct ss_record *record, struct ss_ip *out)
{
    size_t count = 0;

    for (uint32_t i = 0; i < SS_ADDRESSES_MAX; i++) {
        for (int family = 0; family < 2; family++) {
            if (i < record->halves[family].count)
                add_address(out, &count, &record->halves[family].ips[i]);
        }
    }
    return count;
}

/* Why there is no address. A failure says more than "none": the name may exist after all. */
static enum ss_status failure(const struct ss_record *record)
{
    enum ss_status status = SS_ERR_NOT_FOUND;

    for (int i = 0; i < 2; i++) {
        const enum ss_status half = record->halves[i].status;

        if (half != SS_OK && half != SS_ERR_NOT_FOUND && status != SS_ERR_TIMEOUT)
            status = half == SS_ERR_TIMEOUT ? half : SS_ERR_IO;
    }
    return status;
}

enum ss_status ss_record_result(const struct ss_record *record, struct ss_ip *addresses,
                                size_t *count)
{
    *count = merge(record, addresses);
    return *count != 0 ? SS_OK : failure(record);
}

bool ss_record_has_addresses(const struct ss_record *record)
{
    for (int i = 0; i < 2; i++) {
        if (!record->halves[i].outstanding && record->halves[i].count != 0)
            return true;
    }
    return false;
}

bool ss_record_is_missing(const struct ss_record *record, int half, uint64_t now_ms)
{
    return !record->halves[half].outstanding && !ss_record_is_fresh(&record->halves[half], now_ms);
}
