/* Names of an association and the datagrams that wait for their addresses. */
#include "relay/udp_name.h"

#include <string.h>
#include <strings.h>

#include "acl/acl.h"
#include "base/bytes.h"
#include "base/log.h"
#include "net/socket.h"
#include "relay/block.h"
#include "relay/udp_relay.h"
#include "resolver/resolver.h"

/* How long an answer is used, and how long it is remembered that there was none. */
#define KNOWN_MS   30000
#define UNKNOWN_MS 3000

/* An upstream server's last addresses are used when an answer takes longer. */
#define PATIENCE_MS 250

/* A client's target that is not decided by then goes through the server. */
#define DECIDE_MS 2000

/* ELSEWHERE: through the upstream server. */
enum state { UNKNOWN, ASKING, KNOWN, ELSEWHERE };

struct ss_udp_name {
    struct ss_udp_name *next;
    struct ss_association *association;
    struct ss_query *query;
    struct ss_block *waiting; /* records: port, length of the address, length, bytes */
    uint32_t waiting_count;
    uint64_t until_ms;
    uint64_t asked_ms;
    enum state state;
    enum ss_udp_name_use use;
    enum ss_acl_route route; /* of a client's target */
    bool refused, named;     /* of a server's, by the access control list */
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

/*
 * Sends what waited. To look for the upstream server's own address may take this entry for another
 * name, so it is not touched any more once the first has gone.
 */
static void send_waiting(struct ss_udp_name *name, enum ss_udp_way way)
{
    struct ss_association *association = name->association;
    struct ss_udp_relay *relay = relay_of(name);
    const enum ss_udp_name_use use = name->use;
    struct ss_block *block = name->waiting;
    struct ss_addr to = {.ip = name->ip};

    if (block == NULL)
        return;
    name->waiting = NULL;
    name->waiting_count = 0;
    while (block->begin < block->end) {
        const uint8_t *record = block->bytes + block->begin;
        const size_t address_len = ss_load_u16be(record + 2);
        const struct ss_view bytes = {.ptr = record + RECORD_HEAD,
                                      .len = ss_load_u16be(record + 4)};

        to.port = ss_load_u16be(record);
        block->begin += (uint32_t)(RECORD_HEAD + bytes.len);
        if (way == SS_UDP_WAY_UPSTREAM)
            ss_udp_send_upstream(association, address_len, bytes);
        else if (use == SS_UDP_NAME_CLIENT_TARGET)
            ss_udp_send_direct(
                association, &to,
                (struct ss_view){.ptr = bytes.ptr + address_len, .len = bytes.len - address_len});
        else
            ss_udp_send_waiting(association, &to, address_len, bytes);
    }
    ss_pool_release(relay->worker->blocks, block);
    relay->waiting--;
}

static const struct ss_acl *acl_of(const struct ss_udp_name *name)
{
    return name->association->port->role->options.acl;
}

static bool is_blocked(const struct ss_udp_name *name, const struct ss_ip *ip)
{
    return name->use == SS_UDP_NAME_TARGET && acl_of(name) != NULL &&
           ss_acl_outbound_blocked(acl_of(name), ip, name->named);
}

/* The first address that can and may be sent to; none when the very first may not (see access.c).
 */
static const struct ss_ip *usable(const struct ss_udp_name *name, const struct ss_ip *addresses,
                                  size_t count)
{
    if (count != 0 && is_blocked(name, &addresses[0]))
        return NULL;
    for (size_t i = 0; i < count; i++) {
        const struct ss_addr addr = {.ip = addresses[i], .port = 9};

        if (!is_blocked(name, &addresses[i]) &&
            ss_association_serves(name->association, addresses[i].family) &&
            ss_socket_has_route(&addr))
            return &addresses[i];
    }
    return NULL;
}

static void is_known(struct ss_udp_name *name, const struct ss_ip *ip)
{
    name->ip = *ip;
    set_state(name, KNOWN);
    send_waiting(name, SS_UDP_WAY_ADDRESS);
}

static void is_elsewhere(struct ss_udp_name *name)
{
    set_state(name, ELSEWHERE);
    send_waiting(name, SS_UDP_WAY_UPSTREAM);
}

/* A client's target: what can't be looked up here may be known to the server. */
static void decide(struct ss_udp_name *name, enum ss_status status, const struct ss_ip *addresses,
                   size_t count)
{
    const struct ss_ip *ip = status == SS_OK ? usable(name, addresses, count) : NULL;

    if (status != SS_OK && name->state == KNOWN)
        return;
    if (ip != NULL && (name->route == SS_ACL_BYPASS ||
                       ss_acl_addresses_route(acl_of(name), addresses, count) == SS_ACL_BYPASS))
        is_known(name, ip);
    else
        is_elsewhere(name);
}

/* Of the upstream server whose name it is; NULL for another. */
static struct ss_upstream_state *state_of(const struct ss_udp_name *name)
{
    struct ss_upstream_state *state = ss_udp_upstream_state(name->association);

