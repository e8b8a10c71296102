/* Queries: their places in line, the two lookups behind each, and the order of what they found. */
#include "resolver/resolver.h"

#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/deadline.h"
#include "base/pool.h"
#include "resolver/channel.h"
#include "resolver/hosts_file.h"

#define DEFAULT_TIMEOUT_MS  3000
#define DEFAULT_TRIES       2
#define DEFAULT_MAX_QUERIES 1024
#define DEFAULT_HOSTS_PATH  "/etc/hosts"

#define DNS_NAME_MAX 253 /* what fits into 255 bytes on the wire */

/* How long the addresses of one family wait for those of the other. */
#define RESOLUTION_DELAY_MS 50

/*
 * Names that are asked of the name servers at once. A burst of a thousand queries would overflow
 * the socket buffers of most servers, and forwarders refuse what is above their own limit. A server
 * that is silent about a name must not hold up the others, so a name counts for a short time only.
 */
#define WINDOW    64
#define WINDOW_MS 250

/* Where a query stands; each but the first is a queue. */
enum place {
    PLACE_NONE,    /* free, or with c-ares for so long that it no longer counts */
    PLACE_WAITING, /* for room in the window */
    PLACE_ASKED,   /* with c-ares, counted in the window */
    PLACE_PARTIAL, /* has addresses of one family, waits a little for the other */
    PLACE_READY,   /* to be answered in the next turn */
    PLACE_COUNT
};

static const uint64_t place_ms[PLACE_COUNT] = {
    [PLACE_ASKED] = WINDOW_MS,
    [PLACE_PARTIAL] = RESOLUTION_DELAY_MS,
};

/* One family's half of a query. */
struct half {
    struct ss_channel_lookup lookup;
    struct ss_query *query;
    bool outstanding; /* c-ares will call back */
    enum ss_status status;
    uint32_t count;
    struct ss_ip ips[SS_ADDRESSES_MAX];
};

struct ss_query {
    struct ss_deadline entry; /* in the queue of its place */
    enum place place;
    struct ss_resolver *resolver;
    ss_resolved_fn *done; /* NULL: nobody waits any more */
    void *owner;
    struct half halves[2];      /* the preferred family first */
    char name[SS_HOST_MAX + 2]; /* lower case, with a final dot */
};

struct ss_resolver {
    uv_loop_t *loop;
    uv_timer_t timer; /* the next thing that is due in a queue */
    struct ss_channel *channel;
    struct ss_pool *queries;
    struct ss_deadline_queue queues[PLACE_COUNT];
    uint32_t counts[PLACE_COUNT];
    struct ss_hosts_file hosts;
    bool ipv6_first;
    bool closing;
    unsigned open_parts; /* the timer and the channel, until they have closed */
};

static struct ss_query *query_of(struct ss_deadline *entry)
{
    return SS_CONTAINER_OF(entry, struct ss_query, entry);
}

static void query_move(struct ss_query *query, enum place place)
{
    struct ss_resolver *resolver = query->resolver;

    if (query->place != PLACE_NONE) {
        ss_deadline_stop(&query->entry);
        resolver->counts[query->place]--;
    }
    query->place = place;
    if (place != PLACE_NONE) {
        ss_deadline_start(&resolver->queues[place], &query->entry, uv_now(resolver->loop));
        resolver->counts[place]++;
    }
}

static struct ss_query *first_at(struct ss_resolver *resolver, enum place place)
{
    struct ss_deadline *entry = ss_deadline_first(&resolver->queues[place]);

    return entry != NULL ? query_of(entry) : NULL;
}

static struct ss_query *first_due(struct ss_resolver *resolver, enum place place, uint64_t now_ms)
{
    struct ss_query *query = first_at(resolver, place);

    return query != NULL && query->entry.due_ms <= now_ms ? query : NULL;
}

static bool is_with_cares(const struct ss_query *query)
{
    return query->halves[0].outstanding || query->halves[1].outstanding;
}

/* A slot goes back when nobody waits for its answer and c-ares does not know it any more. */
static void release_if_unused(struct ss_query *query)
{
    if (query->done != NULL || is_with_cares(query))
        return;
    query_move(query, PLACE_NONE);
    ss_pool_release(query->resolver->queries, query);
}

