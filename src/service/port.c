/* One port of a manager's: its keys, its plugin, its sockets. */
#include "service/ports_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "service/users.h"

#define BACKLOG 1024

/* What a role keeps, besides its profile. */
struct kept {
    struct ss_service *service;
    struct ss_port_use *use;
};

static void let_go(void *owner)
{
    struct kept *kept = owner;

    ss_port_use_release(kept->use);
    ss_service_release(kept->service);
    free(kept);
}

static enum ss_status make_role(struct ss_role **role, const struct ss_ports *ports,
                                const struct ss_keying *keying)
{
    struct kept *kept = malloc(sizeof *kept);
    const struct ss_role_options options = {.ingress = SS_INGRESS_SHADOWSOCKS,
                                            .egress = SS_EGRESS_DIRECT,
                                            .profile = keying->profile,
                                            .acl = ports->service->acl,
                                            .limiter = &keying->use->limiter,
                                            .released = let_go,
                                            .owner = kept};
    enum ss_status status;

    if (kept == NULL)
        return SS_ERR_MEMORY;
    *kept = (struct kept){.service = ports->service, .use = keying->use};
    ss_service_hold(kept->service);
    ss_port_use_hold(kept->use);
    status = ss_role_new(role, &options);
    if (status != SS_OK)
        let_go(kept);
    return status;
}

/* -- what is asked for -- */

static enum ss_status say(char *error, enum ss_status status, const char *what, const char *why)
{
    snprintf(error, SS_PORTS_ERROR_MAX, "%s%s%s", what, why[0] != '\0' ? ": " : "", why);
    return status;
}

static enum ss_status check(const struct ss_ports *ports, const struct ss_port_spec *spec,
                            char *error)
{
    const struct ss_config_server *server = &spec->server;

    if (spec->port == 0 || server->address_count == 0)
        return say(error, SS_ERR_ARGUMENT, "the port has no number or no address", "");
    for (size_t i = 0; i < server->address_count; i++)
        if (server->addresses[i].port != spec->port)
            return say(error, SS_ERR_ARGUMENT, "an address has another port",
                       server->addresses[i].host);
    if (server->plugin != NULL && server->plugin[0] != '\0' && ports->plugins == NULL)
        return say(error, SS_ERR_UNSUPPORTED, "plugins can't be started by this server", "");
    return SS_OK;
}

static enum ss_status make_keying(struct ss_keying *keying, const struct ss_ports *ports,
                                  const struct ss_port *port, const struct ss_port_spec *spec,
                                  const struct ss_method *method, char *error)
{
    const struct ss_keying_options options = {.shared = ports->service->shared,
                                              .config = ports->service->config,
                                              .server = &spec->server,
                                              .method = method,
                                              .of_users = spec->of_users,
                                              .before = port->keying.profile != NULL ? &port->keying
                                                                                     : NULL};
    struct ss_key_problem problem = {0};
    enum ss_status status = ss_shared_init(ports->service->shared, ports->service->config,
                                           spec->server.mode != SS_MODE_TCP_ONLY);
    char why[SS_PORTS_ERROR_MAX - 64];

    if (status == SS_OK)
        status = ss_keying_make(keying, &options, &problem);
    if (status == SS_ERR_KEY) {
        const char *name =
            problem.of_user ? spec->server.identities[problem.fault.user].name : method->name;

        ss_service_key_text(why, sizeof why, SS_PROGRAM_SERVER, method, &problem);
        return say(error, status, problem.of_user ? name : "the key", why);
    }
    return status == SS_OK ? SS_OK : say(error, status, method->name, ss_status_text(status));
}

/* -- sockets -- */

static struct ss_wanted_socket *add_wanted(struct ss_wanted_socket *list, size_t *count,
                                           const struct ss_ports *ports,
                                           const struct ss_port_spec *spec, bool udp)
{
    const struct ss_config *config = ports->service->config;
    struct ss_wanted_socket *wanted = &list[(*count)++];

    *wanted = (struct ss_wanted_socket){
        .options = {.backlog = BACKLOG,
                    .reuse_port = config->reuse_port,
                    .mptcp = config->mptcp,
                    .fast_open = spec->fast_open != SS_CHOICE_NONE ? spec->fast_open == SS_CHOICE_ON
                                                                   : config->fast_open,
                    .keep_alive_s = config->keep_alive_s,
                    .incoming_sndbuf = (int)config->tcp_incoming_sndbuf,
                    .incoming_rcvbuf = (int)config->tcp_incoming_rcvbuf},
        .udp = udp,
        .port = spec->port};
    return wanted;
}

