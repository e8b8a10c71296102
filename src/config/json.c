/* Reading JSON through jansson. */
#include "config/json.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/heap.h"
#include "crypto/secret.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The end of a string that begins at `at`: behind its closing quote, or the end of the text. */
static size_t string_end(const char *text, size_t len, size_t at)
{
    for (at++; at < len; at++) {
        if (text[at] == '\\')
            at++;
        else if (text[at] == '"' || text[at] == '\n')
            return at + 1;
    }
    return len;
}

/* Blanks out a comment that begins at `at`, line ends left; returns where it ends. One that is not
 * closed stays, so that the parser reports it where it begins. */
static size_t blank_comment(char *text, size_t len, size_t at)
{
    size_t end = at + 2;

    if (text[at + 1] == '/') {
        while (end < len && text[end] != '\n')
            end++;
    } else {
        while (end + 1 < len && !(text[end] == '*' && text[end + 1] == '/'))
            end++;
        if (end + 1 >= len)
            return len;
        end += 2;
    }
    for (; at < end; at++) {
        if (text[at] != '\n')
            text[at] = ' ';
    }
    return end;
}

void ss_json_blank(char *text, size_t len)
{
    size_t comma = SIZE_MAX; /* a comma behind a value, with only blanks behind it so far */
    char before = '{';       /* the last character that is not blank */
    size_t at = 0;

    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        memset(text, ' ', 3);

    while (at < len) {
        char c = text[at];

        if (c == '"') {
            at = string_end(text, len, at);
            before = c;
            comma = SIZE_MAX;
        } else if (c == '/' && at + 1 < len && (text[at + 1] == '/' || text[at + 1] == '*')) {
            at = blank_comment(text, len, at);
        } else {
            if ((c == '}' || c == ']') && comma != SIZE_MAX)
                text[comma] = ' ';
            if (!is_blank(c)) {
                comma = c == ',' && strchr("{[,:", before) == NULL ? at : SIZE_MAX;
                before = c;
            }
            at++;
        }
    }
}

/* Typed for ASCII characters by input methods, or put there by word processors. */
static const struct {
    uint16_t code;
    char meant;
} lookalikes[] = {
    {0x2018, '\''}, {0x2019, '\''}, {0x201c, '"'}, {0x201d, '"'}, {0x201e, '"'}, {0x00a0, ' '},
    {0x3000, ' '},  {0x3001, ','},  {0x3002, '.'}, {0x300c, '"'}, {0x300d, '"'}, {0xff61, '.'},
};

unsigned ss_json_lookalike(const char *text, size_t len, char *meant)
{
    const unsigned char *p = (const unsigned char *)text;
    unsigned code;

    if (len >= 3 && (p[0] & 0xf0) == 0xe0)
        code = (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
    else if (len >= 2 && (p[0] & 0xe0) == 0xc0)
        code = (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
    else
        return 0;

    if (code >= 0xff01 && code <= 0xff5e) { /* the full-width forms of ! to ~ */
        *meant = (char)(code - 0xff01 + '!');
        return code;
    }
    for (size_t i = 0; i < sizeof lookalikes / sizeof lookalikes[0]; i++) {
        if (lookalikes[i].code == code) {
            *meant = lookalikes[i].meant;
            return code;
        }
    }
    return 0;
}

/* jansson counts to the end of what it could not use; people look for its beginning. */
static size_t error_offset(const json_error_t *error, const char *text, size_t len)
{
    const char *near = strstr(error->text, " near '");
    size_t offset = error->position > 0 ? (size_t)error->position : 0;
    size_t end = strlen(error->text);

    if (offset > len)
        offset = len;
    if (near != NULL && end > 0 && error->text[end - 1] == '\'') {
        size_t near_len = end - 1 - (size_t)(near + 7 - error->text);

        if (near_len <= offset && memcmp(text + offset - near_len, near + 7, near_len) == 0)
            offset -= near_len;
    }
    return offset;
}

static void place(struct ss_json_error *error, const char *text, size_t offset)
{
    error->line = 1;
    error->column = 1;
    for (size_t i = 0; i < offset; i++) {
        if (text[i] == '\n') {
            error->line++;
            error->column = 1;
        } else if (((unsigned char)text[i] & 0xc0) != 0x80) { /* not the rest of a character */
            error->column++;
        }
    }
}

/* jansson shows what it stood at. That may be a password, or the rest of one behind a quote too
 * many, so only punctuation stays; the place says the rest. */
static void hide_quotes(char *text)
{
    char *near = strstr(text, " near '"), *escape;

    if (near != NULL && strspn(near + 7, "{}[]:,'") != strlen(near + 7))
        *near = '\0';
    escape = strstr(text, " '\\");
    if (escape != NULL)
        *escape = '\0';
}

/* What helps with the mistakes that are made most. */
static void hint(struct ss_json_error *error, const char *text, size_t len, size_t offset)
{
    size_t used = strlen(error->text);
    char meant = 0;
    char first = offset < len ? text[offset] : '\0';
    unsigned code = ss_json_lookalike(text + offset, len - offset, &meant);

    if (code != 0)
        snprintf(error->text + used, sizeof error->text - used,
                 "; the character U+%04X stands where '%c' was meant", code, meant);
    else if (first == '\'')
        snprintf(error->text + used, sizeof error->text - used,
                 "; names and texts stand in double quotes");
    else if (first == '#')
        snprintf(error->text + used, sizeof error->text - used, "; comments begin with //");
    else if (strncmp(error->text, "invalid token", 13) == 0)
        snprintf(error->text + used, sizeof error->text - used,
                 "; expected a text in double quotes, a number, true, false, null, [ or {");
}

struct json_t *ss_json_parse(char *text, size_t len, struct ss_json_error *error)
{
    json_error_t found;
    json_t *document;
    size_t offset;

    memset(error, 0, sizeof *error);
    ss_json_blank(text, len);
    document = json_loadb(text, len, JSON_DECODE_ANY, &found);
    if (document != NULL)
        return document;

    offset = error_offset(&found, text, len);
    place(error, text, offset);
    hide_quotes(found.text);
    snprintf(error->text, sizeof error->text, "%s", found.text);
    ss_wipe(&found, sizeof found);
    hint(error, text, len, offset);
    return NULL;
}

/* Stands in front of each block: its size, so that the whole of it can be wiped, and its heap. */
union header {
    struct {
        size_t size;
        bool ours;
    } block;
    max_align_t align;
};

static bool from_our_heap;

static void *wiping_malloc(size_t size)
{
    union header *header;

    if (size > SIZE_MAX - sizeof *header)
        return NULL;
    header = from_our_heap ? ss_heap_malloc(sizeof *header + size) : malloc(sizeof *header + size);
    if (header == NULL)
        return NULL;
    header->block.size = size;
    header->block.ours = from_our_heap;
    return header + 1;
}

static void wiping_free(void *memory)
{
    union header *header;
    bool ours;

    if (memory == NULL)
        return;
    header = (union header *)memory - 1;
    ours = header->block.ours;
    ss_wipe(header, sizeof *header + header->block.size);
    if (ours)
        ss_heap_free(header);
    else
        free(header);
}

char *ss_json_dump(struct json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

    json_decref(value);
    return text;
}

void ss_json_text_free(char *text)
{
    json_free_t release;

    if (text != NULL)
        ss_wipe(text, strlen(text));
    json_get_alloc_funcs(NULL, &release);
    release(text);
}

void ss_json_start(void)
{
    json_set_alloc_funcs(wiping_malloc, wiping_free);
}

void ss_json_use_heap(void)
{
    from_our_heap = true;
}
