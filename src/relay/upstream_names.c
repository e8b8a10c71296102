/* Look-ups of upstream servers' names, apart from any client. */
#include "relay/upstream_names.h"

#include <stdlib.h>

#include <uv.h>

#include "base/log.h"
#include "relay/engine_internal.h"

#define PAUSE_FIRST_MS 1000
#define PAUSE_MOST_MS  60000

struct watched {
    struct watched *next;
    struct ss_upstream_names *names;
    struct ss_upstream_state *state; /* held */
    struct ss_query *query;
    uint64_t due_ms; /* while nothing is asked */
    uint64_t pause_ms;
};

struct ss_upstream_names {
    struct ss_engine *engine;
    struct watched *first;
    uv_timer_t timer;
};

static struct ss_worker *worker_of(const struct ss_upstream_names *names)
{
    return &names->engine->workers[0];
}

static uint64_t now_of(const struct ss_upstream_names *names)
{
    return uv_now(&worker_of(names)->loop);
}

static bool is_known(struct ss_upstream_state *state, uint64_t now_ms)
{
    struct ss_ip addresses[SS_UPSTREAM_ADDRESSES_MAX];

    return ss_upstream_addresses(state, addresses, now_ms) != 0;
}

static void forget(struct watched *watched)
{
    struct watched **link = &watched->names->first;

    while (*link != watched)
        link = &(*link)->next;
    *link = watched->next;
    ss_resolver_cancel(watched->query);
    ss_upstream_state_release(watched->state);
    free(watched);
}

static void on_time(uv_timer_t *timer);

static void arm(struct ss_upstream_names *names)
{
    uint64_t now_ms = now_of(names), due_ms = UINT64_MAX;

    for (const struct watched *watched = names->first; watched != NULL; watched = watched->next)
        if (watched->query == NULL && watched->due_ms < due_ms)
            due_ms = watched->due_ms;
    if (due_ms != UINT64_MAX)
        uv_timer_start(&names->timer, on_time, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

static void failed(struct watched *watched, enum ss_status status)
{
    struct ss_upstream_names *names = watched->names;
    uint64_t now_ms = now_of(names);

    ss_log_limited(&names->engine->dial_log, now_ms, SS_LOG_ERROR, "getaddrinfo: %s: %s",
                   ss_upstream_state_endpoint(watched->state)->host, ss_status_text(status));
    ss_log_limited(&names->engine->dial_log, now_ms, SS_LOG_ERROR,
                   "failed to resolve the provided hostname");
    (void)ss_upstream_failed(watched->state, SS_TRANSPORT_TCP, true, now_ms, now_ms);
    watched->due_ms = now_ms + watched->pause_ms;
    watched->pause_ms =
        2 * watched->pause_ms < PAUSE_MOST_MS ? 2 * watched->pause_ms : PAUSE_MOST_MS;
    arm(names);
}

static void on_resolved(void *owner, enum ss_status status, const struct ss_ip *addresses,
                        size_t count)
{
    struct watched *watched = owner;
    char text[SS_IP_TEXT_MAX];

    watched->query = NULL;
    if (status != SS_OK) {
        failed(watched, status);
        return;
    }
    ss_upstream_remember(watched->state, addresses, count);
    if (watched->pause_ms != PAUSE_FIRST_MS) /* it was said that it could not be */
        ss_log_info("%s is resolved now: %s", ss_upstream_state_endpoint(watched->state)->host,
                    ss_ip_format(&addresses[0], text));
    forget(watched);
}

static void ask(struct watched *watched)
{
    watched->query =
        ss_resolver_ask(worker_of(watched->names)->resolver,
                        ss_upstream_state_endpoint(watched->state)->host, on_resolved, watched);
    if (watched->query == NULL)
        failed(watched, SS_ERR_NOT_FOUND);
}

static void on_time(uv_timer_t *timer)
{
    struct ss_upstream_names *names = timer->data;
    uint64_t now_ms = now_of(names);
    struct watched *next;

    for (struct watched *watched = names->first; watched != NULL; watched = next) {
        next = watched->next;
        if (watched->query != NULL || watched->due_ms > now_ms)
            continue;
        if (is_known(watched->state, now_ms) || ss_upstream_state_is_last(watched->state))
            forget(watched);
        else
            ask(watched);
    }
    arm(names);
}

enum ss_status ss_upstream_names_new(struct ss_upstream_names **out, struct ss_engine *engine)
{
    struct ss_upstream_names *names = calloc(1, sizeof *names);

    *out = names;
    if (names == NULL)
        return SS_ERR_MEMORY;
    names->engine = engine;
    uv_timer_init(&engine->workers[0].loop, &names->timer);
    names->timer.data = names;
    return SS_OK;
}

static void watch(struct ss_upstream_names *names, struct ss_upstream_state *state)
{
    struct watched *watched;

    if (!ss_upstream_has_name(state) || is_known(state, now_of(names)))
        return;
    for (watched = names->first; watched != NULL; watched = watched->next)
        if (watched->state == state)
            return;
    watched = calloc(1, sizeof *watched);
    if (watched == NULL)
        return;
    watched->names = names;
    watched->state = ss_upstream_state_hold(state);
    watched->pause_ms = PAUSE_FIRST_MS;
    watched->next = names->first;
    names->first = watched;
    ask(watched);
}

void ss_upstream_names_watch(struct ss_upstream_names *names, const struct ss_role *role)
{
    for (size_t i = 0; i < role->upstreams.count; i++)
        watch(names, role->upstreams.states[i]);
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void ss_upstream_names_close(struct ss_upstream_names *names)
{
    while (names->first != NULL)
        forget(names->first);
    uv_close((uv_handle_t *)&names->timer, on_closed);
}
