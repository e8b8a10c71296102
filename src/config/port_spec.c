/* Ports and users of the control protocol: from JSON and back. */
#include "config/port_spec.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "config/config_internal.h"

#define NAME_MAX_LEN 255
#define TIMEOUT_MAX  31536000

static enum ss_status refuse(struct ss_reason *reason, enum ss_status status, const char *format,
                             ...) __attribute__((format(printf, 3, 4)));

static enum ss_status refuse(struct ss_reason *reason, enum ss_status status, const char *format,
                             ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(reason->text, sizeof reason->text, format, args);
    va_end(args);
    return status;
}

/* A text, which is copied; numbers are taken as they are written. */
static enum ss_status take_text(char **out, const json_t *value)
{
    char digits[24];
    const char *text = json_string_value(value);

    if (json_is_integer(value)) {
        snprintf(digits, sizeof digits, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        text = digits;
    }
    if (text == NULL)
        return SS_OK;
    ss_secret_free(*out);
    *out = ss_text_copy(text);
    return *out != NULL ? SS_OK : SS_ERR_MEMORY;
}

static enum ss_status take_port(uint16_t *port, const json_t *value, struct ss_reason *reason)
{
    uint32_t number = 0;

    if (json_is_integer(value)) {
        json_int_t given = json_integer_value(value);

        if (given < 1 || given > UINT16_MAX)
            return refuse(reason, SS_ERR_ARGUMENT,
                          "%" JSON_INTEGER_FORMAT " is not a port from 1 to 65535", given);
        number = (uint32_t)given;
    } else if (json_is_string(value) && *json_string_value(value) != '\0' &&
               !ss_number_parse(&number, json_string_value(value), 1, UINT16_MAX)) {
        return refuse(reason, SS_ERR_ARGUMENT, "'%.32s' is not a port from 1 to 65535",
                      json_string_value(value));
    }
    *port = (uint16_t)number;
    return SS_OK;
}

static enum ss_status take_mode(enum ss_mode *mode, bool *given, const char *key,
                                const json_t *value, struct ss_reason *reason)
{
    if (!json_is_string(value))
        return SS_OK;
    if (!ss_mode_parse(mode, json_string_value(value)))
        return refuse(reason, SS_ERR_FORMAT, "%s '%.32s' is not tcp_only, tcp_and_udp or udp_only",
                      key, json_string_value(value));
    *given = true;
    return SS_OK;
}

static enum ss_status take_plugin_args(struct ss_config_server *server, const json_t *list,
                                       struct ss_reason *reason)
{
    enum ss_status status = SS_OK;
    size_t count = 0;

    if (!json_is_array(list))
        return SS_OK;
    ss_words_free(server->plugin_args);
    server->plugin_args = NULL;
    for (size_t i = 0; status == SS_OK && i < json_array_size(list); i++) {
        const char *word = json_string_value(json_array_get(list, i));

        if (word == NULL)
            return refuse(reason, SS_ERR_FORMAT, "'plugin_args' is not a list of texts");
        status = ss_words_add(&server->plugin_args, &count, word);
    }
    return status;
}

static enum ss_choice take_choice(const json_t *value)
{
    return json_is_boolean(value) ? json_is_true(value) ? SS_CHOICE_ON : SS_CHOICE_OFF
                                  : SS_CHOICE_NONE;
}

/* A whole number from 0 to `max`, which may come as text. */
static enum ss_status take_number(uint64_t *number, const char *key, const json_t *value,
                                  uint64_t max, struct ss_reason *reason)
{
    const char *text = json_string_value(value);
    bool good = json_is_integer(value) && json_integer_value(value) >= 0;
    unsigned long long given = good ? (unsigned long long)json_integer_value(value) : 0;

    if (text != NULL && *text != '\0' && strspn(text, "0123456789") == strlen(text)) {
        good = strlen(text) <= 19; /* what fits 64 bits without a doubt */
        given = good ? strtoull(text, NULL, 10) : 0;
    }
    if (json_is_null(value))
        good = true;
    if (!good || given > max)
        return refuse(reason, SS_ERR_FORMAT, "'%s' is not a number from 0 to %llu", key,
                      (unsigned long long)max);
    *number = given;
    return SS_OK;
}

bool ss_port_limit_take(struct ss_config_limits *limits, const char *key, const json_t *value,
                        struct ss_reason *reason, enum ss_status *status)
{
    uint64_t number = 0;

