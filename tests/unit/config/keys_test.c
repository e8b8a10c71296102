/* Keys of the file: every key with every type, and what each value means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/config_internal.h"
#include "reading.h"

#define L SS_PROGRAM_LOCAL
#define S SS_PROGRAM_SERVER
#define T SS_PROGRAM_TUNNEL

/* A complete file for all programs, with room for one member in front, where a second one of the
 * same name behind it would win. */
static const char *document(const char *key, const char *value)
{
    static const struct {
        const char *key, *value;
    } members[] = {{"server", "\"127.0.0.1\""},   {"server_port", "8388"},
                   {"local_port", "1080"},        {"password", "\"pw\""},
                   {"method", "\"aes-256-gcm\""}, {"tunnel_address", "\"127.0.0.1:53\""}};
    static char text[4096];
    size_t used = (size_t)snprintf(text, sizeof text, "{\"%s\":%s", key, value);

    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        if (strcmp(members[i].key, key) != 0)
            used += (size_t)snprintf(text + used, sizeof text - used, ",\"%s\":%s", members[i].key,
                                     members[i].value);
    snprintf(text + used, sizeof text - used, "}");
    return text;
}

static struct reading *read_with(enum ss_program program, const char *key, const char *value)
{
    reading_file(document(key, value));
    return reading_begin(program, "-c c.json");
}

static void every_key_with_every_type_is_taken_or_named(void **state)
{
    static const char *const values[] = {"null",
                                         "true",
                                         "false",
                                         "0",
                                         "1",
                                         "-1",
                                         "8388",
                                         "4294967297",
                                         "1.5",
                                         "1e4",
                                         "\"\"",
                                         "\"x\"",
                                         "\"8388\"",
                                         "[]",
                                         "{}",
                                         "[1]",
                                         "[null]",
                                         "[\"x\"]",
                                         "{\"a\":1}",
                                         "{\"1\":\"x\"}",
                                         "[[[[[[[[1]]]]]]]]",
                                         "{\"a\":{\"b\":{\"c\":[]}}}"};
    static const enum ss_program programs[] = {L, S, T};
    size_t taken = 0, refused = 0;
    (void)state;

    for (size_t row = 0; row < ss_setting_count; row++) {
        const char *key = ss_settings[row].key;

        for (size_t v = 0; key != NULL && v < sizeof values / sizeof values[0]; v++) {
            for (size_t p = 0; p < 3; p++) {
                struct reading *r = read_with(programs[p], key, values[v]);

                if (r->good) {
                    taken++;
                } else {
                    refused++;
                    /* 1: a value that is needed was null, or an empty list. */
                    assert_true(r->exit_code == 255 || r->exit_code == 1);
                    if (r->exit_code == 255 && reading_count(r, "ERROR", key) != 1)
                        fail_msg("%s: %s: %s", key, values[v],
                                 r->line_count != 0 ? r->lines[r->line_count - 1] : "no line");
                }
                reading_end(r);
            }
        }
    }
    assert_true(taken > 1000 && refused > 1000);
}

static void ports_and_times_are_the_same_as_text_and_number(void **state)
{
    static const char *const refused[] = {"\"8388abc\"", "0",         "65536",  "-1",
                                          "\"\"",        "\"0\"",     "8388.0", "70000",
                                          "\" 8388\"",   "\"+8388\"", "[8388]"};
    struct reading *r;
    (void)state;

    for (int text = 0; text <= 1; text++) {
        r = read_with(L, "server_port", text ? "\"8389\"" : "8389");
        assert_int_equal(r->config.servers[0].addresses[0].port, 8389);
        reading_end(r);
        r = read_with(L, "local_port", text ? "\"1081\"" : "1081");
        assert_int_equal(r->config.locals[0].port, 1081);
        reading_end(r);
        r = read_with(L, "timeout", text ? "\"300\"" : "300");
        assert_int_equal(r->config.timeout_s, 300);
        reading_end(r);
        r = read_with(L, "workers", text ? "\"3\"" : "3");
        assert_int_equal(r->config.workers, 3);
        reading_end(r);
    }
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        r = read_with(S, "server_port", refused[i]);
        assert_false(r->good);
        assert_int_equal(r->exit_code, 255);
        assert_int_equal(reading_count(r, "ERROR", "server_port"), 1);
        reading_end(r);
    }
}

