/* The lists of servers and of listening addresses, out of what line and file gave. */
#include "config/config_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "codec/method.h"

static struct ss_config_server *add_server(struct ss_config *config)
{
    struct ss_config_server *grown =
        ss_array_grow(config->servers, &config->server_count, sizeof *grown);

    if (grown == NULL)
        return NULL;
    config->servers = grown;
    return &grown[config->server_count - 1];
}

static enum ss_status copy_into(char **out, const char *text)
{
    if (text == NULL)
        return SS_OK;
    *out = ss_text_copy(text);
    return *out != NULL ? SS_OK : SS_ERR_MEMORY;
}

/* What an entry does not say itself, the program's own settings say. */
static enum ss_status inherit(struct ss_config_server *server, const struct ss_config *config)
{
    enum ss_status status = SS_OK;

    if (server->method == NULL)
        status = copy_into(&server->method, config->method);
    if (status == SS_OK && server->plugin == NULL) {
        status = copy_into(&server->plugin, config->plugin);
        if (status == SS_OK && server->plugin_opts == NULL)
            status = copy_into(&server->plugin_opts, config->plugin_opts);
        if (status == SS_OK && server->plugin_args == NULL)
            status = ss_words_copy(&server->plugin_args, config->plugin_args);
    }
    if (server->plugin != NULL && server->plugin[0] == '\0') {
        free(server->plugin);
        server->plugin = NULL;
    }
    if (!server->plugin_mode_given)
        server->plugin_mode = config->plugin_mode;
    /* A client's own mode is about what it listens on. */
    if (!server->mode_given)
        server->mode = ss_serves_ports(config->program) ? config->mode : SS_MODE_TCP_AND_UDP;
    return status;
}

/* The addresses of `server` and -s; a port of their own goes before `port`. */
static enum ss_status list_addresses(struct ss_endpoint **list, size_t *listed,
                                     const struct ss_raw *raw, uint16_t port, bool own_ports)
{
    size_t count = raw->server_count;
    struct ss_endpoint *endpoints = calloc(count != 0 ? count : 1, sizeof *endpoints);

    free(*list);
    *list = endpoints;
    *listed = 0;
    if (endpoints == NULL)
        return SS_ERR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        enum ss_status status = ss_host_parse(&endpoints[i], "server", raw->servers[i]);

        if (status != SS_OK)
            return status;
        if (endpoints[i].port == 0 || !own_ports)
            endpoints[i].port = port;
    }
    if (count == 0) {
        strcpy(endpoints[0].host, "0.0.0.0");
        endpoints[0].port = port;
        count = 1;
    }
    *listed = count;
    return SS_OK;
}

static enum ss_status put_addresses(struct ss_config_server *server, const struct ss_raw *raw,
                                    uint16_t port, bool own_ports)
{
    return list_addresses(&server->addresses, &server->address_count, raw, port, own_ports);
}

static enum ss_status no_password(const char *host, uint16_t port)
{
    ss_log_error("server %s, port %u: a password is missing", host, port);
    return SS_ERR_ARGUMENT;
}

static bool lacks_key(const struct ss_config_server *server, const struct ss_config *config)
{
    return server->password == NULL && server->key == NULL &&
           ss_method_needs_key(server->method != NULL ? server->method : config->method);
}

/* The one server of the classic shape. */
static enum ss_status add_standard(struct ss_config *config, struct ss_raw *raw)
{
    struct ss_config_server *server = add_server(config);
    enum ss_status status;

    if (server == NULL)
        return SS_ERR_MEMORY;
    server->tcp_weight = server->udp_weight = SS_CONFIG_WEIGHT_ONE;
    status = put_addresses(server, raw, config->server_port, true);
    if (status == SS_OK)
        status = copy_into(&server->password, config->password);
    if (status == SS_OK)
        status = copy_into(&server->key, config->key);
    if (status != SS_OK)
        return status;
    if (lacks_key(server, config))
        return no_password(server->addresses[0].host, server->addresses[0].port);
    server->identities = raw->identities;
    server->identity_count = raw->identity_count;
    raw->identities = NULL;
    raw->identity_count = 0;
    return inherit(server, config);
}

/* Entries of a list, moved over; each port_password entry listens on the addresses of `server`. */
static enum ss_status add_listed(struct ss_config *config, const struct ss_raw *raw,
                                 struct ss_config_server *list, size_t count, bool only_ports)
{
    for (size_t i = 0; i < count; i++) {
        struct ss_config_server *server = add_server(config);
        enum ss_status status = SS_OK;

        if (server == NULL)
            return SS_ERR_MEMORY;
        *server = list[i];
        memset(&list[i], 0, sizeof list[i]);
        if (only_ports)
            status = put_addresses(server, raw, server->addresses[0].port, false);
        else if (server->password == NULL && server->key == NULL)
            status = copy_into(&server->password, getenv("SS_SERVER_PASSWORD"));
        /* ss-manager says so itself, and goes on with the others. */
        if (status == SS_OK && config->program != SS_PROGRAM_MANAGER && lacks_key(server, config))
            status = no_password(server->addresses[0].host, server->addresses[0].port);
        if (status == SS_OK)
            status = inherit(server, config);
        if (status != SS_OK)
            return status;
    }
    return SS_OK;
}

bool ss_serves_ports(enum ss_program program)
{
    return program == SS_PROGRAM_SERVER || program == SS_PROGRAM_MANAGER;
}

/* ss-manager: the ports to begin with, and where those that come later listen. */
static enum ss_status build_for_manager(struct ss_config *config, struct ss_raw *raw)
{
    enum ss_status status = list_addresses(&config->hosts, &config->host_count, raw, 0, false);

