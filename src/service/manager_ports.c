/* The ports that ss-manager keeps, and what they have used. */
#include "service/manager_internal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "codec/keys.h"
#include "codec/method.h"
#include "codec/users.h"
#include "config/port_spec.h"
#include "crypto/random.h"
#include "crypto/secret.h"

#define KEY_TEXT_MAX 1024

struct ss_managed *ss_managed_find(const struct ss_manager *manager, uint16_t port)
{
    return manager->by_port[port];
}

/* Counters of users go with their names. */
static void keep_uses(struct ss_use_count *uses, const struct ss_config_server *server,
                      const struct ss_managed *old)
{
    for (size_t i = 0; i < server->identity_count; i++) {
        const char *name = server->identities[i].name;
        const struct ss_config_server *before = &old->spec.server;
        size_t at = i;

        /* Mostly it is where it was. */
        if (at >= before->identity_count || strcmp(before->identities[at].name, name) != 0)
            at = ss_port_user_find(before, name);
        if (at < old->use_count)
            uses[i] = old->uses[at];
    }
}

struct ss_managed *ss_managed_put(struct ss_manager *manager, struct ss_port_spec *spec)
{
    struct ss_managed *port = manager->by_port[spec->port];
    struct ss_use_count *uses = calloc(spec->server.identity_count + 1, sizeof *uses);

    if (uses == NULL)
        return NULL;
    if (port == NULL) {
        port = calloc(1, sizeof *port);
        if (port == NULL) {
            free(uses);
            return NULL;
        }
        port->previous = manager->last;
        if (manager->last != NULL)
            manager->last->next = port;
        else
            manager->first = port;
        manager->last = port;
        manager->by_port[spec->port] = port;
        manager->port_count++;
    } else {
        keep_uses(uses, &spec->server, port);
        ss_port_spec_keep_used(spec, &port->spec);
        ss_port_spec_clear(&port->spec);
    }
    free(port->uses);
    port->uses = uses;
    port->use_count = spec->server.identity_count;
    port->use_cursor = 0;
    port->spec = *spec;
    memset(spec, 0, sizeof *spec);
    return port;
}

void ss_managed_drop(struct ss_manager *manager, struct ss_managed *port)
{
    *(port->previous != NULL ? &port->previous->next : &manager->first) = port->next;
    *(port->next != NULL ? &port->next->previous : &manager->last) = port->previous;
    manager->by_port[port->spec.port] = NULL;
    manager->port_count--;
    ss_port_spec_clear(&port->spec);
    free(port->uses);
    free(port);
}

void ss_managed_drop_all(struct ss_manager *manager)
{
    while (manager->first != NULL)
        ss_managed_drop(manager, manager->first);
}

static struct ss_use_count *find_use(struct ss_managed *port, const char *user)
{
    const struct ss_config_server *server = &port->spec.server;
    size_t at = port->use_cursor;

    /* A server tells of its users in the order of its list. */
    if (at >= server->identity_count || strcmp(server->identities[at].name, user) != 0)
        at = ss_port_user_find(server, user);
    if (at >= port->use_count)
        return NULL;
    port->use_cursor = at + 1;
    return &port->uses[at];
}

/* The word, to be kept. */
static const char *state_of(const char *heard)
{
    static const char *const words[] = {"quota", "expired"};

    for (size_t i = 0; heard != NULL && i < sizeof words / sizeof words[0]; i++)
        if (strcmp(words[i], heard) == 0)
            return words[i];
    return NULL;
}

static void note_used(struct ss_managed *port, struct ss_config_limits *limits,
                      const struct ss_wire_use *use)
{
    if (limits->quota == 0 || (limits->quota_used == use->quota_used &&
                               limits->quota_period_end == use->quota_period_end))
        return;
    limits->quota_used = use->quota_used;
    limits->quota_period_end = use->quota_period_end;
    port->used_changed = true;
}