/* `::` is IPv6 alone where IPv4 is asked for apart. */
static void choose_families(struct ss_wanted_socket *list, size_t count, bool ipv6_only)
{
    bool ipv4[2] = {false, false};

    for (size_t i = 0; i < count; i++)
        if (list[i].options.address.ip.family == SS_FAMILY_IPV4)
            ipv4[list[i].udp] = true;
    for (size_t i = 0; i < count; i++)
        list[i].options.ipv6_only =
            ipv6_only || !ss_ip_is_any(&list[i].options.address.ip) || ipv4[list[i].udp];
}

/* All addresses for both transports, as far as they are wanted; a plugin has those of its own. */
static enum ss_status list_wanted(struct ss_wanted_socket *list, size_t *count,
                                  const struct ss_ports *ports, const struct ss_port_spec *spec,
                                  const struct ss_plugin *plugin, char *error)
{
    const struct ss_config_server *server = &spec->server;

    *count = 0;
    for (int udp = 0; udp <= 1; udp++) {
        bool carried = plugin != NULL && ss_plugin_carries(server, udp != 0);

        if (server->mode == (udp ? SS_MODE_TCP_ONLY : SS_MODE_UDP_ONLY))
            continue;
        for (size_t i = 0; i < (carried ? 1 : server->address_count); i++) {
            struct ss_wanted_socket *wanted = add_wanted(list, count, ports, spec, udp != 0);
            const char *why = "";
            enum ss_status status;

            if (carried) {
                wanted->options.address = *ss_plugin_local(plugin);
                continue;
            }
            wanted->options.address.port = spec->port;
            status = ss_service_name(ports->service, &wanted->options.address.ip,
                                     server->addresses[i].host, &why);
            if (status != SS_OK)
                return say(error, status, server->addresses[i].host, why);
        }
    }
    choose_families(list, *count, ports->service->config->ipv6_only);
    return SS_OK;
}

static enum ss_status say_socket(char *error, enum ss_status status,
                                 const struct ss_sockets_change *change)
{
    char address[SS_ADDR_TEXT_MAX], what[SS_ADDR_TEXT_MAX + 32];

    if (change->failed == NULL)
        return say(error, status, ss_status_text(status), "");
    if (status == SS_ERR_ARGUMENT) {
        say(error, status, "the method needs more room for each connection than there is", "");
        return SS_ERR_UNSUPPORTED;
    }
    snprintf(what, sizeof what, "%s can't be listened on%s",
             ss_addr_format(&change->failed->options.address, address),
             change->failed->udp ? " for UDP" : "");
    return say(error, status, what,
               change->error_text != NULL ? change->error_text : ss_status_text(status));
}

static enum ss_status change_sockets(const struct ss_ports *ports, struct ss_port *port,
                                     const struct ss_port_spec *spec,
                                     const struct ss_keying *keying, const struct ss_plugin *plugin,
                                     char *error)
{
    struct ss_wanted_socket *wanted = calloc(2 * spec->server.address_count, sizeof *wanted);
    struct ss_sockets_change change;
    struct ss_role *role = NULL;
    enum ss_status status = SS_ERR_MEMORY;
    size_t count = 0;

    if (wanted == NULL)
        return say(error, status, ss_status_text(status), "");
    status = list_wanted(wanted, &count, ports, spec, plugin, error);
    if (status == SS_OK) {
        status = make_role(&role, ports, keying);
        if (status != SS_OK)
            (void)say(error, status, ss_status_text(status), "");
    }
    for (size_t i = 0; i < count; i++)
        wanted[i].options.role = role;
    if (status == SS_OK) {
        status = ss_sockets_change(&port->sockets, wanted, count, &change);
        if (status != SS_OK)
            status = say_socket(error, status, &change);
    }
    ss_role_release(role);
    free(wanted);
    return status;
}

/* -- the whole -- */

/* A plugin, where one is wanted. It starts before the port listens behind it. */
static enum ss_status hold_plugin(struct ss_plugin **plugin, const struct ss_ports *ports,
                                  const struct ss_port_spec *spec, char *error)
{
    *plugin = NULL;
    if (spec->server.plugin == NULL || spec->server.plugin[0] == '\0')
        return SS_OK;
    *plugin = ss_plugin_hold(ports->plugins, &spec->server, spec->port);
    if (*plugin != NULL && ss_plugins_start(ports->plugins, true))
        return SS_OK;
    ss_plugin_release(*plugin);
    *plugin = NULL;
    return say(error, SS_ERR_ARGUMENT, spec->server.plugin, "the plugin can't be started");
}

