/* What a start says, and refuses, before there is a key or a socket. */
#include "service/service_internal.h"

#include <string.h>

#include "base/log.h"

bool ss_service_wants_udp(const struct ss_config *config, bool *only)
{
    bool wanted = false;

    *only = true;
    for (size_t i = 0; config->program == SS_PROGRAM_SERVER && i < config->server_count; i++) {
        wanted |= config->servers[i].mode != SS_MODE_TCP_ONLY;
        *only &= config->servers[i].mode == SS_MODE_UDP_ONLY;
    }
    for (size_t i = 0; i < config->local_count; i++) {
        wanted |= config->locals[i].mode != SS_MODE_TCP_ONLY;
        *only &= config->locals[i].mode == SS_MODE_UDP_ONLY;
    }
    return wanted;
}

/* Users log in over TCP, so datagrams from those who never did are for nobody then. */
static bool users_can_log_in(const struct ss_config *config)
{
    for (size_t i = 0; i < config->local_count; i++) {
        const struct ss_config_local *local = &config->locals[i];

        if (local->user_count == 0 || local->mode == SS_MODE_TCP_ONLY)
            continue;
        if (config->udp_open) {
            ss_log_error("udp_open and socks5_auth exclude each other: datagrams alone carry no "
                         "user");
            return false;
        }
        if (local->mode == SS_MODE_UDP_ONLY) {
            ss_log_error("socks5_auth needs TCP: where UDP alone is relayed (-U, udp_only) nobody "
                         "can log in");
            return false;
        }
    }
    return true;
}

/* Datagrams of one socket go to plugins and other servers alike, so what binds it binds it for
 * both.
 */
static bool plugins_can_be_reached(const struct ss_config *config)
{
    bool bound = config->interface != NULL || config->bind_ipv4.family != SS_FAMILY_NONE ||
                 config->bind_ipv6.family != SS_FAMILY_NONE;

    for (size_t i = 0; bound && config->program != SS_PROGRAM_SERVER && i < config->server_count;
         i++) {
        if (ss_plugin_carries(&config->servers[i], true)) {
            ss_log_error("a plugin that carries UDP (plugin_mode) is not reached from an interface "
                         "or a source address of one's own");
            return false;
        }
    }
    return true;
}

bool ss_service_supports(const struct ss_config *config)
{
    return plugins_can_be_reached(config) && users_can_log_in(config);
}

static void log_source(const char *family, const struct ss_ip *ip)
{
    char text[SS_IP_TEXT_MAX];

    if (ip->family != SS_FAMILY_NONE)
        ss_log_info("binding to outbound %s addr: %s", family, ss_ip_format(ip, text));
}

static void log_buffer(const char *direction, const char *kind, uint32_t size)
{
    if (size != 0)
        ss_log_info("set TCP %s connection %s buffer size to %u", direction, kind, size);
}

/* Once a name. */
static void log_plugins(const struct ss_config *config)
{
    for (size_t i = 0; i < config->server_count; i++) {
        const char *name = config->servers[i].plugin;
        bool said = false;

        for (size_t before = 0; name != NULL && before < i; before++)
            said |= config->servers[before].plugin != NULL &&
                    strcmp(config->servers[before].plugin, name) == 0;
        if (name != NULL && !said)
            ss_log_info("plugin \"%s\" enabled", name);
    }
}

void ss_service_log_options(const struct ss_config *config)
{
    bool only;

    if (config->program == SS_PROGRAM_SERVER) {
        log_source("IPv4", &config->bind_ipv4);
        log_source("IPv6", &config->bind_ipv6);
    }
    if (config->ipv6_first)
        ss_log_info("resolving hostname to IPv6 address first");
    if (config->program != SS_PROGRAM_SERVER)
        log_plugins(config);
    if (config->fast_open)
        ss_log_info("using tcp fast open");
    if (config->program == SS_PROGRAM_SERVER)
        log_plugins(config);
    if (config->program == SS_PROGRAM_SERVER && ss_service_wants_udp(config, &only)) {
        ss_log_info("UDP relay enabled");
        if (only)
            ss_log_info("TCP relay disabled");
    }
    /* ss-tunnel has always said it for the option alone, where that was met. */
    if (config->no_delay && config->program != SS_PROGRAM_TUNNEL)
        ss_log_info("enable TCP no-delay");
    if (config->tcp_tproxy)
        ss_log_info("tcp tproxy mode enabled");
    log_buffer("incoming", "send", config->tcp_incoming_sndbuf);
    log_buffer("incoming", "receive", config->tcp_incoming_rcvbuf);
    log_buffer("outgoing", "send", config->tcp_outgoing_sndbuf);
    log_buffer("outgoing", "receive", config->tcp_outgoing_rcvbuf);
}
