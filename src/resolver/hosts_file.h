/* A hosts file on disk: its table, read again when the file has changed. */
#ifndef SS_RESOLVER_HOSTS_FILE_H
#define SS_RESOLVER_HOSTS_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "resolver/hosts.h"

/* What tells one state of the file from another; all zero when there is none. */
struct ss_hosts_stamp {
    int64_t mtime_s, mtime_ns;
    uint64_t inode, size;
};

struct ss_hosts_file {
    const char *path;
    struct ss_hosts hosts;
    struct ss_hosts_stamp stamp;
    bool checked;
    uint64_t checked_ms;
};

/* Nothing is read yet. `path` is borrowed for as long as the file is used. */
void ss_hosts_file_init(struct ss_hosts_file *file, const char *path);

/*
 * Looks at the file at most once a second and reads it when its time, inode or size is new. Without
 * a change nothing is allocated. A file that can't be opened is an empty one; one that can't be
 * read to its end or is too long leaves the names as they were, with a warning.
 */
void ss_hosts_file_check(struct ss_hosts_file *file, uint64_t now_ms);

void ss_hosts_file_clear(struct ss_hosts_file *file);

#endif
