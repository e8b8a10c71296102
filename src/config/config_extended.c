/* The lists of an extended file: servers[] and locals[], and the users of SOCKS5 clients. */
#include "config/config_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/log.h"
#include "config/members.h"

static enum ss_status take_address(struct ss_config_server *server, const char *where,
                                   const json_t *value)
{
    struct ss_endpoint *grown;

    if (!json_is_string(value))
        return ss_key_error(where, "server", "a string or a list of strings");
    grown = ss_array_grow(server->addresses, &server->address_count, sizeof *grown);
    if (grown == NULL)
        return SS_ERR_MEMORY;
    server->addresses = grown;
    return ss_host_parse(&grown[server->address_count - 1], "server", json_string_value(value));
}

static enum ss_status take_addresses(struct ss_config_server *server, const char *where,
                                     const json_t *object, uint16_t port)
{
    const json_t *value = ss_member(object, "server", "address");
    enum ss_status status = SS_OK;

    if (value == NULL)
        return ss_member_missing(where, "server");
    if (!json_is_array(value))
        status = take_address(server, where, value);
    for (size_t i = 0; status == SS_OK && i < json_array_size(value); i++)
        status = take_address(server, where, json_array_get(value, i));
    if (status != SS_OK)
        return status;
    if (server->address_count == 0)
        return ss_member_missing(where, "server");

    for (size_t i = 0; i < server->address_count; i++) {
        if (server->addresses[i].port == 0)
            server->addresses[i].port = port;
        if (server->addresses[i].port == 0)
            return ss_member_missing(where, "server_port");
    }
    return SS_OK;
}

static const char *const server_keys[] = {"server",
                                          "address",
                                          "server_port",
                                          "port",
                                          "method",
                                          "password",
                                          "key",
                                          "users",
                                          "disabled",
                                          "plugin",
                                          "plugin_opts",
                                          "plugin_args",
                                          "plugin_mode",
                                          "timeout",
                                          "remarks",
                                          "name",
                                          "id",
                                          "mode",
                                          "weight",
                                          "tcp_weight",
                                          "udp_weight",
                                          SS_LIMIT_KEYS,
                                          "acl",
                                          "outbound_fwmark",
                                          "outbound_bind_addr",
                                          "outbound_bind_interface",
                                          "outbound_proxy",
                                          "outbound_udp_allow_fragmentation",
                                          NULL};

/* Members of a server that change what it does and are not honoured for one server alone. */
static const char *const server_refused[] = {
    "acl", "outbound_fwmark", "outbound_bind_addr", "outbound_bind_interface", "outbound_proxy",
    NULL};

static enum ss_status read_server(struct ss_raw *raw, size_t index, const json_t *object)
{
    struct ss_where where = ss_where_is("", "servers", index);
    struct ss_config_server *servers, *server;
    enum ss_status status;
    bool disabled = false, mode_given;
    uint16_t port = 0;

    if (!json_is_object(object))
        return ss_key_error("", "servers", "a list of objects");
    (void)ss_member_check_keys(where.text, object, server_keys);
    status = ss_member_flag(&disabled, where.text, object, "disabled");
    if (status != SS_OK || disabled)
        return status;

    for (size_t i = 0; server_refused[i] != NULL; i++) {
        const json_t *value = ss_member(object, server_refused[i], NULL);

        if (value != NULL && !(json_is_array(value) && json_array_size(value) == 0)) {
            ss_log_error("%s'%s' is not supported", where.text, server_refused[i]);
            return SS_ERR_UNSUPPORTED;
        }
    }

    servers = ss_array_grow(raw->file_servers, &raw->file_server_count, sizeof *servers);
    if (servers == NULL)
        return SS_ERR_MEMORY;
    raw->file_servers = servers;
    server = &servers[raw->file_server_count - 1];
    server->tcp_weight = server->udp_weight = SS_CONFIG_WEIGHT_ONE;
    status = ss_member_port(&port, where.text, object, "server_port", "port");
    if (status == SS_OK)
        status = take_addresses(server, where.text, object, port);
    if (status == SS_OK)
        status = ss_member_text(&server->method, where.text, object, "method", NULL);
    if (status == SS_OK)
        status = ss_member_text(&server->password, where.text, object, "password", NULL);
    if (status == SS_OK)
        status = ss_member_expand_password(&server->password, where.text);
    if (status == SS_OK)
        status = ss_member_text(&server->key, where.text, object, "key", NULL);
    if (status == SS_OK)
        status = ss_member_text(&server->plugin, where.text, object, "plugin", NULL);
    if (status == SS_OK)
        status = ss_member_text(&server->plugin_opts, where.text, object, "plugin_opts", NULL);
    if (status == SS_OK)
        status = ss_member_words(&server->plugin_args, where.text, "plugin_args",
                                 ss_member(object, "plugin_args", NULL));
    if (status == SS_OK)
        status = ss_member_mode(&server->plugin_mode, &server->plugin_mode_given, where.text,
                                object, "plugin_mode");
    if (status == SS_OK)
        status = ss_member_text(&server->name, where.text, object, "remarks", "name");
    if (status == SS_OK)
        status = ss_member_mode(&server->mode, &mode_given, where.text, object, "mode");
    if (status == SS_OK)
        status = ss_member_weight(&server->tcp_weight, where.text, object, "tcp_weight", "weight");
    if (status == SS_OK)
        status = ss_member_weight(&server->udp_weight, where.text, object, "udp_weight", "weight");
    if (status == SS_OK)
        status = ss_member_limits(&server->limits, where.text, object);
    if (status == SS_OK)
        status =
            ss_config_identities_read(&server->identities, &server->identity_count, raw->program,
                                      where.text, ss_member(object, "users", NULL));
    if (status != SS_OK)
        return status;

