/* A small text file that others change: read whole, again when it has changed. */
#ifndef SS_RESOLVER_WATCHED_FILE_H
#define SS_RESOLVER_WATCHED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* What tells one state of the file from another; all zero when there is none. */
struct ss_file_stamp {
    int64_t modified_s, modified_ns, changed_s, changed_ns;
    uint64_t device, inode, size;
};

struct ss_watched_file {
    const char *path;
    size_t len_max;
    struct ss_file_stamp stamp;
    bool checked;
    uint64_t checked_ms;
};

/* What a look at the file came to. */
enum ss_file_news {
    SS_FILE_SAME,      /* as it was, or not looked at: the last look is less than a second ago */
    SS_FILE_READ,      /* new, and here it is */
    SS_FILE_GONE,      /* there is none any more, or it can't be opened */
    SS_FILE_UNREADABLE /* new, but not to be had: in *status why */
};

/* `path` is borrowed for as long as the file is used; longer files are not read. */
void ss_watched_file_init(struct ss_watched_file *file, const char *path, size_t len_max);

/*
 * Looks at the file, at most once a second. With SS_FILE_READ *text is to be freed, and *len its
 * length. Where nothing has changed nothing is allocated.
 */
enum ss_file_news ss_watched_file_look(struct ss_watched_file *file, uint64_t now_ms, char **text,
                                       size_t *len, enum ss_status *status);

#endif