void ss_managed_count(struct ss_manager *manager, const struct ss_wire_use *use)
{
    struct ss_managed *port = manager->by_port[use->port];
    struct ss_use_count *count;

    if (port == NULL)
        return;
    if (use->user == NULL) {
        port->total_now = use->total;
        port->state = state_of(use->state);
        note_used(port, &port->spec.server.limits, use);
        return;
    }
    count = find_use(port, use->user);
    if (count != NULL)
        note_used(port, &port->spec.server.identities[port->use_cursor - 1].limits, use);
    if (count != NULL)
        count->now =
            (struct ss_user_use){use->rx_bytes, use->tx_bytes, use->sessions, state_of(use->state)};
}

void ss_managed_bank(struct ss_manager *manager)
{
    for (struct ss_managed *port = manager->first; port != NULL; port = port->next) {
        port->total_before += port->total_now;
        port->total_now = 0;
        for (size_t i = 0; i < port->use_count; i++) {
            struct ss_use_count *use = &port->uses[i];

            use->before.rx_bytes += use->now.rx_bytes;
            use->before.tx_bytes += use->now.tx_bytes;
            use->before.sessions += use->now.sessions;
            memset(&use->now, 0, sizeof use->now);
        }
    }
}

static bool refuse(struct ss_reason *reason, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool refuse(struct ss_reason *reason, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(reason->text, sizeof reason->text, format, args);
    va_end(args);
    return false;
}

/* A 2022 key, or a raw one for --key's sake. */
static bool check_key(const struct ss_config_server *server, const struct ss_method *method,
                      struct ss_reason *reason)
{
    const char *text = server->key != NULL ? server->key : server->password;
    struct ss_key_fault fault = {0};
    bool good = true;

    if (method->family == SS_METHODS_2022) {
        uint8_t keys[SS_CHAIN_MAX][SS_KEY_MAX];
        size_t count = 0;

        good =
            text != NULL &&
            ss_keys_parse(keys, &count, method,
                          (struct ss_view){(const uint8_t *)text, strlen(text)}, &fault) == SS_OK &&
            count == 1;
        ss_wipe(keys, sizeof keys);
        if (!good)
            return refuse(reason, "the password is no key of %s in base64", method->name);
    } else if (server->key != NULL) {
        uint8_t key[KEY_TEXT_MAX];
        size_t len = 0;

        good = ss_base64_decode(key, sizeof key, &len, text, strlen(text), SS_BASE64_EITHER) ==
                   SS_OK &&
               len >= method->key_len;
        ss_wipe(key, sizeof key);
        if (!good)
            return refuse(reason, "the key is too short for %s, or no base64", method->name);
    }
    return true;
}

static bool check_users(const struct ss_config_server *server, const struct ss_method *method,
                        struct ss_reason *reason)
{
    size_t count = server->identity_count;
    struct ss_user_options *list;
    struct ss_key_fault fault = {0};
    struct ss_users *users = NULL;
    enum ss_status status;

    if (count == 0)
        return true;
    list = calloc(count, sizeof *list);
    if (list == NULL)
        return refuse(reason, "%s", ss_status_text(SS_ERR_MEMORY));
    for (size_t i = 0; i < count; i++) {
        const struct ss_config_identity *user = &server->identities[i];
        const char *password = user->password != NULL ? user->password : "";

        list[i] =
            (struct ss_user_options){.name = user->name,
                                     .password = {(const uint8_t *)password, strlen(password)},
                                     .next = user->next};
    }
    status = ss_users_new(&users, method, list, count, &fault);
    ss_users_release(users);
    free(list);
    if (status == SS_OK)
        return true;
    if (status != SS_ERR_KEY)
        return refuse(reason, "%s", ss_status_text(status));
    if (fault.kind == SS_KEY_HAS_NO_CHAINS)
        return refuse(reason, "%s has no users", method->name);
    return refuse(reason, "the key of user '%.64s' does not fit, or is another's too",
                  server->identities[fault.user].name);
}

bool ss_manager_check_spec(const struct ss_config *config, const struct ss_port_spec *spec,
                           struct ss_reason *reason)
{
    const struct ss_config_server *server = &spec->server;
    const char *name = server->method != NULL ? server->method : config->method;
    const struct ss_method *method = ss_method_find(name);

    if (method == NULL)
        return refuse(reason, "there is no method '%.64s'", name);
    if (method->family != SS_METHODS_PLAIN && server->key == NULL &&
        (server->password == NULL || *server->password == '\0'))
        return refuse(reason, "%s", "a password is missing");
    return check_key(server, method, reason) && check_users(server, method, reason);
}

struct ss_port_spec ss_manager_configured_spec(const struct ss_config_server *server)
{
    return (struct ss_port_spec){.port = server->addresses[0].port,
                                 .of_users = server->identity_count != 0,
                                 .server = *server};
}

static enum ss_status put_text(char **to, const char *text)
{
    if (text == NULL || *to != NULL)
        return SS_OK;
    *to = strdup(text);
    return *to != NULL ? SS_OK : SS_ERR_MEMORY;
}

/* A port without a plugin of its own has the manager's. */
static enum ss_status complete_plugin(struct ss_config_server *server,
                                      const struct ss_config *config)
{
    enum ss_status status = SS_OK;
    size_t count = 0;

    if (server->plugin != NULL || config->plugin == NULL)
        return SS_OK;
    status = put_text(&server->plugin, config->plugin);
    if (status == SS_OK)
        status = put_text(&server->plugin_opts, config->plugin_opts);
    if (!server->plugin_mode_given) {
        server->plugin_mode = config->plugin_mode;
        server->plugin_mode_given = true;
    }
    if (server->plugin_args != NULL || config->plugin_args == NULL)
        return status;
    while (config->plugin_args[count] != NULL)
        count++;
    server->plugin_args = calloc(count + 1, sizeof *server->plugin_args);
    if (server->plugin_args == NULL)
        return SS_ERR_MEMORY;
    for (size_t i = 0; status == SS_OK && i < count; i++)
        status = put_text(&server->plugin_args[i], config->plugin_args[i]);
    return status;
}

enum ss_status ss_manager_complete(struct ss_port_spec *complete, const struct ss_config *config,
                                   const struct ss_port_spec *spec)
{
    struct ss_config_server *server = &complete->server;
    enum ss_status status = ss_port_spec_copy(complete, spec);

    if (status == SS_OK)
        status = put_text(&server->method, config->method);
    if (status == SS_OK)
        status = complete_plugin(server, config);
    if (!server->mode_given) {
        server->mode = config->mode;
        server->mode_given = true;
    }
    if (status == SS_OK && server->address_count == 0) {
        server->addresses = calloc(config->host_count, sizeof *server->addresses);
        if (server->addresses == NULL)
            status = SS_ERR_MEMORY;
        for (size_t i = 0; status == SS_OK && i < config->host_count; i++) {
            server->addresses[i] = config->hosts[i];
            server->addresses[i].port = spec->port;
            server->address_count++;
        }
    }
    if (status != SS_OK)
        ss_port_spec_clear(complete);
    return status;
}

enum ss_status ss_manager_put_nobody(struct ss_config_server *server)
{
    const struct ss_method *method = ss_method_find(server->method);
    struct ss_config_identity nobody = {0};
    char text[SS_BASE64_LEN(SS_KEY_MAX) + 1];
    uint8_t key[SS_KEY_MAX];
    enum ss_status status;

    if (method == NULL)
        return SS_ERR_UNSUPPORTED;
    ss_random_bytes(key, method->key_len);
    ss_base64_encode(text, key, method->key_len, SS_BASE64_STANDARD);
    status = put_text(&nobody.name, "nobody");
    if (status == SS_OK)
        status = put_text(&nobody.password, text);
    if (status == SS_OK)
        status = ss_port_user_put(server, &nobody);
    ss_port_user_clear(&nobody);
    ss_wipe(key, sizeof key);
    ss_wipe(text, sizeof text);
    return status;
}