    if (strcmp(key, "quota") == 0) {
        *status = take_number(&limits->quota, key, value, INT64_MAX, reason);
    } else if (strcmp(key, "rate") == 0) {
        *status = take_number(&limits->rate, key, value, INT64_MAX, reason);
    } else if (strcmp(key, "quota_period") == 0) {
        *status = take_number(&number, key, value, UINT32_MAX, reason);
        limits->quota_period_s = (uint32_t)number;
    } else if (strcmp(key, "max_connections") == 0) {
        *status = take_number(&number, key, value, UINT32_MAX, reason);
        limits->max_connections = (uint32_t)number;
    } else if (strcmp(key, "quota_used") == 0) {
        *status = take_number(&limits->quota_used, key, value, INT64_MAX, reason);
    } else if (strcmp(key, "quota_period_end") == 0) {
        *status = take_number(&number, key, value, INT64_MAX, reason);
        limits->quota_period_end = (int64_t)number;
    } else if (strcmp(key, "expires") == 0) {
        *status = take_number(&number, key, value, INT64_MAX, reason);
        limits->expires = (int64_t)number;
    } else {
        return false;
    }
    return true;
}

/* The server that a user's traffic is passed on to. */
static enum ss_status take_next(struct ss_config_identity *user, const json_t *object,
                                struct ss_reason *reason)
{
    const json_t *host = json_object_get(object, "server");
    struct ss_endpoint next;
    struct ss_ip ip;
    uint16_t port = 0;
    enum ss_status status;

    if (!json_is_string(host))
        return SS_OK;
    status = take_port(&port, json_object_get(object, "server_port"), reason);
    if (status != SS_OK)
        return SS_ERR_FORMAT;
    if (ss_endpoint_parse(&next, json_string_value(host)) != SS_OK ||
        (ss_ip_parse(&ip, next.host) != SS_OK && !ss_host_is_valid(next.host, strlen(next.host))))
        return refuse(reason, SS_ERR_FORMAT, "a user's 'server' is not a host");
    if (port != 0)
        next.port = port;
    if (next.port == 0)
        return refuse(reason, SS_ERR_FORMAT, "a user's 'server_port' is missing");
    user->next = malloc(sizeof *user->next);
    if (user->next == NULL)
        return SS_ERR_MEMORY;
    *user->next = next;
    return SS_OK;
}

enum ss_status ss_port_user_read(struct ss_config_identity *user, const json_t *object,
                                 struct ss_reason *reason)
{
    enum ss_status status = SS_OK;
    const char *key;
    json_t *value;

    memset(user, 0, sizeof *user);
    if (!json_is_object(object))
        return refuse(reason, SS_ERR_FORMAT, "a user is not an object");
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        if (strcmp(key, "name") == 0)
            status = take_text(&user->name, value);
        else if (strcmp(key, "password") == 0)
            status = take_text(&user->password, value);
        else
            ss_port_limit_take(&user->limits, key, value, reason, &status);
        if (status != SS_OK)
            return status;
    }
    if (user->name == NULL || *user->name == '\0' || strlen(user->name) > NAME_MAX_LEN)
        return refuse(reason, SS_ERR_FORMAT, "a user's 'name' is not a text of 1 to 255 bytes");
    return take_next(user, object, reason);
}

static enum ss_status take_users(struct ss_config_server *server, const json_t *list,
                                 struct ss_reason *reason)
{
    enum ss_status status = SS_OK;

    if (json_is_null(list))
        return SS_OK;
    if (!json_is_array(list))
        return refuse(reason, SS_ERR_FORMAT, "'users' is not a list");
    for (size_t i = 0; status == SS_OK && i < json_array_size(list); i++) {
        struct ss_config_identity user;

        status = ss_port_user_read(&user, json_array_get(list, i), reason);
        if (status == SS_OK) {
            struct ss_config_identity *grown =
                ss_array_grow(server->identities, &server->identity_count, sizeof *grown);

            if (grown != NULL) {
                server->identities = grown;
                grown[server->identity_count - 1] = user;
                continue;
            }
            status = SS_ERR_MEMORY;
        }
        ss_port_user_clear(&user);
    }
    return status;
}

