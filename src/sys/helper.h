/*
 * The helper: a small process beside the program that keeps the rights of the start and does three
 * things on request: it starts, ends and reaps children, opens files again by the paths that were
 * given at the start, and binds ports.
 *
 * Every child leads a process group of its own; when one ends, or is to end, its group goes with
 * it, by SIGTERM and a second later by SIGKILL. Orphans of the children become the helper's (it is
 * a subreaper). However the program ends, its end of the socket pair closes, and then the helper
 * ends all of them and itself. Should the helper be killed, its children get SIGTERM from the
 * kernel.
 *
 * Calls here are for one thread. Requests are answered by notices, in any order, which carry the
 * number that the caller gave.
 */
#ifndef SS_SYS_HELPER_H
#define SS_SYS_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/status.h"

struct ss_helper;

#define SS_HELPER_PATHS_MAX 64
#define SS_HELPER_TEXT_MAX  65536 /* bytes of all texts of a child together, each with its NUL */

struct ss_helper_options {
    /* Files that may be opened again, at most SS_HELPER_PATHS_MAX. Copied; absolute, for the
     * helper's directory is that of the moment of the fork. */
    const char *const *paths;
    size_t path_count;
    /* Whom children run as that are started after ss_helper_seal. Copied; NULL: as the helper. */
    const char *user;
    /* Called in the helper right after the fork with `owner`: wipes what it must not keep. It must
     * not write, and closes nothing: descriptors are closed by the helper. May be NULL. */
    void (*forget)(void *owner);
    void *owner;
};

/*
 * Forks the helper. No other thread and no loop may exist yet. SS_ERR_MEMORY, SS_ERR_IO (logged),
 * SS_ERR_UNSUPPORTED.
 */
SS_CHECKED enum ss_status ss_helper_start(struct ss_helper **out,
                                          const struct ss_helper_options *options);

/*
 * To be called before the program gives its rights up: children that are started for the first time
 * from here on run as `user` of the options. Those that were `kept` before go on with the rights of
 * the start, so that what runs in the program's name can't make the helper run something else.
 */
SS_CHECKED enum ss_status ss_helper_seal(struct ss_helper *helper);

struct ss_child_options {
    const char *const
        *argv; /* NULL-terminated, at least one; [0] is the name that it is shown by */
    /* What is executed: a path, or a name without a slash, which is looked for in `search`; NULL:
     * argv[0]. There is no shell. */
    const char *file;
    const char *search;    /* folders with colons between; NULL: the variable PATH */
    const char *directory; /* where it starts, if that can be entered; NULL: where the helper is */
    /* "NAME=value" put over the helper's own environment, and "NAME" taken out of it;
     * NULL-terminated. NULL: nothing of that. */
    const char *const *environment;
    /* Its standard input, output and error. -1: /dev/null for input, the helper's own for the
     * others. The caller closes its copies. */
    int descriptors[3];
    /* The definition is kept until ss_helper_forget_child, for ss_helper_start_again. */
    bool keep;
    /* It leaves a process in the background and ends: its group is left alone then, until the
     * helper ends. */
    bool leaves;
};

/*
 * Starts a child with empty signal mask, default dispositions and no descriptor but its three. `id`
 * is the caller's, of no child that lives. SS_NOTICE_STARTED follows, which tells whether it could
 * be executed. SS_ERR_ARGUMENT when the texts are too long, SS_ERR_RESET when the helper is gone,
 * SS_ERR_MEMORY.
 */
SS_CHECKED enum ss_status ss_helper_start_child(struct ss_helper *helper, uint32_t id,
                                                const struct ss_child_options *options);

/* Starts a kept one that has ended. `descriptors` as above. */
SS_CHECKED enum ss_status ss_helper_start_again(struct ss_helper *helper, uint32_t id,
                                                const int descriptors[3]);

/* SIGTERM, and after a second SIGKILL. SS_NOTICE_ENDED follows. Fine when it has ended. */
SS_CHECKED enum ss_status ss_helper_stop_child(struct ss_helper *helper, uint32_t id);

/* Wipes a kept definition, as soon as the child has ended. */
SS_CHECKED enum ss_status ss_helper_forget_child(struct ss_helper *helper, uint32_t id);

/* Opens paths[index] for reading. SS_NOTICE_OPENED follows. */
SS_CHECKED enum ss_status ss_helper_open(struct ss_helper *helper, uint32_t id, size_t index);

struct ss_bind_options {
    struct ss_addr address;
    bool udp;
    bool ipv6_only;
    bool reuse_port;
    bool mptcp; /* where the system has it; TCP */
};

/* A socket bound to an address, not yet listening. SS_NOTICE_BOUND follows. */
SS_CHECKED enum ss_status ss_helper_bind(struct ss_helper *helper, uint32_t id,
                                         const struct ss_bind_options *options);

enum ss_notice_kind {
    SS_NOTICE_STARTED, /* `error` (0: it runs), `pid` */
    SS_NOTICE_ENDED,   /* with its whole group: `signal` or `exit_code`, `ran_ms`, `pid` */
    SS_NOTICE_OPENED,  /* `error`, or `descriptor` */
    SS_NOTICE_BOUND    /* the same */
};

struct ss_notice {
    enum ss_notice_kind kind;
    uint32_t id;
    int error;      /* an errno */
    int descriptor; /* closed on exec, non-blocking when a socket; belongs to the caller; -1: none
                     */
    int32_t pid;
    int exit_code; /* when it was not by a signal */
    int signal;    /* 0: by itself */
    uint32_t ran_ms;
};

/* Readable when a notice may have come, or the helper is gone. */
int ss_helper_descriptor(const struct ss_helper *helper);

/*
 * Takes the next notice, without waiting. SS_NEED_INPUT when there is none, SS_ERR_RESET when the
 * helper is gone. A request may have to take notices in to make room for itself; these come first,
 * and the descriptor does not tell of them: so call this after requests, too.
 */
SS_CHECKED enum ss_status ss_helper_read(struct ss_helper *helper, struct ss_notice *notice);

/* The same, and waits. SS_ERR_TIMEOUT. */
SS_CHECKED enum ss_status ss_helper_wait(struct ss_helper *helper, struct ss_notice *notice,
                                         uint32_t timeout_ms);

/* Ends the helper with all its children and waits for that, two seconds or so at most. NULL is
 * fine. */
void ss_helper_end(struct ss_helper *helper);

#endif
