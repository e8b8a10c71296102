/* The table of settings, and the values as texts before they are checked; for this folder alone. */
#ifndef SS_CONFIG_CONFIG_INTERNAL_H
#define SS_CONFIG_CONFIG_INTERNAL_H

#include "config/config.h"

struct json_t;

enum ss_setting_kind {
    SS_KIND_TEXT,
    SS_KIND_SECRET,
    SS_KIND_FLAG,
    SS_KIND_NUMBER, /* uint32_t, min to max */
    SS_KIND_LOOSE,  /* uint32_t; what is no number, or not above min, is 0 (the classic's atoi);
                     * outside 0 to max, where there is a max, it is refused */
    SS_KIND_PORT,
    SS_KIND_MODE,
    SS_KIND_LEVEL,
    SS_KIND_BALANCE,
    SS_KIND_MARK,          /* uint32_t, in decimal or with 0x in front; 0: none */
    SS_KIND_ALIAS,         /* another option for the setting with the same field */
    SS_KIND_SERVERS,       /* `server`: a list of texts */
    SS_KIND_ADDRESSES,     /* `local_address`: ss-server and ss-redir take several, on the line */
    SS_KIND_PLUGIN_ARGS,   /* a list of texts */
    SS_KIND_PORT_PASSWORD, /* keys only, from here on */
    SS_KIND_SERVER_LIST,
    SS_KIND_LOCAL_LIST,
    SS_KIND_SOCKS5_AUTH,
    SS_KIND_IDENTITIES, /* `users` */
    SS_KIND_DNS,
    SS_KIND_DSCP,
    SS_KIND_LABEL,    /* known, without meaning for a program */
    SS_KIND_NOT_YET,  /* known, has a meaning, and is not honoured: one warning */
    SS_KIND_REFUSED,  /* the same, where going on without it would do harm: fatal */
    SS_KIND_ONE_TIME, /* -A and `auth`: fatal */
    SS_KIND_TCP_UDP,  /* options only, from here on: -u */
    SS_KIND_UDP_ONLY, /* -U */
    SS_KIND_CONFIG,   /* -c */
    SS_KIND_HELP,
    SS_KIND_LIST_SETTINGS,
    SS_KIND_CHECK_CONFIG,
    SS_KIND_PRINT_URL,
    SS_KIND_GEN_KEY
};

/* How a key's JSON value is taken in a classic-shaped file. */
enum ss_key_rule {
    SS_RULE_NONE,
    SS_RULE_TEXT,    /* a string, an integer (its digits) or null */
    SS_RULE_FLAG,    /* true or false */
    SS_RULE_INTEGER, /* an integer */
    SS_RULE_OURS,    /* as fits the kind; numbers also in quotes; null is "not given" */
    SS_RULE_ANY
};

struct ss_setting {
    const char *key, *alias; /* JSON; NULL: none */
    const char *option;      /* long option; NULL: none */
    const char *argument;    /* its name in the usage text; NULL: takes none */
    const char *help;        /* a line of the usage text; NULL: not shown */
    const char *said;        /* a log line when the option is met; a LOOSE number goes behind it */
    char letter;             /* short option; 0: none */
    uint8_t kind, rule;
    uint8_t line; /* programs whose command line takes it (enum ss_program) */
    uint8_t eat;  /* those that take it and ignore it */
    uint8_t file; /* those that use the key */
    bool ours;    /* not of the classic suite: its long option never makes a prefix ambiguous */
    uint16_t offset;
    uint32_t min, max, fallback;
};

extern const struct ss_setting ss_settings[];
extern const size_t ss_setting_count;

/* The row of a field, for messages. */
size_t ss_setting_at(size_t offset);

/* NULL when no setting has that key. */
const struct ss_setting *ss_setting_by_key(const char *key, size_t *row);

/* The nearest of a folder's keys, or NULL when nothing is near. */
const char *ss_setting_nearest(const char *key);
/* The same among `words` (NULL-terminated). */
const char *ss_nearest_word(const char *word, const char *const *words);

#define SS_ADDRESSES_GIVEN_MAX 10

#define SS_SAID_MAX 16

/* What was given, as texts; all owned. */
struct ss_raw {
    enum ss_program program;
    enum ss_task task;
    bool again;    /* the program runs: no usage is printed */
    bool extended; /* the file is in the extended shape */

    char said[SS_SAID_MAX][64]; /* log lines of options, in their order */
    size_t said_count;

    char *text[SS_SETTINGS_MAX];     /* by row; NULL: not given */
    uint8_t source[SS_SETTINGS_MAX]; /* enum ss_source */

    char *servers[SS_ADDRESSES_GIVEN_MAX];
    size_t server_count;
    enum ss_source servers_source;
    char *addresses[SS_ADDRESSES_GIVEN_MAX]; /* -b and local_address */
    size_t address_count;
    enum ss_source addresses_source;
    char **plugin_args; /* NULL-terminated; NULL: none */
    size_t plugin_arg_count;
    enum ss_source plugin_args_source;

    /* Only from files. */
    struct ss_config_server *port_servers; /* port_password: no addresses yet but the port */
    size_t port_server_count;
    struct ss_config_server *file_servers; /* servers[] */
    size_t file_server_count;
    struct ss_config_local *file_locals; /* locals[] */
    size_t file_local_count;
    struct ss_config_dscp *dscp; /* dscp */
    size_t dscp_count;
    struct ss_config_user *users; /* socks5_auth */
    size_t user_count;
    struct ss_config_identity *identities; /* users */
    size_t identity_count;

