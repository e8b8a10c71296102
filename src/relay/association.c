/* The table of associations and their sockets. */
#include "relay/association.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/log.h"
#include "crypto/kdf.h"
#include "crypto/random.h"
#include "net/socket.h"
#include "net/udp.h"
#include "relay/engine_internal.h"
#include "relay/udp_name.h"
#include "relay/udp_out.h"
#include "relay/udp_relay.h"

/* Slots that stay resident though free. */
#define KEEP 16

/* Names that there is room for, on average. */
#define NAMES_AN_ASSOCIATION 8

/* Sockets beyond four an association: those that are still closing. */
#define CLOSING_MAX 256

/* Bytes that the buffers of one association's socket hold while the loop is busy. */
#define OUT_BURST (1 << 20)

static struct ss_association **bucket_of(struct ss_associations *table,
                                         const struct ss_udp_port *port,
                                         const struct ss_addr *client)
{
    uint8_t key[sizeof port + 16 + 2 + 1];
    uint64_t hash;

    memcpy(key, &port, sizeof port);
    memcpy(key + sizeof port, client->ip.bytes, 16);
    key[sizeof port + 16] = (uint8_t)(client->port >> 8);
    key[sizeof port + 17] = (uint8_t)client->port;
    key[sizeof port + 18] = client->ip.family;
    hash = ss_fingerprint(table->seed, key, sizeof key);
    return &table->buckets[hash & table->bucket_mask];
}

static void retire_link(void *slot)
{
    ss_packet_link_retire(slot);
}

enum ss_status ss_associations_init(struct ss_associations *table, uint32_t capacity,
                                    uint64_t idle_ms, size_t link_size)
{
    uint32_t buckets = 64;

    while (buckets < 2 * capacity && buckets < UINT32_C(1) << 30)
        buckets *= 2;
    memset(table, 0, sizeof *table);
    table->capacity = capacity;
    table->bucket_mask = buckets - 1;
    ss_random_bytes(table->seed, sizeof table->seed);
    ss_deadline_queue_init(&table->idle, idle_ms);
    table->buckets = calloc(buckets, sizeof *table->buckets);
    table->pool = ss_pool_new(&(struct ss_pool_options){
        .slot_size = sizeof(struct ss_association), .capacity = capacity, .keep = KEEP});
    if (link_size != 0)
        table->links = ss_pool_new(&(struct ss_pool_options){
            .slot_size = link_size, .capacity = capacity, .keep = KEEP, .retire = retire_link});
    table->outs = ss_pool_new(&(struct ss_pool_options){.slot_size = sizeof(struct ss_udp_out),
                                                        .capacity = 4 * capacity + CLOSING_MAX,
                                                        .keep = KEEP});
    table->names = ss_pool_new(
        &(struct ss_pool_options){.slot_size = ss_udp_name_size(),
                                  .capacity = NAMES_AN_ASSOCIATION * capacity + SS_UDP_NAMES_MAX,
                                  .keep = KEEP});
    if (table->buckets == NULL || table->pool == NULL || table->outs == NULL ||
        table->names == NULL || (link_size != 0 && table->links == NULL)) {
        ss_associations_clear(table);
        return SS_ERR_MEMORY;
    }
    return SS_OK;
}

void ss_associations_clear(struct ss_associations *table)
{
    free(table->buckets);
    ss_pool_free(table->pool);
    ss_pool_free(table->links);
    ss_pool_free(table->outs);
    ss_pool_free(table->names);
    memset(table, 0, sizeof *table);
}

struct ss_association *ss_association_find(struct ss_udp_port *port, const struct ss_addr *client)
{
    struct ss_association *association = *bucket_of(&port->relay->associations, port, client);

    while (association != NULL &&
           !(association->port == port && association->client.port == client->port &&
             ss_ip_equal(&association->client.ip, &client->ip)))
        association = association->hash_next;
    return association;
}

void ss_association_touch(struct ss_association *association)
{
    struct ss_worker *worker = association->port->relay->worker;

    ss_worker_start_deadline(worker, &association->port->relay->associations.idle,
                             &association->idle);
}

bool ss_association_begin_link(struct ss_association *association)
{
    const struct ss_udp_port *port = association->port;
    struct ss_pool *links = port->relay->associations.links;
    bool has_sessions = port->has_sessions;

    association->codec = port->codec;
    if (port->server_count != 0) {
        association->codec = port->servers[association->upstream].codec;
        has_sessions = port->servers[association->upstream].has_sessions;
    }
    if (!has_sessions)
        return true;
    association->link = ss_pool_acquire(links);
    if (association->link == NULL)
        return false;
    if (ss_packet_link_begin(association->link, association->codec, association->session) == SS_OK)
        return true;
    ss_pool_release(links, association->link);
    association->link = NULL;
    return false;
}

