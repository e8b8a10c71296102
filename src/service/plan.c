/* Which sockets a program will listen on, and what each is for. */
#include "service/service_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "sys/names.h"

#define SERVER_BACKLOG 1024

static struct ss_plan *add_plan(struct ss_service *service, const char *host, uint16_t port,
                                bool udp)
{
    const struct ss_config *config = service->config;
    struct ss_plan *plan = &service->plans[service->plan_count++];

    plan->host = host;
    plan->port = port;
    plan->udp = udp;
    plan->options.address.port = port;
    plan->options.reuse_port = config->reuse_port;
    plan->options.fast_open = config->fast_open;
    plan->options.keep_alive_s = config->keep_alive_s;
    plan->options.incoming_sndbuf = (int)config->tcp_incoming_sndbuf;
    plan->options.incoming_rcvbuf = (int)config->tcp_incoming_rcvbuf;
    if (udp)
        service->udp_plans++;
    else
        service->tcp_plans++;
    return plan;
}

static bool look_up(const struct ss_service *service, struct ss_ip *ip, const char *host)
{
    const char *error_text;

    if (ss_service_name(service, ip, host, &error_text) == SS_OK)
        return true;
    ss_log_error("getaddrinfo: %s", error_text);
    ss_log_error("failed to resolve the provided hostname");
    ss_log_error("failed to resolve server name %s", host);
    return false;
}

static bool plan_server_address(struct ss_service *service, size_t index, size_t place)
{
    const struct ss_config *config = service->config;
    const struct ss_config_server *server = &config->servers[index];
    const struct ss_endpoint *endpoint = &server->addresses[place];

    for (int udp = 0; udp <= 1; udp++) {
        struct ss_plan *plan;

        if (server->mode == (udp ? SS_MODE_TCP_ONLY : SS_MODE_UDP_ONLY))
            continue;
        if (ss_plugin_carries(server, udp != 0)) {
            /* The plugin has the public addresses, all of one port. */
            if (!ss_service_is_first_of_port(server, place))
                continue;
            plan = add_plan(service, NULL, endpoint->port, udp != 0);
            plan->options.address = *ss_service_plugin_at(service, index, endpoint->port);
            plan->host = plan->options.address.ip.family == SS_FAMILY_IPV4 ? "127.0.0.1" : "::1";
        } else {
            plan = add_plan(service, endpoint->host, endpoint->port, udp != 0);
            if (!look_up(service, &plan->options.address.ip, endpoint->host))
                return false;
        }
        plan->role.ingress = SS_INGRESS_SHADOWSOCKS;
        plan->role.egress = SS_EGRESS_DIRECT;
        plan->role.acl = service->acl;
        plan->role.profile = service->keyings[index].profile;
        plan->role.limiter = &service->keyings[index].use->limiter;
        plan->options.backlog = SERVER_BACKLOG;
        plan->options.mptcp = config->mptcp;
    }
    return true;
}

static bool plan_server(struct ss_service *service)
{
    const struct ss_config *config = service->config;

    for (size_t i = 0; i < config->server_count; i++)
        for (size_t a = 0; a < config->servers[i].address_count; a++)
            if (!plan_server_address(service, i, a))
                return false;
    return true;
}

static size_t count_addresses(const struct ss_config *config)
{
    size_t count = 0;

    for (size_t i = 0; i < config->server_count; i++)
        count += config->servers[i].address_count;
    return count;
}

static void put_endpoint(struct ss_endpoint *endpoint, const struct ss_addr *addr)
{
    ss_ip_format(&addr->ip, endpoint->host);
    endpoint->port = addr->port;
}

static bool is_for(const struct ss_config_server *server, bool udp)
{
    return server->mode != (udp ? SS_MODE_TCP_ONLY : SS_MODE_UDP_ONLY) &&
           (udp ? server->udp_weight : server->tcp_weight) != 0;
}

