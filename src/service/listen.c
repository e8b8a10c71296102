/* Binding the planned sockets, and the lines that say so. */
#include "service/generation.h"

#include <stdio.h>
#include <stdlib.h>

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

static void log_opened(const struct ss_service *service, const struct ss_plan *plan)
{
    enum ss_program program = service->config->program;

    if (program == SS_PROGRAM_SERVER)
        log_listening(program, plan, plan->udp ? "udp server listening" : "tcp server listening");
    else if (!plan->udp || service->tcp_plans == 0) /* a client whose TCP listens has said where */
        log_listening(program, plan, "listening");
    if (plan->options.reuse_port)
        ss_log_info("%s port reuse enabled", plan->udp ? "udp" : "tcp");
}

static void log_failed(enum ss_program program, const struct ss_plan *plan, enum ss_status status,
                       const char *error_text)
{
    ss_log_error("%sbind: %s", plan->udp ? "[udp] " : "",
                 error_text != NULL ? error_text : ss_status_text(status));
    if (!plan->udp)
        ss_log_error(program == SS_PROGRAM_SERVER ? "failed to bind address" : "bind() error");
    log_cause(plan);
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

static bool was_unbound(const struct ss_service *before, const struct ss_plan *plan)
{
    for (size_t i = 0; i < before->plan_count; i++) {
        const struct ss_plan *other = &before->plans[i];

        if (other->udp == plan->udp && other->options.address.port == plan->options.address.port &&
            ss_ip_equal(&other->options.address.ip, &plan->options.address.ip))
            return !other->is_bound;
    }
    return false;
}

/* At the start a UDP port that is taken is no reason to end, and later none to stay with what was
 * before. */
static bool may_fail(const struct ss_service *before, const struct ss_plan *plan)
{
    return plan->udp && (before == NULL || was_unbound(before, plan));
}

/* A role of each plan; it keeps the service. */
static enum ss_status make_roles(struct ss_service *service, const struct ss_service *before,
                                 struct ss_wanted_socket *wanted)
{
    for (size_t i = 0; i < service->plan_count; i++) {
        struct ss_plan *plan = &service->plans[i];
        enum ss_status status;

        plan->role.released = ss_service_release;
        plan->role.owner = service;
        wanted[i] = (struct ss_wanted_socket){.options = plan->options,
                                              .udp = plan->udp,
                                              .port = plan->port,
                                              .may_fail = may_fail(before, plan)};
        ss_service_hold(service);
        status = ss_role_new(&wanted[i].options.role, &plan->role);
        if (status != SS_OK) {
            ss_service_release(service);
            return status;
        }
    }
    return SS_OK;
}

/* What has become of each plan, in the order of the plans. */
static void take_note(struct ss_service *service, const struct ss_wanted_socket *wanted)
{
    service->udp_bound = 0;
    for (size_t i = 0; i < service->plan_count; i++) {
        struct ss_plan *plan = &service->plans[i];

        plan->is_bound = wanted[i].is_bound;
        service->udp_bound += plan->udp && plan->is_bound;
        if (wanted[i].is_new)
            log_opened(service, plan);
        else if (!plan->is_bound)
            log_failed(service->config->program, plan, wanted[i].error, wanted[i].error_text);
    }
}

static void log_change_failed(const struct ss_service *service,
                              const struct ss_wanted_socket *wanted, enum ss_status status,
                              const struct ss_sockets_change *change)
{
    if (change->failed == NULL)
        ss_log_error("%s", ss_status_text(status));
    else if (status == SS_ERR_ARGUMENT)
        ss_log_error(
            "port %u: the method needs more room for each connection than was set aside at "
            "the start; a restart makes it",
            change->failed->port);
    else
        log_failed(service->config->program, &service->plans[change->failed - wanted], status,
                   change->error_text);
    if (change->lost != 0)
        ss_log_error("%zu ports that had to make way can't be opened again", change->lost);
}

bool ss_service_listen(struct ss_service *service, const struct ss_service *before,
                       struct ss_sockets *sockets, struct ss_sockets_change *change)
{
    struct ss_wanted_socket *wanted = calloc(service->plan_count + 1, sizeof *wanted);
    enum ss_status status = SS_ERR_MEMORY;

    if (before != NULL)
        service->default_host = before->default_host;
    ss_service_settle_plans(service, before == NULL);
    *change = (struct ss_sockets_change){0};
    if (wanted != NULL)
        status = make_roles(service, before, wanted);
    if (status == SS_OK)
        status = ss_sockets_change(sockets, wanted, service->plan_count, change);
    if (status == SS_OK)
        take_note(service, wanted);
    else
        log_change_failed(service, wanted, status, change);
    for (size_t i = 0; wanted != NULL && i < service->plan_count; i++)
        ss_role_release(wanted[i].options.role);
    free(wanted);
    if (status == SS_OK && before == NULL && service->tcp_plans == 0 && service->udp_bound == 0 &&
        !service->config->control_stdio) {
        ss_log_error("failed to listen on any address");
        return false;
    }
    if (status == SS_OK && before == NULL)
        log_client_modes(service);
    return status == SS_OK;
}