/* Where it listens; only a manager says so, to its server. */
static enum ss_status take_hosts(struct ss_config_server *server, const json_t *list,
                                 struct ss_reason *reason)
{
    size_t count = json_array_size(list);

    if (count == 0)
        return SS_OK;
    free(server->addresses);
    server->addresses = calloc(count, sizeof *server->addresses);
    server->address_count = 0;
    if (server->addresses == NULL)
        return SS_ERR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const char *host = json_string_value(json_array_get(list, i));

        if (host == NULL || strlen(host) > SS_HOST_MAX)
            return refuse(reason, SS_ERR_FORMAT, "'server' is not a list of hosts");
        strcpy(server->addresses[server->address_count++].host, host);
    }
    return SS_OK;
}

static enum ss_status take_member(struct ss_port_spec *spec, const char *key, const json_t *value,
                                  struct ss_reason *reason)
{
    struct ss_config_server *server = &spec->server;
    enum ss_status status = SS_OK;
    uint64_t number = 0;

    if (strcmp(key, "server_port") == 0)
        return take_port(&spec->port, value, reason);
    if (strcmp(key, "server") == 0)
        return take_hosts(server, value, reason);
    if (strcmp(key, "password") == 0)
        return take_text(&server->password, value);
    if (strcmp(key, "key") == 0)
        return take_text(&server->key, value);
    if (strcmp(key, "method") == 0)
        return take_text(&server->method, value);
    if (strcmp(key, "mode") == 0)
        return take_mode(&server->mode, &server->mode_given, key, value, reason);
    if (strcmp(key, "plugin_mode") == 0)
        return take_mode(&server->plugin_mode, &server->plugin_mode_given, key, value, reason);
    if (strcmp(key, "plugin_args") == 0)
        return take_plugin_args(server, value, reason);
    if (strcmp(key, "plugin") == 0)
        return take_text(&server->plugin, value);
    if (strcmp(key, "plugin_opts") == 0)
        return take_text(&server->plugin_opts, value);
    if (strcmp(key, "remarks") == 0)
        return take_text(&server->name, value);
    if (strcmp(key, "users") == 0)
        return take_users(server, value, reason);
    if (strcmp(key, "of_users") == 0) {
        spec->of_users = json_is_true(value);
    } else if (strcmp(key, "fast_open") == 0) {
        spec->fast_open = take_choice(value);
    } else if (strcmp(key, "no_delay") == 0) {
        spec->no_delay = take_choice(value);
    } else if (strcmp(key, "timeout") == 0) {
        status = take_number(&number, key, value, TIMEOUT_MAX, reason);
        spec->timeout_s = (uint32_t)number;
    } else {
        ss_port_limit_take(&server->limits, key, value, reason, &status);
    }
    return status;
}

enum ss_status ss_port_spec_read(struct ss_port_spec *spec, const json_t *object,
                                 struct ss_reason *reason)
{
    enum ss_status status = SS_OK;
    const char *key;
    json_t *value;

    memset(spec, 0, sizeof *spec);
    if (!json_is_object(object))
        return refuse(reason, SS_ERR_FORMAT, "it is not an object");
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        status = take_member(spec, key, value, reason);
        if (status != SS_OK)
            break;
    }
    for (size_t i = 0; i < spec->server.address_count; i++)
        spec->server.addresses[i].port = spec->port;
    spec->of_users = spec->of_users || spec->server.identity_count != 0;
    if (status == SS_ERR_MEMORY)
        return refuse(reason, status, "%s", ss_status_text(status));
    return status;
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

static void set_number(json_t *object, const char *key, uint64_t number)
{
    if (number != 0)
        set(object, key, json_integer((json_int_t)number));
}

static void set_choice(json_t *object, const char *key, enum ss_choice choice)
{
    if (choice != SS_CHOICE_NONE)
        set(object, key, json_boolean(choice == SS_CHOICE_ON));
}