    if (server->method == NULL)
        return ss_member_missing(where.text, "method");
    server->mode_given = mode_given;
    return SS_OK;
}

enum ss_status ss_config_servers_read(struct ss_raw *raw, const json_t *value)
{
    enum ss_status status = SS_OK;

    if (json_is_null(value))
        return SS_OK;
    if (!json_is_array(value))
        return ss_key_error("", "servers", "a list of objects");
    for (size_t i = 0; status == SS_OK && i < json_array_size(value); i++)
        status = read_server(raw, i, json_array_get(value, i));
    return status;
}

static const char *const local_keys[] = {"local_address",
                                         "local_port",
                                         "mode",
                                         "protocol",
                                         "disabled",
                                         "acl",
                                         "local_udp_address",
                                         "local_udp_port",
                                         "socks5_auth_config_path",
                                         "socks5_auth",
                                         "forward_address",
                                         "forward_port",
                                         "tcp_redir",
                                         "udp_redir",
                                         "remarks",
                                         "name",
                                         "id",
                                         NULL};

static const char *protocol_of(enum ss_program program)
{
    switch (program) {
    case SS_PROGRAM_TUNNEL:
        return "tunnel";
    case SS_PROGRAM_REDIR:
        return "redir";
    default:
        return "socks";
    }
}

static enum ss_status take_forward(struct ss_config_local *local, const char *where,
                                   const json_t *object)
{
    const json_t *host = ss_member(object, "forward_address", NULL);
    enum ss_status status =
        ss_member_port(&local->target.port, where, object, "forward_port", NULL);
    uint16_t port = local->target.port;

    if (status != SS_OK)
        return status;
    if (host == NULL)
        return ss_member_missing(where, "forward_address");
    if (port == 0)
        return ss_member_missing(where, "forward_port");
    if (!json_is_string(host))
        return ss_key_error(where, "forward_address", "a string");
    status = ss_host_parse(&local->target, "forward_address", json_string_value(host));
    local->target.port = port;
    return status;
}

/* How redirected traffic comes. */
static enum ss_status take_redir(struct ss_config_local *local, const char *where,
                                 const json_t *object, bool *given)
{
    const char *tcp = json_string_value(json_object_get(object, "tcp_redir"));
    const char *udp = json_string_value(json_object_get(object, "udp_redir"));

    *given = tcp != NULL;
    local->tproxy = tcp != NULL && strcmp(tcp, "tproxy") == 0;
    if (ss_member(object, "tcp_redir", NULL) != NULL &&
        (tcp == NULL || !(local->tproxy || strcmp(tcp, "redirect") == 0)))
        return ss_key_error(where, "tcp_redir", "\"redirect\" or \"tproxy\"");
    if (ss_member(object, "udp_redir", NULL) != NULL && (udp == NULL || strcmp(udp, "tproxy") != 0))
        return ss_key_error(where, "udp_redir", "\"tproxy\"");
    return SS_OK;
}

/* Where a tunnel's UDP is, if apart. A SOCKS5 client looks for it where it found TCP. */
static enum ss_status take_udp_address(struct ss_config_local *local, const char *where,
                                       const json_t *object, enum ss_program program)
{
    enum ss_status status =
        ss_member_text(&local->udp_address, where, object, "local_udp_address", NULL);

    if (status == SS_OK)
        status = ss_member_port(&local->udp_port, where, object, "local_udp_port", NULL);
    if (status != SS_OK || program != SS_PROGRAM_LOCAL)
        return status;
    if ((local->udp_port != 0 && local->udp_port != local->port) ||
        (local->udp_address != NULL &&
         (local->address == NULL || strcmp(local->udp_address, local->address) != 0))) {
        ss_log_error("%sUDP of a SOCKS5 listener has the address and port of its TCP; see "
                     "udp_advertised_address",
                     where);
        return SS_ERR_UNSUPPORTED;
    }
    return SS_OK;
}

