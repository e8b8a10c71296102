/* The parts of a service's start; for this folder alone. */
#ifndef SS_SERVICE_SERVICE_INTERNAL_H
#define SS_SERVICE_SERVICE_INTERNAL_H

#include "acl/acl.h"
#include "codec/profile.h"
#include "config/config.h"
#include "relay/engine.h"
#include "service/keying.h"
#include "service/plugin.h"
#include "service/sockets.h"

/* One socket to listen on. */
struct ss_plan {
    const char *host; /* as it was configured */
    uint16_t port;    /* the one that people know: a plugin's is not the one that is bound */
    bool udp;
    struct ss_listener_options options; /* its role is made of: */
    struct ss_role_options role;
    bool is_bound;
};

/* The upstream servers of a client, for one transport; their states are held. */
struct ss_upstreams {
    struct ss_upstream *list;
    size_t count;
};

/* A name to listen on, and its address. */
struct ss_known_name {
    const char *host;
    enum ss_status status;
    struct ss_ip ip;
    const char *error_text;
};

/* A plugin that stands before a port of a server. */
struct ss_plugin_place {
    size_t server; /* of the configuration */
    uint16_t port;
    struct ss_plugin *plugin;
};

struct ss_reaper;

/* What is served: one configuration with all that is made from it. See generation.h. */
struct ss_service {
    const struct ss_config *config;
    struct ss_shared *shared; /* of all that the process serves, one after the other */

    struct ss_config own_config; /* which `config` points to, where it is not another's */
    atomic_uint holders;
    struct ss_reaper *reaper;
    struct ss_service *next_dead;

    struct ss_keying *keyings;           /* one a server of the configuration */
    size_t codec_size, packet_link_size; /* the largest of all profiles */

    struct ss_acl *acl; /* NULL: no rules; held */

    struct ss_plugins *plugins; /* NULL where none is used; outlives the places */
    struct ss_plugin_place *places;
    size_t place_count;

    struct ss_known_name *names; /* looked up beforehand, to listen on */
    size_t name_count;
    const char *default_host; /* what a client without an address listens on; NULL: not asked yet */

    struct ss_plan *plans;
    size_t plan_count; /* tcp_plans + udp_plans */
    size_t tcp_plans, udp_plans;
    size_t udp_bound; /* of the UDP plans */
    struct ss_upstreams tcp_upstreams, udp_upstreams;
    struct ss_socks5_user *users; /* of all locals, one behind the other */
    struct ss_target *targets;    /* ss-tunnel: one a local */
    struct ss_endpoint *guarded;  /* ss-redir: all servers, with ports */
    size_t guarded_count;
};

/* To the user of the configuration, if there is one, and the line about root. False after the error
 * lines. */
bool ss_service_switch_user(const struct ss_config *config, unsigned rights);

/* Settings that this version knows and does not offer. False after an error line. */
bool ss_service_supports(const struct ss_config *config);

/* The lines that the classic suite prints before it makes its ciphers, and those it prints then. */
void ss_service_log_options(const struct ss_config *config);
void ss_service_log_methods(const struct ss_config *config);
void ss_service_log_providers(const struct ss_service *service);

/* Reads the access control list; `again`: while one may be in force, which is to stay if this one
 * can't be read. False after the error lines. */
bool ss_service_make_acl(struct ss_service *service, bool again);

/*
 * Methods and keys of all servers, at the start (`before` is NULL) with a line a method; else what
 * stays the same is taken from what was served before. False after the error lines.
 */
bool ss_service_make_profiles(struct ss_service *service, const struct ss_service *before);
void ss_service_free_profiles(struct ss_service *service);

/* The error lines of methods and keys; `index` is of the server. */
void ss_service_log_unknown_method(const char *name);
void ss_service_log_key_problem(const struct ss_config *config, size_t index,
                                const struct ss_method *method,
                                const struct ss_key_problem *problem);
/* What is wrong with a key, without saying whose it is. */
void ss_service_key_text(char *text, size_t size, enum ss_program program,
                         const struct ss_method *method, const struct ss_key_problem *problem);
void ss_service_warn_of_streams(void);

/* All options of the engine but for its descriptors and who binds ports for it. */
void ss_service_engine_options(const struct ss_service *service, struct ss_engine_options *options);

/* What has been relayed so far: totals, and the ports and users that had most of it. */
void ss_service_log_traffic(const struct ss_service *service, const struct ss_sockets *sockets);

/* The same by port, as the classic programs count: what clients have sent as it came, what targets
 * have sent as payload. For ss_heap_free; NULL when memory is out. */
struct ss_port_traffic {
    uint16_t port;
    uint64_t rx_bytes, tx_bytes;
};
struct ss_port_traffic *ss_service_port_traffic(const struct ss_sockets *sockets, size_t *count);

/* Whether there can be plans at all, as far as no name has to be looked up for it. False after the
 * error lines. */
bool ss_service_plans_fit(const struct ss_config *config);
/* Looks the names up that there are to listen on, for plans that are made later and elsewhere. */
SS_CHECKED enum ss_status ss_service_look_names_up(struct ss_service *service);
/* The address of a host to listen on, looked up now if it was not. */
SS_CHECKED enum ss_status ss_service_name(const struct ss_service *service, struct ss_ip *ip,
                                          const char *host, const char **error_text);
/*
 * Which sockets there will be, of a configuration whose plans fit; looks names up that were not.
 * What is known of upstream servers is taken over from `before`, which may be NULL. False after the
 * error lines.
 */
bool ss_service_make_plans(struct ss_service *service, const struct ss_service *before);
/* Whether a server of the configuration has a plugin. */
bool ss_service_uses_plugins(const struct ss_config *config);
/* Holds the plugins of all servers. False after the error line. */
bool ss_service_place_plugins(struct ss_service *service);
/* Lets them go. */
void ss_service_leave_plugins(struct ss_service *service);
/* The loopback side of the plugin before a port of a server; NULL: there is none. */
const struct ss_addr *ss_service_plugin_at(const struct ss_service *service, size_t server,
                                           uint16_t port);
/* Whether no address before this one has its port. */
bool ss_service_is_first_of_port(const struct ss_config_server *server, size_t index);

/* What is left open until it is time to listen: default addresses, and families. May ask a name
 * server, if it may wait. */
void ss_service_settle_plans(struct ss_service *service, bool may_wait);
void ss_service_free_plans(struct ss_service *service);

/*
 * Whether every one of the servers, given as addresses or by name, has IPv6 addresses alone. Names
 * are looked up on a loop of its own; what does not answer within a second counts as no, and all
 * do where it may not wait.
 */
bool ss_service_only_ipv6(const struct ss_upstream *servers, size_t count, const char *nameservers,
                          bool may_wait);

/* Whether the configuration asks for any UDP; *only: and nowhere for TCP. */
bool ss_service_wants_udp(const struct ss_config *config, bool *only);

/* Whether the process has the rights that TPROXY needs, where it is planned. False after the error
 * lines. */
bool ss_service_may_redirect(const struct ss_service *service);

/*
 * The sockets of the plans become those that are open: a line for each that is opened, and
 * `before`, which may be NULL, is what was served until then. False after the error lines; then all
 * is as it was.
 */
bool ss_service_listen(struct ss_service *service, const struct ss_service *before,
                       struct ss_sockets *sockets, struct ss_sockets_change *change);

#endif
