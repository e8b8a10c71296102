/* Whole files. */
#ifndef SS_SYS_READ_FILE_H
#define SS_SYS_READ_FILE_H

#include <stddef.h>

#include "base/status.h"

/* From here on paths that are not absolute are those of the present folder, wherever the process
 * goes. */
void ss_file_keep_folder(void);

/* The absolute form of a path, to be freed; NULL: out of memory. One that can't be had, since the
 * folder is not known, comes as it is. */
char *ss_file_absolute(const char *path);

/* A file that someone with more rights has opened. */
struct ss_handed_file {
    const char *path; /* absolute */
    int fd;           /* -1: it could not be opened */
};

/* What ss_file_read takes where it may not open a path itself, until this is called again.
 * Borrowed; for the one thread that reads meanwhile. */
void ss_file_take_handed(const struct ss_handed_file *list, size_t count);

/*
 * Reads all of a file, or of a pipe until its end, into *text, which the caller frees; a NUL that
 * *len does not count stands behind it. SS_ERR_LIMIT when there are more than `limit` bytes,
 * SS_ERR_ARGUMENT when it is a directory; SS_ERR_NOT_FOUND, SS_ERR_PERMISSION, SS_ERR_IO,
 * SS_ERR_MEMORY.
 */
SS_CHECKED enum ss_status ss_file_read(char **text, size_t *len, const char *path, size_t limit);

#endif
