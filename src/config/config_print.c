/* The effective configuration, as --check-config shows it. */
#include "config/config_internal.h"

#include <string.h>

#include <jansson.h>

#define HIDDEN "***"

/* As `server` takes it: with the port, and an IPv6 address in brackets. */
static json_t *endpoint_json(const struct ss_endpoint *endpoint)
{
    char text[SS_ENDPOINT_TEXT_MAX];

    return json_string(ss_endpoint_format(endpoint, text));
}

static void set(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
}

static void set_text(json_t *object, const char *key, const char *text)
{
    if (text != NULL)
        set(object, key, json_string(text));
}

/* A secret is said to be there, and no more. */
static void set_secret(json_t *object, const char *key, const char *text)
{
    set_text(object, key, text != NULL ? HIDDEN : NULL);
}

static json_t *identities_json(const struct ss_config_server *server)
{
    json_t *list = json_array();

    for (size_t i = 0; i < server->identity_count; i++) {
        const struct ss_config_identity *identity = &server->identities[i];
        json_t *object = json_object();

        set_text(object, "name", identity->name);
        set_secret(object, "password", identity->password);
        if (identity->next != NULL)
            set(object, "server", endpoint_json(identity->next));
        json_array_append_new(list, object);
    }
    return list;
}

static void set_weight(json_t *object, const char *key, uint32_t weight)
{
    if (weight != SS_CONFIG_WEIGHT_ONE)
        set(object, key, json_real((double)weight / SS_CONFIG_WEIGHT_ONE));
}

static json_t *server_json(const struct ss_config_server *server, bool of_client)
{
    json_t *object = json_object(), *addresses = json_array();

    for (size_t i = 0; i < server->address_count; i++)
        json_array_append_new(addresses, endpoint_json(&server->addresses[i]));
    set(object, "server", addresses);
    set_text(object, "method", server->method);
    set_secret(object, "password", server->password);
    set_secret(object, "key", server->key);
    set_text(object, "mode", ss_mode_text(server->mode));
    if (of_client) {
        set_weight(object, "tcp_weight", server->tcp_weight);
        set_weight(object, "udp_weight", server->udp_weight);
    }
    set_text(object, "plugin", server->plugin);
    set_secret(object, "plugin_opts", server->plugin_opts);
    if (server->plugin_args != NULL)
        set_secret(object, "plugin_args", "");
    if (server->plugin != NULL)
        set_text(object, "plugin_mode", ss_mode_text(server->plugin_mode));
    set_text(object, "remarks", server->name);
    if (server->identity_count != 0)
        set(object, "users", identities_json(server));
    return object;
}

static json_t *local_json(const struct ss_config *config, const struct ss_config_local *local)
{
    json_t *object = json_object();

    if (config->program == SS_PROGRAM_TUNNEL)
        set_text(object, "protocol", "tunnel");
    if (config->program == SS_PROGRAM_REDIR) {
        set_text(object, "protocol", "redir");
        set_text(object, "tcp_redir", local->tproxy ? "tproxy" : "redirect");
        if (local->dscp != 0)
            set(object, "dscp", json_integer(local->dscp));
    }
    set_text(object, "local_address", local->address);
    set(object, "local_port", json_integer(local->port));
    set_text(object, "local_udp_address", local->udp_address);
    if (local->udp_port != 0)
        set(object, "local_udp_port", json_integer(local->udp_port));
    set_text(object, "mode", ss_mode_text(local->mode));
    if (config->program == SS_PROGRAM_TUNNEL) {
        set_text(object, "forward_address", local->target.host);
        set(object, "forward_port", json_integer(local->target.port));
    }
    if (local->user_count != 0)
        set(object, "socks5_auth", json_integer((json_int_t)local->user_count));
    return object;
}

static json_t *setting_json(const struct ss_config *config, const struct ss_setting *setting)
{
    const void *field = (const char *)config + setting->offset;
    const char *text;

    switch (setting->kind) {
    case SS_KIND_TEXT:
    case SS_KIND_CONFIG:
        text = *(char *const *)field;
        return text != NULL ? json_string(text) : NULL;
    case SS_KIND_SECRET:
        return *(char *const *)field != NULL ? json_string(HIDDEN) : NULL;
    case SS_KIND_FLAG:
        return json_boolean(*(const bool *)field);
    case SS_KIND_NUMBER:
        /* Without a default of its own it may not be set at all. */
        return *(const uint32_t *)field >= setting->min ? json_integer(*(const uint32_t *)field)
                                                        : NULL;
    case SS_KIND_LOOSE:
    case SS_KIND_MARK:
        return json_integer(*(const uint32_t *)field);
    case SS_KIND_PORT:
        return *(const uint16_t *)field != 0 ? json_integer(*(const uint16_t *)field) : NULL;
    case SS_KIND_MODE:
        return json_string(ss_mode_text(*(const enum ss_mode *)field));
    case SS_KIND_LEVEL:
        return json_string(ss_log_level_text((enum ss_log_level) * (const uint8_t *)field));
    case SS_KIND_BALANCE:
        return json_string(ss_balancing_text((enum ss_balancing) * (const uint8_t *)field));
    default:
        return NULL;
    }
}

static const char *setting_name(const struct ss_setting *setting)
{
    if (setting->key != NULL || setting->option != NULL)
        return setting->key != NULL ? setting->key : setting->option;
    switch (setting->letter) {
    case 'c':
        return "config";
    case 'f':
        return "pid_file";
    default:
        return "verbose";
    }
}

static void set_bind(json_t *object, const char *key, const struct ss_ip *ip)
{
    char text[SS_IP_TEXT_MAX];

    if (ip->family != SS_FAMILY_NONE)
        set_text(object, key, ss_ip_format(ip, text));
}

void ss_config_print(const struct ss_config *config, FILE *out)
{
    json_t *object = json_object(), *list;

    for (size_t row = 0; row < ss_setting_count; row++) {
        const struct ss_setting *setting = &ss_settings[row];

        if (setting->offset != UINT16_MAX && setting->kind != SS_KIND_ALIAS &&
            ((setting->line | setting->file) & config->program))
            set(object, setting_name(setting), setting_json(config, setting));
    }
    set_bind(object, "source_ipv4", &config->bind_ipv4);
    set_bind(object, "source_ipv6", &config->bind_ipv6);

    list = json_array();
    for (size_t i = 0; i < config->server_count; i++)
        json_array_append_new(
            list, server_json(&config->servers[i], config->program != SS_PROGRAM_SERVER));
    set(object, "servers", list);
    if (config->program == SS_PROGRAM_MANAGER) {
        list = json_array();
        for (size_t i = 0; i < config->host_count; i++)
            json_array_append_new(list, json_string(config->hosts[i].host));
        set(object, "server", list);
    } else if (config->program != SS_PROGRAM_SERVER) {
        list = json_array();
        for (size_t i = 0; i < config->local_count; i++)
            json_array_append_new(list, local_json(config, &config->locals[i]));
        set(object, "locals", list);
    }
    json_dumpf(object, out, JSON_INDENT(4));
    fputc('\n', out);
    fflush(out);
    json_decref(object);
}