static void set_limits(json_t *object, const struct ss_config_limits *limits)
{
    set_number(object, "quota", limits->quota);
    set_number(object, "quota_period", limits->quota_period_s);
    set_number(object, "expires", (uint64_t)limits->expires);
    set_number(object, "max_connections", limits->max_connections);
    set_number(object, "rate", limits->rate);
    set_number(object, "quota_used", limits->quota_used);
    set_number(object, "quota_period_end", (uint64_t)limits->quota_period_end);
}

json_t *ss_port_user_json(const struct ss_config_identity *user)
{
    json_t *object = json_object();

    set_text(object, "name", user->name);
    set_text(object, "password", user->password);
    if (user->next != NULL) {
        set_text(object, "server", user->next->host);
        set_number(object, "server_port", user->next->port);
    }
    set_limits(object, &user->limits);
    return object;
}

json_t *ss_port_spec_json(const struct ss_port_spec *spec)
{
    const struct ss_config_server *server = &spec->server;
    json_t *object = json_object();

    set_number(object, "server_port", spec->port);
    if (server->address_count != 0) {
        json_t *hosts = json_array();

        for (size_t i = 0; i < server->address_count; i++)
            json_array_append_new(hosts, json_string(server->addresses[i].host));
        set(object, "server", hosts);
    }
    set_text(object, "password", server->password);
    set_text(object, "key", server->key);
    set_text(object, "method", server->method);
    set_choice(object, "fast_open", spec->fast_open);
    set_choice(object, "no_delay", spec->no_delay);
    if (server->mode_given)
        set_text(object, "mode", ss_mode_text(server->mode));
    set_text(object, "plugin", server->plugin);
    set_text(object, "plugin_opts", server->plugin_opts);
    if (server->plugin_mode_given)
        set_text(object, "plugin_mode", ss_mode_text(server->plugin_mode));
    if (server->plugin_args != NULL) {
        json_t *words = json_array();

        for (size_t i = 0; server->plugin_args[i] != NULL; i++)
            json_array_append_new(words, json_string(server->plugin_args[i]));
        set(object, "plugin_args", words);
    }
    set_text(object, "remarks", server->name);
    set_number(object, "timeout", spec->timeout_s);
    set_limits(object, &server->limits);
    if (server->identity_count != 0) {
        json_t *users = json_array();

        for (size_t i = 0; i < server->identity_count; i++)
            json_array_append_new(users, ss_port_user_json(&server->identities[i]));
        set(object, "users", users);
    } else if (spec->of_users) {
        set(object, "of_users", json_true());
    }
    return object;
}

void ss_port_user_clear(struct ss_config_identity *user)
{
    free(user->name);
    ss_secret_free(user->password);
    free(user->next);
    memset(user, 0, sizeof *user);
}

size_t ss_port_user_find(const struct ss_config_server *server, const char *name)
{
    size_t i = 0;

    while (i < server->identity_count && strcmp(server->identities[i].name, name) != 0)
        i++;
    return i;
}

enum ss_status ss_port_user_put(struct ss_config_server *server, struct ss_config_identity *user)
{
    size_t at = ss_port_user_find(server, user->name);

    if (at == server->identity_count) {
        struct ss_config_identity *grown =
            ss_array_grow(server->identities, &server->identity_count, sizeof *grown);

        if (grown == NULL)
            return SS_ERR_MEMORY;
        server->identities = grown;
    }
    ss_port_user_clear(&server->identities[at]);
    server->identities[at] = *user;
    memset(user, 0, sizeof *user);
    return SS_OK;
}

void ss_port_user_drop(struct ss_config_server *server, size_t index)
{
    struct ss_config_identity *list = server->identities;

    ss_port_user_clear(&list[index]);
    memmove(&list[index], &list[index + 1], (server->identity_count - index - 1) * sizeof *list);
    server->identity_count--;
}

static enum ss_status copy_text(char **copy, const char *text)
{
    *copy = text != NULL ? ss_text_copy(text) : NULL;
    return text == NULL || *copy != NULL ? SS_OK : SS_ERR_MEMORY;
}

