/*
 * The checked configuration of a program: what command line, file or ss:// URL and defaults come
 * to.
 *
 * Plain data with owned strings, one struct for all programs; a program looks at the fields that it
 * knows. Nothing here touches the system: files are read by a function that the caller gives.
 */
#ifndef SS_CONFIG_CONFIG_H
#define SS_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/addr.h"
#include "base/log.h"
#include "base/status.h"

/* Bits, so that a setting can name the programs that know it. */
enum ss_program {
    SS_PROGRAM_LOCAL = 1,
    SS_PROGRAM_SERVER = 2,
    SS_PROGRAM_TUNNEL = 4,
    SS_PROGRAM_REDIR = 8,
    SS_PROGRAM_MANAGER = 16
};

enum ss_mode { SS_MODE_TCP_ONLY, SS_MODE_TCP_AND_UDP, SS_MODE_UDP_ONLY };

/* How a client chooses among several servers. */
enum ss_balancing { SS_BALANCING_FASTEST, SS_BALANCING_RANDOM };

/* Weights of servers are kept in thousandths. */
#define SS_CONFIG_WEIGHT_ONE 1000
#define SS_CONFIG_WEIGHT_MAX 1000000

/* Where a value came from; a later one beats an earlier one. */
enum ss_source { SS_SOURCE_DEFAULT, SS_SOURCE_ENVIRONMENT, SS_SOURCE_FILE, SS_SOURCE_LINE };

/* What a run is asked for, apart from serving. */
enum ss_task { SS_TASK_SERVE, SS_TASK_CHECK_CONFIG, SS_TASK_PRINT_URL };

/* What a port or a user may use; 0 is no limit. */
struct ss_config_limits {
    uint64_t quota;           /* bytes of payload, both ways */
    uint32_t quota_period_s;  /* after so long the quota begins anew; 0: never */
    int64_t expires;          /* Unix time in seconds */
    uint32_t max_connections; /* at once */
    uint64_t rate;            /* bytes a second */
    /* Of a quota that was drawn from before this process began. */
    uint64_t quota_used;
    int64_t quota_period_end; /* Unix time; 0: there is no period */
};

/* A user of identity headers (SIP023), whom ss-server tells apart by the key. */
struct ss_config_identity {
    char *name;
    char *password;           /* base64 of the key; with `next`, of the next key */
    struct ss_endpoint *next; /* where its traffic is passed on to; NULL: it is opened here */
    struct ss_config_limits limits;
};

/* Servers of one key: addresses that ss-server listens on, or upstream servers of a client. */
struct ss_config_server {
    struct ss_endpoint *addresses; /* each with its port; at least one */
    size_t address_count;
    char *method;
    char *password; /* NULL only where there is a key, or no need of one */
    char *key;      /* URL-safe base64; beats the password; NULL: none */
    char *plugin;   /* never empty; NULL: none */
    char *plugin_opts;
    char **plugin_args;       /* NULL-terminated; NULL: none */
    enum ss_mode plugin_mode; /* what the plugin carries */
    bool plugin_mode_given;
    char *name;                            /* a label; NULL: none */
    enum ss_mode mode;                     /* of a client: what the server may be used for */
    bool mode_given;                       /* its own, not the program's */
    uint32_t tcp_weight, udp_weight;       /* of a client's; thousandths, 0: not used for it */
    struct ss_config_identity *identities; /* `users`; ss-server */
    size_t identity_count;
    struct ss_config_limits limits;
};

/* RFC 1929 users of a SOCKS5 listener. */
struct ss_config_user {
    char *name;
    char *password;
};

/* A port of ss-redir whose connections to the server carry a DSCP. */
struct ss_config_dscp {
    uint16_t port;
    uint8_t value; /* 0 to 63 */
};

/* An address that a client program listens on. */
struct ss_config_local {
    char *address; /* NULL: the loopback address that fits the servers */
    uint16_t port;
    char *udp_address; /* NULL: `address` */
    uint16_t udp_port; /* 0: `port` */
    enum ss_mode mode;
    bool mode_given;
    struct ss_endpoint target; /* ss-tunnel */
    bool tproxy_given;         /* its own, not the program's */
    bool tproxy;               /* ss-redir: connections come by TPROXY, not by REDIRECT */
    uint8_t dscp;              /* ss-redir: of what is sent to the server; 0: none */
    char *auth_path;           /* the file that `users` are read from; NULL: none */
    struct ss_config_user *users;
    size_t user_count;
};

#define SS_SETTINGS_MAX 128

struct ss_config {
    enum ss_program program;
    enum ss_task task;

    struct ss_config_server *servers;
    size_t server_count;
    struct ss_config_local *locals;
    size_t local_count;
    /* ss-manager: where ports listen, without a port; at least one. `servers` are the ports to
     * begin with, those of port_password with an empty host. */
    struct ss_endpoint *hosts;
    size_t host_count;

    /* Source addresses of outgoing connections; family 0: any. */
    struct ss_ip bind_ipv4, bind_ipv6;
    struct ss_ip udp_advertised; /* told to UDP ASSOCIATE; family 0: the address that was reached */