    if (state == NULL || name->use != SS_UDP_NAME_SERVER ||
        strcasecmp(ss_upstream_state_endpoint(state)->host, name->name) != 0)
        return NULL;
    return state;
}

/* The addresses that an upstream server had before: the first that can be sent to. */
static bool recall(struct ss_udp_name *name, struct ss_ip *ip)
{
    struct ss_upstream_state *state = state_of(name);
    struct ss_ip addresses[SS_UPSTREAM_ADDRESSES_MAX];
    const struct ss_ip *found = NULL;

    if (state != NULL)
        found = usable(
            name, addresses,
            ss_upstream_addresses(state, addresses, uv_now(&worker_of(name->association)->loop)));
    if (found != NULL)
        *ip = *found;
    return found != NULL;
}

static void on_resolved(void *owner, enum ss_status status, const struct ss_ip *addresses,
                        size_t count)
{
    struct ss_udp_name *name = owner;
    uint64_t now_ms = uv_now(&worker_of(name->association)->loop);
    const struct ss_ip *ip;
    struct ss_ip recalled;

    name->query = NULL;
    name->until_ms = now_ms + (status == SS_OK ? KNOWN_MS : UNKNOWN_MS);
    if (name->use == SS_UDP_NAME_CLIENT_TARGET) {
        decide(name, status, addresses, count);
        return;
    }
    if (status == SS_OK && state_of(name) != NULL)
        ss_upstream_remember(state_of(name), addresses, count);
    ip = status == SS_OK ? usable(name, addresses, count) : NULL;
    if (ip == NULL && name->state == ASKING && recall(name, &recalled))
        ip = &recalled;
    if (ip != NULL) {
        is_known(name, ip);
        return;
    }
    ss_log_debug("[udp] %s: %s", name->name,
                 ss_status_text(status == SS_OK ? SS_ERR_UNREACHABLE : status));
    name->until_ms = now_ms + UNKNOWN_MS;
    if (status != SS_OK && name->state == KNOWN)
        return; /* an address that served is better than none */
    set_state(name, UNKNOWN);
    drop_waiting(name);
}

/* What the access control list says of the name itself. False: it need not be looked up. */
static bool judge(struct ss_udp_name *name)
{
    struct ss_acl_scratch *scratch = worker_of(name->association)->acl_scratch;
    const size_t len = strlen(name->name);

    if (name->use == SS_UDP_NAME_CLIENT_TARGET) {
        name->route = ss_acl_name_route(acl_of(name), scratch, name->name, len);
        if (name->route == SS_ACL_PROXY)
            set_state(name, ELSEWHERE);
        return name->route != SS_ACL_PROXY;
    }
    if (name->use == SS_UDP_NAME_TARGET && acl_of(name) != NULL) {
        enum ss_acl_outbound outbound =
            ss_acl_outbound_name(acl_of(name), scratch, name->name, len);

        name->refused = outbound == SS_ACL_REFUSED;
        name->named = outbound == SS_ACL_NAMED;
    }
    return !name->refused;
}

static bool is_settled(const struct ss_udp_name *name)
{
    return name->state == KNOWN || name->state == ELSEWHERE;
}

/* What is known stays so while it is asked again: traffic under way does not wait. */
static void ask(struct ss_udp_name *name)
{
    struct ss_worker *worker = worker_of(name->association);

    if (name->query != NULL)
        return;
    name->asked_ms = uv_now(&worker->loop);
    if (!is_settled(name) && relay_of(name)->asking >= SS_UDP_ASKING_MAX) {
        name->until_ms = uv_now(&worker->loop);
        return;
    }
    name->query = ss_resolver_ask(worker->resolver, name->name, on_resolved, name);
    if (name->query == NULL)
        name->until_ms = uv_now(&worker->loop) + UNKNOWN_MS;
    else if (!is_settled(name))
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
static struct ss_udp_name *entry_for(struct ss_association *association, enum ss_udp_name_use use,
                                     const char *text)
{
    struct ss_udp_name *name;
    int count = 0;

    for (struct ss_udp_name **link = &association->names; (name = *link) != NULL;
         link = &name->next, count++) {
        if (name->use != use || strcasecmp(name->name, text) != 0)
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
    name->use = use;
    strncpy(name->name, text, sizeof name->name - 1);
    name->next = association->names;
    association->names = name;
    if (judge(name))
        ask(name);
    else
        name->until_ms = UINT64_MAX;
    return name;
}

enum ss_udp_way ss_udp_name_way(struct ss_association *association, enum ss_udp_name_use use,
                                const char *text, uint16_t port, size_t address_len,
                                struct ss_view bytes, struct ss_ip *ip)
{
    struct ss_udp_name *name = entry_for(association, use, text);
    const uint64_t now_ms = uv_now(&worker_of(association)->loop);
    const bool has_upstream = use == SS_UDP_NAME_CLIENT_TARGET;

    if (name == NULL)
        return has_upstream ? SS_UDP_WAY_UPSTREAM : SS_UDP_WAY_NONE;
    if (name->state != ASKING && name->until_ms <= now_ms)
        ask(name);
    if (name->state == ASKING && has_upstream && name->asked_ms + DECIDE_MS <= now_ms) {
        name->until_ms = now_ms + UNKNOWN_MS;
        is_elsewhere(name);
        return SS_UDP_WAY_UPSTREAM; /* the entry may be another's by now */
    }
    if (name->state == ASKING && name->asked_ms + PATIENCE_MS <= now_ms && recall(name, ip)) {
        name->until_ms = now_ms + UNKNOWN_MS;
        is_known(name, ip);
        return SS_UDP_WAY_ADDRESS;
    }
    switch (name->state) {
    case KNOWN:
        *ip = name->ip;
        return SS_UDP_WAY_ADDRESS;
    case ASKING:
        keep(name, port, address_len, bytes);
        return SS_UDP_WAY_NONE;
    case ELSEWHERE:
        return SS_UDP_WAY_UPSTREAM;
    case UNKNOWN:
        break;
    }
    return has_upstream ? SS_UDP_WAY_UPSTREAM : SS_UDP_WAY_NONE;
}

void ss_udp_names_clear_servers(struct ss_association *association)
{
    for (struct ss_udp_name **link = &association->names; *link != NULL;) {
        struct ss_udp_name *name = *link;

        if (name->use == SS_UDP_NAME_SERVER) {
            *link = name->next;
            release(name);
        } else {
            link = &name->next;
        }
    }
}

void ss_udp_names_clear(struct ss_association *association)
{
    while (association->names != NULL) {
        struct ss_udp_name *name = association->names;

        association->names = name->next;
        release(name);
    }
}
