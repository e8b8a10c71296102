/* Binding the planned sockets, and the lines that say so. */
#include "service/service_internal.h"

#include <stdio.h>

#include "base/log.h"
#include "net/redirect.h"

/* Names and IPv6 addresses stand in brackets, except in the lines of ss-tunnel and ss-redir. */
static void log_listening(enum ss_program program, const struct ss_plan *plan, const char *what)
{
    struct ss_ip ip;
    bool bare = program == SS_PROGRAM_TUNNEL || program == SS_PROGRAM_REDIR ||
                (ss_ip_parse(&ip, plan->host) == SS_OK && ip.family == SS_FAMILY_IPV4);
    char tos[16] = "";

    if (plan->role.tos != 0)
        snprintf(tos, sizeof tos, " (TOS 0x%02x)", plan->role.tos);
    ss_log_info("%s at %s%s%s:%u%s", what, bare ? "" : "[", plan->host, bare ? "" : "]",
                plan->options.address.port, tos);
    if (ss_ip_is_any(&plan->options.address.ip))
        ss_log_debug("%s port %u is open for %s", plan->udp ? "UDP" : "TCP",
                     plan->options.address.port,
                     plan->options.address.ip.family == SS_FAMILY_IPV4 ? "IPv4"
                     : plan->options.ipv6_only                         ? "IPv6"
                                                                       : "IPv6 and IPv4");
}

static void log_cause(const struct ss_plan *plan)
{
    char text[SS_ADDR_TEXT_MAX];

    ss_log_error("%s can't be listened on%s", ss_addr_format(&plan->options.address, text),
                 plan->udp ? " for UDP" : "");
}

static bool listen_tcp(struct ss_engine *engine, enum ss_program program, struct ss_plan *plan)
{
    const char *error_text = NULL;
    struct ss_listener *listener;
    enum ss_status status = ss_role_new(&plan->options.role, &plan->role);

    if (status == SS_OK)
        status = ss_engine_listen(engine, &plan->options, &listener, &error_text);
    ss_role_release(plan->options.role);
    if (status != SS_OK) {
        ss_log_error("bind: %s", error_text != NULL ? error_text : ss_status_text(status));
        ss_log_error(program == SS_PROGRAM_SERVER ? "failed to bind address" : "bind() error");
        log_cause(plan);
        return false;
    }
    plan->listener = listener;
    log_listening(program, plan,
                  program == SS_PROGRAM_SERVER ? "tcp server listening" : "listening");
    if (plan->options.reuse_port)
        ss_log_info("tcp port reuse enabled");
    return true;
}

/* A client whose TCP listens has said where already. */
static void log_udp(const struct ss_service *service, const struct ss_plan *plan)
{
    enum ss_program program = service->config->program;

    if (program == SS_PROGRAM_SERVER)
        log_listening(program, plan, "udp server listening");
    else if (service->tcp_plans == 0)
        log_listening(program, plan, "listening");
    if (plan->options.reuse_port)
        ss_log_info("udp port reuse enabled");
}

/* False when the program can't go on; a port that is taken is no reason for that. */
static bool listen_udp(struct ss_service *service, struct ss_engine *engine, struct ss_plan *plan)
{
    const char *error_text = NULL;
    struct ss_udp_port *port;
    enum ss_status status = ss_role_new(&plan->options.role, &plan->role);

    if (status == SS_OK)
        status = ss_engine_listen_udp(engine, &plan->options, &port, &error_text);
    ss_role_release(plan->options.role);
    if (status == SS_OK) {
        service->udp_bound++;
        plan->udp_port = port;
        log_udp(service, plan);
        return true;
    }
    ss_log_error("[udp] bind: %s", error_text != NULL ? error_text : ss_status_text(status));
    log_cause(plan);
    return status != SS_ERR_MEMORY;
}

/* ss-server has said this before; clients do when all is bound. */
static void log_client_modes(const struct ss_service *service)
{
    enum ss_program program = service->config->program;

    if (program == SS_PROGRAM_SERVER)
        return;
    if (service->udp_bound != 0)
        ss_log_info(program == SS_PROGRAM_LOCAL ? "udprelay enabled" : "UDP relay enabled");
    else if (program == SS_PROGRAM_TUNNEL)
        ss_log_info("UDP relay disabled");
    if (service->tcp_plans == 0 && program != SS_PROGRAM_LOCAL)
        ss_log_info("TCP relay disabled");
}

bool ss_service_may_redirect(const struct ss_service *service)
{
    enum ss_status status = SS_OK;
    bool tcp = false, udp = false;

    for (size_t i = 0; i < service->plan_count; i++) {
        tcp = tcp || (!service->plans[i].udp && service->plans[i].role.tproxy);
        udp =
            udp || (service->plans[i].udp && service->plans[i].role.ingress == SS_INGRESS_REDIRECT);
    }
    if (tcp || udp)
        status = ss_redirect_may_be_transparent();
    if (status == SS_OK)
        return true;
    ss_log_error("%ssetsockopt IP_TRANSPARENT: %s", tcp ? "" : "[udp] ", ss_status_text(status));
    ss_log_error("TPROXY needs the capability CAP_NET_ADMIN or CAP_NET_RAW, and "
                 "CAP_NET_BIND_SERVICE to answer from ports below 1024");
    return false;
}

bool ss_service_listen(struct ss_service *service, struct ss_engine *engine)
{
    ss_service_settle_plans(service);
    for (size_t i = 0; i < service->plan_count; i++) {
        struct ss_plan *plan = &service->plans[i];

        if (!(plan->udp ? listen_udp(service, engine, plan)
                        : listen_tcp(engine, service->config->program, plan)))
            return false;
    }
    if (service->tcp_plans == 0 && service->udp_bound == 0) {
        ss_log_error("failed to listen on any address");
        return false;
    }
    log_client_modes(service);
    return true;
}