enum ss_status ss_port_user_copy(struct ss_config_identity *copy,
                                 const struct ss_config_identity *user)
{
    enum ss_status status;

    *copy = (struct ss_config_identity){.limits = user->limits};
    status = copy_text(&copy->name, user->name);
    if (status == SS_OK)
        status = copy_text(&copy->password, user->password);
    if (status == SS_OK && user->next != NULL) {
        copy->next = malloc(sizeof *copy->next);
        if (copy->next == NULL)
            return SS_ERR_MEMORY;
        *copy->next = *user->next;
    }
    return status;
}

static enum ss_status copy_user(struct ss_config_server *server,
                                const struct ss_config_identity *user)
{
    struct ss_config_identity *grown =
        ss_array_grow(server->identities, &server->identity_count, sizeof *grown);

    if (grown == NULL)
        return SS_ERR_MEMORY;
    server->identities = grown;
    return ss_port_user_copy(&grown[server->identity_count - 1], user);
}

static enum ss_status copy_texts(struct ss_config_server *copy,
                                 const struct ss_config_server *server)
{
    char **const to[] = {&copy->method, &copy->password,    &copy->key,
                         &copy->plugin, &copy->plugin_opts, &copy->name};
    char *const from[] = {server->method, server->password,    server->key,
                          server->plugin, server->plugin_opts, server->name};
    enum ss_status status = SS_OK;

    for (size_t i = 0; status == SS_OK && i < sizeof from / sizeof from[0]; i++)
        status = copy_text(to[i], from[i]);
    return status;
}

enum ss_status ss_port_spec_copy(struct ss_port_spec *copy, const struct ss_port_spec *spec)
{
    const struct ss_config_server *server = &spec->server;
    enum ss_status status;

    *copy = (struct ss_port_spec){.port = spec->port,
                                  .fast_open = spec->fast_open,
                                  .no_delay = spec->no_delay,
                                  .timeout_s = spec->timeout_s,
                                  .of_users = spec->of_users,
                                  .server = {.mode = server->mode,
                                             .mode_given = server->mode_given,
                                             .plugin_mode = server->plugin_mode,
                                             .plugin_mode_given = server->plugin_mode_given,
                                             .limits = server->limits}};
    status = copy_texts(&copy->server, server);
    if (status == SS_OK)
        status = ss_words_copy(&copy->server.plugin_args, server->plugin_args);
    if (status == SS_OK && server->address_count != 0) {
        size_t size = server->address_count * sizeof *server->addresses;

        copy->server.addresses = malloc(size);
        if (copy->server.addresses == NULL)
            status = SS_ERR_MEMORY;
        else
            memcpy(copy->server.addresses, server->addresses, size);
        copy->server.address_count = copy->server.addresses != NULL ? server->address_count : 0;
    }
    for (size_t i = 0; status == SS_OK && i < server->identity_count; i++)
        status = copy_user(&copy->server, &server->identities[i]);
    if (status != SS_OK)
        ss_port_spec_clear(copy);
    return status;
}

static void put_used(struct ss_config_limits *limits, uint64_t used, int64_t period_end)
{
    limits->quota_used = used;
    limits->quota_period_end = period_end;
}

void ss_port_spec_forget_used(struct ss_port_spec *spec)
{
    put_used(&spec->server.limits, 0, 0);
    for (size_t i = 0; i < spec->server.identity_count; i++)
        put_used(&spec->server.identities[i].limits, 0, 0);
}

void ss_port_spec_keep_used(struct ss_port_spec *spec, const struct ss_port_spec *before)
{
    const struct ss_config_server *old = &before->server;

    put_used(&spec->server.limits, old->limits.quota_used, old->limits.quota_period_end);
    for (size_t i = 0; i < spec->server.identity_count; i++) {
        struct ss_config_identity *user = &spec->server.identities[i];
        size_t at = i;

        /* Mostly it is where it was. */
        if (at >= old->identity_count || strcmp(old->identities[at].name, user->name) != 0)
            at = ss_port_user_find(old, user->name);
        if (at < old->identity_count)
            put_used(&user->limits, old->identities[at].limits.quota_used,
                     old->identities[at].limits.quota_period_end);
    }
}

void ss_port_spec_clear(struct ss_port_spec *spec)
{
    ss_config_server_clear(&spec->server);
    memset(spec, 0, sizeof *spec);
}
