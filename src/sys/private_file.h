/* Folders and files that are for one user alone: made so, never followed through a link. */
#ifndef SS_SYS_PRIVATE_FILE_H
#define SS_SYS_PRIVATE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* Of the following each sets *error_text to the system's words when it fails. */

/* Makes a folder, mode 0700, of which the parent is there; one that is there already is fine. With
 * `must_be_ours` another user's is refused: SS_ERR_PERMISSION. */
SS_CHECKED enum ss_status ss_private_folder(const char *path, bool must_be_ours,
                                            const char **error_text);

/* Puts a whole file, mode 0600, in the place of what is there, or leaves that as it is. */
SS_CHECKED enum ss_status ss_private_write(const char *path, const char *text, size_t len,
                                           const char **error_text);

/* A file of records that grows at its end and is locked while it is open. */
struct ss_journal {
    char *path;
    int fd; /* -1: none */
    size_t size;
};

/*
 * Opens or makes it, mode 0600. SS_ERR_IN_USE when another process has it; SS_ERR_PERMISSION also
 * when it is another user's, or no plain file.
 */
SS_CHECKED enum ss_status ss_journal_open(struct ss_journal *journal, const char *path,
                                          const char **error_text);

/* All of it, to be wiped and freed; a NUL stands behind it. SS_ERR_LIMIT above `limit` bytes. */
SS_CHECKED enum ss_status ss_journal_read(const struct ss_journal *journal, char **text,
                                          size_t limit, const char **error_text);

/* Puts text behind the rest: all of it, or none. */
SS_CHECKED enum ss_status ss_journal_append(struct ss_journal *journal, const char *text,
                                            size_t len, const char **error_text);

/* Puts other content in its place, at once. */
SS_CHECKED enum ss_status ss_journal_replace(struct ss_journal *journal, const char *text,
                                             size_t len, const char **error_text);

/* Fine when it is not open. */
void ss_journal_close(struct ss_journal *journal);

#endif
