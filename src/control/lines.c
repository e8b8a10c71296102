/* Lines of JSON. */
#include "control/lines.h"

#include <stdlib.h>
#include <string.h>

#include "config/json.h"
#include "crypto/secret.h"

/* Room that is kept while nothing waits. */
#define ROOM_KEPT 16384

char *ss_line_text(struct json_t *object)
{
    char *text = ss_json_dump(object), *line;
    size_t len;

    if (text == NULL)
        return NULL;
    len = strlen(text);
    line = malloc(len + 2);
    if (line != NULL) {
        memcpy(line, text, len);
        memcpy(line + len, "\n", 2);
    }
    ss_json_text_free(text);
    return line;
}

/* Moves what has not been handed out to the front, into more room if need be. */
static enum ss_status make_room(struct ss_lines *lines, size_t more)
{
    size_t left = lines->len - lines->taken;
    size_t room = lines->room;
    char *bytes = lines->bytes;

    if (left + more > room || (room > ROOM_KEPT && left + more <= ROOM_KEPT)) {
        room = left + more <= ROOM_KEPT ? ROOM_KEPT : (left + more) * 2;
        bytes = malloc(room);
        if (bytes == NULL)
            return SS_ERR_MEMORY;
        if (left != 0)
            memcpy(bytes, lines->bytes + lines->taken, left);
        if (lines->bytes != NULL)
            ss_wipe(lines->bytes, lines->room);
        free(lines->bytes);
    } else if (lines->taken != 0) {
        memmove(bytes, bytes + lines->taken, left);
        ss_wipe(bytes + left, lines->taken);
    }
    lines->bytes = bytes;
    lines->room = room;
    lines->len = left;
    lines->taken = 0;
    return SS_OK;
}

enum ss_status ss_lines_put(struct ss_lines *lines, const void *bytes, size_t len, size_t limit)
{
    enum ss_status status;

    if (len == 0)
        return SS_OK;
    if (lines->searched + len > limit && memchr(bytes, '\n', len) == NULL)
        return SS_ERR_LIMIT;
    status = make_room(lines, len);
    if (status != SS_OK)
        return status;
    memcpy(lines->bytes + lines->len, bytes, len);
    lines->len += len;
    return SS_OK;
}

bool ss_lines_next(struct ss_lines *lines, char **line, size_t *len)
{
    size_t from = lines->taken + lines->searched;
    char *end = from < lines->len ? memchr(lines->bytes + from, '\n', lines->len - from) : NULL;

    if (end == NULL) {
        lines->searched = lines->len - lines->taken;
        return false;
    }
    *line = lines->bytes + lines->taken;
    *len = (size_t)(end - *line);
    lines->taken += *len + 1;
    lines->searched = 0;
    return true;
}

void ss_lines_free(struct ss_lines *lines)
{
    if (lines->bytes != NULL)
        ss_wipe(lines->bytes, lines->room);
    free(lines->bytes);
    memset(lines, 0, sizeof *lines);
}
