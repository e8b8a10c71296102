/* Who waits for which name, and the turns in which they are answered. */
#include "resolver/resolver.h"

#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/deadline.h"
#include "base/pool.h"
#include "resolver/channel.h"
#include "resolver/hosts_file.h"
#include "resolver/lookups.h"
#include "resolver/name.h"
#include "resolver/record.h"
#include "resolver/servers.h"

#define DEFAULT_TIMEOUT_MS  3000
#define DEFAULT_TRIES       2
#define DEFAULT_MAX_QUERIES 1024
#define DEFAULT_MAX_NAMES   1024
#define DEFAULT_CACHE_NAMES 1024
#define DEFAULT_TTL_MAX_S   3600
#define DEFAULT_HOSTS_PATH  "/etc/hosts"
#define DEFAULT_RESOLV_PATH "/etc/resolv.conf"

#define DNS_NAME_MAX 253 /* what fits into 255 bytes on the wire */

#define KEPT_FREE     64 /* slots of queries that stay resident */
#define TRIM_EVERY_MS 1000

/* Someone who waits for a name. */
struct ss_query {
    struct ss_deadline entry; /* among the record's waiters, or in the queue of the ready */
    struct ss_record *record;
    bool ready;           /* to be answered in the next turn */
    ss_resolved_fn *done; /* NULL: is being answered right now */
    void *owner;
};

struct ss_resolver {
    uv_loop_t *loop;
    uv_timer_t timer; /* the next thing that is due in a queue */
    struct ss_pool *queries;
    struct ss_records records;
    struct ss_lookups lookups;
    struct ss_deadline_queue ready;
    uint32_t ready_count;
    struct ss_hosts_file hosts;
    uint64_t trimmed_ms;
    bool closing;
    unsigned open_parts; /* the timer and the servers, until they have closed */
};

static uint64_t now_of(const struct ss_resolver *resolver)
{
    return uv_now(resolver->loop);
}

static struct ss_query *query_of(struct ss_deadline *entry)
{
    return SS_CONTAINER_OF(entry, struct ss_query, entry);
}

static struct ss_resolver *resolver_of(const struct ss_record *record)
{
    return SS_CONTAINER_OF(record->lookups, struct ss_resolver, lookups);
}

/* Keeps or gives back a record that nobody waits for and the name servers are not asked for. */
static void settle(struct ss_record *record)
{
    struct ss_resolver *resolver = resolver_of(record);
    const uint64_t now_ms = now_of(resolver);

    if (record->waiter_count != 0 || ss_record_is_outstanding(record))
        return;
    if (record->listed && !resolver->closing &&
        (ss_record_is_fresh(&record->halves[0], now_ms) ||
         ss_record_is_fresh(&record->halves[1], now_ms)))
        ss_records_keep(&resolver->records, record, now_ms);
    else
        ss_records_release(&resolver->records, record);
}

/* Takes a query out of whatever it waits in. Its record stays. */
static void detach(struct ss_query *query)
{
    struct ss_record *record = query->record;
    struct ss_resolver *resolver = resolver_of(record);

    ss_deadline_stop(&query->entry);
    record->waiter_count--;
    if (query->ready) {
        record->ready_count--;
        resolver->ready_count--;
    }
    if (record->waiter_count == 0)
        ss_lookups_abandon(record);
}

static void make_ready(struct ss_query *query)
{
    struct ss_record *record = query->record;
    struct ss_resolver *resolver = resolver_of(record);

    ss_deadline_start(&resolver->ready, &query->entry, now_of(resolver));
    query->ready = true;
    record->ready_count++;
    resolver->ready_count++;
}

static void wake(struct ss_record *record)
{
    struct ss_deadline *entry;

    while ((entry = ss_deadline_first(&record->waiters)) != NULL)
        make_ready(query_of(entry));
}

static void deliver(struct ss_query *query)
{
    struct ss_record *record = query->record;
    struct ss_resolver *resolver = resolver_of(record);
    struct ss_ip addresses[SS_ADDRESSES_MAX];
    size_t count;
    const enum ss_status status = ss_record_result(record, addresses, &count);
    ss_resolved_fn *done = query->done;

    detach(query);
    settle(record);
    query->done = NULL; /* the callback may try to cancel it */
    done(query->owner, status, addresses, count);
    ss_pool_release(resolver->queries, query);
}

static void on_timer(uv_timer_t *timer);