    char **plugin_args; /* NULL-terminated; NULL: none */

    /* One field a row of the table in settings.c, in its order. */
    char *method;
    char *password;
    char *key;
    uint16_t server_port;
    uint16_t local_port;
    char *plugin;
    char *plugin_opts;
    enum ss_mode plugin_mode;
    bool plugin_exit; /* the program ends with a plugin */
    enum ss_mode mode;
    uint32_t timeout_s;
    char *tunnel_address;
    char *local_ipv4_address;
    char *local_ipv6_address;
    char *outbound_bind_addr;
    uint32_t outbound_fwmark; /* 0: none */
    char *interface;
    bool ipv6_first;
    char *nameservers;
    char *acl;
    bool block_local;
    char *manager_address;
    uint8_t balance;           /* enum ss_balancing */
    uint16_t manager_port;     /* with it the address is a host; 0: it is as it was written */
    char *manager_socket_mode; /* octal digits; NULL: by the umask */
    char *workdir;
    char *executable;      /* NULL: ss-server, by PATH */
    bool restore;          /* ports added at run time outlive an orderly end */
    bool process_per_port; /* ss-manager: a process a port */
    bool control_stdio;    /* ss-server: a manager says over stdin what is to be served */
    bool fast_open;
    bool mptcp;
    bool ipv6_only;
    bool no_delay;
    bool reuse_port;
    bool tcp_tproxy; /* ss-redir, of addresses that don't say it themselves */
    uint32_t mtu;    /* 0: no limit of ours */
    bool udp_open;   /* ss-local takes datagrams without an ASSOCIATE connection */
    char *udp_advertised_address;
    uint32_t tcp_incoming_sndbuf, tcp_incoming_rcvbuf;
    uint32_t tcp_outgoing_sndbuf, tcp_outgoing_rcvbuf;
    char *pid_file;
    char *user;
    uint32_t nofile; /* 0: the limit is left alone */
    bool use_syslog;
    bool verbose;
    uint8_t log_level; /* enum ss_log_level */
    uint32_t workers;  /* 0: as many as the machine offers */
    uint32_t max_connections;
    uint32_t max_associations;
    uint32_t udp_timeout_s;
    uint32_t max_dns_queries;
    uint32_t max_memory; /* bytes; 0: no ceiling */
    uint32_t handshake_timeout_s;
    uint32_t tcp_idle_timeout_s;
    uint32_t keep_alive_s; /* 0: none */
    uint32_t half_open_timeout_s;
    uint32_t salt_memory;
    uint32_t salt_pool; /* the same for the 2022 methods, exact */
    char *socks5_auth_path;
    char *config_path; /* as given or found; NULL: none was read */

    uint8_t source[SS_SETTINGS_MAX]; /* enum ss_source, by row */
};

/*
 * Reads a whole file of at most `limit` bytes into *text (to be freed by the caller, with a NUL
 * behind it that *len does not count). SS_ERR_LIMIT when it is larger, SS_ERR_ARGUMENT when it is a
 * directory.
 */
typedef enum ss_status ss_config_read_file_fn(char **text, size_t *len, const char *path,
                                              size_t limit);

/*
 * Command line, then file or URL, then what is still missing. Errors and usage are printed here.
 * True: serve (or do the `task`) with *config. False: end with *exit_code; *config is empty.
 * Secrets are blanked out in `argv`, whose words may move, so that a list of processes does not
 * show them.
 */
bool ss_config_read(struct ss_config *config, enum ss_program program, int argc, char **argv,
                    ss_config_read_file_fn *read_file, int *exit_code);

/*
 * The same of a program that runs, with a copy of the words of its start: nothing but errors and
 * warnings is printed.
 */
bool ss_config_read_again(struct ss_config *config, enum ss_program program, int argc, char **argv,
                          ss_config_read_file_fn *read_file);

/*
 * Settings that a running program can't change: those of *config become what they are in *running,
 * and the keys of those that were something else go to `names`, with commas between, as many as
 * `size` bytes hold. SS_ERR_MEMORY.
 */
SS_CHECKED enum ss_status ss_config_keep_fixed(struct ss_config *config,
                                               const struct ss_config *running, char *names,
                                               size_t size);

/* Wipes the secrets. Fine on a zeroed struct. */
void ss_config_free(struct ss_config *config);

/* Where the value of a field came from: ss_config_source(config, offsetof(struct ss_config, mtu)).
 */
enum ss_source ss_config_source(const struct ss_config *config, size_t offset);

/* Whether a list of name servers, "ip[:port],...", can be used. */
bool ss_nameservers_valid(const char *list);

/* "ss-local" and so on. */
const char *ss_program_name(enum ss_program program);

/* The effective configuration as a JSON object, secrets hidden. */
void ss_config_print(const struct ss_config *config, FILE *out);

/* An ss:// URL a server address, a line each; false after an error line when there is none. */
bool ss_config_print_url(const struct ss_config *config, FILE *out);

#endif
