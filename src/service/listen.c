/* Which sockets a program listens on, what each is for, and binding them. */
#include "service/service_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "sys/names.h"

#define SERVER_BACKLOG 1024

static struct ss_plan *add_plan(struct ss_service *service)
{
    const struct ss_config *config = service->config;
    struct ss_plan *plan = &service->plans[service->plan_count++];

    plan->options.reuse_port = config->reuse_port;
    plan->options.fast_open = config->fast_open;
    plan->options.incoming_sndbuf = (int)config->tcp_incoming_sndbuf;
    plan->options.incoming_rcvbuf = (int)config->tcp_incoming_rcvbuf;
    return plan;
}

static bool plan_server(struct ss_service *service)
{
    const struct ss_config *config = service->config;

    for (size_t i = 0; i < config->server_count; i++) {
        for (size_t a = 0; a < config->servers[i].address_count; a++) {
            const struct ss_endpoint *endpoint = &config->servers[i].addresses[a];
            struct ss_plan *plan = add_plan(service);
            const char *error_text;

            plan->host = endpoint->host;
            plan->options.ingress = SS_INGRESS_SHADOWSOCKS;
            plan->options.egress = SS_EGRESS_DIRECT;
            plan->options.profile = service->profiles[i];
            plan->options.backlog = SERVER_BACKLOG;
            plan->options.mptcp = config->mptcp;
            plan->options.address.port = endpoint->port;
            if (ss_names_first(&plan->options.address.ip, endpoint->host, &error_text) != SS_OK) {
                ss_log_error("getaddrinfo: %s", error_text);
                ss_log_error("failed to resolve the provided hostname");
                ss_log_error("failed to resolve server name %s", endpoint->host);
                return false;
            }
        }
    }
    return true;
}

/* The upstream servers of a client, each with the method and key of its own. */
static bool gather_upstreams(struct ss_service *service)
{
    const struct ss_config *config = service->config;
    size_t count = 0;

    for (size_t i = 0; i < config->server_count; i++)
        count += config->servers[i].address_count;
    service->upstreams = calloc(count, sizeof *service->upstreams);
    if (service->upstreams == NULL)
        return false;
    for (size_t i = 0; i < config->server_count; i++) {
        for (size_t a = 0; a < config->servers[i].address_count; a++) {
            struct ss_upstream *upstream = &service->upstreams[service->upstream_count++];

            upstream->endpoint = config->servers[i].addresses[a];
            upstream->profile = service->profiles[i];
        }
    }
    return true;
}

static bool plan_client(struct ss_service *service)
{
    const struct ss_config *config = service->config;

    service->targets = calloc(config->local_count, sizeof *service->targets);
    if (service->targets == NULL || !gather_upstreams(service))
        return false;
    for (size_t i = 0; i < config->local_count; i++) {
        const struct ss_config_local *local = &config->locals[i];
        struct ss_plan *plan = add_plan(service);
        const char *error_text;

        plan->host = local->address; /* none: chosen when it is time to listen */
        plan->options.address.port = local->port;
        plan->options.ingress = SS_INGRESS_SOCKS5;
        plan->options.egress = SS_EGRESS_UPSTREAM;
        plan->options.upstreams = service->upstreams;
        plan->options.upstream_count = service->upstream_count;
        plan->options.backlog = SOMAXCONN;
        /* Fast Open and Multipath TCP are for the way to the server. */
        plan->options.fast_open = false;
        if (config->program == SS_PROGRAM_TUNNEL) {
            plan->options.ingress = SS_INGRESS_FIXED;
            plan->options.fixed_target = &service->targets[i];
            if (ss_target_from_host(&service->targets[i], local->target.host, local->target.port) !=
                SS_OK) {
                ss_log_error("tunnel_address: '%s' is not a host", local->target.host);
                return false;
            }
        }
        if (plan->host != NULL &&
            ss_names_first(&plan->options.address.ip, plan->host, &error_text) != SS_OK) {
            ss_log_info("getaddrinfo: %s", error_text);
            ss_log_error("bind() error");
            ss_log_error("the address to listen on, %s, is not known", plan->host);
            return false;
        }
    }
    return true;
}

