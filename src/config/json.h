/*
 * JSON documents by jansson, with what people write into their files beyond strict JSON: a byte
 * order mark, comments, and a comma after the last member.
 */
#ifndef SS_CONFIG_JSON_H
#define SS_CONFIG_JSON_H

#include <stddef.h>

struct json_t;

/*
 * Overwrites those three with blanks, so that what follows stays at its line and column. Reads
 * `len` bytes and not one more; text inside strings is left alone.
 */
void ss_json_blank(char *text, size_t len);

struct ss_json_error {
    unsigned line, column; /* of the first character that does not fit, from 1 */
    char text[256];        /* what is wrong, and what was expected where that is known */
};

/*
 * Parses `len` bytes, which are changed (ss_json_blank) but need no NUL behind them. NULL and
 * *error when they are no JSON. Of a key that comes twice the last one counts. To be given back
 * with json_decref; the memory of all documents is wiped when it is freed.
 */
struct json_t *ss_json_parse(char *text, size_t len, struct ss_json_error *error);

/* A value as text, in one line; takes the value over. NULL when memory is out. Only the following
 * may free it, and wipes it. */
char *ss_json_dump(struct json_t *value);
void ss_json_text_free(char *text);

/* Once, before the first document: makes freed documents wiped. */
void ss_json_start(void);

/* Before there are other threads: documents lie on the heap of libraries (base/heap.h) from here
 * on, for a program in which they come and go while it serves. */
void ss_json_use_heap(void);

/*
 * The character at the front of `text`, for a message, when it is one that is easily typed for an
 * ASCII one (full-width punctuation, curly quotes); else 0. *meant is the ASCII one.
 */
unsigned ss_json_lookalike(const char *text, size_t len, char *meant);

#endif
