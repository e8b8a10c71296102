/* Commands of the manager protocol: a word, perhaps a colon, perhaps an object. */
#include "control/request.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "config/json.h"

static const struct {
    const char *word;
    enum ss_command command;
} commands[] = {
    {"add", SS_COMMAND_ADD},          {"remove", SS_COMMAND_REMOVE},
    {"list", SS_COMMAND_LIST},        {"ping", SS_COMMAND_PING},
    {"stat", SS_COMMAND_STAT},        {"adduser", SS_COMMAND_ADD_USER},
    {"deluser", SS_COMMAND_DEL_USER}, {"users", SS_COMMAND_USERS},
};

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static enum ss_status refuse(struct ss_reason *reason, enum ss_status status, const char *text)
{
    snprintf(reason->text, sizeof reason->text, "%s", text);
    return status;
}

static enum ss_command find_command(const char *word, size_t len)
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strlen(commands[i].word) == len && memcmp(commands[i].word, word, len) == 0)
            return commands[i].command;
    return SS_COMMAND_UNKNOWN;
}

/* The object behind the word; it begins at the first brace, whatever stands before it. */
static json_t *parse_object(char *text, size_t len, struct ss_reason *reason)
{
    char *brace = memchr(text, '{', len);
    struct ss_json_error error;
    json_t *object;

    if (brace == NULL) {
        refuse(reason, SS_ERR_FORMAT, "there is no object behind it");
        return NULL;
    }
    object = ss_json_parse(brace, len - (size_t)(brace - text), &error);
    if (object == NULL)
        snprintf(reason->text, sizeof reason->text, "line %u, column %u: %.100s", error.line,
                 error.column, error.text);
    return object;
}

static enum ss_status take_stats(struct ss_request *request, const json_t *object)
{
    const char *key;
    json_t *value;

    request->stats = calloc(json_object_size(object) + 1, sizeof *request->stats);
    if (request->stats == NULL)
        return SS_ERR_MEMORY;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        char *end;
        unsigned long port = *key >= '0' && *key <= '9' ? strtoul(key, &end, 10) : 0;

        if (port == 0 || port > UINT16_MAX || *end != '\0' || !json_is_integer(value) ||
            json_integer_value(value) < 0)
            continue;
        request->stats[request->stat_count++] =
            (struct ss_stat){(uint16_t)port, (uint64_t)json_integer_value(value)};
    }
    return SS_OK;
}

/* One user as members beside `server_port`, or several as a list `users`. */
static enum ss_status take_users(struct ss_request *request, const json_t *object,
                                 struct ss_reason *reason)
{
    struct ss_config_server *server = &request->spec.server;
    bool add = request->command == SS_COMMAND_ADD_USER;
    const json_t *list = json_object_get(object, "users");
    size_t count = json_is_array(list) ? json_array_size(list) : 1;
    json_t *one = NULL;
    enum ss_status status = SS_OK;

    if (!json_is_array(list)) {
        one = json_copy((json_t *)(uintptr_t)object);
        /* These two are of the user's next server there, and of the port here. */
        json_object_del(one, "server_port");
        json_object_del(one, "server");
    }
    if (count == 0)
        status = refuse(reason, SS_ERR_FORMAT, "it names no user");
    for (size_t i = 0; status == SS_OK && i < count; i++) {
        struct ss_config_identity user;

        status = ss_port_user_read(&user, one != NULL ? one : json_array_get(list, i), reason);
        if (status == SS_OK && add && user.password == NULL)
            status = refuse(reason, SS_ERR_FORMAT, "a user's 'password' is missing");
        if (status == SS_OK)
            status = ss_port_user_put(server, &user);
        ss_port_user_clear(&user);
    }
    json_decref(one);
    return status;
}

static enum ss_status take_port(struct ss_request *request, const json_t *object,
                                struct ss_reason *reason)
{
    json_t *only = json_object();
    json_t *port = json_object_get(object, "server_port");
    enum ss_status status;

    json_object_set(only, "server_port", port);
    status = ss_port_spec_read(&request->spec, only, reason);
    json_decref(only);
    return status;
}

static enum ss_status take_object(struct ss_request *request, const json_t *object,
                                  struct ss_reason *reason)
{
    struct ss_config_server *server = &request->spec.server;
    enum ss_status status;

    switch (request->command) {
    case SS_COMMAND_STAT:
        return take_stats(request, object);
    case SS_COMMAND_ADD:
        status = ss_port_spec_read(&request->spec, object, reason);
        /* Where ports listen is the manager's to say. */
        free(server->addresses);
        server->addresses = NULL;
        server->address_count = 0;
        for (size_t i = 0; status == SS_OK && i < server->identity_count; i++)
            if (server->identities[i].password == NULL)
                status = refuse(reason, SS_ERR_FORMAT, "a user's 'password' is missing");
        break;
    case SS_COMMAND_USERS:
        return take_port(request, object, reason);
    default:
        status = take_port(request, object, reason);
        if (status == SS_OK && request->command != SS_COMMAND_REMOVE)
            status = take_users(request, object, reason);
        break;
    }
    ss_port_spec_forget_used(&request->spec); /* which is the manager's to know */
    if (status == SS_OK && request->spec.port == 0)
        status = refuse(reason, SS_ERR_FORMAT, "'server_port' is missing");
    return status;
}

enum ss_status ss_request_parse(struct ss_request *request, char *datagram, size_t len,
                                struct ss_reason *reason)
{
    char *end, *word;
    json_t *object;
    enum ss_status status;

    memset(request, 0, sizeof *request);
    reason->text[0] = '\0';
    end = memchr(datagram, '\0', len);
    if (end == NULL)
        end = datagram + len;
    while (datagram < end && is_space(*datagram))
        datagram++;
    if (datagram == end)
        return SS_OK;

    word = datagram;
    while (datagram < end && !is_space(*datagram) && *datagram != ':' && *datagram != '{')
        datagram++;
    request->command = find_command(word, (size_t)(datagram - word));
    snprintf(request->action, sizeof request->action, "%.*s", (int)(datagram - word), word);

    switch (request->command) {
    case SS_COMMAND_NONE:
    case SS_COMMAND_UNKNOWN:
    case SS_COMMAND_LIST:
    case SS_COMMAND_PING:
        return SS_OK;
    case SS_COMMAND_USERS: /* of all ports where none is named */
        if (memchr(datagram, '{', (size_t)(end - datagram)) == NULL)
            return SS_OK;
        break;
    default:
        break;
    }
    object = parse_object(datagram, (size_t)(end - datagram), reason);
    if (object == NULL)
        return SS_ERR_FORMAT;
    status = take_object(request, object, reason);
    json_decref(object);
    return status;
}

void ss_request_clear(struct ss_request *request)
{
    ss_port_spec_clear(&request->spec);
    free(request->stats);
    memset(request, 0, sizeof *request);
}