/* `::` is IPv6 alone where IPv4 is asked for apart, at the same port; by itself it is both. */
static void choose_families(struct ss_service *service)
{
    for (size_t i = 0; i < service->plan_count; i++) {
        struct ss_listener_options *options = &service->plans[i].options;

        options->ipv6_only = !ss_ip_is_any(&options->address.ip);
        for (size_t other = 0; other < service->plan_count; other++) {
            const struct ss_addr *address = &service->plans[other].options.address;

            if (address->ip.family == SS_FAMILY_IPV4 && address->port == options->address.port)
                options->ipv6_only = true;
        }
    }
}

bool ss_service_make_plans(struct ss_service *service)
{
    const struct ss_config *config = service->config;
    size_t most = config->local_count;

    for (size_t i = 0; i < config->server_count; i++)
        most += config->servers[i].address_count;
    service->plans = calloc(most, sizeof *service->plans);
    if (service->plans == NULL) {
        ss_log_error("%s", ss_status_text(SS_ERR_MEMORY));
        return false;
    }
    return config->program == SS_PROGRAM_SERVER ? plan_server(service) : plan_client(service);
}

/* Clients without an address listen on the loopback address of IPv4, unless every server has IPv6
 * addresses alone. */
static void choose_defaults(struct ss_service *service)
{
    const char *host = NULL;

    for (size_t i = 0; i < service->plan_count; i++) {
        struct ss_plan *plan = &service->plans[i];
        const char *ignored;

        if (plan->host != NULL)
            continue;
        if (host == NULL)
            host = ss_service_only_ipv6(service->upstreams, service->upstream_count,
                                        service->config->nameservers)
                       ? "::1"
                       : "127.0.0.1";
        plan->host = host;
        if (ss_names_first(&plan->options.address.ip, host, &ignored) != SS_OK)
            plan->options.address.ip.family = SS_FAMILY_NONE;
    }
}

void ss_service_free_plans(struct ss_service *service)
{
    free(service->plans);
    free(service->upstreams);
    free(service->targets);
    service->plans = NULL;
    service->upstreams = NULL;
    service->targets = NULL;
    service->plan_count = service->upstream_count = 0;
}

/* Names and IPv6 addresses stand in brackets, except in ss-tunnel's lines. */
static void log_listening(enum ss_program program, const struct ss_plan *plan)
{
    const char *what = program == SS_PROGRAM_SERVER ? "tcp server listening" : "listening";
    struct ss_ip ip;
    bool bare = program == SS_PROGRAM_TUNNEL ||
                (ss_ip_parse(&ip, plan->host) == SS_OK && ip.family == SS_FAMILY_IPV4);

    ss_log_info("%s at %s%s%s:%u", what, bare ? "" : "[", plan->host, bare ? "" : "]",
                plan->options.address.port);
    if (plan->options.reuse_port)
        ss_log_info("tcp port reuse enabled");
}

bool ss_service_listen(struct ss_service *service, struct ss_engine *engine)
{
    enum ss_program program = service->config->program;

    choose_defaults(service);
    choose_families(service);
    for (size_t i = 0; i < service->plan_count; i++) {
        const char *error_text = NULL;
        struct ss_listener *listener;
        enum ss_status status =
            ss_engine_listen(engine, &service->plans[i].options, &listener, &error_text);

        if (status != SS_OK) {
            char text[SS_ADDR_TEXT_MAX];

            ss_log_error("bind: %s", error_text != NULL ? error_text : ss_status_text(status));
            ss_log_error(program == SS_PROGRAM_SERVER ? "failed to bind address" : "bind() error");
            ss_log_error("%s can't be listened on",
                         ss_addr_format(&service->plans[i].options.address, text));
            return false;
        }
        log_listening(program, &service->plans[i]);
    }
    return true;
}
