/* The process itself: its limits, its user, and its way to the background. */
#ifndef SS_SYS_PROCESS_H
#define SS_SYS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* What the process has in memory for itself alone; 0 where the system does not say. For one thread:
 * keeps a descriptor open from the first call on. */
uint64_t ss_process_private_bytes(void);

/* CPUs that the process may run on, at least 1. */
unsigned ss_process_cpu_count(void);

/*
 * Raises the limit of descriptors: to the hard one, or both to `wanted` unless that is 0. *limit is
 * what then holds, whatever became of it. SS_ERR_PERMISSION when `wanted` could not be had.
 */
SS_CHECKED enum ss_status ss_process_raise_descriptors(uint32_t wanted, uint32_t *limit);

/*
 * Becomes another user, by name or number, with its groups; fine when it is that user already. Of
 * root's rights those in `rights` stay (bits of sys/rights.h), where the system knows single ones.
 * SS_ERR_NOT_FOUND when there is no such user; SS_ERR_PERMISSION, SS_ERR_IO with *error_text.
 */
SS_CHECKED enum ss_status ss_process_switch_user(const char *user, unsigned rights,
                                                 const char **error_text);

bool ss_process_is_root(void);

/* Whether the process has a terminal that may hang up. */
bool ss_process_has_terminal(void);

/* Whether what goes to stderr ends in a journal that stamps lines itself. */
bool ss_process_logs_to_journal(void);

/* First of all: standard streams that were closed become /dev/null, so that nothing else comes by
 * their numbers. */
void ss_process_fill_streams(void);

/* From here on a write to a closed connection is an error, not a signal. */
void ss_process_ignore_pipes(void);

/* An absolute form of a path, from the present directory; to be freed. NULL when memory is out, or
 * the directory is not known. */
char *ss_path_absolute(const char *path);

/* A program of that name in the folder of this one, to be freed. NULL: there is none, or the system
 * does not tell. */
char *ss_path_sibling(const char *name);

/* A process in the background, or none. */
struct ss_background {
    char *pid_path; /* absolute; NULL: not in the background */
    int pid_fd;     /* locked as long as the process lives */
    int ready_fd;   /* the parent waits at its other end */
};

enum ss_background_side {
    SS_BACKGROUND_FAILED, /* before the fork; *error_text tells */
    SS_BACKGROUND_PARENT, /* the child has begun, or has ended: *exit_code */
    SS_BACKGROUND_CHILD
};

/*
 * Forks. The file for the process id is opened first, and locked: a stale one is replaced, one of a
 * process that lives is not. The parent writes the child's id to it and comes back when the child
 * has said that it serves, or has ended, which removes the file. The child leads a session of its
 * own, in the root directory, with its streams at /dev/null.
 */
enum ss_background_side ss_background_enter(struct ss_background *background, const char *pid_path,
                                            const char **error_text, int *exit_code);

/* In the child: lets the parent go with 0. Fine when there is none. */
void ss_background_ready(struct ss_background *background);

/* At an orderly end: the file goes, or, where that is no longer allowed, is left empty. */
void ss_background_leave(struct ss_background *background);

#endif