static void add_address(struct ss_ip *out, size_t *count, size_t cap, const struct ss_ip *ip)
{
    size_t i = 0;

    while (i < *count && !ss_ip_equal(&out[i], ip))
        i++;
    if (i == *count && i < cap)
        out[(*count)++] = *ip;
}

/* The preferred family first; a few places are kept for the other, which may be the one that works.
 */
static size_t merge(const struct ss_query *query, struct ss_ip *out)
{
    const struct half *preferred = &query->halves[0], *other = &query->halves[1];
    const size_t kept = other->count < SS_ADDRESSES_MAX / 4 ? other->count : SS_ADDRESSES_MAX / 4;
    size_t count = 0;

    for (size_t i = 0; i < preferred->count; i++)
        add_address(out, &count, SS_ADDRESSES_MAX - kept, &preferred->ips[i]);
    for (size_t i = 0; i < other->count; i++)
        add_address(out, &count, SS_ADDRESSES_MAX, &other->ips[i]);
    return count;
}

/* Why there is no address. A failure says more than "none": the name may exist after all. */
static enum ss_status failure(const struct ss_query *query)
{
    enum ss_status status = SS_ERR_NOT_FOUND;

    for (int i = 0; i < 2; i++) {
        const enum ss_status half = query->halves[i].status;

        if (half != SS_OK && half != SS_ERR_NOT_FOUND && status != SS_ERR_TIMEOUT)
            status = half;
    }
    return status;
}

static void deliver(struct ss_query *query)
{
    struct ss_ip addresses[SS_ADDRESSES_MAX];
    const size_t count = merge(query, addresses);
    const enum ss_status status = count != 0 ? SS_OK : failure(query);
    ss_resolved_fn *done = query->done;

    query_move(query, PLACE_NONE);
    query->done = NULL;
    done(query->owner, status, addresses, count);
    release_if_unused(query);
}

/* Comes from inside c-ares: notes the answer and finds the query its next place. */
static void on_answered(struct ss_channel_lookup *lookup, enum ss_status status,
                        const struct ss_ip *ips, size_t count)
{
    struct half *half = SS_CONTAINER_OF(lookup, struct half, lookup);
    struct ss_query *query = half->query;

    half->outstanding = false;
    half->status = status;
    half->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        half->ips[i] = ips[i];
        ss_ip_unmap(&half->ips[i]);
    }
    if (query->done == NULL)
        release_if_unused(query);
    else if (!is_with_cares(query))
        query_move(query, PLACE_READY);
    else if (count != 0)
        query_move(query, PLACE_PARTIAL);
}

static void start_lookups(struct ss_query *query)
{
    struct ss_resolver *resolver = query->resolver;
    const enum ss_family first = resolver->ipv6_first ? SS_FAMILY_IPV6 : SS_FAMILY_IPV4;
    const enum ss_family second = resolver->ipv6_first ? SS_FAMILY_IPV4 : SS_FAMILY_IPV6;

    query_move(query, PLACE_ASKED);
    for (int i = 0; i < 2; i++) {
        query->halves[i].query = query;
        query->halves[i].outstanding = true;
        query->halves[i].lookup.answered = on_answered;
    }
    ss_channel_ask(resolver->channel, query->name, first, &query->halves[0].lookup);
    ss_channel_ask(resolver->channel, query->name, second, &query->halves[1].lookup);
}

/* Starts what the window has room for. */
static void start_waiting(struct ss_resolver *resolver)
{
    struct ss_query *query;

    while ((query = first_due(resolver, PLACE_ASKED, uv_now(resolver->loop))) != NULL)
        query_move(query, PLACE_NONE);
    while (resolver->counts[PLACE_ASKED] < WINDOW &&
           (query = first_at(resolver, PLACE_WAITING)) != NULL)
        start_lookups(query);
}

static void on_timer(uv_timer_t *timer);

