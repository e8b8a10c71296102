/* JSON objects a line each, as files and pipes have them. */
#ifndef SS_CONTROL_LINES_H
#define SS_CONTROL_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct json_t;

/* Takes the object over: its text with a line end and a NUL, to be wiped and freed; NULL when
 * memory is out. */
char *ss_line_text(struct json_t *object);

/* Bytes as they come, cut into lines. */
struct ss_lines {
    char *bytes;
    size_t len, room;
    size_t taken;    /* bytes of lines that were handed out */
    size_t searched; /* behind them, without a line end */
};

/* SS_ERR_LIMIT when a line would be longer than `limit`; SS_ERR_MEMORY. */
SS_CHECKED enum ss_status ss_lines_put(struct ss_lines *lines, const void *bytes, size_t len,
                                       size_t limit);

/* The next whole line, without its end; valid until the next call of ss_lines_put. */
bool ss_lines_next(struct ss_lines *lines, char **line, size_t *len);

/* Wipes and frees; fine on a zeroed one. */
void ss_lines_free(struct ss_lines *lines);

#endif
