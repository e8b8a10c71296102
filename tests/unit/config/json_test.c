/* What the JSON reader allows beyond the letter, and how it reports what it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "config/json.h"
#include "reading.h"

#define S SS_PROGRAM_SERVER

/* Parses a copy with nothing behind it. */
static json_t *parse_bytes(const char *text, size_t len, struct ss_json_error *error)
{
    char *copy = malloc(len != 0 ? len : 1);
    json_t *document;

    assert_non_null(copy);
    memcpy(copy, text, len);
    document = ss_json_parse(copy, len, error);
    free(copy);
    return document;
}

static bool parses(const char *text)
{
    struct ss_json_error error;
    json_t *document = parse_bytes(text, strlen(text), &error);

    json_decref(document);
    return document != NULL;
}

static void tolerances(void **state)
{
    static const char *const good[] = {
        "\xef\xbb\xbf{\"a\":1}",
        "{\"a\":1,}",
        "{\"a\":[1,2,],}",
        "{\"a\":1 , \r\n\t }",
        "// first\r\n{\"a\":1, // second\r\n /* third\n * fourth */ \"b\":2, /* last */ }\r\n//",
        "{\"a\":1}// no line end",
        "{\"a\":\"// no comment /* here, ] } , \"}",
        "{\"a\":\"\\\"//\\\\\",}",
        "{\"a\":1,\"a\":2}",
        "\xef\xbb\xbf// all\r\n{\r\n\t\"a\" : [ 1 , /* x */ ] ,\r\n}\r\n\r\n",
    };
    static const char *const bad[] = {
        "{\"a\":1,,}",
        "{,}",
        "[,]",
        "{\"a\":,}",
        "{\"a\":1}x",
        "{\"a\":1}{}",
        "{'a':1}",
        "{a:1}",
        "# x\n{}",
        "{\"a\":01}",
        "{\"a\":1 /* open",
        "{\"a\":1 /",
        "{\"a\":+1}",
        "",
        " \n",
        "{\"a\"}",
        "{\"a\":\"\t\"}",
        "{\"a\":\"\n\"}",
        "{\"a\":\"\xff\"}",
        "{\"a\":\"\\u0000\"}",
    };
    (void)state;

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(parses(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(parses(bad[i]));
}

static void blanking_keeps_every_place(void **state)
{
    char text[] = "{\n/* a\nb */ \"k\" : 1, // x\n}";
    (void)state;

    ss_json_blank(text, sizeof text - 1);
    assert_string_equal(text, "{\n    \n     \"k\" : 1      \n}");
}

static void errors_name_line_column_and_what_was_expected(void **state)
{
    static const struct {
        const char *text;
        unsigned line, column;
        const char *says;
    } cases[] = {
        {"{\"method\":aes-256-gcm}", 1, 11, "expected a text in double quotes"},
        {"{\n  \"a\": 1\n  \"b\": 2\n}", 3, 3, "'}' expected"},
        {"{\"a\":1", 1, 7, "'}' expected"},
        {"/* one\n two */\n{\"a\" 1}", 3, 6, "':' expected"},
        {"{\"a\":1\xef\xbc\x8c\"b\":2}", 1, 7, "U+FF0C stands where ',' was meant"},
        {"{\xe2\x80\x9c"
         "a\xe2\x80\x9d:1}",
         1, 2, "U+201C stands where '\"' was meant"},
        {"{'a':1}", 1, 2, "double quotes"},
        {"{\"a\":\"\xd0\x9f\xd0\x9f\", x}", 1, 12, "x"},
        {"# c\n{}", 1, 1, "comments begin with //"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ss_json_error error;

        assert_null(parse_bytes(cases[i].text, strlen(cases[i].text), &error));
        assert_int_equal(error.line, cases[i].line);
        assert_int_equal(error.column, cases[i].column);
        assert_non_null(strstr(error.text, cases[i].says));
    }
}

/* What stands where something else was expected may be a password, or the rest of one. */
static void errors_show_nothing_of_the_text(void **state)
{
    static const char *const texts[] = {
        "{\"password\" \"hunter2\"}",      "{\"password\": hunter2}",
        "{\"password\": \"x\"hunter2\"}",  "{\"password\": \"x\" \"hunter2\"}",
        "{\"password\": \"hunter2\n\"}",   "{\"password\": \"x\\hunter2\"}",
        "{\"password\": \"\\uhunter2\"}",  "{\"password\": \"hunter2",
        "{\"password\": \"hunter2\xff\"}", "{\"a\": 1 \"hunter2\": 2}",
    };
    (void)state;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct ss_json_error error;

        assert_null(parse_bytes(texts[i], strlen(texts[i]), &error));
        assert_true(error.text[0] != '\0');
        if (strstr(error.text, "hunt") != NULL)
            fail_msg("%s: %s", texts[i], error.text);
    }
}

static void a_document_cut_anywhere_is_an_error_only(void **state)
{
    static const char *const texts[] = {
        "\xef\xbb\xbf// c\n{\"server\":[\"127.0.0.1\",\"::1\",],/* x "
        "*/\"password\":\"\\u12ab\\ud83d\\ude00"
        "\\\"\",\"n\":-12.5e3,\"t\":true,\"f\":false,\"z\":null,\"o\":{\"a\":{}}}",
        "{\"a\":\"\\ud800\"}", "{\"a\":\"\\ud800\\u12\"}", "{\"password\":\"\\u12\"}"};
    struct ss_json_error error;
    (void)state;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        size_t len = strlen(texts[i]);

        for (size_t cut = 0; cut < len; cut++)
            assert_null(parse_bytes(texts[i], cut, &error));
    }
    for (size_t depth = 1; depth <= 5000; depth += 4999) {
        char *deep = malloc(depth * 2);
        json_t *document;

        assert_non_null(deep);
        memset(deep, '[', depth);
        memset(deep + depth, ']', depth);
        document = parse_bytes(deep, depth * 2, &error);
        assert_true((document != NULL) == (depth == 1));
        json_decref(document);
        free(deep);
    }
}

static void every_prefix_of_a_file_is_an_error_only(void **state)
{
    static const char file[] =
        "{\"server\":[\"127.0.0.1\"],\"server_port\":8388,\"password\":\"x\",\"method\":"
        "\"aes-256-gcm\",\"timeout\":\"60\",\"fast_open\":true,\"nofile\":4096,\"mode\":\"tcp_"
        "only\","
        "\"port_password\":{\"8389\":\"y\"},\"o\":{\"a\":[1,{}]}}";
    (void)state;

    for (size_t cut = 0; cut < sizeof file - 1; cut++) {
        struct reading *r;

        reading_bytes(file, cut);
        r = reading_begin(S, "-c c.json");
        assert_false(r->good);
        assert_int_equal(r->exit_code, 255);
        assert_true(r->line_count >= 1);
        reading_end(r);
    }
    assert_true(reading_takes(S, file));
}

static void the_file_is_named_in_front_of_the_place(void **state)
{
    struct reading *r;
    (void)state;

    reading_file("{\n\"server\":\ngarbage\n}");
    r = reading_begin(S, "-c c.json");
    assert_int_equal(r->exit_code, 255);
    assert_int_equal(reading_count(r, "ERROR", "c.json:3:1: "), 1);
    reading_end(r);
}

static void files_that_are_no_configuration(void **state)
{
    struct reading *r;
    (void)state;

    reading_file("[1]");
    r = reading_begin(S, "-c c.json");
    assert_int_equal(r->exit_code, 255);
    assert_int_equal(reading_count(r, "ERROR", "Invalid config file"), 1);
    reading_end(r);
    reading_file("");
    r = reading_begin(S, "-c c.json");
    assert_int_equal(reading_count(r, "ERROR", "Failed to read the config file."), 1);
    reading_end(r);
    r = reading_begin(S, "-c nosuch");
    assert_int_equal(r->exit_code, 255);
    assert_int_equal(reading_count(r, "ERROR", "Invalid config path."), 1);
    reading_end(r);
    r = reading_begin(S, "-c folder");
    assert_int_equal(r->exit_code, 255);
    assert_int_equal(reading_count(r, "ERROR", "Too large config file."), 1);
    assert_int_equal(reading_count(r, "ERROR", "folder: it is a directory"), 1);
    reading_end(r);
    reading_bytes("", (size_t)17 << 20);
    r = reading_begin(S, "-c c.json");
    assert_int_equal(reading_count(r, "ERROR", "Too large config file."), 1);
    reading_end(r);
}

int json_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tolerances),
        cmocka_unit_test(blanking_keeps_every_place),
        cmocka_unit_test(errors_name_line_column_and_what_was_expected),
        cmocka_unit_test(errors_show_nothing_of_the_text),
        cmocka_unit_test(a_document_cut_anywhere_is_an_error_only),
        cmocka_unit_test(every_prefix_of_a_file_is_an_error_only),
        cmocka_unit_test(the_file_is_named_in_front_of_the_place),
        cmocka_unit_test(files_that_are_no_configuration),
    };

    ss_json_start();
    return cmocka_run_group_tests_name("config: JSON", tests, NULL, NULL);
}
