/*
 * The parts of ss-manager; for this folder alone.
 *
 * Commands are carried out one after the other: while one waits for a server, the control socket
 * is not read, and the kernel's queue holds those that come. So each finds the ports as the one
 * before has left them.
 */
#ifndef SS_SERVICE_MANAGER_INTERNAL_H
#define SS_SERVICE_MANAGER_INTERNAL_H

#include <uv.h>

#include "base/log.h"
#include "config/port_spec.h"
#include "control/reply.h"
#include "control/request.h"
#include "control/state_file.h"
#include "control/wire.h"
#include "net/command_socket.h"
#include "service/manager.h"
#include "service/reload.h"
#include "sys/helper.h"
#include "sys/private_file.h"
#include "sys/process.h"

/* A count that outlives the server that counts: what earlier ones had, and the present one. */
struct ss_use_count {
    struct ss_user_use before, now;
};

/* A port that is to be served. */
struct ss_managed {
    struct ss_managed *next, *previous; /* in the order in which they were added */
    struct ss_port_spec spec;           /* as it was asked for */
    bool configured;    /* of the configuration, so that the state file does not have it */
    bool users_changed; /* of a configured one: the state file has its users */
    bool served;
    bool used_changed;                /* of its quotas the state file does not know all */
    uint64_t total_before, total_now; /* bytes, as `ping` tells */
    const char *state;                /* which limit is reached, in a word; NULL: none */
    struct ss_use_count *uses;        /* one a user, in the order of the list */
    size_t use_count;                 /* of `uses` */
    size_t use_cursor;                /* where the last one was found */
};

struct ss_manager;
struct ss_manager_reload;
struct ss_child_link;

/*
 * How ports get their servers. Each call ends with ss_manager_done, at once or later; until then
 * there is no other.
 */
struct ss_backend {
    /* A port that is new, or in place of `old` (NULL: there is none). */
    void (*set)(struct ss_manager *manager, const struct ss_port_spec *spec,
                const struct ss_managed *old);
    void (*remove)(struct ss_manager *manager, const struct ss_managed *port);
    /* `spec` is the port with the change, which is of `change`'s users. */
    void (*change_users)(struct ss_manager *manager, enum ss_command command,
                         const struct ss_port_spec *spec, const struct ss_port_spec *change);
    /* Brings the counters up to date. */
    void (*refresh)(struct ss_manager *manager);
    void (*on_notice)(struct ss_manager *manager, const struct ss_notice *notice);
    /* The orderly end; ends with ss_manager_stopped. */
    void (*stop)(struct ss_manager *manager);
};

extern const struct ss_backend ss_backend_child;
extern const struct ss_backend ss_backend_processes;

#define SS_CHILD_ID 1u
#define SS_OPEN_ID  2u
/* Of the process that is started for a port. */
#define SS_PORT_ID(port) (0x10000u + (port))

/* The command that is being carried out. */
struct ss_operation {
    bool active;
    enum ss_command command;
    struct ss_command_peer peer;
    bool own; /* of the manager itself, for the configuration: nobody is answered */
    struct ss_port_spec spec, change;
    struct ss_stat *stats;
    size_t stat_count;
};

struct ss_manager {
    struct ss_config *config;
    struct ss_words *words; /* of the command line, for reloads */
    char *config_path;      /* absolute, and the helper's only file; NULL: there is none */
    struct ss_manager_reload *reload;
    uv_loop_t loop;
    bool loop_open;
    uv_signal_t signals[4];
    bool stopping, stopped;
    int exit_code;

    char *folder; /* absolute or as given; where files are kept */
    struct ss_helper *helper;
    uv_poll_t helper_poll;
    uv_prepare_t helper_prepare;
    bool helper_open;

    struct ss_command_address address;
    char *address_text; /* as it is told to servers */
    char *path;         /* of a local socket */
    struct ss_command_socket socket;
    uv_poll_t socket_poll;
    bool socket_open;
    bool ready; /* commands are read */
    bool busy;  /* the backend is at work without a command */
    char datagram[SS_REQUEST_MAX + 1];
    /* An answer that its reader has no room for yet. */
    struct ss_reply late;
    size_t late_next; /* of its datagrams */
    unsigned late_tries;
    struct ss_command_peer late_peer;
    uv_timer_t late_timer;

    struct ss_managed **by_port; /* 65536 places */
    struct ss_managed *first, *last;
    size_t port_count;

    struct ss_journal journal;
    size_t journal_live; /* bytes that it had when it was written anew */
    struct ss_log_limit journal_limit;

    const struct ss_backend *backend;
    struct ss_operation operation;
    struct ss_child_link *link;
    struct ss_child_state *child;
    struct ss_processes *processes;

    struct ss_log_limit refused_limit, unknown_limit, answer_limit;
};

/* manager_socket.c: the control socket. */