/* What is seen of a server over TCP and UDP is kept in one place. */
static struct ss_upstream_state *state_for(const struct ss_service *service,
                                           const struct ss_service *before,
                                           const struct ss_endpoint *endpoint)
{
    const struct ss_service *services[] = {service, before};

    for (size_t i = 0; i < 2 && services[i] != NULL; i++) {
        const struct ss_upstreams *tcp = &services[i]->tcp_upstreams;
        const struct ss_upstreams *udp = &services[i]->udp_upstreams;
        struct ss_upstream_state *state = ss_upstreams_find(tcp->list, tcp->count, endpoint);

        if (state == NULL)
            state = ss_upstreams_find(udp->list, udp->count, endpoint);
        if (state != NULL)
            return ss_upstream_state_hold(state);
    }
    return ss_upstream_state_new(endpoint);
}

/* The upstream servers of one transport, each with the method and key of its own. */
static bool gather_upstreams(struct ss_service *service, const struct ss_service *before, bool udp)
{
    struct ss_upstreams *upstreams = udp ? &service->udp_upstreams : &service->tcp_upstreams;
    const struct ss_config *config = service->config;

    upstreams->list = calloc(count_addresses(config) + 1, sizeof *upstreams->list);
    if (upstreams->list == NULL) {
        ss_log_error("%s", ss_status_text(SS_ERR_MEMORY));
        return false;
    }
    for (size_t i = 0; i < config->server_count; i++) {
        const struct ss_config_server *server = &config->servers[i];

        for (size_t a = 0; is_for(server, udp) && a < server->address_count; a++) {
            bool plugin = ss_plugin_carries(server, udp);
            struct ss_upstream *upstream;

            if (plugin && !ss_service_is_first_of_port(server, a))
                continue;
            upstream = &upstreams->list[upstreams->count++];
            upstream->endpoint = server->addresses[a];
            upstream->profile = service->keyings[i].profile;
            if (plugin)
                put_endpoint(&upstream->endpoint,
                             ss_service_plugin_at(service, i, server->addresses[a].port));
            upstream->weight = udp ? server->udp_weight : server->tcp_weight;
            upstream->state = state_for(service, before, &upstream->endpoint);
            if (upstream->state == NULL) {
                ss_log_error("%s", ss_status_text(SS_ERR_MEMORY));
                return false;
            }
        }
    }
    if (upstreams->count > SS_UPSTREAMS_MAX) {
        ss_log_error("%zu servers are too many; %u can be used", upstreams->count,
                     SS_UPSTREAMS_MAX);
        return false;
    }
    return true;
}

static void free_upstreams(struct ss_upstreams *upstreams)
{
    for (size_t i = 0; i < upstreams->count; i++)
        ss_upstream_state_release(upstreams->list[i].state);
    free(upstreams->list);
    *upstreams = (struct ss_upstreams){0};
}

static bool gather_users(struct ss_service *service)
{
    const struct ss_config *config = service->config;
    size_t count = 0;

    for (size_t i = 0; i < config->local_count; i++)
        count += config->locals[i].user_count;
    service->users = calloc(count != 0 ? count : 1, sizeof *service->users);
    return service->users != NULL;
}