static enum ss_status read_local(struct ss_raw *raw, size_t index, const json_t *object)
{
    struct ss_where where = ss_where_is("", "locals", index);
    struct ss_config_local *locals, *local;
    const json_t *protocol, *auth;
    enum ss_status status;
    bool disabled = false, mode_given;

    if (!json_is_object(object))
        return ss_key_error("", "locals", "a list of objects");
    status = ss_member_flag(&disabled, where.text, object, "disabled");
    if (status != SS_OK || disabled)
        return status;
    protocol = ss_member(object, "protocol", NULL);
    if (protocol != NULL && !json_is_string(protocol))
        return ss_key_error(where.text, "protocol", "a string");
    if (strcmp(protocol != NULL ? json_string_value(protocol) : "socks",
               protocol_of(raw->program)) != 0) {
        /* Files are shared between programs, each of which takes what is its own. */
        ss_log_debug("%sprotocol '%s' is not this program's and is left out", where.text,
                     protocol != NULL ? json_string_value(protocol) : "socks");
        return SS_OK;
    }
    (void)ss_member_check_keys(where.text, object, local_keys);
    if (ss_member(object, "acl", NULL) != NULL) {
        ss_log_error("%s'acl' is not supported", where.text);
        return SS_ERR_UNSUPPORTED;
    }

    locals = ss_array_grow(raw->file_locals, &raw->file_local_count, sizeof *locals);
    if (locals == NULL)
        return SS_ERR_MEMORY;
    raw->file_locals = locals;
    local = &locals[raw->file_local_count - 1];
    status = ss_member_text(&local->address, where.text, object, "local_address", NULL);
    if (status == SS_OK)
        status = ss_member_port(&local->port, where.text, object, "local_port", NULL);
    if (status == SS_OK)
        status = ss_member_mode(&local->mode, &mode_given, where.text, object, "mode");
    if (status == SS_OK && local->port == 0)
        status = ss_member_missing(where.text, "local_port");
    if (status == SS_OK)
        status = take_udp_address(local, where.text, object, raw->program);
    if (status == SS_OK && raw->program == SS_PROGRAM_TUNNEL)
        status = take_forward(local, where.text, object);
    if (status == SS_OK && raw->program == SS_PROGRAM_REDIR)
        status = take_redir(local, where.text, object, &local->tproxy_given);
    if (status == SS_OK && raw->program == SS_PROGRAM_LOCAL) {
        status =
            ss_member_text(&local->auth_path, where.text, object, "socks5_auth_config_path", NULL);
        auth = ss_member(object, "socks5_auth", NULL);
        if (status == SS_OK && auth != NULL)
            status = ss_config_users_read(&local->users, &local->user_count, auth);
    }
    if (status == SS_OK)
        local->mode_given = mode_given;
    return status;
}

enum ss_status ss_config_locals_read(struct ss_raw *raw, const json_t *value)
{
    enum ss_status status = SS_OK;

    if (json_is_null(value))
        return SS_OK;
    if (!json_is_array(value))
        return ss_key_error("", "locals", "a list of objects");
    for (size_t i = 0; status == SS_OK && i < json_array_size(value); i++)
        status = read_local(raw, i, json_array_get(value, i));
    return status;
}

/* RFC 1929 carries 1 to 255 bytes of each. */
static bool is_login_text(const char *text)
{
    size_t len = text != NULL ? strlen(text) : 0;

    return len >= 1 && len <= 255;
}

enum ss_status ss_config_users_read(struct ss_config_user **users, size_t *count,
                                    const json_t *value)
{
    const json_t *list = json_object_get(json_object_get(value, "password"), "users");

    if (!json_is_array(list))
        return ss_key_error("", "socks5_auth", "{\"password\": {\"users\": [ ... ]}}");
    if (json_array_size(list) == 0)
        return ss_key_error("", "socks5_auth", "a list of at least one user");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        const char *name = json_string_value(json_object_get(entry, "user_name"));
        const char *password = json_string_value(json_object_get(entry, "password"));
        struct ss_where where = ss_where_is("", "users", i);
        struct ss_config_user *grown, *user;

        if (!is_login_text(name))
            return ss_key_error(where.text, "user_name", "a string of 1 to 255 bytes");
        if (!is_login_text(password))
            return ss_key_error(where.text, "password", "a string of 1 to 255 bytes");
        grown = ss_array_grow(*users, count, sizeof *grown);
        if (grown == NULL)
            return SS_ERR_MEMORY;
        *users = grown;
        user = &grown[*count - 1];
        user->name = ss_text_copy(name);
        user->password = ss_text_copy(password);
        if (user->name == NULL || user->password == NULL)
            return SS_ERR_MEMORY;
    }
    return SS_OK;
}