/* Where it is, by configuration and default; *error_text otherwise. */
SS_CHECKED bool ss_manager_find_address(struct ss_manager *manager);
/* Binds. False after the error lines; *exit_code. */
SS_CHECKED bool ss_manager_open_socket(struct ss_manager *manager);
void ss_manager_close_socket(struct ss_manager *manager);
/* Reads it if it is time for the next command. */
void ss_manager_watch_socket(struct ss_manager *manager);
void ss_manager_answer(struct ss_manager *manager, const struct ss_command_peer *peer,
                       const char *text);
/* Takes the reply over, also after an error in it. */
void ss_manager_answer_all(struct ss_manager *manager, const struct ss_command_peer *peer,
                           struct ss_reply *reply);

/* manager_commands.c: what commands do. */

void ss_manager_handle(struct ss_manager *manager, size_t len, const struct ss_command_peer *peer);
/* The operation has come to its end. `reason` may be NULL. */
void ss_manager_done(struct ss_manager *manager, enum ss_wire_result result, const char *reason);
/* No command comes any more; one that waits is not answered. */
void ss_manager_drop_operation(struct ss_manager *manager);

/* The same for ports of the configuration: the spec is copied. False when memory is out. */
SS_CHECKED bool ss_manager_set_own(struct ss_manager *manager, const struct ss_port_spec *spec);
void ss_manager_remove_own(struct ss_manager *manager, const struct ss_managed *port);

/* manager_reload.c: SIGHUP. */

void ss_manager_begin_reload(struct ss_manager *manager);
/* The next step, when no operation is under way. */
void ss_manager_go_on_reloading(struct ss_manager *manager);
bool ss_manager_is_reloading(const struct ss_manager *manager);
void ss_manager_end_reload(struct ss_manager *manager);

/* manager_ports.c: the table of ports. */

struct ss_managed *ss_managed_find(const struct ss_manager *manager, uint16_t port);
/* With this specification, which is taken over: new, or in the place of the old. NULL when memory
 * is out. */
struct ss_managed *ss_managed_put(struct ss_manager *manager, struct ss_port_spec *spec);
void ss_managed_drop(struct ss_manager *manager, struct ss_managed *port);
void ss_managed_drop_all(struct ss_manager *manager);
/* What a server has counted; of ports and users that are not there nothing is taken. */
void ss_managed_count(struct ss_manager *manager, const struct ss_wire_use *use);
/* The server that has counted is gone. */
void ss_managed_bank(struct ss_manager *manager);
/* A port of the configuration, whose texts it borrows. */
struct ss_port_spec ss_manager_configured_spec(const struct ss_config_server *server);
/* Whether and how a port can be served: method, keys. False with *reason. */
SS_CHECKED bool ss_manager_check_spec(const struct ss_config *config,
                                      const struct ss_port_spec *spec, struct ss_reason *reason);
/* What the manager's own settings add to what was asked for. */
SS_CHECKED enum ss_status ss_manager_complete(struct ss_port_spec *complete,
                                              const struct ss_config *config,
                                              const struct ss_port_spec *spec);

/* Adds a user whose key nobody has, for a port whose last one is gone: with an empty list in its
 * file a server would serve whoever has the key of the port. The method must be there. */
SS_CHECKED enum ss_status ss_manager_put_nobody(struct ss_config_server *server);

/* manager_state.c: the state file. */

/* Opens it and takes the ports in. False after the error line: another manager has it. */
SS_CHECKED bool ss_manager_load_state(struct ss_manager *manager);
void ss_manager_record(struct ss_manager *manager, enum ss_record_kind kind,
                       const struct ss_port_spec *spec);
/* What was used of quotas, where that has changed. */
void ss_manager_record_used(struct ss_manager *manager);
/* `orderly`: the ports need not come again. */
void ss_manager_close_state(struct ss_manager *manager, bool orderly);

/* manager_child.c, manager_processes.c: the two backends. */

/* Before the user is switched. False after the error line. */
SS_CHECKED bool ss_child_start(struct ss_manager *manager);
/* With the loop: hears what it says. */
SS_CHECKED bool ss_child_watch(struct ss_manager *manager);
/* Ports that are not served are tried again soon. */
void ss_child_retry_later(struct ss_manager *manager);
void ss_child_signal(const struct ss_manager *manager, int number);
/* The loop is about to end. */
void ss_child_unwatch(struct ss_manager *manager);
void ss_child_free(struct ss_manager *manager);
/* Makes servers for all ports of the table; the manager is ready afterwards. */
SS_CHECKED bool ss_processes_start(struct ss_manager *manager);
/* Ends what an earlier manager has left. */
void ss_processes_end_stale(struct ss_manager *manager);
void ss_processes_free(struct ss_manager *manager);

/* manager.c */

void ss_manager_set_ready(struct ss_manager *manager);
/* Whether the next command, or step of a reload, may begin. */
bool ss_manager_is_free(const struct ss_manager *manager);
void ss_manager_fail(struct ss_manager *manager, int exit_code);
void ss_manager_stopped(struct ss_manager *manager);

#endif