/* Where a local's address stands for more than one socket, they have these in common. */
static void fill_client(struct ss_service *service, struct ss_plan *plan, size_t index,
                        const struct ss_socks5_user *users)
{
    const struct ss_config_local *local = &service->config->locals[index];
    const struct ss_upstreams *upstreams =
        plan->udp ? &service->udp_upstreams : &service->tcp_upstreams;

    plan->role.ingress = SS_INGRESS_SOCKS5;
    if (service->config->program == SS_PROGRAM_REDIR) {
        plan->role.ingress = SS_INGRESS_REDIRECT;
        plan->role.tproxy = local->tproxy;
        plan->role.tos = (uint8_t)(local->dscp << 2);
        plan->role.guarded = service->guarded;
        plan->role.guarded_count = service->guarded_count;
    }
    if (service->config->program == SS_PROGRAM_TUNNEL) {
        plan->role.ingress = SS_INGRESS_FIXED;
        plan->role.fixed_target = &service->targets[index];
    }
    plan->role.egress = SS_EGRESS_UPSTREAM;
    if (service->config->program == SS_PROGRAM_LOCAL)
        plan->role.acl = service->acl;
    plan->role.upstreams = upstreams->list;
    plan->role.upstream_count = upstreams->count;
    plan->role.balance =
        service->config->balance == SS_BALANCING_RANDOM ? SS_BALANCE_RANDOM : SS_BALANCE_FASTEST;
    plan->role.users = users;
    plan->role.user_count = local->user_count;
    plan->options.backlog = SOMAXCONN;
    /* Fast Open and Multipath TCP are for the way to the server. */
    plan->options.fast_open = false;
    plan->role.advertised = service->config->udp_advertised;
    /* Without a connection of its own there, nobody could ask for an association. */
    plan->role.udp_open = service->config->udp_open || local->mode == SS_MODE_UDP_ONLY;
}

static bool resolve_host(const struct ss_service *service, struct ss_plan *plan)
{
    const char *error_text;

    /* Without a host it is chosen when it is time to listen. */
    if (plan->host == NULL ||
        ss_service_name(service, &plan->options.address.ip, plan->host, &error_text) == SS_OK)
        return true;
    ss_log_info("getaddrinfo: %s", error_text);
    ss_log_error("bind() error");
    ss_log_error("the address to listen on, %s, is not known", plan->host);
    return false;
}

static bool plan_local(struct ss_service *service, size_t index, const struct ss_socks5_user *users)
{
    const struct ss_config_local *local = &service->config->locals[index];

    for (int udp = 0; udp <= 1; udp++) {
        const char *host = udp && local->udp_address != NULL ? local->udp_address : local->address;
        uint16_t port = udp && local->udp_port != 0 ? local->udp_port : local->port;
        struct ss_plan *plan;

        if (local->mode == (udp ? SS_MODE_TCP_ONLY : SS_MODE_UDP_ONLY))
            continue;
        plan = add_plan(service, host, port, udp != 0);
        fill_client(service, plan, index, users);
        if (!resolve_host(service, plan))
            return false;
    }
    return true;
}

/* All servers, whether they are reached by a plugin or not. */
static bool gather_guarded(struct ss_service *service)
{
    const struct ss_config *config = service->config;

    service->guarded = calloc(count_addresses(config) + 1, sizeof *service->guarded);
    if (service->guarded == NULL)
        return false;
    for (size_t i = 0; i < config->server_count; i++)
        for (size_t a = 0; a < config->servers[i].address_count; a++)
            service->guarded[service->guarded_count++] = config->servers[i].addresses[a];
    return true;
}

static bool plan_client(struct ss_service *service, const struct ss_service *before)
{
    const struct ss_config *config = service->config;
    size_t users = 0;

    service->targets = calloc(config->local_count, sizeof *service->targets);
    if (service->targets == NULL || !gather_guarded(service) || !gather_users(service) ||
        !gather_upstreams(service, before, false) || !gather_upstreams(service, before, true))
        return false;
    for (size_t i = 0; i < config->local_count; i++) {
        const struct ss_config_local *local = &config->locals[i];
        struct ss_socks5_user *own = &service->users[users];

        for (size_t u = 0; u < local->user_count; u++)
            service->users[users++] =
                (struct ss_socks5_user){local->users[u].name, local->users[u].password};
        if (config->program == SS_PROGRAM_TUNNEL &&
            ss_target_from_host(&service->targets[i], local->target.host, local->target.port) !=
                SS_OK)
            return false; /* ss_service_plans_fit has said so */
        if (!plan_local(service, i, own))
            return false;
    }
    return true;
}

static bool any_server_is_for(const struct ss_config *config, bool udp)
{
    for (size_t i = 0; i < config->server_count; i++)
        if (is_for(&config->servers[i], udp))
            return true;
    ss_log_error("none of the servers is for %s", udp ? "UDP" : "TCP");
    return false;
}

