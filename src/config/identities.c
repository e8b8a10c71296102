/* The users of ss-server whose requests carry identity headers, out of a file. */
#include "config/members.h"

#include <stdlib.h>

#include <jansson.h>

#include "base/log.h"

static const char *const identity_keys[] = {"name",        "password", "server",      "address",
                                            "server_port", "port",     SS_LIMIT_KEYS, NULL};

/* The server that takes over, of a user whose traffic is passed on: all of it or nothing. */
static enum ss_status read_next(struct ss_config_identity *identity, const char *where,
                                const json_t *object)
{
    const json_t *host = ss_member(object, "server", "address");
    enum ss_status status;
    uint16_t port = 0;

    status = ss_member_port(&port, where, object, "server_port", "port");
    if (status != SS_OK || (host == NULL && port == 0))
        return status;
    if (host == NULL)
        return ss_member_missing(where, "server");
    if (!json_is_string(host))
        return ss_key_error(where, "server", "a string");
    identity->next = calloc(1, sizeof *identity->next);
    if (identity->next == NULL)
        return SS_ERR_MEMORY;
    status = ss_host_parse(identity->next, "server", json_string_value(host));
    if (status != SS_OK)
        return status;
    if (port != 0)
        identity->next->port = port;
    return identity->next->port != 0 ? SS_OK : ss_member_missing(where, "server_port");
}

static enum ss_status read_identity(struct ss_config_identity *identity, const char *where,
                                    const json_t *object)
{
    enum ss_status status;

    if (!json_is_object(object))
        return ss_key_error(where, "users", "a list of objects");
    status = ss_member_text(&identity->name, where, object, "name", NULL);
    if (status == SS_OK)
        status = ss_member_text(&identity->password, where, object, "password", NULL);
    if (status == SS_OK)
        status = ss_member_expand_password(&identity->password, where);
    if (status == SS_OK)
        status = read_next(identity, where, object);
    if (status == SS_OK)
        status = ss_member_limits(&identity->limits, where, object);
    if (status != SS_OK)
        return status;
    if (identity->name == NULL)
        return ss_member_missing(where, "name");
    return identity->password != NULL ? SS_OK : ss_member_missing(where, "password");
}

enum ss_status ss_config_identities_read(struct ss_config_identity **list, size_t *count,
                                         enum ss_program program, const char *where,
                                         const json_t *value)
{
    size_t unknown = 0;

    if (value == NULL)
        return SS_OK;
    if (!json_is_array(value))
        return ss_key_error(where, "users", "a list of objects");
    if (!ss_serves_ports(program)) {
        ss_log_warn("%s'users' are for ss-server; a client's password is the server's key, a colon "
                    "and the user's key",
                    where);
        return SS_OK;
    }
    /* Without users a server takes its own key for a client's, and who was a user has that key. */
    if (json_array_size(value) == 0)
        return ss_key_error(where, "users", "a list with at least one user, or left out");
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *object = json_array_get(value, i);
        struct ss_where at = ss_where_is(where, "users", i);
        struct ss_config_identity *grown = ss_array_grow(*list, count, sizeof *grown);
        enum ss_status status;

        if (grown == NULL)
            return SS_ERR_MEMORY;
        *list = grown;
        status = read_identity(&grown[i], at.text, object);
        if (status != SS_OK)
            return status;
        /* Said once a list, which may be long. */
        if (unknown == 0)
            unknown = ss_member_check_keys(at.text, object, identity_keys);
    }
    return SS_OK;
}
