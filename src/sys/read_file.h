/* Whole files. */
#ifndef SS_SYS_READ_FILE_H
#define SS_SYS_READ_FILE_H

#include <stddef.h>

#include "base/status.h"

/* From here on paths that are not absolute are those of the present folder, wherever the process
 * goes. */
void ss_file_keep_folder(void);

/*
 * Reads all of a file, or of a pipe until its end, into *text, which the caller frees; a NUL that
 * *len does not count stands behind it. SS_ERR_LIMIT when there are more than `limit` bytes,
 * SS_ERR_ARGUMENT when it is a directory; SS_ERR_NOT_FOUND, SS_ERR_PERMISSION, SS_ERR_IO,
 * SS_ERR_MEMORY.
 */
SS_CHECKED enum ss_status ss_file_read(char **text, size_t *len, const char *path, size_t limit);

#endif