bool ss_service_plans_fit(const struct ss_config *config)
{
    for (size_t i = 0; config->program != SS_PROGRAM_SERVER && i < config->local_count; i++) {
        const struct ss_config_local *local = &config->locals[i];
        struct ss_target target;

        if ((local->mode != SS_MODE_UDP_ONLY && !any_server_is_for(config, false)) ||
            (local->mode != SS_MODE_TCP_ONLY && !any_server_is_for(config, true)))
            return false;
        if (config->program == SS_PROGRAM_TUNNEL &&
            ss_target_from_host(&target, local->target.host, local->target.port) != SS_OK) {
            ss_log_error("tunnel_address: '%s' is not a host", local->target.host);
            return false;
        }
    }
    return true;
}

bool ss_service_make_plans(struct ss_service *service, const struct ss_service *before)
{
    const struct ss_config *config = service->config;
    size_t addresses = config->local_count + count_addresses(config);

    if (!ss_service_place_plugins(service))
        return false;
    service->plans = calloc(addresses * 2, sizeof *service->plans);
    if (service->plans == NULL) {
        ss_log_error("%s", ss_status_text(SS_ERR_MEMORY));
        return false;
    }
    return config->program == SS_PROGRAM_SERVER ? plan_server(service)
                                                : plan_client(service, before);
}

/* Clients without an address listen on the loopback address of IPv4, unless every server has IPv6
 * addresses alone. */
static void choose_defaults(struct ss_service *service, bool may_wait)
{
    const struct ss_upstreams *upstreams =
        service->tcp_plans != 0 ? &service->tcp_upstreams : &service->udp_upstreams;

    for (size_t i = 0; i < service->plan_count; i++) {
        struct ss_plan *plan = &service->plans[i];

        if (plan->host != NULL)
            continue;
        if (service->default_host == NULL)
            service->default_host = ss_service_only_ipv6(upstreams->list, upstreams->count,
                                                         service->config->nameservers, may_wait)
                                        ? "::1"
                                        : "127.0.0.1";
        plan->host = service->default_host;
        if (ss_ip_parse(&plan->options.address.ip, plan->host) != SS_OK)
            plan->options.address.ip.family = SS_FAMILY_NONE;
    }
}

/*
 * `::` is IPv6 alone where IPv4 is asked for apart, at the same port and transport; by itself it is
 * both.
 */
static void choose_families(struct ss_service *service)
{
    uint8_t ipv4_ports[2][(UINT16_MAX + 1) / 8] = {0};

    for (size_t i = 0; i < service->plan_count; i++) {
        const struct ss_addr *address = &service->plans[i].options.address;

        if (address->ip.family == SS_FAMILY_IPV4)
            ipv4_ports[service->plans[i].udp][address->port / 8] |= 1u << address->port % 8;
    }
    for (size_t i = 0; i < service->plan_count; i++) {
        struct ss_listener_options *options = &service->plans[i].options;
        uint16_t port = options->address.port;

        options->ipv6_only = service->config->ipv6_only || !ss_ip_is_any(&options->address.ip) ||
                             (ipv4_ports[service->plans[i].udp][port / 8] >> port % 8 & 1) != 0;
    }
}

void ss_service_settle_plans(struct ss_service *service, bool may_wait)
{
    choose_defaults(service, may_wait);
    choose_families(service);
}

void ss_service_free_plans(struct ss_service *service)
{
    ss_service_leave_plugins(service);
    free(service->names);
    service->names = NULL;
    service->name_count = 0;
    free(service->plans);
    free_upstreams(&service->tcp_upstreams);
    free_upstreams(&service->udp_upstreams);
    free(service->users);
    free(service->targets);
    free(service->guarded);
    service->plans = NULL;
    service->users = NULL;
    service->targets = NULL;
    service->guarded = NULL;
    service->guarded_count = 0;
    service->plan_count = service->tcp_plans = service->udp_plans = 0;
}