static void arm(struct ss_resolver *resolver)
{
    const uint64_t now_ms = now_of(resolver);
    const uint64_t due_ms =
        resolver->ready_count != 0 ? now_ms : ss_lookups_due_ms(&resolver->lookups);

    if (due_ms == UINT64_MAX)
        uv_timer_stop(&resolver->timer);
    else
        uv_timer_start(&resolver->timer, on_timer, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

/* Gives back what a burst has left: when all is quiet, and now and then while it is not. */
static void trim(struct ss_resolver *resolver)
{
    const uint64_t now_ms = now_of(resolver);

    if (ss_pool_used(resolver->queries) != 0 && now_ms - resolver->trimmed_ms < TRIM_EVERY_MS)
        return;
    resolver->trimmed_ms = now_ms;
    ss_pool_trim(resolver->queries);
    ss_pool_trim(resolver->records.pool);
}

/*
 * One turn, never from inside c-ares or ss_resolver_ask: what waited long enough goes on, who is
 * ready is answered. Queries that the callbacks add get ready for a later turn.
 */
static void turn(void *owner)
{
    struct ss_resolver *resolver = owner;

    if (resolver->closing)
        return;
    ss_lookups_turn(&resolver->lookups);
    for (uint32_t left = resolver->ready_count; left != 0 && !resolver->closing; left--) {
        struct ss_deadline *entry = ss_deadline_first(&resolver->ready);

        if (entry == NULL) /* a callback cancelled others */
            break;
        deliver(query_of(entry));
    }
    if (resolver->closing)
        return;
    trim(resolver);
    arm(resolver);
}

static void on_timer(uv_timer_t *timer)
{
    turn(timer->data);
}

static struct ss_record *new_record(struct ss_resolver *resolver)
{
    struct ss_record *record = ss_records_acquire(&resolver->records);

    if (record != NULL)
        record->lookups = &resolver->lookups;
    return record;
}

/* Answers without a name server, if that can be. */
static size_t answer_at_home(struct ss_resolver *resolver, const char *name, struct ss_ip *ips)
{
    size_t count = ss_name_known(name, ips);

    if (count != 0)
        return count;
    ss_hosts_file_check(&resolver->hosts, now_of(resolver));
    return ss_hosts_find(&resolver->hosts.hosts, name, ips, SS_ADDRESSES_MAX);
}

/* A record that is never in the table, with what is known at home: perhaps nothing. */
static struct ss_record *home_record(struct ss_resolver *resolver, const struct ss_ip *ips,
                                     size_t count)
{
    const uint8_t preferred = resolver->lookups.ipv6_first ? SS_FAMILY_IPV6 : SS_FAMILY_IPV4;
    struct ss_record *record = new_record(resolver);

    for (size_t i = 0; record != NULL && i < count; i++) {
        struct ss_record_half *half = &record->halves[ips[i].family != preferred];

        half->status = SS_OK;
        half->ips[half->count++] = ips[i];
    }
    return record;
}

/* The record of the table to wait for, perhaps a new one. `name` ends with a dot. */
static struct ss_record *record_for(struct ss_resolver *resolver, const char *name)
{
    struct ss_record *record = ss_records_find(&resolver->records, name);

    if (record != NULL && !ss_lookups_may_join(&resolver->lookups, record)) {
        ss_records_unlist(&resolver->records, record);
        record = NULL;
    }
    if (record != NULL)
        return record;
    record = new_record(resolver);
    if (record == NULL)
        return NULL;
    strcpy(record->name, name);
    ss_records_list(&resolver->records, record);
    return record;
}

/* Makes the query wait for its record, in the way in which that will be answered. */
static void await(struct ss_query *query)
{
    struct ss_record *record = query->record;
    struct ss_resolver *resolver = resolver_of(record);
    const uint64_t now_ms = now_of(resolver);
    const bool alone = record->waiter_count == 0;

    ss_records_take(&resolver->records, record);
    record->waiter_count++;
    if (!record->listed || record->ready_count != 0) {
        make_ready(query); /* as those who are answered with the same in the next turn */
        return;
    }
    ss_deadline_start(&record->waiters, &query->entry, now_ms);
    if (!alone)
        return; /* whatever the others wait for; asking again would only keep them waiting */
    if (ss_record_is_missing(record, 0, now_ms) || ss_record_is_missing(record, 1, now_ms)) {
        ss_lookups_add(&resolver->lookups, record);
    } else if (!ss_record_is_outstanding(record) || ss_record_has_addresses(record)) {
        wake(record); /* all is known, or the other family has had its time */
    }
}

struct ss_query *ss_resolver_ask(struct ss_resolver *resolver, const char *name,
                                 ss_resolved_fn *done, void *owner)
{
    struct ss_ip ips[SS_ADDRESSES_MAX];
    char plain[SS_HOST_MAX + 2];
    struct ss_query *query;
    size_t count, len;

    if (resolver->closing || !ss_name_read(plain, name))
        return NULL;
    query = ss_pool_acquire(resolver->queries);
    if (query == NULL)
        return NULL;
    memset(query, 0, sizeof *query);
    query->done = done;
    query->owner = owner;

    len = strlen(plain);
    count = answer_at_home(resolver, plain, ips);
    if (count != 0 || len > DNS_NAME_MAX) { /* no such name can exist */
        query->record = home_record(resolver, ips, count);
    } else {
        if (ss_servers_check(resolver->lookups.servers))
            ss_records_forget(&resolver->records);
        memcpy(plain + len, ".", 2);
        query->record = record_for(resolver, plain);
    }
    if (query->record == NULL) {
        ss_pool_release(resolver->queries, query);
        return NULL;
    }
    await(query);
    arm(resolver);
    return query;
}

static void drop(struct ss_query *query)
{
    struct ss_record *record = query->record;
    struct ss_resolver *resolver = resolver_of(record);

    detach(query);
    settle(record);
    ss_pool_release(resolver->queries, query);
}

void ss_resolver_cancel(struct ss_query *query)
{
    struct ss_resolver *resolver;

    if (query == NULL || query->done == NULL) /* it is being answered right now */
        return;
    resolver = resolver_of(query->record);
    drop(query);
    if (!resolver->closing)
        arm(resolver);
}

/* Everything has closed: no callback and no lookup is left. */
static void on_part_closed(struct ss_resolver *resolver)
{
    struct ss_deadline *entry;
    struct ss_record *record;

    if (--resolver->open_parts != 0)
        return;
    while ((record = ss_lookups_first_waiting(&resolver->lookups)) != NULL) {
        ss_lookups_abandon(record);
        wake(record);
    }
    while ((entry = ss_deadline_first(&resolver->ready)) != NULL)
        drop(query_of(entry));
    ss_hosts_file_clear(&resolver->hosts);
    ss_records_free(&resolver->records);
    ss_pool_free(resolver->queries);
    free(resolver);
}

static void on_timer_closed(uv_handle_t *handle)
{
    on_part_closed(handle->data);
}

static void on_servers_closed(void *owner)
{
    on_part_closed(owner);
}

uint32_t ss_resolver_descriptors(const char *nameservers)
{
    return ss_servers_descriptors(nameservers);
}

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
    return value != 0 ? value : otherwise;
}

enum ss_status ss_resolver_new(struct ss_resolver **out, uv_loop_t *loop,
                               const struct ss_resolver_options *options)
{
    static const struct ss_servers_events events = {turn, on_servers_closed};
    static const struct ss_lookups_events lookups_events = {wake, settle};
    const uint32_t max_queries = or_default(options->max_queries, DEFAULT_MAX_QUERIES);
    const uint32_t max_names = or_default(options->max_names, DEFAULT_MAX_NAMES);
    const uint32_t cache_names = or_default(options->cache_names, DEFAULT_CACHE_NAMES);
    const struct ss_servers_options servers = {
        .nameservers = options->nameservers,
        .resolv_path = options->resolv_path != NULL ? options->resolv_path : DEFAULT_RESOLV_PATH,
        .timeout_ms = or_default(options->timeout_ms, DEFAULT_TIMEOUT_MS),
        .tries = or_default(options->tries, DEFAULT_TRIES),
        .mark = options->mark,
    };
    const struct ss_pool_options pool = {
        .slot_size = sizeof(struct ss_query), .capacity = max_queries, .keep = KEPT_FREE};
    struct ss_resolver *resolver;
    enum ss_status status = SS_ERR_MEMORY;

    *out = NULL;
    resolver = calloc(1, sizeof *resolver);
    if (resolver == NULL)
        return SS_ERR_MEMORY;
    resolver->loop = loop;
    resolver->lookups = (struct ss_lookups){
        .events = &lookups_events,
        .loop = loop,
        .held_max = max_names,
        .ttl_max_s = or_default(options->ttl_max_s, DEFAULT_TTL_MAX_S),
        .ipv6_first = options->ipv6_first,
    };
    ss_lookups_init(&resolver->lookups);
    ss_deadline_queue_init(&resolver->ready, 0);
    ss_hosts_file_init(&resolver->hosts,
                       options->hosts_path != NULL ? options->hosts_path : DEFAULT_HOSTS_PATH);
    resolver->queries = ss_pool_new(&pool);
    if (resolver->queries == NULL)
        goto failed;
    /* A record is with the channel, or someone waits for it, or it is in the cache. */
    status =
        ss_records_init(&resolver->records, max_names + max_queries + cache_names, cache_names);
    if (status != SS_OK)
        goto failed;
    status = ss_servers_new(&resolver->lookups.servers, loop, &servers, &events, resolver);
    if (status != SS_OK)
        goto failed;

    /* Last, for a handle that is on the loop can't just be freed. */
    uv_timer_init(loop, &resolver->timer);
    resolver->timer.data = resolver;
    resolver->open_parts = 2;
    *out = resolver;
    return SS_OK;

failed:
    ss_records_free(&resolver->records);
    ss_pool_free(resolver->queries);
    free(resolver);
    return status;
}

void ss_resolver_close(struct ss_resolver *resolver)
{
    if (resolver == NULL || resolver->closing)
        return;
    resolver->closing = resolver->lookups.closing = true;
    uv_close((uv_handle_t *)&resolver->timer, on_timer_closed);
    ss_servers_close(resolver->lookups.servers);
}
