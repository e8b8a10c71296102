/* Which family the servers of a client are of, for the loopback address that it listens on. */
#include "service/service_internal.h"

#include <uv.h>

#include "resolver/resolver.h"

#define WAIT_MS 1000

struct asking {
    uv_loop_t loop;
    uv_timer_t timer;
    size_t waiting; /* names without an answer */
    bool only_ipv6;
};

static void give_up(struct asking *asking)
{
    asking->only_ipv6 = false;
    uv_stop(&asking->loop);
}

static void on_time(uv_timer_t *timer)
{
    give_up(timer->data);
}

static void on_resolved(void *owner, enum ss_status status, const struct ss_ip *addresses,
                        size_t count)
{
    struct asking *asking = owner;
    bool ipv6 = status == SS_OK;

    for (size_t i = 0; ipv6 && i < count; i++)
        ipv6 = addresses[i].family == SS_FAMILY_IPV6;
    asking->waiting--;
    if (!ipv6)
        give_up(asking);
    else if (asking->waiting == 0)
        uv_stop(&asking->loop);
}

static void ask_all(struct asking *asking, struct ss_resolver *resolver,
                    const struct ss_upstream *servers, size_t count)
{
    struct ss_ip ip;

    for (size_t i = 0; i < count; i++) {
        if (ss_ip_parse(&ip, servers[i].endpoint.host) == SS_OK)
            continue;
        if (ss_resolver_ask(resolver, servers[i].endpoint.host, on_resolved, asking) == NULL) {
            asking->only_ipv6 = false;
            return;
        }
        asking->waiting++;
    }
    if (asking->waiting != 0)
        uv_run(&asking->loop, UV_RUN_DEFAULT);
}

static bool look_up(const struct ss_upstream *servers, size_t count, const char *nameservers)
{
    const struct ss_resolver_options options = {.nameservers = nameservers, .tries = 1};
    struct asking asking = {.only_ipv6 = true};
    struct ss_resolver *resolver;

    if (uv_loop_init(&asking.loop) != 0)
        return false;
    uv_timer_init(&asking.loop, &asking.timer);
    asking.timer.data = &asking;
    uv_timer_start(&asking.timer, on_time, WAIT_MS, 0);
    if (ss_resolver_new(&resolver, &asking.loop, &options) == SS_OK) {
        ask_all(&asking, resolver, servers, count);
        ss_resolver_close(resolver);
    } else {
        asking.only_ipv6 = false;
    }
    uv_close((uv_handle_t *)&asking.timer, NULL);
    uv_run(&asking.loop, UV_RUN_DEFAULT);
    uv_loop_close(&asking.loop);
    return asking.only_ipv6;
}

bool ss_service_only_ipv6(const struct ss_upstream *servers, size_t count, const char *nameservers,
                          bool may_wait)
{
    bool names = false;

    for (size_t i = 0; i < count; i++) {
        struct ss_ip ip;

        if (ss_ip_parse(&ip, servers[i].endpoint.host) != SS_OK)
            names = true;
        else if (ip.family != SS_FAMILY_IPV6)
            return false;
    }
    return count != 0 && (!names || (may_wait && look_up(servers, count, nameservers)));
}
