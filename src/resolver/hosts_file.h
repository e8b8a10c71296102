/* A hosts file on disk: its table, read again when the file has changed. */
#ifndef SS_RESOLVER_HOSTS_FILE_H
#define SS_RESOLVER_HOSTS_FILE_H

#include <stdint.h>

#include "resolver/hosts.h"
#include "resolver/watched_file.h"

struct ss_hosts_file {
    struct ss_hosts hosts;
    struct ss_watched_file file;
};

/* Nothing is read yet. `path` is borrowed for as long as the file is used. */
void ss_hosts_file_init(struct ss_hosts_file *file, const char *path);

/*
 * Looks at the file at most once a second and reads it when it has changed. Without a change
 * nothing is allocated. A file that can't be opened is an empty one; one that can't be read to its
 * end or is too long leaves the names as they were, with a warning.
 */
void ss_hosts_file_check(struct ss_hosts_file *file, uint64_t now_ms);

void ss_hosts_file_clear(struct ss_hosts_file *file);

#endif
