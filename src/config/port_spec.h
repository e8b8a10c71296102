/*
 * A port of ss-server as the control protocol of ss-manager describes it: in `add` commands, in the
 * state file and on the way to the server that serves it. All are JSON objects with the same
 * members.
 */
#ifndef SS_CONFIG_PORT_SPEC_H
#define SS_CONFIG_PORT_SPEC_H

#include "config/config.h"

struct json_t;

/* A setting that may be left to whoever serves the port. */
enum ss_choice { SS_CHOICE_NONE, SS_CHOICE_OFF, SS_CHOICE_ON };

struct ss_port_spec {
    uint16_t port; /* 0: none was given */
    enum ss_choice fast_open, no_delay;
    uint32_t timeout_s; /* 0: not given */
    /* It is for users alone, so that without one it serves nobody, not even who has its key. */
    bool of_users;
    /* What was said of the rest. `addresses` are empty where the manager's own apply; `plugin` may
     * be "", which is to say that there is none. */
    struct ss_config_server server;
};

/* Why something was refused, for a log line; no secret is in it. */
struct ss_reason {
    char text[160];
};

/* False when `key` is no limit; else *status, and SS_ERR_FORMAT with *reason. */
bool ss_port_limit_take(struct ss_config_limits *limits, const char *key,
                        const struct json_t *value, struct ss_reason *reason,
                        enum ss_status *status);

/*
 * Reads the members of `object`. Of members that are not known, and of text and flags of a wrong
 * type, nothing is taken; a limit or user that can't be understood is an error, since to go without
 * it would let too many in. SS_ERR_ARGUMENT: the port is none that can be; SS_ERR_FORMAT: the rest;
 * both with *reason. *spec is to be cleared in any case.
 */
SS_CHECKED enum ss_status ss_port_spec_read(struct ss_port_spec *spec, const struct json_t *object,
                                            struct ss_reason *reason);

/* All that was given, secrets too, and `server` where there are addresses; to be given back with
 * json_decref. NULL when memory is out. */
struct json_t *ss_port_spec_json(const struct ss_port_spec *spec);

/* One user, the same way: {"name", "password", "server"?, "server_port"?} and limits. */
SS_CHECKED enum ss_status ss_port_user_read(struct ss_config_identity *user,
                                            const struct json_t *object, struct ss_reason *reason);
struct json_t *ss_port_user_json(const struct ss_config_identity *user);

/* The user of that name in the server's list; `identity_count` when there is none. */
size_t ss_port_user_find(const struct ss_config_server *server, const char *name);

/* Adds the user, or puts it in the place of the one with its name; *user is empty then. */
SS_CHECKED enum ss_status ss_port_user_put(struct ss_config_server *server,
                                           struct ss_config_identity *user);
/* Takes one out of the list. */
void ss_port_user_drop(struct ss_config_server *server, size_t index);

/* After SS_ERR_MEMORY it is to be cleared, too. */
SS_CHECKED enum ss_status ss_port_user_copy(struct ss_config_identity *copy,
                                            const struct ss_config_identity *user);
void ss_port_user_clear(struct ss_config_identity *user);

/* What was used of quotas is not known any more; or, of the port and of users whose names stay, is
 * what it was in `before`. */
void ss_port_spec_forget_used(struct ss_port_spec *spec);
void ss_port_spec_keep_used(struct ss_port_spec *spec, const struct ss_port_spec *before);

/* Of a copy that shares nothing; SS_ERR_MEMORY leaves *copy cleared. */
SS_CHECKED enum ss_status ss_port_spec_copy(struct ss_port_spec *copy,
                                            const struct ss_port_spec *spec);

/* Frees and wipes; fine on a zeroed one. */
void ss_port_spec_clear(struct ss_port_spec *spec);

#endif