static void a_password_that_is_a_number_is_its_digits(void **state)
{
    static const struct {
        const char *value, *password;
        size_t warnings;
    } cases[] = {
        {"12345", "12345", 0},
        {"-7", "-7", 0},
        {"0", "0", 0},
        {"4294967297", "1", 1},
        {"3000000000", "-1294967296", 1},
        {"\"4294967297\"", "4294967297", 0},
        {"\"a\\\"b\\\\c\"", "a\"b\\c", 0},
        {"\"caf\\u00e9\"", "caf\xc3\xa9", 0},
        {"\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80", 0},
        {"\"\\/\\t\\n\"", "/\t\n", 0},
        {"\"\"", "", 0},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct reading *r = read_with(S, "password", cases[i].value);

        assert_true(r->good);
        assert_string_equal(r->config.servers[0].password, cases[i].password);
        assert_int_equal(reading_count(r, "WARN", "in quotes"), cases[i].warnings);
        reading_end(r);
    }
}

static void keys_that_a_program_does_not_use_are_checked_by_type_alone(void **state)
{
    struct reading *r = read_with(S, "local_port", "\"x\"");
    (void)state;

    assert_true(r->good);
    reading_end(r);
    r = read_with(S, "local_port", "true");
    assert_false(r->good);
    assert_int_equal(r->exit_code, 255);
    reading_end(r);
    r = read_with(T, "acl", "[]");
    assert_false(r->good);
    reading_end(r);
    r = read_with(T, "acl", "\"nosuch.acl\"");
    assert_true(r->good);
    assert_null(r->config.acl);
    reading_end(r);
    r = read_with(S, "manager_address", "\"127.0.0.1:1\"");
    assert_null(r->config.manager_address);
    reading_end(r);
    r = read_with(T, "ipv6_first", "true");
    assert_false(r->config.ipv6_first);
    reading_end(r);
}

static void switches_want_booleans(void **state)
{
    static const char *const wrong[] = {"null", "1", "0", "\"true\"", "[]"};
    (void)state;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct reading *r = read_with(S, "fast_open", wrong[i]);

        assert_int_equal(r->exit_code, 255);
        assert_int_equal(
            reading_count(r, "ERROR", "invalid config file: option 'fast_open' must be a boolean"),
            1);
        reading_end(r);
    }
    for (int on = 0; on <= 1; on++) {
        struct reading *r = read_with(S, "reuse_port", on ? "true" : "false");

        assert_int_equal(r->config.reuse_port, on);
        reading_end(r);
    }
}

static void unknown_keys_are_named_with_the_nearest(void **state)
{
    static const struct {
        const char *key, *nearest;
    } cases[] = {
        {"plugin-opts", "plugin_opts"}, {"sever_port", "server_port"},
        {"fastopen", "fast_open"},      {"Method", "method"},
        {"pasword", "password"},        {"local_adress", "local_address"},
        {"tiemout", "timeout"},         {"fast-open", "fast_open"},
        {"name_server", "nameserver"},
    };
    struct reading *r;
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[128];

        r = read_with(S, cases[i].key, "{\"any\":[1]}");
        assert_true(r->good);
        snprintf(line, sizeof line, "'%s' is ignored; is '%s' meant?", cases[i].key,
                 cases[i].nearest);
        assert_int_equal(reading_count(r, "WARN", line), 1);
        reading_end(r);
    }
    r = read_with(S, "zzzzzzzz", "1");
    assert_int_equal(reading_count(r, "WARN", "'zzzzzzzz' is ignored"), 1);
    assert_int_equal(reading_count(r, "WARN", "meant"), 0);
    reading_end(r);
    r = read_with(S, "_comment", "\"x\"");
    assert_int_equal(reading_count(r, "WARN", ""), 0);
    reading_end(r);
}

