/* Processes that were not started here and are known by a number alone, from a pid file. */
#ifndef SS_SYS_OTHER_PROCESS_H
#define SS_SYS_OTHER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Whether the process lives and has `word` in its command line, which is what tells it from another
 * one that has come by the number since. Where the system does not show command lines, whether it
 * lives.
 */
bool ss_other_process_is(int32_t pid, const char *word);

/* SIGTERM, or SIGKILL. */
void ss_other_process_end(int32_t pid, bool at_once);

/* The number in a pid file; 0 when there is none. Links are not followed. */
int32_t ss_other_process_pid(const char *pid_path);

/* The folder of the real user in the password database, into `path`; false when it has none, or one
 * that only says so (nologin, nonexistent). */
bool ss_home_folder(char *path, unsigned size);

#endif