static void arm(struct ss_resolver *resolver)
{
    const uint64_t now_ms = uv_now(resolver->loop);
    uint64_t due_ms = UINT64_MAX;

    /* That a name no longer counts in the window matters only to those who wait for it. */
    for (int place = PLACE_ASKED; place < PLACE_COUNT; place++) {
        const struct ss_query *query = first_at(resolver, (enum place)place);

        if (query == NULL || (place == PLACE_ASKED && resolver->counts[PLACE_WAITING] == 0))
            continue;
        if (query->entry.due_ms < due_ms)
            due_ms = query->entry.due_ms;
    }
    if (due_ms == UINT64_MAX)
        uv_timer_stop(&resolver->timer);
    else
        uv_timer_start(&resolver->timer, on_timer, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

/*
 * One turn, never from inside c-ares or ss_resolver_ask: what waited long enough goes on, what is
 * ready is answered. Queries that the callbacks add get ready for a later turn.
 */
static void turn(void *owner)
{
    struct ss_resolver *resolver = owner;
    struct ss_query *query;

    if (resolver->closing)
        return;
    while ((query = first_due(resolver, PLACE_PARTIAL, uv_now(resolver->loop))) != NULL)
        query_move(query, PLACE_READY);
    start_waiting(resolver);
    for (uint32_t left = resolver->counts[PLACE_READY]; left != 0 && !resolver->closing; left--) {
        query = first_at(resolver, PLACE_READY);
        if (query == NULL) /* a callback cancelled others */
            break;
        deliver(query);
    }
    if (resolver->closing)
        return;
    if (ss_pool_used(resolver->queries) == 0)
        ss_pool_trim(resolver->queries);
    arm(resolver);
}

static void on_timer(uv_timer_t *timer)
{
    turn(timer->data);
}

/* Copies the name in the form in which names are compared: lower case, no final dot. */
static bool read_name(char *out, const char *name)
{
    size_t len = strnlen(name, SS_HOST_MAX + 1);

    /* A backslash would begin an escape in c-ares and could hide the final dot. */
    if (len > SS_HOST_MAX || !ss_host_is_valid(name, len) || memchr(name, '\\', len) != NULL)
        return false;
    for (size_t i = 0; i < len; i++)
        out[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] - 'A' + 'a') : name[i];
    if (len > 1 && out[len - 1] == '.')
        len--;
    out[len] = '\0';
    return true;
}

static bool is_localhost(const char *name)
{
    const char suffix[] = ".localhost";
    const size_t len = strlen(name), suffix_len = sizeof suffix - 1;

    if (strcmp(name, suffix + 1) == 0)
        return true;
    return len > suffix_len && strcmp(name + len - suffix_len, suffix) == 0;
}

/* Answers without a name server, if that can be. `name` is in the form in which it is compared. */
static size_t answer_at_home(struct ss_resolver *resolver, const char *name, struct ss_ip *ips)
{
    if (ss_ip_parse(&ips[0], name) == SS_OK)
        return 1;
    if (is_localhost(name)) {
        ips[0] = (struct ss_ip){.family = SS_FAMILY_IPV4, .bytes = {127, 0, 0, 1}};
        ips[1] = (struct ss_ip){.family = SS_FAMILY_IPV6, .bytes = {[15] = 1}};
        return 2;
    }
    ss_hosts_file_check(&resolver->hosts, uv_now(resolver->loop));
    return ss_hosts_find(&resolver->hosts.hosts, name, ips, SS_ADDRESSES_MAX);
}

struct ss_query *ss_resolver_ask(struct ss_resolver *resolver, const char *name,
                                 ss_resolved_fn *done, void *owner)
{
    const uint8_t preferred = resolver->ipv6_first ? SS_FAMILY_IPV6 : SS_FAMILY_IPV4;
    struct ss_ip ips[SS_ADDRESSES_MAX];
    char plain[SS_HOST_MAX + 1];
    struct ss_query *query;
    size_t count, len;

    if (resolver->closing || !read_name(plain, name))
        return NULL;
    query = ss_pool_acquire(resolver->queries);
    if (query == NULL)
        return NULL;
    memset(query, 0, offsetof(struct ss_query, halves));
    query->resolver = resolver;
    query->done = done;
    query->owner = owner;
    for (int i = 0; i < 2; i++) {
        query->halves[i].outstanding = false;
        query->halves[i].status = SS_OK;
        query->halves[i].count = 0;
    }

    len = strlen(plain);
    count = answer_at_home(resolver, plain, ips);
    if (count != 0) {
        for (size_t i = 0; i < count; i++) {
            struct half *half = &query->halves[ips[i].family != preferred];

            half->ips[half->count++] = ips[i];
        }
        query_move(query, PLACE_READY);
    } else if (len > DNS_NAME_MAX) {
        query_move(query, PLACE_READY); /* with no address: no such name can exist */
    } else {
        memcpy(query->name, plain, len);
        memcpy(query->name + len, ".", 2);
        query_move(query, PLACE_WAITING);
        start_waiting(resolver);
    }
    arm(resolver);
    return query;
}

void ss_resolver_cancel(struct ss_query *query)
{
    struct ss_resolver *resolver;

    if (query == NULL || query->done == NULL) /* it is being answered right now */
        return;
    resolver = query->resolver;
    query->done = NULL;
    /* What is with c-ares goes on being counted, or a client could flood the name servers. */
    if (query->place != PLACE_ASKED)
        query_move(query, PLACE_NONE);
    release_if_unused(query);
    if (!resolver->closing)
        arm(resolver);
}

/* Everything has closed: no callback and no lookup is left. */
static void on_part_closed(struct ss_resolver *resolver)
{
    if (--resolver->open_parts != 0)
        return;
    for (int place = PLACE_WAITING; place < PLACE_COUNT; place++) {
        struct ss_query *query;

        while ((query = first_at(resolver, (enum place)place)) != NULL) {
            query->done = NULL;
            release_if_unused(query);
        }
    }
    ss_hosts_file_clear(&resolver->hosts);
    ss_pool_free(resolver->queries);
    free(resolver);
}

static void on_timer_closed(uv_handle_t *handle)
{
    on_part_closed(handle->data);
}

static void on_channel_closed(void *owner)
{
    on_part_closed(owner);
}

enum ss_status ss_resolver_new(struct ss_resolver **out, uv_loop_t *loop,
                               const struct ss_resolver_options *options)
{
    static const struct ss_channel_events events = {turn, on_channel_closed};
    const struct ss_channel_options channel = {
        .nameservers = options->nameservers,
        .timeout_ms = options->timeout_ms != 0 ? options->timeout_ms : DEFAULT_TIMEOUT_MS,
        .tries = options->tries != 0 ? options->tries : DEFAULT_TRIES,
    };
    const struct ss_pool_options pool = {
        .slot_size = sizeof(struct ss_query),
        .capacity = options->max_queries != 0 ? options->max_queries : DEFAULT_MAX_QUERIES,
        .keep = WINDOW,
    };
    struct ss_resolver *resolver;
    enum ss_status status = SS_ERR_MEMORY;

    *out = NULL;
    resolver = calloc(1, sizeof *resolver);
    if (resolver == NULL)
        return SS_ERR_MEMORY;
    resolver->loop = loop;
    resolver->ipv6_first = options->ipv6_first;
    for (int place = 0; place < PLACE_COUNT; place++)
        ss_deadline_queue_init(&resolver->queues[place], place_ms[place]);
    ss_hosts_file_init(&resolver->hosts,
                       options->hosts_path != NULL ? options->hosts_path : DEFAULT_HOSTS_PATH);
    resolver->queries = ss_pool_new(&pool);
    if (resolver->queries == NULL)
        goto failed;
    status = ss_channel_new(&resolver->channel, loop, &channel, &events, resolver);
    if (status != SS_OK)
        goto failed;

    /* Last, for a handle that is on the loop can't just be freed. */
    uv_timer_init(loop, &resolver->timer);
    resolver->timer.data = resolver;
    resolver->open_parts = 2;
    *out = resolver;
    return SS_OK;

failed:
    ss_pool_free(resolver->queries);
    free(resolver);
    return status;
}

void ss_resolver_close(struct ss_resolver *resolver)
{
    if (resolver == NULL || resolver->closing)
        return;
    resolver->closing = true;
    uv_close((uv_handle_t *)&resolver->timer, on_timer_closed);
    ss_channel_close(resolver->channel);
}