static void servers_and_their_forms(void **state)
{
    struct reading *r;
    static const char *const wrong[] = {"5",
                                        "true",
                                        "{\"a\":1}",
                                        "[5]",
                                        "[null]",
                                        "\"\"",
                                        "\"a b\"",
                                        "\"127.0.0.1:0\"",
                                        "\"127.0.0.1:65536\"",
                                        "\"a:b\"",
                                        "\"[::1\""};
    (void)state;

    r = read_with(S, "server",
                  "[\"::0\",\"0.0.0.0\",\"127.0.0.1:8389\",\"[::1]:8390\",\"a_b.test.\"]");
    assert_true(r->good);
    assert_int_equal(r->config.servers[0].address_count, 5);
    assert_string_equal(r->config.servers[0].addresses[0].host, "::0");
    assert_int_equal(r->config.servers[0].addresses[1].port, 8388);
    assert_int_equal(r->config.servers[0].addresses[2].port, 8389);
    assert_string_equal(r->config.servers[0].addresses[3].host, "::1");
    assert_int_equal(r->config.servers[0].addresses[3].port, 8390);
    assert_string_equal(r->config.servers[0].addresses[4].host, "a_b.test.");
    reading_end(r);

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        r = read_with(S, "server", wrong[i]);
        assert_false(r->good);
        assert_int_equal(r->exit_code, 255);
        assert_int_equal(reading_count(r, "ERROR", "server"), 1);
        reading_end(r);
    }
    r = read_with(S, "server", "[]");
    assert_string_equal(r->config.servers[0].addresses[0].host, "0.0.0.0");
    reading_end(r);
    r = read_with(L, "server", "[]");
    assert_int_equal(r->exit_code, 1);
    reading_end(r);
}

static void any_name_that_a_resolver_takes_is_allowed(void **state)
{
    char name[280], value[300];
    static const char *const names[] = {"a_b.test", "1x.test", "x.test.", "X.TEST", "-a.test"};
    struct reading *r;
    (void)state;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(value, sizeof value, "\"%s\"", names[i]);
        r = read_with(L, "server", value);
        assert_true(r->good);
        reading_end(r);
    }
    memset(name, 'a', 253);
    for (size_t i = 63; i < 253; i += 64)
        name[i] = '.';
    name[253] = '\0';
    snprintf(value, sizeof value, "\"%s\"", name);
    r = read_with(L, "server", value);
    assert_true(r->good);
    reading_end(r);
    r = read_with(L, "server", "\"x\\u0000.test\"");
    assert_false(r->good);
    reading_end(r);
}

static void full_width_characters_in_a_host_are_shown(void **state)
{
    struct reading *r = read_with(S, "server",
                                  "\"192\xe3\x80\x82"
                                  "0\xe3\x80\x82"
                                  "2\xe3\x80\x82"
                                  "1\"");
    (void)state;

    assert_false(r->good);
    assert_int_equal(r->exit_code, 255);
    assert_int_equal(reading_count(r, "ERROR", "U+3002 stands where '.' was meant"), 1);
    reading_end(r);
    r = read_with(S, "server",
                  "\"192.0.2.1\xef\xbc\x9a"
                  "8388\"");
    assert_int_equal(reading_count(r, "ERROR", "U+FF1A stands where ':' was meant"), 1);
    reading_end(r);
    r = read_with(L, "server",
                  "\"b\xc3\xbc"
                  "cher.test\"");
    assert_false(r->good);
    reading_end(r);
}

static void an_unknown_mode_falls_back(void **state)
{
    struct reading *r = read_with(S, "mode", "\"both\"");
    (void)state;

    assert_true(r->good);
    assert_int_equal(r->config.mode, SS_MODE_TCP_ONLY);
    assert_int_equal(
        reading_count(r, "INFO", "ignore unknown mode: both, use tcp_only as fallback"), 1);
    assert_int_equal(reading_count(r, "WARN", "'mode': 'both' is not tcp_only"), 1);
    reading_end(r);
    r = read_with(S, "mode", "\"tcp_and_udp\"");
    assert_int_equal(r->config.servers[0].mode, SS_MODE_TCP_AND_UDP);
    reading_end(r);
}

static void buffers_below_16383_are_off(void **state)
{
    struct reading *r = read_with(S, "tcp_incoming_sndbuf", "16382");
    (void)state;

    assert_int_equal(r->config.tcp_incoming_sndbuf, 0);
    reading_end(r);
    r = read_with(S, "tcp_outgoing_rcvbuf", "65536");
    assert_int_equal(r->config.tcp_outgoing_rcvbuf, 65536);
    reading_end(r);
}