/* The port is open as it is asked for: what is left can't be refused any more. */
static void settle(const struct ss_ports *ports, struct ss_port *port, struct ss_keying *keying)
{
    const struct ss_sessions_of old = {.profile = port->keying.profile};
    enum ss_status status = SS_OK;

    if (old.profile != NULL && old.profile != keying->profile)
        status = ss_engine_end_sessions(ports->engine, &old);
    if (status == SS_OK && keying->users != NULL)
        status = ss_engine_set_users(ports->engine, keying->profile, keying->users);
    if (status != SS_OK)
        ss_log_error("sessions of a port can't be ended: %s", ss_status_text(status));
    ss_users_release(keying->users);
    keying->users = NULL;
    ss_keying_clear(&port->keying);
    port->keying = *keying;
    ss_keying_set_limits(&port->keying, &port->spec.server);
    while (port->spec.server.identity_count != 0)
        ss_port_user_drop(&port->spec.server, port->spec.server.identity_count - 1);
}

enum ss_status ss_port_become(struct ss_ports *ports, struct ss_port *port,
                              struct ss_port_spec *spec, char *error)
{
    const char *name =
        spec->server.method != NULL ? spec->server.method : ports->service->config->method;
    const struct ss_method *method = ss_method_find(name);
    struct ss_keying keying;
    struct ss_plugin *plugin;
    enum ss_status status = check(ports, spec, error);

    if (!spec->server.mode_given)
        spec->server.mode = ports->service->config->mode;
    if (status != SS_OK)
        return status;
    if (method == NULL)
        return say(error, SS_ERR_ARGUMENT, "no such method", name);
    status = make_keying(&keying, ports, port, spec, method, error);
    if (status != SS_OK)
        return status;
    status = hold_plugin(&plugin, ports, spec, error);
    if (status == SS_OK)
        status = change_sockets(ports, port, spec, &keying, plugin, error);
    if (status != SS_OK) {
        ss_plugin_release(plugin);
        ss_keying_clear(&keying);
        return status;
    }
    ss_plugin_release(port->plugin);
    port->plugin = plugin;
    ss_port_spec_clear(&port->spec);
    port->spec = *spec;
    *spec = (struct ss_port_spec){0};
    port->method = method;
    settle(ports, port, &keying);
    return SS_OK;
}

static enum ss_status say_user(char *error, const struct ss_port *port, const char *name,
                               const struct ss_key_fault *fault)
{
    const struct ss_key_problem problem = {.fault = *fault, .of_user = true};
    char why[SS_PORTS_ERROR_MAX - 64];

    ss_service_key_text(why, sizeof why, SS_PROGRAM_SERVER, port->method, &problem);
    return say(error, SS_ERR_KEY, name, why);
}

enum ss_status ss_port_change_user(const struct ss_ports *ports, struct ss_port *port,
                                   const struct ss_config_identity *put, const char *drop,
                                   char *error)
{
    struct ss_profile *profile = port->keying.profile;
    struct ss_users *users = ss_profile_hold_users(profile), *changed;
    struct ss_key_fault fault;
    enum ss_status status =
        ss_service_users_change(&changed, users, port->method, put, drop, &fault);

    ss_users_release(users);
    if (status == SS_OK && put != NULL &&
        ss_profile_is_its_key(profile, ss_service_users_find(changed, put->name))) {
        fault = (struct ss_key_fault){.kind = SS_KEY_IS_THE_SERVERS};
        status = SS_ERR_KEY;
    }
    if (status == SS_OK)
        status = ss_engine_set_users(ports->engine, profile, changed);
    if (status == SS_OK && put != NULL)
        ss_service_user_set_limits(ss_service_users_find(changed, put->name), &put->limits);
    ss_users_release(changed);
    if (status == SS_ERR_KEY)
        return say_user(error, port, put->name, &fault);
    return status == SS_OK ? SS_OK : say(error, status, ss_status_text(status), "");
}

enum ss_status ss_port_follow(const struct ss_ports *ports, struct ss_port *port)
{
    char error[SS_PORTS_ERROR_MAX];

    return change_sockets(ports, port, &port->spec, &port->keying, port->plugin, error);
}

struct ss_port *ss_port_new(struct ss_engine *engine)
{
    struct ss_port *port = calloc(1, sizeof *port);

    if (port != NULL)
        port->sockets.engine = engine;
    return port;
}

void ss_port_close(struct ss_port *port)
{
    const struct ss_sessions_of all = {.profile = port->keying.profile};

    ss_sockets_close(&port->sockets, false);
    if (all.profile != NULL && ss_engine_end_sessions(port->sockets.engine, &all) != SS_OK)
        ss_log_error("sessions of a port can't be ended: %s", ss_status_text(SS_ERR_MEMORY));
}

void ss_port_free(struct ss_port *port)
{
    ss_sockets_clear(&port->sockets);
    ss_keying_clear(&port->keying);
    ss_plugin_release(port->plugin);
    ss_port_spec_clear(&port->spec);
    free(port);
}