    if (status == SS_OK)
        status = add_listed(config, raw, raw->port_servers, raw->port_server_count, true);
    if (status == SS_OK)
        status = add_listed(config, raw, raw->file_servers, raw->file_server_count, false);
    return status;
}

enum ss_status ss_config_build_servers(struct ss_config *config, struct ss_raw *raw)
{
    bool is_server = config->program == SS_PROGRAM_SERVER;
    bool listed = raw->file_server_count != 0 && raw->servers_source != SS_SOURCE_LINE;
    bool ports = is_server && raw->port_server_count != 0;
    enum ss_status status = SS_OK;

    if (config->program == SS_PROGRAM_MANAGER)
        return build_for_manager(config, raw);
    if (config->control_stdio)
        return SS_OK; /* they come later */

    /* In an extended file the standard server is there only when all of it is. */
    if (config->server_port != 0 && (is_server || raw->server_count != 0) &&
        (config->password != NULL || config->key != NULL || !ss_method_needs_key(config->method) ||
         !(listed || ports)))
        status = add_standard(config, raw);
    if (status == SS_OK && ports)
        status = add_listed(config, raw, raw->port_servers, raw->port_server_count, true);
    if (status == SS_OK && listed)
        status = add_listed(config, raw, raw->file_servers, raw->file_server_count, false);
    if (status == SS_OK && raw->identity_count != 0) {
        ss_log_error(
            "invalid config file: 'users' belong to 'server_port' and 'password' beside them, "
            "or into an entry of 'servers'");
        status = SS_ERR_ARGUMENT;
    }
    if (status == SS_OK && config->server_count == 0) {
        ss_log_error("no server is configured");
        status = SS_ERR_ARGUMENT;
    }
    return status;
}

static struct ss_config_local *add_local(struct ss_config *config)
{
    struct ss_config_local *grown =
        ss_array_grow(config->locals, &config->local_count, sizeof *grown);

    if (grown == NULL)
        return NULL;
    config->locals = grown;
    return &grown[config->local_count - 1];
}

static enum ss_status add_standard_local(struct ss_config *config, struct ss_raw *raw,
                                         const char *address)
{
    struct ss_config_local *local = add_local(config);
    struct ss_endpoint endpoint;
    enum ss_status status;

    if (local == NULL)
        return SS_ERR_MEMORY;
    local->port = config->local_port;
    local->mode = config->mode;
    local->tproxy = config->tcp_tproxy;
    if (address != NULL) {
        status = ss_host_parse(&endpoint, "local_address", address);
        if (status == SS_OK)
            status = copy_into(&local->address, endpoint.host);
        if (status != SS_OK)
            return status;
    }
    local->users = raw->users;
    local->user_count = raw->user_count;
    raw->users = NULL;
    raw->user_count = 0;
    if (config->program != SS_PROGRAM_TUNNEL)
        return SS_OK;

    status = ss_host_parse(&local->target, "tunnel_address", config->tunnel_address);
    if (status == SS_OK && local->target.port == 0) {
        ss_log_error("tunnel port is not defined");
        ss_log_error("tunnel_address '%s' has no port", config->tunnel_address);
        status = SS_ERR_ARGUMENT;
    }
    return status;
}

/* ss-redir listens on every address that is given, the others on the last one; and for each `dscp`
 * ss-redir listens on them once more. */
static enum ss_status add_standard_locals(struct ss_config *config, struct ss_raw *raw)
{
    bool all = config->program == SS_PROGRAM_REDIR;
    size_t first = all || raw->address_count == 0 ? 0 : raw->address_count - 1;
    size_t end = raw->address_count != 0 ? raw->address_count : 1;
    enum ss_status status = SS_OK;

    for (size_t i = first; status == SS_OK && i < end; i++)
        status = add_standard_local(config, raw, raw->addresses[i]);
    for (size_t d = 0; d < raw->dscp_count; d++) {
        for (size_t i = first; status == SS_OK && i < end; i++) {
            status = add_standard_local(config, raw, raw->addresses[i]);
            if (status != SS_OK)
                break;
            config->locals[config->local_count - 1].port = raw->dscp[d].port;
            config->locals[config->local_count - 1].dscp = raw->dscp[d].value;
        }
    }
    return status;
}

enum ss_status ss_config_build_locals(struct ss_config *config, struct ss_raw *raw)
{
    enum ss_status status = SS_OK;
    bool listed =
        raw->file_local_count != 0 &&
        ss_config_source(config, offsetof(struct ss_config, local_port)) != SS_SOURCE_LINE;

    if (config->task == SS_TASK_PRINT_URL)
        return SS_OK;
    if (config->local_port != 0 &&
        (config->program != SS_PROGRAM_TUNNEL || config->tunnel_address != NULL))
        status = add_standard_locals(config, raw);
    for (size_t i = 0; status == SS_OK && listed && i < raw->file_local_count; i++) {
        struct ss_config_local *local = add_local(config);

        if (local == NULL)
            return SS_ERR_MEMORY;
        *local = raw->file_locals[i];
        memset(&raw->file_locals[i], 0, sizeof raw->file_locals[i]);
        if (!local->mode_given)
            local->mode = config->mode;
        if (!local->tproxy_given)
            local->tproxy = config->tcp_tproxy;
    }
    if (status == SS_OK && raw->dscp_count != 0 && config->local_port == 0) {
        ss_log_error("invalid config file: 'dscp' needs 'local_port' beside it");
        status = SS_ERR_ARGUMENT;
    }
    if (status == SS_OK && config->local_count == 0) {
        ss_log_error("no listening address is configured");
        status = SS_ERR_ARGUMENT;
    }
    return status;
}