static void buffers_that_no_system_has_are_refused(void **state)
{
    static const char *const keys[] = {"tcp_incoming_sndbuf", "tcp_incoming_rcvbuf",
                                       "tcp_outgoing_sndbuf", "tcp_outgoing_rcvbuf"};
    static const char *const options[] = {"--tcp-incoming-sndbuf", "--tcp-incoming-rcvbuf",
                                          "--tcp-outgoing-sndbuf", "--tcp-outgoing-rcvbuf"};
    static const char *const values[] = {"-1", "2147483648", "99999999999999999999"};
    (void)state;

    for (size_t i = 0; i < 4; i++) {
        for (size_t v = 0; v < 3; v++) {
            char line[128], says[128];
            struct reading *r;

            snprintf(line, sizeof line, "-p 1 -k x %s %s", options[i], values[v]);
            snprintf(says, sizeof says, "%s: '%s' is not a number from 0 to 2147483647", options[i],
                     values[v]);
            r = reading_begin(S, line);
            assert_false(r->good);
            assert_int_equal(r->exit_code, 255);
            assert_int_equal(reading_count(r, "ERROR", says), 1);
            reading_end(r);
            if (v == 2)
                continue; /* no integer of JSON */
            snprintf(says, sizeof says, "'%s': '%s' is not a number from 0 to 2147483647", keys[i],
                     values[v]);
            r = read_with(S, keys[i], values[v]);
            assert_false(r->good);
            assert_int_equal(reading_count(r, "ERROR", says), 1);
            reading_end(r);
        }
        {
            struct reading *r = read_with(S, keys[i], "2147483647");

            assert_true(r->good);
            reading_end(r);
        }
    }
}

static void what_other_programs_know_and_this_one_can_not_do(void **state)
{
    struct reading *r = read_with(S, "security", "{}");
    (void)state;

    assert_true(r->good);
    assert_int_equal(reading_count(r, "WARN", "'security' is not supported"), 1);
    reading_end(r);
    r = read_with(S, "outbound_user_cookie", "1");
    assert_false(r->good);
    assert_int_equal(reading_count(r, "ERROR", "'outbound_user_cookie' is not supported"), 1);
    reading_end(r);
    r = read_with(S, "remarks", "\"mine\"");
    assert_int_equal(reading_count(r, "WARN", ""), 0);
    reading_end(r);
}

static void name_servers_are_addresses(void **state)
{
    (void)state;
    assert_true(ss_nameservers_valid("127.0.0.1"));
    assert_true(ss_nameservers_valid("127.0.0.1:53,::1,[::1]:5353"));
    assert_false(ss_nameservers_valid("x"));
    assert_false(ss_nameservers_valid(""));
    assert_false(ss_nameservers_valid("127.0.0.1,"));
    assert_false(ss_nameservers_valid("127.0.0.1, 127.0.0.2"));
    assert_false(ss_nameservers_valid("127.0.0.1:0"));
}

int keys_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_with_every_type_is_taken_or_named),
        cmocka_unit_test(ports_and_times_are_the_same_as_text_and_number),
        cmocka_unit_test(a_password_that_is_a_number_is_its_digits),
        cmocka_unit_test(keys_that_a_program_does_not_use_are_checked_by_type_alone),
        cmocka_unit_test(switches_want_booleans),
        cmocka_unit_test(unknown_keys_are_named_with_the_nearest),
        cmocka_unit_test(servers_and_their_forms),
        cmocka_unit_test(any_name_that_a_resolver_takes_is_allowed),
        cmocka_unit_test(full_width_characters_in_a_host_are_shown),
        cmocka_unit_test(an_unknown_mode_falls_back),
        cmocka_unit_test(buffers_that_no_system_has_are_refused),
        cmocka_unit_test(buffers_below_16383_are_off),
        cmocka_unit_test(what_other_programs_know_and_this_one_can_not_do),
        cmocka_unit_test(name_servers_are_addresses),
    };

    return cmocka_run_group_tests_name("config: keys", tests, NULL, NULL);
}
