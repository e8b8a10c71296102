/* The configuration file in both shapes: the classic one, and the one with lists of servers. */
#include "config/config_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/log.h"
#include "config/json.h"
#include "config/members.h"

enum ss_status ss_key_error(const char *where, const char *key, const char *must_be)
{
    ss_log_error("invalid config file: %soption '%s' must be %s", where, key, must_be);
    return SS_ERR_ARGUMENT;
}

void ss_key_unknown(const char *where, const char *key, const char *const *words)
{
    const char *nearest = words != NULL ? ss_nearest_word(key, words) : ss_setting_nearest(key);

    if (key[0] == '_') /* what people name their comments */
        return;
    if (nearest != NULL)
        ss_log_warn("%sunknown key '%s' is ignored; is '%s' meant?", where, key, nearest);
    else
        ss_log_warn("%sunknown key '%s' is ignored", where, key);
}

#define NUMBER_TEXT 24

/*
 * A number as the text that it stands for. Passwords beyond 32 bits are cut as classic peers with
 * the same file cut them.
 */
static const char *number_text(char text[NUMBER_TEXT], const char *key, json_int_t number,
                               bool secret)
{
    if (secret && (number > INT32_MAX || number < INT32_MIN)) {
        ss_log_warn("'%s' is a number beyond 32 bits and is cut as the classic programs do; put it "
                    "in quotes to have it as it stands",
                    key);
        number = (int32_t)(uint32_t)(uint64_t)number;
    }
    snprintf(text, NUMBER_TEXT, "%" JSON_INTEGER_FORMAT, number);
    return text;
}

static bool is_number_kind(const struct ss_setting *setting)
{
    return setting->kind == SS_KIND_NUMBER || setting->kind == SS_KIND_LOOSE ||
           setting->kind == SS_KIND_MARK || setting->kind == SS_KIND_PORT;
}

/* A value by the setting's rule, as text in *text; NULL when it says nothing. */
static enum ss_status scalar(const struct ss_raw *raw, const struct ss_setting *setting,
                             const char *key, const json_t *value, char buffer[NUMBER_TEXT],
                             const char **text)
{
    unsigned rule = setting->rule;
    uint32_t ignored;

    *text = NULL;
    if (json_is_null(value) && (raw->extended || rule == SS_RULE_TEXT || rule == SS_RULE_OURS))
        return SS_OK;

    if (rule == SS_RULE_FLAG || (rule == SS_RULE_OURS && setting->kind == SS_KIND_FLAG)) {
        if (!json_is_boolean(value))
            return ss_key_error("", key, "a boolean");
        *text = json_is_true(value) ? "true" : NULL;
        return SS_OK;
    }
    if (rule == SS_RULE_INTEGER || (rule == SS_RULE_OURS && is_number_kind(setting))) {
        if (json_is_integer(value))
            *text = number_text(buffer, key, json_integer_value(value), false);
        else if (rule == SS_RULE_OURS && json_is_string(value) &&
                 (setting->kind == SS_KIND_MARK ||
                  ss_number_parse(&ignored, json_string_value(value), 0, UINT32_MAX)))
            *text = json_string_value(value);
        else
            return ss_key_error("", key, "an integer");
        return SS_OK;
    }
    if (json_is_string(value))
        *text = json_string_value(value);
    else if (json_is_integer(value) && rule == SS_RULE_TEXT &&
             (!raw->extended || is_number_kind(setting)))
        *text =
            number_text(buffer, key, json_integer_value(value), setting->kind == SS_KIND_SECRET);
    else
        return ss_key_error("", key,
                            rule == SS_RULE_TEXT && !raw->extended ? "a string or an integer"
                                                                   : "a string");
    return SS_OK;
}

static enum ss_status add_server(struct ss_raw *raw, const json_t *value)
{
    if (!json_is_string(value))
        return ss_key_error("", "server", "a string or a list of strings");
    if (raw->servers_source == SS_SOURCE_LINE)
        return SS_OK;
    if (raw->server_count == SS_ADDRESSES_GIVEN_MAX) {
        ss_log_warn("only %d servers of a list are used; '%s' is left out", SS_ADDRESSES_GIVEN_MAX,
                    json_string_value(value));
        return SS_OK;
    }
    raw->servers[raw->server_count] = ss_text_copy(json_string_value(value));
    if (raw->servers[raw->server_count] == NULL)
        return SS_ERR_MEMORY;
    raw->server_count++;
    raw->servers_source = SS_SOURCE_FILE;
    return SS_OK;
}

