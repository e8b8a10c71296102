/* What must not be relayed, since it would come back. */
#include "relay/loop_guard.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/log.h"
#include "net/redirect.h"
#include "relay/worker.h"
#include "resolver/resolver.h"

#define HINT_INTERVAL_MS 60000

enum cause { CAUSE_TCP_PORT, CAUSE_UDP_PORT, CAUSE_SERVER, CAUSE_COUNT };

struct ss_loop_guard {
    /* A bit a port. One that was closed stays: nobody else is meant to be redirected to. */
    _Atomic uint32_t ports[2][(UINT16_MAX + 1) / 32];
    _Atomic uint64_t hint_due_ms[CAUSE_COUNT];
};

struct ss_loop_guard *ss_loop_guard_new(void)
{
    return calloc(1, sizeof(struct ss_loop_guard));
}

void ss_loop_guard_free(struct ss_loop_guard *guard)
{
    free(guard);
}

void ss_loop_guard_add_port(struct ss_loop_guard *guard, bool udp, uint16_t port)
{
    atomic_fetch_or_explicit(&guard->ports[udp][port / 32], UINT32_C(1) << port % 32,
                             memory_order_relaxed);
}

static bool is_own_port(const struct ss_loop_guard *guard, bool udp, uint16_t port)
{
    return atomic_load_explicit(&guard->ports[udp][port / 32], memory_order_relaxed) >> port % 32 &
           1;
}

static bool is_same(const struct ss_addr *a, const struct ss_addr *b)
{
    return a->port == b->port && ss_ip_equal(&a->ip, &b->ip);
}

void ss_dialed_note(struct ss_dialed *dialed, const struct ss_addr *server)
{
    const size_t count = sizeof dialed->addresses / sizeof dialed->addresses[0];

    for (size_t i = 0; i < count; i++)
        if (is_same(&dialed->addresses[i], server))
            return;
    dialed->addresses[dialed->next++ % count] = *server;
}

static bool is_upstream(const struct ss_dialed *dialed, const struct ss_role_options *role,
                        const struct ss_addr *destination)
{
    for (size_t i = 0; i < role->guarded_count; i++) {
        const struct ss_endpoint *endpoint = &role->guarded[i];
        struct ss_ip ip;

        if (endpoint->port == destination->port && ss_ip_parse(&ip, endpoint->host) == SS_OK &&
            ss_ip_equal(&ip, &destination->ip))
            return true;
    }
    for (size_t i = 0; i < sizeof dialed->addresses / sizeof dialed->addresses[0]; i++)
        if (is_same(&dialed->addresses[i], destination))
            return true;
    return false;
}

static void hint(struct ss_loop_guard *guard, enum cause cause, const struct ss_addr *destination,
                 uint64_t now_ms)
{
    static const struct {
        const char *what, *why;
    } texts[] = {
        [CAUSE_TCP_PORT] = {"a connection to our own port",
                            "refused: connections come here by REDIRECT, or by TPROXY with -T"},
        [CAUSE_UDP_PORT] = {"[udp] a datagram to our own port",
                            "dropped: datagrams come here by TPROXY alone"},
        [CAUSE_SERVER] = {"traffic of this machine to the server",
                          "refused, for it would go round in a loop: leave the server, or what "
                          "outbound_fwmark marks, out of the rules"},
    };
    uint64_t due_ms = atomic_load_explicit(&guard->hint_due_ms[cause], memory_order_relaxed);
    char text[SS_ADDR_TEXT_MAX];

    /* Of several threads one gets to say it. */
    if (due_ms <= now_ms && atomic_compare_exchange_strong(&guard->hint_due_ms[cause], &due_ms,
                                                           now_ms + HINT_INTERVAL_MS))
        ss_log_error("%s %s is %s", texts[cause].what, ss_addr_format(destination, text),
                     texts[cause].why);
}

bool ss_loop_guard_refuses(struct ss_loop_guard *guard, const struct ss_dialed *dialed,
                           const struct ss_role *role, bool udp, const struct ss_addr *client,
                           const struct ss_addr *destination, uint64_t now_ms)
{
    if (is_own_port(guard, udp, destination->port) && ss_redirect_is_local(&destination->ip)) {
        hint(guard, udp ? CAUSE_UDP_PORT : CAUSE_TCP_PORT, destination, now_ms);
        return true;
    }
    if (is_upstream(dialed, &role->options, destination) && ss_redirect_is_local(&client->ip)) {
        hint(guard, CAUSE_SERVER, destination, now_ms);
        return true;
    }
    return false;
}

static void on_resolved(void *owner, enum ss_status status, const struct ss_ip *addresses,
                        size_t count)
{
    struct ss_worker *worker = owner;

    worker->dialed.asking = false;
    for (size_t i = 0; status == SS_OK && i < count; i++)
        ss_dialed_note(&worker->dialed,
                       &(struct ss_addr){.ip = addresses[i], .port = worker->dialed.asked_port});
}

void ss_loop_guard_learn(struct ss_worker *worker, const struct ss_role *role,
                         const struct ss_addr *client, const struct ss_addr *destination)
{
    for (size_t i = 0; i < role->options.guarded_count && !worker->dialed.asking; i++) {
        const struct ss_endpoint *endpoint = &role->options.guarded[i];
        struct ss_ip ip;

        if (endpoint->port != destination->port || ss_ip_parse(&ip, endpoint->host) == SS_OK)
            continue;
        if (!ss_redirect_is_local(&client->ip))
            return;
        worker->dialed.asked_port = endpoint->port;
        worker->dialed.asking =
            ss_resolver_ask(worker->resolver, endpoint->host, on_resolved, worker) != NULL;
    }
}
