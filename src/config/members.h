/* Members of the objects in an extended file, each taken by its type; for this folder alone. */
#ifndef SS_CONFIG_MEMBERS_H
#define SS_CONFIG_MEMBERS_H

#include "config/config_internal.h"

/* "servers[2]: ", for messages; with what stands in front of it. */
struct ss_where {
    char text[96];
};

struct ss_where ss_where_is(const char *before, const char *list, size_t index);

/* The first of two spellings that is there; NULL when none is, or it is null. */
const struct json_t *ss_member(const struct json_t *object, const char *key, const char *alias);

/* Logs that the key is not there: SS_ERR_ARGUMENT. */
enum ss_status ss_member_missing(const char *where, const char *key);

/* Of the following each leaves *out as it is where there is no such member. */

/* A copy; what was there before is freed. */
SS_CHECKED enum ss_status ss_member_text(char **out, const char *where, const struct json_t *object,
                                         const char *key, const char *alias);
SS_CHECKED enum ss_status ss_member_port(uint16_t *port, const char *where,
                                         const struct json_t *object, const char *key,
                                         const char *alias);
SS_CHECKED enum ss_status ss_member_flag(bool *flag, const char *where, const struct json_t *object,
                                         const char *key);
/* *given tells whether there was one; text that is no mode is an error here. */
SS_CHECKED enum ss_status ss_member_mode(enum ss_mode *mode, bool *given, const char *where,
                                         const struct json_t *object, const char *key);

/* A list of strings, NULL-terminated; what was there before is freed. NULL and null are none. */
SS_CHECKED enum ss_status ss_member_words(char ***out, const char *where, const char *key,
                                          const struct json_t *value);

/* A number from 0 to 1,000, in thousandths: of two spellings the first that is there. */
SS_CHECKED enum ss_status ss_member_weight(uint32_t *weight, const char *where,
                                           const struct json_t *object, const char *key,
                                           const char *alias);

/* "${NAME}" as a password is what the environment has under NAME. */
SS_CHECKED enum ss_status ss_member_expand_password(char **password, const char *where);

/* A warning for each key that is not among `known` (NULL-terminated); how many there were. */
size_t ss_member_check_keys(const char *where, const struct json_t *object,
                            const char *const *known);

/* The limits of a port or user. */
#define SS_LIMIT_KEYS "quota", "quota_period", "expires", "max_connections", "rate"
SS_CHECKED enum ss_status ss_member_limits(struct ss_config_limits *limits, const char *where,
                                           const struct json_t *object);

#endif