static enum ss_status read_servers(struct ss_raw *raw, const json_t *value)
{
    enum ss_status status = SS_OK;

    if (json_is_null(value))
        return SS_OK;
    if (!json_is_array(value))
        return add_server(raw, value);
    for (size_t i = 0; status == SS_OK && i < json_array_size(value); i++)
        status = add_server(raw, json_array_get(value, i));
    return status;
}

static enum ss_status read_address(struct ss_raw *raw, const char *text)
{
    if (text == NULL || raw->addresses_source == SS_SOURCE_LINE)
        return SS_OK;
    if (raw->address_count != 0)
        free(raw->addresses[--raw->address_count]);
    raw->addresses[0] = ss_text_copy(text);
    if (raw->addresses[0] == NULL)
        return SS_ERR_MEMORY;
    raw->address_count = 1;
    raw->addresses_source = SS_SOURCE_FILE;
    return SS_OK;
}

/* One entry. SS_ERR_ARGUMENT after the error line. */
static enum ss_status read_port_entry(struct ss_raw *raw, const char *port_text,
                                      const json_t *password)
{
    struct ss_config_server *servers, *server;
    char buffer[NUMBER_TEXT];
    const char *text;
    uint32_t port;

    if (!ss_number_parse(&port, port_text, 1, UINT16_MAX)) {
        ss_log_error("invalid config file: port_password: '%s' is not a port from 1 to 65535",
                     port_text);
        return SS_ERR_ARGUMENT;
    }
    if (json_is_integer(password))
        text = number_text(buffer, port_text, json_integer_value(password), true);
    else if (json_is_string(password))
        text = json_string_value(password);
    else
        return ss_key_error("port_password: ", port_text, "a string or an integer");

    servers = ss_array_grow(raw->port_servers, &raw->port_server_count, sizeof *servers);
    if (servers == NULL)
        return SS_ERR_MEMORY;
    raw->port_servers = servers;
    server = &servers[raw->port_server_count - 1];
    server->addresses = calloc(1, sizeof *server->addresses);
    server->password = ss_text_copy(text);
    if (server->addresses == NULL || server->password == NULL)
        return SS_ERR_MEMORY;
    server->addresses->port = (uint16_t)port;
    server->address_count = 1;
    return SS_OK;
}

static enum ss_status read_port_password(struct ss_raw *raw, const json_t *value, bool used)
{
    const char *port_text;
    json_t *password;

    if (json_is_null(value) || (!used && !json_is_object(value)))
        return SS_OK;
    if (!json_is_object(value))
        return ss_key_error("", "port_password", "an object of ports and passwords");
    if (!used)
        return SS_OK;

    json_object_foreach((json_t *)(uintptr_t)value, port_text, password)
    {
        enum ss_status status = read_port_entry(raw, port_text, password);

        /* Of many users' ports one bad one must not stop the others. */
        if (status == SS_ERR_ARGUMENT && raw->program == SS_PROGRAM_MANAGER)
            continue;
        if (status != SS_OK)
            return status;
    }
    return SS_OK;
}

/* `dns` of other programs, as far as it is a list of addresses. */
static enum ss_status read_dns(struct ss_raw *raw, const json_t *value)
{
    const char *text = json_string_value(value);

    if (json_is_null(value) || (text != NULL && strcmp(text, "system") == 0))
        return SS_OK;
    if (text != NULL && strncmp(text, "udp://", 6) == 0)
        text += 6;
    if (text != NULL && ss_nameservers_valid(text))
        return ss_raw_set(raw, ss_setting_at(offsetof(struct ss_config, nameservers)), text,
                          SS_SOURCE_FILE);
    ss_log_warn("'dns' is only understood as a list of addresses and is ignored; see 'nameserver'");
    return SS_OK;
}

static enum ss_status read_member(struct ss_raw *raw, const char *key, const json_t *value)
{
    size_t row;
    const struct ss_setting *setting = ss_setting_by_key(key, &row);
    enum ss_status status;
    char buffer[NUMBER_TEXT];
    const char *text = NULL;
    bool used;

