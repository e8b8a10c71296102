/* Reads the vector files: JSON with byte strings in hex. What is missing or wrong ends the test. */
#ifndef SS_TESTS_VECTORS_READ_H
#define SS_TESTS_VECTORS_READ_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <cmocka.h>
#include <jansson.h>

/* The whole file; given back with json_decref. */
static inline json_t *vectors_load(const char *name)
{
    char path[512];
    json_error_t error;
    json_t *file;

    snprintf(path, sizeof path, "%s/%s", SS_TEST_VECTORS, name);
    file = json_load_file(path, 0, &error);
    if (file == NULL)
        fail_msg("%s: line %d: %s", path, error.line, error.text);
    return file;
}

static inline const char *vector_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    if (text == NULL)
        fail_msg("no text \"%s\" in a vector", key);
    return text;
}

static inline size_t vector_number(const json_t *object, const char *key)
{
    const json_t *number = json_object_get(object, key);

    if (!json_is_integer(number))
        fail_msg("no number \"%s\" in a vector", key);
    return (size_t)json_integer_value(number);
}

static inline int vector_nibble(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    fail_msg("'%c' is not hex", c);
    return 0;
}

/* Decodes into `out` of `cap` bytes and returns how many there are. */
static inline size_t vector_hex(uint8_t *out, size_t cap, const char *text)
{
    size_t len = strlen(text) / 2;

    assert_int_equal(strlen(text) % 2, 0);
    assert_true(len <= cap);
    for (size_t i = 0; i < len; i++)
        out[i] = (uint8_t)(vector_nibble(text[2 * i]) << 4 | vector_nibble(text[2 * i + 1]));
    return len;
}

static inline size_t vector_bytes(const json_t *object, const char *key, uint8_t *out, size_t cap)
{
    return vector_hex(out, cap, vector_text(object, key));
}

/* A text is hex, or a pattern: byte i is (start + i) mod 251. */
static inline size_t vector_plain(const json_t *object, const char *key, uint8_t *out, size_t cap)
{
    const json_t *text = json_object_get(object, key);
    const json_t *pattern = json_object_get(text, "pattern");
    size_t len, start;

    if (json_is_string(text))
        return vector_hex(out, cap, json_string_value(text));
    if (pattern == NULL)
        return vector_bytes(text, "hex", out, cap);
    assert_int_equal(vector_number(pattern, "mod"), 251);
    len = vector_number(pattern, "len");
    start = vector_number(pattern, "start");
    assert_true(len <= cap);
    for (size_t i = 0; i < len; i++)
        out[i] = (uint8_t)((start + i) % 251);
    return len;
}

#endif
