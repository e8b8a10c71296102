/* Members of the objects in an extended file, each taken by its type. */
#include "config/members.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/log.h"
#include "config/port_spec.h"

struct ss_where ss_where_is(const char *before, const char *list, size_t index)
{
    struct ss_where where;

    snprintf(where.text, sizeof where.text, "%s%s[%zu]: ", before, list, index);
    return where;
}

enum ss_status ss_member_missing(const char *where, const char *key)
{
    ss_log_error("invalid config file: %s'%s' is missing", where, key);
    return SS_ERR_ARGUMENT;
}

const json_t *ss_member(const json_t *object, const char *key, const char *alias)
{
    const json_t *value = json_object_get(object, key);

    if (value == NULL && alias != NULL)
        value = json_object_get(object, alias);
    return json_is_null(value) ? NULL : value;
}

enum ss_status ss_member_text(char **out, const char *where, const json_t *object, const char *key,
                              const char *alias)
{
    const json_t *value = ss_member(object, key, alias);

    if (value == NULL)
        return SS_OK;
    if (!json_is_string(value))
        return ss_key_error(where, key, "a string");
    ss_secret_free(*out);
    *out = ss_text_copy(json_string_value(value));
    return *out != NULL ? SS_OK : SS_ERR_MEMORY;
}

enum ss_status ss_member_port(uint16_t *port, const char *where, const json_t *object,
                              const char *key, const char *alias)
{
    const json_t *value = ss_member(object, key, alias);
    uint32_t number = 0;

    if (value == NULL)
        return SS_OK;
    if (json_is_integer(value) && json_integer_value(value) >= 1 &&
        json_integer_value(value) <= UINT16_MAX)
        number = (uint32_t)json_integer_value(value);
    else if (!json_is_string(value) ||
             !ss_number_parse(&number, json_string_value(value), 1, UINT16_MAX))
        return ss_key_error(where, key, "a port from 1 to 65535");
    *port = (uint16_t)number;
    return SS_OK;
}

enum ss_status ss_member_flag(bool *flag, const char *where, const json_t *object, const char *key)
{
    const json_t *value = ss_member(object, key, NULL);

    if (value == NULL)
        return SS_OK;
    if (!json_is_boolean(value))
        return ss_key_error(where, key, "a boolean");
    *flag = json_is_true(value);
    return SS_OK;
}

enum ss_status ss_member_mode(enum ss_mode *mode, bool *given, const char *where,
                              const json_t *object, const char *key)
{
    const json_t *value = ss_member(object, key, NULL);

    *given = value != NULL;
    if (value == NULL)
        return SS_OK;
    if (!json_is_string(value) || !ss_mode_parse(mode, json_string_value(value)))
        return ss_key_error(where, key, "tcp_only, tcp_and_udp or udp_only");
    return SS_OK;
}

enum ss_status ss_member_words(char ***out, const char *where, const char *key, const json_t *value)
{
    enum ss_status status = SS_OK;
    size_t count = 0;

    ss_words_free(*out);
    *out = NULL;
    if (value == NULL || json_is_null(value))
        return SS_OK;
    if (!json_is_array(value))
        return ss_key_error(where, key, "a list of strings");
    for (size_t i = 0; status == SS_OK && i < json_array_size(value); i++) {
        const json_t *word = json_array_get(value, i);

        if (!json_is_string(word))
            return ss_key_error(where, key, "a list of strings");
        status = ss_words_add(out, &count, json_string_value(word));
    }
    return status;
}

enum ss_status ss_member_weight(uint32_t *weight, const char *where, const json_t *object,
                                const char *key, const char *alias)
{
    const json_t *value = ss_member(object, key, alias);
    double number;

    if (value == NULL)
        return SS_OK;
    number = json_number_value(value);
    if (!json_is_number(value) || !(number >= 0) ||
        number > SS_CONFIG_WEIGHT_MAX / SS_CONFIG_WEIGHT_ONE)
        return ss_key_error(where, json_object_get(object, key) != NULL ? key : alias,
                            "a number from 0 to 1000");
    *weight = (uint32_t)(number * SS_CONFIG_WEIGHT_ONE + 0.5);
    if (number > 0 && *weight == 0)
        *weight = 1;
    return SS_OK;
}

size_t ss_member_check_keys(const char *where, const json_t *object, const char *const *known)
{
    const char *key;
    json_t *value;
    size_t unknown = 0;

    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        size_t i = 0;

        while (known[i] != NULL && strcmp(known[i], key) != 0)
            i++;
        if (known[i] == NULL) {
            ss_key_unknown(where, key, known);
            unknown++;
        }
    }
    return unknown;
}

enum ss_status ss_member_expand_password(char **password, const char *where)
{
    size_t len = *password != NULL ? strlen(*password) : 0;
    const char *value;
    char *copy;

    if (len < 4 || strncmp(*password, "${", 2) != 0 || (*password)[len - 1] != '}')
        return SS_OK;
    (*password)[len - 1] = '\0';
    value = getenv(*password + 2);
    if (value == NULL) {
        /* Without the name: it may be a password that only looks like one. */
        ss_log_warn("%sthe environment has no variable of the name in '${...}'; the password is "
                    "taken as it stands",
                    where);
        (*password)[len - 1] = '}';
        return SS_OK;
    }
    copy = ss_text_copy(value);
    if (copy == NULL)
        return SS_ERR_MEMORY;
    ss_secret_free(*password);
    *password = copy;
    return SS_OK;
}

enum ss_status ss_member_limits(struct ss_config_limits *limits, const char *where,
                                const json_t *object)
{
    static const char *const keys[] = {SS_LIMIT_KEYS};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const json_t *value = json_object_get(object, keys[i]);
        struct ss_reason reason;
        enum ss_status status = SS_OK;

        if (value != NULL)
            (void)ss_port_limit_take(limits, keys[i], value, &reason, &status);
        if (status != SS_OK) {
            ss_log_error("%s%s", where, reason.text);
            return status;
        }
    }
    return SS_OK;
}
