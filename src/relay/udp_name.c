/* Names of an association and the datagrams that wait for their addresses. */
#include "relay/udp_name.h"

#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/log.h"
#include "net/socket.h"
#include "relay/block.h"
#include "relay/udp_relay.h"
#include "resolver/resolver.h"

/* How long an answer is used, and how long it is remembered that there was none. */
#define KNOWN_MS   30000
#define UNKNOWN_MS 3000

enum state { UNKNOWN, ASKING, KNOWN };

struct ss_udp_name {
    struct ss_udp_name *next;
    struct ss_association *association;
    struct ss_query *query;
    struct ss_block *waiting; /* records: port, length of the address, length, bytes */
    uint32_t waiting_count;
    uint64_t until_ms;
    enum state state;
    struct ss_ip ip;
    char name[SS_HOST_MAX + 1];
};

#define RECORD_HEAD 6

size_t ss_udp_name_size(void)
{
    return sizeof(struct ss_udp_name);
}

static struct ss_worker *worker_of(const struct ss_association *association)
{
    return association->port->relay->worker;
}

static void drop_waiting(struct ss_udp_name *name)
{
    if (name->waiting != NULL) {
        ss_pool_release(worker_of(name->association)->blocks, name->waiting);
        name->association->port->relay->waiting--;
    }
    name->waiting = NULL;
    name->waiting_count = 0;
}

static struct ss_udp_relay *relay_of(const struct ss_udp_name *name)
{
    return name->association->port->relay;
}

static void set_state(struct ss_udp_name *name, enum state state)
{
    if (name->state == ASKING)
        relay_of(name)->asking--;
    if (state == ASKING)
        relay_of(name)->asking++;
    name->state = state;
}

static void release(struct ss_udp_name *name)
{
    struct ss_associations *table = &relay_of(name)->associations;

    ss_resolver_cancel(name->query);
    set_state(name, UNKNOWN);
    drop_waiting(name);
    ss_pool_release(table->names, name);
}

static void keep(struct ss_udp_name *name, uint16_t port, size_t address_len, struct ss_view bytes)
{
    struct ss_block *block = name->waiting;
    uint8_t *record;

    if (block == NULL && relay_of(name)->waiting < SS_UDP_WAITERS_MAX) {
        block = name->waiting = ss_block_acquire(worker_of(name->association)->blocks);
        if (block != NULL)
            relay_of(name)->waiting++;
    }
    if (block == NULL || name->waiting_count == SS_UDP_WAITING_MAX || bytes.len > UINT16_MAX ||
        SS_BLOCK_CAPACITY - block->end < RECORD_HEAD + bytes.len) {
        ss_log_debug("[udp] too much waits for %s: a datagram is dropped", name->name);
        return;
    }
    record = block->bytes + block->end;
    ss_store_u16be(record, port);
    ss_store_u16be(record + 2, (uint16_t)address_len);
    ss_store_u16be(record + 4, (uint16_t)bytes.len);
    if (bytes.len != 0)
        memcpy(record + RECORD_HEAD, bytes.ptr, bytes.len);
    block->end += (uint32_t)(RECORD_HEAD + bytes.len);
    name->waiting_count++;
}

static void send_waiting(struct ss_udp_name *name)
{
    struct ss_block *block = name->waiting;
    struct ss_addr to = {.ip = name->ip};

    while (block != NULL && block->begin < block->end) {
        const uint8_t *record = block->bytes + block->begin;
        struct ss_view bytes = {.ptr = record + RECORD_HEAD, .len = ss_load_u16be(record + 4)};

        to.port = ss_load_u16be(record);
        block->begin += (uint32_t)(RECORD_HEAD + bytes.len);
        ss_udp_send_waiting(name->association, &to, ss_load_u16be(record + 2), bytes);
    }
    drop_waiting(name);
}