void ss_association_end_link(struct ss_association *association)
{
    if (association->link == NULL)
        return;
    ss_packet_link_end(association->link);
    ss_pool_release(association->port->relay->associations.links, association->link);
    association->link = NULL;
}

struct ss_association *ss_association_new(struct ss_udp_port *port, const struct ss_addr *client,
                                          struct ss_packet_session *session)
{
    struct ss_associations *table = &port->relay->associations;
    struct ss_association **bucket;
    struct ss_association *association = ss_pool_acquire(table->pool);

    if (association == NULL) {
        struct ss_deadline *oldest = ss_deadline_first(&table->idle);

        if (oldest == NULL)
            return NULL;
        ss_association_close(SS_CONTAINER_OF(oldest, struct ss_association, idle));
        association = ss_pool_acquire(table->pool);
        if (association == NULL)
            return NULL;
    }
    memset(association, 0, sizeof *association);
    association->port = port;
    association->client = *client;
    association->session = session;
    if (port->server_count != 0)
        ss_udp_upstream_choose(association);
    if (!ss_association_begin_link(association)) {
        ss_pool_release(table->pool, association);
        return NULL;
    }
    if (session != NULL) {
        session->owner = association;
    } else {
        bucket = bucket_of(table, port, client);
        association->hash_next = *bucket;
        *bucket = association;
    }
    ss_count(&port->counters->associations_opened, 1);
    ss_association_touch(association);
    ss_worker_start_trimming(port->relay->worker);
    return association;
}

/* -- sockets -- */

static void on_out_closed(uv_handle_t *handle)
{
    struct ss_udp_out *out = handle->data;

    ss_pool_release(out->relay->associations.outs, out);
}

static void close_out(struct ss_udp_out *out)
{
    if (out == NULL)
        return;
    out->association = NULL;
    ss_udp_flush(out->relay->outbox); /* its descriptor's number may be another's soon */
    uv_close((uv_handle_t *)&out->poll, on_out_closed);
    ss_socket_close(out->fd);
}

/* A socket bound to a source of one family, or, unbound, of IPv6 for both. */
static struct ss_udp_out *open_out(struct ss_association *association, const struct ss_ip *source)
{
    struct ss_udp_relay *relay = association->port->relay;
    const struct ss_engine_options *options = &relay->engine->options;
    const struct ss_udp_socket_options how = {.interface = options->interface,
                                              .interface_required = options->interface_required,
                                              .dont_fragment = options->mtu != 0,
                                              .burst = OUT_BURST,
                                              .sndbuf = options->outgoing_sndbuf,
                                              .rcvbuf = options->outgoing_rcvbuf,
                                              .keep_errors = association->port->server_count > 1,
                                              .mark = options->mark,
                                              .tos = association->port->role->options.tos};
    const struct ss_addr addr = {.ip = *source};
    struct ss_udp_out *out = ss_pool_acquire(relay->associations.outs);
    const char *error_text = "";

    if (out == NULL)
        return NULL;
    if (ss_udp_open(&out->fd, &addr, &how, &error_text) != SS_OK) {
        ss_log_limited(&relay->engine->dial_log, uv_now(&relay->worker->loop), SS_LOG_ERROR,
                       "[udp] cannot bind socket: %s", error_text);
        ss_pool_release(relay->associations.outs, out);
        return NULL;
    }
    out->relay = relay;
    out->association = association;
    out->family = source->family;
    if (uv_poll_init(&relay->worker->loop, &out->poll, out->fd) != 0) {
        ss_socket_close(out->fd);
        ss_pool_release(relay->associations.outs, out);
        return NULL;
    }
    out->poll.data = out;
    uv_poll_start(&out->poll, UV_READABLE, ss_udp_out_readable);
    return out;
}

bool ss_association_serves(const struct ss_association *association, enum ss_family family)
{
    const struct ss_engine_options *options = &association->port->relay->engine->options;

    if (options->bind_ipv4.family == SS_FAMILY_NONE && options->bind_ipv6.family == SS_FAMILY_NONE)
        return true;
    return (family == SS_FAMILY_IPV4 ? options->bind_ipv4 : options->bind_ipv6).family !=
           SS_FAMILY_NONE;
}