    const char *gen_key_method; /* of --gen-key; borrowed from argv */
};

void ss_raw_clear(struct ss_raw *raw);

/* Puts `text` (copied) where a source of lower rank, or the same, has put another. */
SS_CHECKED enum ss_status ss_raw_set(struct ss_raw *raw, size_t row, const char *text,
                                     enum ss_source source);

enum ss_args_result {
    SS_ARGS_OK,
    SS_ARGS_HELP,
    SS_ARGS_LIST,
    SS_ARGS_GEN_KEY,
    SS_ARGS_USAGE,
    SS_ARGS_FATAL
};

/* The command line. Secrets are blanked out in argv. Errors are logged. */
enum ss_args_result ss_args_read(struct ss_raw *raw, int argc, char **argv);

void ss_usage_print(enum ss_program program);

/* Every setting of the program, as a JSON list: for tests, pages and completions. */
void ss_settings_print(enum ss_program program, FILE *out);

/* A file's text, of `len` bytes; `name` is for messages. May change `text`. Errors are logged. */
SS_CHECKED enum ss_status ss_config_json_read(struct ss_raw *raw, const char *name, char *text,
                                              size_t len);

/* The file of socks5_auth_config_path. */
SS_CHECKED enum ss_status ss_config_auth_read(struct ss_config_user **users, size_t *count,
                                              const char *name, char *text, size_t len);

/* An ss:// URL into the settings of a file. */
SS_CHECKED enum ss_status ss_config_url_read(struct ss_raw *raw, const char *url);

/* Texts to checked values. False: *exit_code; what is wrong was logged, or usage printed. */
bool ss_config_check(struct ss_config *config, struct ss_raw *raw, int *exit_code);

/* The lists of servers and locals out of what was given; for ss_config_check. */
SS_CHECKED enum ss_status ss_config_build_servers(struct ss_config *config, struct ss_raw *raw);
SS_CHECKED enum ss_status ss_config_build_locals(struct ss_config *config, struct ss_raw *raw);

/* The parts of an extended file; `value` is the array. Errors are logged. */
SS_CHECKED enum ss_status ss_config_servers_read(struct ss_raw *raw, const struct json_t *value);
SS_CHECKED enum ss_status ss_config_locals_read(struct ss_raw *raw, const struct json_t *value);
/* {"port": "EF"}; NULL is none. */
SS_CHECKED enum ss_status ss_config_dscp_read(struct ss_config_dscp **list, size_t *count,
                                              const struct json_t *value);
/* {"password": {"users": [{"user_name", "password"}]}} into an array of users. */
SS_CHECKED enum ss_status ss_config_users_read(struct ss_config_user **users, size_t *count,
                                               const struct json_t *value);

/* [{"name", "password", "server"?, "server_port"?}]; NULL is no list. Of programs other than
 * ss-server it is left out with a warning. */
SS_CHECKED enum ss_status ss_config_identities_read(struct ss_config_identity **list, size_t *count,
                                                    enum ss_program program, const char *where,
                                                    const struct json_t *value);

/* A fresh key, or password, for the method, on a line. False after an error line. */
bool ss_key_print(const char *method, FILE *out);

/* ss-server and ss-manager: what is listed are ports to be served, not servers to be reached. */
bool ss_serves_ports(enum ss_program program);

/* Whether a server of this method must have a password or a key. */
bool ss_method_needs_key(const char *method);

/* Reports a bad JSON value: `invalid config file: option 'KEY' must be …`; SS_ERR_ARGUMENT. */
enum ss_status ss_key_error(const char *where, const char *key, const char *must_be);

/* A warning that names the key and the nearest of `words`, or of all settings if NULL. */
void ss_key_unknown(const char *where, const char *key, const char *const *words);

/* false, true, tcp_only and so on, and back. */
bool ss_mode_parse(enum ss_mode *mode, const char *text);
const char *ss_mode_text(enum ss_mode mode);
const char *ss_log_level_text(enum ss_log_level level);
const char *ss_balancing_text(enum ss_balancing balancing);

/*
 * A host with an optional port, of the setting `what`. SS_ERR_ARGUMENT after an error line, which
 * shows a character that was typed for another.
 */
SS_CHECKED enum ss_status ss_host_parse(struct ss_endpoint *endpoint, const char *what,
                                        const char *text);

/* A decimal number, digits only, min to max. */
bool ss_number_parse(uint32_t *value, const char *text, uint32_t min, uint32_t max);

/* Free with wiping; NULL is fine. */
void ss_secret_free(char *text);
/* The same of a NULL-terminated list. */
void ss_words_free(char **words);
/* A copy of such a list; of none it is NULL. */
SS_CHECKED enum ss_status ss_words_copy(char ***out, char *const *words);
/* With one word more. */
SS_CHECKED enum ss_status ss_words_add(char ***words, size_t *count, const char *word);
void ss_config_server_clear(struct ss_config_server *server);
void ss_config_local_clear(struct ss_config_local *local);
void ss_config_identities_free(struct ss_config_identity *list, size_t count);

/* A copy that the program ends without: NULL only when memory is out. */
char *ss_text_copy(const char *text);

/* The array, perhaps moved, with a zeroed element more at its end; NULL when memory is out (the old
 * one stays). */
void *ss_array_grow(void *array, size_t *count, size_t element_size);

#endif