/* The first address that can be sent to. */
static const struct ss_ip *usable(const struct ss_udp_name *name, const struct ss_ip *addresses,
                                  size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct ss_addr addr = {.ip = addresses[i], .port = 9};

        if (ss_association_serves(name->association, addresses[i].family) &&
            ss_socket_has_route(&addr))
            return &addresses[i];
    }
    return NULL;
}

static void on_resolved(void *owner, enum ss_status status, const struct ss_ip *addresses,
                        size_t count)
{
    struct ss_udp_name *name = owner;
    uint64_t now_ms = uv_now(&worker_of(name->association)->loop);
    const struct ss_ip *ip = status == SS_OK ? usable(name, addresses, count) : NULL;

    name->query = NULL;
    if (ip != NULL) {
        name->ip = *ip;
        set_state(name, KNOWN);
        name->until_ms = now_ms + KNOWN_MS;
        send_waiting(name);
        return;
    }
    ss_log_debug("[udp] %s: %s", name->name,
                 ss_status_text(status == SS_OK ? SS_ERR_UNREACHABLE : status));
    name->until_ms = now_ms + UNKNOWN_MS;
    if (name->state == KNOWN)
        return; /* an address that served is better than none */
    set_state(name, UNKNOWN);
    drop_waiting(name);
}

/* What is known stays so while it is asked again: traffic under way does not wait. */
static void ask(struct ss_udp_name *name)
{
    struct ss_worker *worker = worker_of(name->association);

    if (name->query != NULL)
        return;
    if (name->state != KNOWN && relay_of(name)->asking >= SS_UDP_ASKING_MAX) {
        name->until_ms = uv_now(&worker->loop);
        return;
    }
    name->query = ss_resolver_ask(worker->resolver, name->name, on_resolved, name);
    if (name->query == NULL)
        name->until_ms = uv_now(&worker->loop) + UNKNOWN_MS;
    else if (name->state != KNOWN)
        set_state(name, ASKING);
}

/* Makes way for another name: the one not used for the longest time, but not what is asked for. */
static bool give_one_up(struct ss_association *association)
{
    struct ss_udp_name **last = NULL;
    struct ss_udp_name *name;

    for (struct ss_udp_name **link = &association->names; *link != NULL; link = &(*link)->next)
        if ((*link)->state != ASKING)
            last = link;
    if (last == NULL)
        return false;
    name = *last;
    *last = name->next;
    release(name);
    return true;
}

/* The entry for a name, moved to the front, or a new one; NULL when there is no room. */
static struct ss_udp_name *entry_for(struct ss_association *association, const char *text)
{
    struct ss_udp_name *name;
    int count = 0;

    for (struct ss_udp_name **link = &association->names; (name = *link) != NULL;
         link = &name->next, count++) {
        if (strcasecmp(name->name, text) != 0)
            continue;
        *link = name->next;
        name->next = association->names;
        association->names = name;
        return name;
    }
    if (count == SS_UDP_NAMES_MAX && !give_one_up(association))
        return NULL;
    name = ss_pool_acquire(association->port->relay->associations.names);
    if (name == NULL)
        return NULL;
    memset(name, 0, sizeof *name);
    name->association = association;
    strncpy(name->name, text, sizeof name->name - 1);
    name->next = association->names;
    association->names = name;
    ask(name);
    return name;
}

bool ss_udp_name_address(struct ss_association *association, const char *text, uint16_t port,
                         size_t address_len, struct ss_view bytes, struct ss_ip *ip)
{
    struct ss_udp_name *name = entry_for(association, text);

    if (name == NULL)
        return false;
    if (name->state != ASKING && name->until_ms <= uv_now(&worker_of(association)->loop))
        ask(name);
    switch (name->state) {
    case KNOWN:
        *ip = name->ip;
        return true;
    case ASKING:
        keep(name, port, address_len, bytes);
        return false;
    case UNKNOWN:
        break;
    }
    return false;
}

void ss_udp_names_clear(struct ss_association *association)
{
    while (association->names != NULL) {
        struct ss_udp_name *name = association->names;

        association->names = name->next;
        release(name);
    }
}
