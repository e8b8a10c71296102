/* ss:// URLs: the vectors, there and back, and as configuration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "config/url.h"
#include "reading.h"

static json_t *vectors(const char *list)
{
    json_t *all = json_load_file(SS_TEST_VECTORS "/uri.json", 0, NULL);
    json_t *found = json_incref(json_object_get(all, list));

    assert_non_null(found);
    json_decref(all);
    return found;
}

static void assert_member(const json_t *vector, const char *key, const char *text)
{
    const char *wanted = json_string_value(json_object_get(vector, key));

    if (wanted == NULL)
        assert_null(text);
    else
        assert_string_equal(text, wanted);
}

static void assert_is(const struct ss_url *url, const json_t *vector)
{
    assert_member(vector, "method", url->method);
    assert_member(vector, "password", url->password);
    assert_member(vector, "host", url->endpoint.host);
    assert_int_equal(url->endpoint.port, json_integer_value(json_object_get(vector, "port")));
    assert_member(vector, "plugin", url->plugin);
    assert_member(vector, "plugin_opts", url->plugin_opts);
    assert_member(vector, "tag", url->tag);
}

static void the_vectors_are_read_and_written(void **state)
{
    json_t *list = vectors("valid");
    (void)state;

    assert_true(json_array_size(list) >= 17);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *vector = json_array_get(list, i);
        const char *text = json_string_value(json_object_get(vector, "uri"));
        char again[1024];
        struct ss_url url;

        assert_null(ss_url_parse(&url, text));
        assert_is(&url, vector);
        assert_true(ss_url_format(again, sizeof again, &url));
        ss_url_clear(&url);
        assert_null(ss_url_parse(&url, again));
        assert_is(&url, vector);
        assert_false(ss_url_format(again, strlen(again), &url));
        ss_url_clear(&url);
    }
    json_decref(list);
}

static void invalid_vectors_are_refused(void **state)
{
    json_t *list = vectors("invalid");
    (void)state;

    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_object_get(json_array_get(list, i), "uri"));
        struct ss_url url;

        assert_non_null(ss_url_parse(&url, text));
        ss_url_clear(&url);
    }
    json_decref(list);
}

static void odd_texts_are_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "ss:/",
        "ss://@192.0.2.1:1",
        "ss://:pw@192.0.2.1:1",
        "ss://YWVzLTEyOC1nY206dGVzdA@192.0.2.1",
        "ss://YWVzLTEyOC1nY206dGVzdA@192.0.2.1:",
        "ss://YWVzLTEyOC1nY206dGVzdA@192.0.2.1:123456",
        "ss://YWVzLTEyOC1nY206dGVzdA@[192.0.2.1]:1",
        "ss://YWVzLTEyOC1nY206dGVzdA@2001:db8::1:443",
        "ss://YWVzLTEyOC1nY206dGVzdA@a b:443",
        "ss://aes-128-gcm:a%00b@192.0.2.1:1",
        "ss://aes-128-gcm:ab@192.0.2.1:1#%f",
        "ss://YWVzLTEyOC1nY206dGVzdA@192.0.2.1:1/?plugin=%zz",
        "ss://YWVzLTI1Ni1jZmI6cHc",          /* the old form without a server */
        "ss://YWVzLTI1Ni1jZmIAcHdAaDo4Mzg4", /* a NUL inside */
    };
    (void)state;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct ss_url url;

        assert_non_null(ss_url_parse(&url, texts[i]));
        ss_url_clear(&url);
    }
}

static void what_is_wrong_is_named(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"ss://aes-128-gcm:a%00b@192.0.2.1:1", "%00"},
        {"ss://aes-128-gcm:ab@192.0.2.1:1#%00", "%00"},
        {"ss://aes-128-gcm:ab@192.0.2.1:1/?plugin=a%00", "%00"},
        {"ss://aes-128-gcm:a%0gb@192.0.2.1:1", "hexadecimal"},
        {"ss://aes-128-gcm:ab@192.0.2.1:1#%0", "hexadecimal"},
        {"ss://aes-128-gcm:ab@127.0.0.1:8388/foo", "path"},
        {"ss://aes-128-gcm:ab@127.0.0.1:8388//", "path"},
        {"ss://aes-128-gcm:ab@127.0.0.1:8388/foo?plugin=x", "path"},
        {"ss://aes-128-gcm:ab@127.0.0.1:8388x", "port"},
        {"ss://aes-128-gcm:ab@127.0.0.1", "port"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ss_url url;
        const char *wrong = ss_url_parse(&url, cases[i].text);

        assert_non_null(wrong);
        if (strstr(wrong, cases[i].says) == NULL)
            fail_msg("%s: %s", cases[i].text, wrong);
        ss_url_clear(&url);
    }
}

static void every_prefix_ends_without_harm(void **state)
{
    json_t *list = vectors("valid");
    (void)state;

    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_object_get(json_array_get(list, i), "uri"));

        for (size_t len = 0; len < strlen(text); len++) {
            char *cut = strndup(text, len);
            struct ss_url url;

            if (ss_url_parse(&url, cut) == NULL) {
                assert_non_null(url.method);
                assert_int_not_equal(url.endpoint.port, 0);
            }
            ss_url_clear(&url);
            free(cut);
        }
    }
    json_decref(list);
}

static void literal_colons_stay_in_a_key_chain(void **state)
{
    struct ss_url url;
    (void)state;

    assert_null(ss_url_parse(&url, "ss://2022-blake3-aes-128-gcm:K1:K2@h.example:1"));
    assert_string_equal(url.password, "K1:K2");
    ss_url_clear(&url);
}

static void a_url_stands_where_a_file_may(void **state)
{
    struct reading *r = reading_begin(SS_PROGRAM_LOCAL,
                                      "-c ss://YWVzLTEyOC1nY206dGVzdA@[2001:db8::1]:8888#Example1");
    (void)state;

    assert_true(r->good);
    assert_string_equal(r->config.servers[0].addresses[0].host, "2001:db8::1");
    assert_int_equal(r->config.servers[0].addresses[0].port, 8888);
    assert_string_equal(r->config.servers[0].method, "aes-128-gcm");
    assert_string_equal(r->config.servers[0].password, "test");
    assert_int_equal(r->config.locals[0].port, 1080);
    assert_null(r->config.config_path);
    reading_end(r);

    r = reading_begin(SS_PROGRAM_LOCAL,
                      "-c ss://YWVzLTEyOC1nY206dGVzdA@192.0.2.1:8888 -l 1081 -k line -p 9");
    assert_int_equal(r->config.locals[0].port, 1081);
    assert_string_equal(r->config.servers[0].password, "line");
    assert_int_equal(r->config.servers[0].addresses[0].port, 9);
    reading_end(r);

    r = reading_begin(SS_PROGRAM_LOCAL, "-c ss://aes-128-gcm:hunter2%@192.0.2.1:1");
    assert_false(r->good);
    assert_int_equal(r->exit_code, 255);
    assert_int_equal(reading_count(r, "ERROR", "hunter2"), 0);
    reading_end(r);
}

int url_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_are_read_and_written),
        cmocka_unit_test(invalid_vectors_are_refused),
        cmocka_unit_test(odd_texts_are_refused),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(every_prefix_ends_without_harm),
        cmocka_unit_test(literal_colons_stay_in_a_key_chain),
        cmocka_unit_test(a_url_stands_where_a_file_may),
    };

    return cmocka_run_group_tests_name("config: ss:// URLs", tests, NULL, NULL);
}