struct ss_udp_out *ss_association_out(struct ss_association *association, enum ss_family family,
                                      bool direct)
{
    struct ss_udp_out **outs = association->outs[direct];
    static const struct ss_ip any[] = {{.family = SS_FAMILY_IPV4}, {.family = SS_FAMILY_IPV6}};
    const struct ss_engine_options *options = &association->port->relay->engine->options;
    const struct ss_ip *bound =
        family == SS_FAMILY_IPV4 ? &options->bind_ipv4 : &options->bind_ipv6;
    bool both =
        options->bind_ipv4.family == SS_FAMILY_NONE && options->bind_ipv6.family == SS_FAMILY_NONE;

    for (int i = 0; i < 2; i++) {
        struct ss_udp_out *out = outs[i];

        if (out != NULL && (out->family == family || (both && out->family == SS_FAMILY_IPV6)))
            return out;
    }
    for (int i = 0; i < 2; i++) {
        if (outs[i] != NULL)
            continue;
        if (!both) /* with a source of the other family alone, this one is not served */
            outs[i] = bound->family != SS_FAMILY_NONE ? open_out(association, bound) : NULL;
        else
            outs[i] = open_out(association, &any[1]);
        /* A system without IPv6. */
        if (outs[i] == NULL && both && family == SS_FAMILY_IPV4)
            outs[i] = open_out(association, &any[0]);
        if (outs[i] != NULL)
            outs[i]->direct = direct;
        return outs[i];
    }
    return NULL;
}

/* -- the end -- */

static void forget_address(struct ss_association *association)
{
    struct ss_association **link =
        bucket_of(&association->port->relay->associations, association->port, &association->client);

    while (*link != association)
        link = &(*link)->hash_next;
    *link = association->hash_next;
}

void ss_association_close(struct ss_association *association)
{
    struct ss_udp_relay *relay = association->port->relay;

    if (association->session == NULL)
        forget_address(association);
    ss_association_end_link(association);
    ss_deadline_stop(&association->idle);
    ss_control_detach(association);
    ss_udp_names_clear(association);
    for (int i = 0; i < 2; i++) {
        close_out(association->outs[i][0]);
        close_out(association->outs[i][1]);
    }
    ss_count(&association->port->counters->associations_closed, 1);
    ss_pool_release(relay->associations.pool, association);
}

void ss_associations_close_all(struct ss_associations *table)
{
    struct ss_deadline *first;

    while ((first = ss_deadline_first(&table->idle)) != NULL)
        ss_association_close(SS_CONTAINER_OF(first, struct ss_association, idle));
}

void ss_associations_close_if(struct ss_associations *table,
                              bool (*is_meant)(struct ss_association *association,
                                               const void *owner),
                              const void *owner)
{
    struct ss_deadline *entry = ss_deadline_first(&table->idle);

    while (entry != NULL) {
        struct ss_association *association = SS_CONTAINER_OF(entry, struct ss_association, idle);

        entry = ss_deadline_after(&table->idle, entry);
        if (is_meant(association, owner))
            ss_association_close(association);
    }
}

static bool is_of(struct ss_association *association, const void *port)
{
    return association->port == port;
}

void ss_associations_close_of(struct ss_associations *table, const struct ss_udp_port *port)
{
    ss_associations_close_if(table, is_of, port);
}

void ss_associations_forget_names_of(struct ss_associations *table, const struct ss_udp_port *port)
{
    for (struct ss_deadline *entry = ss_deadline_first(&table->idle); entry != NULL;
         entry = ss_deadline_after(&table->idle, entry)) {
        struct ss_association *association = SS_CONTAINER_OF(entry, struct ss_association, idle);

        if (association->port == port)
            ss_udp_names_clear(association);
    }
}

void ss_associations_expire(struct ss_associations *table, uint64_t now_ms)
{
    struct ss_deadline *first;

    while ((first = ss_deadline_first(&table->idle)) != NULL && first->due_ms <= now_ms) {
        ss_log_debug("[udp] connection timeout");
        ss_association_close(SS_CONTAINER_OF(first, struct ss_association, idle));
    }
}

uint32_t ss_associations_trim(struct ss_associations *table)
{
    uint32_t links = table->links != NULL ? ss_pool_trim(table->links) : 0;

    return links + ss_pool_trim(table->pool) + ss_pool_trim(table->outs) +
           ss_pool_trim(table->names);
}