    if (setting == NULL) {
        ss_key_unknown("", key, NULL);
        return SS_OK;
    }
    used = (setting->file & raw->program) != 0;
    if (setting->rule != SS_RULE_ANY) {
        status = scalar(raw, setting, key, value, buffer, &text);
        if (status != SS_OK)
            return status;
    }
    switch (setting->kind) {
    case SS_KIND_ONE_TIME:
        ss_log_error("One time auth has been deprecated. Try AEAD ciphers instead.");
        return SS_ERR_ARGUMENT;
    case SS_KIND_PORT_PASSWORD:
        return read_port_password(raw, value, used);
    case SS_KIND_LABEL:
        return SS_OK;
    default:
        break;
    }
    if (!used)
        return SS_OK;

    switch (setting->kind) {
    case SS_KIND_SERVERS:
        return read_servers(raw, value);
    case SS_KIND_ADDRESSES:
        return read_address(raw, text);
    case SS_KIND_SERVER_LIST:
        return ss_config_servers_read(raw, value);
    case SS_KIND_LOCAL_LIST:
        return ss_config_locals_read(raw, value);
    case SS_KIND_SOCKS5_AUTH:
        if (json_is_null(value) || raw->users != NULL)
            return SS_OK;
        return ss_config_users_read(&raw->users, &raw->user_count, value);
    case SS_KIND_IDENTITIES:
        if (raw->identities != NULL)
            return SS_OK;
        return ss_config_identities_read(&raw->identities, &raw->identity_count, raw->program, "",
                                         json_is_null(value) ? NULL : value);
    case SS_KIND_PLUGIN_ARGS:
        if (raw->plugin_args_source == SS_SOURCE_LINE)
            return SS_OK;
        raw->plugin_args_source = SS_SOURCE_FILE;
        return ss_member_words(&raw->plugin_args, "", "plugin_args", value);
    case SS_KIND_DNS:
        return read_dns(raw, value);
    case SS_KIND_DSCP:
        return ss_config_dscp_read(&raw->dscp, &raw->dscp_count, value);
    case SS_KIND_NOT_YET:
        ss_log_warn("'%s' is not supported and is ignored", key);
        return SS_OK;
    case SS_KIND_REFUSED:
        if (json_is_null(value))
            return SS_OK;
        ss_log_error("'%s' is not supported", key);
        return SS_ERR_UNSUPPORTED;
    default:
        return text != NULL ? ss_raw_set(raw, row, text, SS_SOURCE_FILE) : SS_OK;
    }
}

static json_t *parse(const char *name, char *text, size_t len)
{
    struct ss_json_error error;
    json_t *document = ss_json_parse(text, len, &error);

    if (document == NULL) {
        ss_log_error("%s:%u:%u: %s", name, error.line, error.column, error.text);
        return NULL;
    }
    if (!json_is_object(document)) {
        ss_log_error("Invalid config file");
        ss_log_error("%s: the whole must be an object, { to }", name);
        json_decref(document);
        return NULL;
    }
    return document;
}

enum ss_status ss_config_json_read(struct ss_raw *raw, const char *name, char *text, size_t len)
{
    json_t *document = parse(name, text, len);
    enum ss_status status = SS_OK;
    const char *key;
    json_t *value;

    if (document == NULL)
        return SS_ERR_FORMAT;
    raw->extended = json_is_array(json_object_get(document, "servers")) ||
                    json_is_array(json_object_get(document, "shadowsocks")) ||
                    json_is_array(json_object_get(document, "locals"));

    json_object_foreach(document, key, value)
    {
        status = read_member(raw, key, value);
        if (status != SS_OK)
            break;
    }
    if (status == SS_ERR_MEMORY)
        ss_log_error("%s", ss_status_text(status));
    json_decref(document);
    return status;
}

enum ss_status ss_config_auth_read(struct ss_config_user **users, size_t *count, const char *name,
                                   char *text, size_t len)
{
    json_t *document = parse(name, text, len);
    enum ss_status status;

    if (document == NULL)
        return SS_ERR_FORMAT;
    status = ss_config_users_read(users, count, document);
    json_decref(document);
    return status;
}
