/*
 * What a server of the configuration, or a port of a manager's, comes to as a profile: its method
 * and key, and its users with the places where their traffic is counted. For this folder.
 */
#ifndef SS_SERVICE_KEYING_H
#define SS_SERVICE_KEYING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "codec/profile.h"
#include "config/config.h"
#include "relay/engine.h"
#include "relay/limiter.h"

/* What a process has once, for all profiles that it ever makes. */
struct ss_shared {
    struct ss_salt_memory *salts;
    struct ss_salt_memory *packet_salts; /* NULL until there is UDP */
    struct ss_salt_pool *salt_pool;      /* NULL until a 2022 method is used */
};

/* Salts are remembered from here on, as many as the configuration says. SS_ERR_MEMORY. */
SS_CHECKED enum ss_status ss_shared_init(struct ss_shared *shared, const struct ss_config *config,
                                         bool udp);
/* All profiles must have gone. Fine on a zeroed struct. */
void ss_shared_clear(struct ss_shared *shared);

/* Why a key does not fit, after SS_ERR_KEY. */
struct ss_key_problem {
    struct ss_key_fault fault; /* of 2022 methods and of users; else: */
    bool of_user;              /* it is the key of fault.user */
    bool is_short, is_base64;  /* a raw key has too few bytes, or is none */
    size_t len;
};

/* What a port may use and has used, as long as anyone holds it: a session may outlive its port. */
struct ss_port_use {
    struct ss_limiter limiter;
    atomic_uint holders;
};
/* For a role that draws from the limiter; `use` as its owner. */
void ss_port_use_hold(struct ss_port_use *use);
void ss_port_use_release(void *use); /* NULL is fine */

struct ss_keying {
    struct ss_profile *profile; /* held */
    struct ss_port_use *use;    /* the same; of servers */
    /* With a profile that was kept: the list that its users are to be replaced by, held; NULL when
     * they are the same ones. */
    struct ss_users *users;
    size_t users_added, users_removed; /* one with another key is both */
};

struct ss_keying_options {
    struct ss_shared *shared;
    const struct ss_config *config; /* of the process */
    const struct ss_config_server *server;
    const struct ss_method *method;
    bool of_users; /* there is a list of users, also when it is empty */
    /* What the same server was before: the profile is kept when method and key are the same, and in
     * any case what was used, of the port and of users whose names stay. NULL: it is new. */
    const struct ss_keying *before;
};

/* SS_ERR_KEY with *problem; SS_ERR_UNSUPPORTED, SS_ERR_MEMORY. Nothing is logged. */
SS_CHECKED enum ss_status ss_keying_make(struct ss_keying *keying,
                                         const struct ss_keying_options *options,
                                         struct ss_key_problem *problem);
void ss_keying_clear(struct ss_keying *keying);

/* Ends the sessions of the port, or of its users, whose quota is used up or whose time is over. */
void ss_keying_enforce(const struct ss_keying *keying, struct ss_engine *engine);

/* Limits of the port and its users become those of the configuration: once it is in force. */
void ss_keying_set_limits(const struct ss_keying *keying, const struct ss_config_server *server);

#endif
