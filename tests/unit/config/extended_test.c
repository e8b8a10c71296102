/* Files with lists of servers and listeners, and many ports in one file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "reading.h"

#define L SS_PROGRAM_LOCAL
#define S SS_PROGRAM_SERVER
#define T SS_PROGRAM_TUNNEL

static struct reading *read_text(enum ss_program program, const char *text)
{
    reading_file(text);
    return reading_begin(program, "-c c.json");
}

static const char two_servers[] =
    "{\"servers\":["
    "{\"address\":\"192.0.2.1\",\"port\":8388,\"method\":\"aes-256-gcm\",\"password\":\"a\","
    "\"mode\":\"tcp_and_udp\",\"name\":\"one\"},"
    "{\"server\":\"2001:db8::1\",\"server_port\":8389,\"method\":\"aes-128-gcm\",\"password\":"
    "\"b\"},"
    "{\"server\":\"192.0.2.3\",\"server_port\":8390,\"method\":\"x\",\"disabled\":true}],"
    "\"mode\":\"tcp_only\",\"locals\":["
    "{\"local_address\":\"127.0.0.2\",\"local_port\":1080},"
    "{\"local_port\":1081,\"mode\":\"tcp_and_udp\"},"
    "{\"protocol\":\"http\",\"local_port\":3128},"
    "{\"protocol\":\"tunnel\",\"local_port\":5353,\"forward_address\":\"192.0.2.53\","
    "\"forward_port\":53},"
    "{\"local_port\":1082,\"disabled\":true}]}";

static void lists_of_servers_and_locals(void **state)
{
    struct reading *r = read_text(L, two_servers);
    (void)state;

    assert_true(r->good);
    assert_int_equal(reading_count(r, "WARN", ""), 0);
    assert_int_equal(r->config.server_count, 2);
    assert_string_equal(r->config.servers[0].addresses[0].host, "192.0.2.1");
    assert_int_equal(r->config.servers[0].addresses[0].port, 8388);
    assert_string_equal(r->config.servers[0].name, "one");
    assert_int_equal(r->config.servers[0].mode, SS_MODE_TCP_AND_UDP);
    assert_string_equal(r->config.servers[1].method, "aes-128-gcm");
    assert_int_equal(r->config.servers[1].mode, SS_MODE_TCP_AND_UDP);
    assert_int_equal(r->config.local_count, 2);
    assert_string_equal(r->config.locals[0].address, "127.0.0.2");
    assert_int_equal(r->config.locals[1].port, 1081);
    assert_int_equal(r->config.locals[1].mode, SS_MODE_TCP_AND_UDP);
    reading_end(r);

    r = read_text(S, two_servers);
    assert_true(r->good);
    assert_int_equal(r->config.server_count, 2);
    reading_end(r);

    r = read_text(T, two_servers);
    assert_true(r->good);
    assert_int_equal(r->config.local_count, 1);
    assert_string_equal(r->config.locals[0].target.host, "192.0.2.53");
    assert_int_equal(r->config.locals[0].target.port, 53);
    reading_end(r);
}

static void the_line_replaces_the_lists(void **state)
{
    struct reading *r;
    (void)state;

    reading_file(two_servers);
    r = reading_begin(L, "-c c.json -s 192.0.2.9 -p 9 -k pw -l 1090");
    assert_true(r->good);
    assert_int_equal(r->config.server_count, 1);
    assert_string_equal(r->config.servers[0].addresses[0].host, "192.0.2.9");
    assert_int_equal(r->config.local_count, 1);
    assert_int_equal(r->config.locals[0].port, 1090);
    reading_end(r);
}

static void the_standard_server_stands_in_front(void **state)
{
    struct reading *r = read_text(
        S,
        "{\"server\":\"192.0.2.8\",\"server_port\":8,\"password\":\"x\",\"method\":\"aes-192-gcm\","
        "\"servers\":[{\"server\":[\"192.0.2.1\",\"::1\"],\"server_port\":\"9\",\"method\":"
        "\"aes-256-gcm\",\"password\":\"a\"}]}");
    (void)state;

    assert_true(r->good);
    assert_int_equal(r->config.server_count, 2);
    assert_string_equal(r->config.servers[0].method, "aes-192-gcm");
    assert_int_equal(r->config.servers[1].address_count, 2);
    assert_int_equal(r->config.servers[1].addresses[1].port, 9);
    reading_end(r);
}

#define ENTRY(more)                                                                            \
    "{\"servers\":[{\"server\":\"192.0.2.1\",\"server_port\":8388,\"method\":\"aes-256-gcm\"," \
    "\"password\":\"a\"" more "}],\"locals\":[{\"local_port\":1080}]}"

static void servers_have_weights(void **state)
{
    static const struct {
        const char *text;
        uint32_t tcp, udp;
    } cases[] = {
        {ENTRY(""), 1000, 1000},
        {ENTRY(",\"weight\":0.25"), 250, 250},
        {ENTRY(",\"tcp_weight\":0.5"), 500, 1000},
        {ENTRY(",\"weight\":2,\"udp_weight\":0"), 2000, 0},
        {ENTRY(",\"weight\":0.0001"), 1, 1},
        {ENTRY(",\"weight\":null"), 1000, 1000},
    };
    static const char *const wrong[] = {ENTRY(",\"weight\":\"1\""), ENTRY(",\"tcp_weight\":-1"),
                                        ENTRY(",\"udp_weight\":1001"), ENTRY(",\"weight\":[]")};
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct reading *r = read_text(L, cases[i].text);

        assert_true(r->good);
        assert_int_equal(r->config.servers[0].tcp_weight, cases[i].tcp);
        assert_int_equal(r->config.servers[0].udp_weight, cases[i].udp);
        reading_end(r);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct reading *r = read_text(L, wrong[i]);

        assert_false(r->good);
        assert_int_equal(reading_count(r, "ERROR", "a number from 0 to 1000"), 1);
        reading_end(r);
    }
}

static void the_way_of_balancing_is_fastest_or_random(void **state)
{
    struct reading *r = read_text(L, two_servers);
    (void)state;

    assert_true(r->good);
    assert_int_equal(r->config.balance, SS_BALANCING_FASTEST);
    reading_end(r);

    reading_file(two_servers);
    r = reading_begin(L, "-c c.json --balance random");
    assert_true(r->good);
    assert_int_equal(r->config.balance, SS_BALANCING_RANDOM);
    reading_end(r);

    reading_file(two_servers);
    r = reading_begin(L, "-c c.json --balance slowest");
    assert_false(r->good);
    assert_int_equal(reading_count(r, "ERROR", "balance: 'slowest' is not fastest or random"), 1);
    reading_end(r);
}

static void wrong_entries_are_named(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"{\"servers\":[5]}", "'servers'"},
        {"{\"servers\":[{\"server\":\"192.0.2.1\"}]}", "'server_port' is missing"},
        {"{\"servers\":[{\"server_port\":1}]}", "'server' is missing"},
        {"{\"servers\":[{\"server\":\"192.0.2.1\",\"server_port\":0}]}", "'server_port'"},
        {"{\"servers\":[{\"server\":\"192.0.2.1\",\"server_port\":1}]}", "'method' is missing"},
        {ENTRY(",\"password\":5"), "'password'"},
        {ENTRY(",\"password\":null"), "a password is missing"},
        {ENTRY(",\"mode\":\"both\""), "'mode'"},
        {ENTRY(",\"disabled\":1"), "'disabled'"},
        {ENTRY(",\"users\":5"), "'users' must be a list of objects"},
        {ENTRY(",\"acl\":\"x\""), "'acl' is not supported"},
        {"{\"locals\":[5]}", "'locals'"},
        {"{\"locals\":[{\"local_address\":\"::1\"}]}", "'local_port' is missing"},
        {"{\"locals\":[{\"local_port\":0}]}", "'local_port'"},
        {"{\"mode\":\"both\",\"server\":\"a.test\",\"server_port\":1,\"password\":\"x\","
         "\"locals\":[{\"local_port\":1080}]}",
         "'mode'"},
        {"{\"password\":5,\"locals\":[]}", "'password'"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct reading *r = read_text(L, cases[i].text);

        assert_false(r->good);
        assert_int_equal(r->exit_code, 255);
        if (reading_count(r, "ERROR", cases[i].says) != 1)
            fail_msg("%s: %s", cases[i].text, r->line_count != 0 ? r->lines[0] : "no line");
        reading_end(r);
    }
}

static void unknown_members_of_entries_are_named_with_their_place(void **state)
{
    struct reading *r = read_text(L, ENTRY(",\"plugin-opts\":\"x\",\"tcp_weight\":0.5"));
    (void)state;

    assert_true(r->good);
    assert_int_equal(reading_count(r, "WARN", "servers[0]: unknown key 'plugin-opts'"), 1);
    assert_int_equal(reading_count(r, "WARN", "'plugin_opts' meant"), 1);
    assert_int_equal(reading_count(r, "WARN", ""), 1);
    reading_end(r);
}

static void passwords_may_name_a_variable(void **state)
{
    static const char text[] =
        "{\"servers\":[{\"server\":\"192.0.2.1\",\"server_port\":8388,\"method\":\"aes-256-gcm\","
        "\"password\":\"${SS_TEST_PW}\"}],\"locals\":[{\"local_port\":1080}]}";
    struct reading *r;
    (void)state;

    setenv("SS_TEST_PW", "from there", 1);
    r = read_text(L, text);
    assert_string_equal(r->config.servers[0].password, "from there");
    reading_end(r);
    unsetenv("SS_TEST_PW");
    r = read_text(L, text);
    assert_string_equal(r->config.servers[0].password, "${SS_TEST_PW}");
    assert_int_equal(reading_count(r, "WARN", "the environment has no variable"), 1);
    reading_end(r);
}

static void a_password_that_looks_like_a_variable_is_not_shown(void **state)
{
    struct reading *r;
    (void)state;

    reading_file(
        "{\"servers\":[{\"server\":\"192.0.2.1\",\"server_port\":1,\"method\":\"aes-128-gcm\","
        "\"password\":\"${hunter2}\"}],\"locals\":[{\"local_port\":1080}]}");
    r = reading_begin(SS_PROGRAM_LOCAL, "-c c.json");
    assert_true(r->good);
    assert_string_equal(r->config.servers[0].password, "${hunter2}");
    assert_int_equal(reading_count(r, "WARN", "servers[0]: "), 1);
    assert_int_equal(reading_count(r, "", "hunter2"), 0);
    reading_end(r);
}

static void many_ports_in_one_server(void **state)
{
    struct reading *r = read_text(
        S, "{\"server\":[\"127.0.0.1\",\"::1\"],\"port_password\":{\"8381\":\"a\",\"8382\":12345},"
           "\"method\":\"aes-128-gcm\",\"mode\":\"tcp_and_udp\"}");
    (void)state;

    assert_true(r->good);
    assert_int_equal(r->config.server_count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(r->config.servers[i].address_count, 2);
        assert_int_equal(r->config.servers[i].addresses[0].port, 8381 + i);
        assert_int_equal(r->config.servers[i].addresses[1].port, 8381 + i);
        assert_string_equal(r->config.servers[i].method, "aes-128-gcm");
        assert_int_equal(r->config.servers[i].mode, SS_MODE_TCP_AND_UDP);
    }
    assert_string_equal(r->config.servers[1].password, "12345");
    reading_end(r);

    r = read_text(S,
                  "{\"server_port\":8388,\"password\":\"x\",\"port_password\":{\"8381\":\"a\"}}");
    assert_int_equal(r->config.server_count, 2);
    reading_end(r);
    r = read_text(S, "{\"port_password\":{\"0\":\"a\"}}");
    assert_false(r->good);
    reading_end(r);
    r = read_text(S, "{\"port_password\":{\"8381\":null}}");
    assert_int_equal(reading_count(r, "ERROR", "port_password: option '8381'"), 1);
    reading_end(r);
    r = read_text(L, "{\"server\":\"a.test\",\"server_port\":1,\"local_port\":2,\"password\":\"x\","
                     "\"port_password\":{\"8381\":null}}");
    assert_true(r->good);
    assert_int_equal(r->config.server_count, 1);
    reading_end(r);
}

#define CLASSIC "{\"server\":\"a.test\",\"server_port\":1,\"local_port\":2,\"password\":\"x\""
#define USERS   "{\"password\":{\"users\":[{\"user_name\":\"u\",\"password\":\"p\"}]}}"

static void users_of_socks_clients(void **state)
{
    struct reading *r = read_text(L, CLASSIC ",\"socks5_auth\":" USERS "}");
    static const char *const wrong[] = {
        "5",
        "{}",
        "{\"password\":{\"users\":[]}}",
        "{\"password\":{\"users\":[{}]}}",
        "{\"password\":{\"users\":[{\"user_name\":\"\",\"password\":\"p\"}]}}",
        "{\"password\":{\"users\":[{\"user_name\":\"u\",\"password\":5}]}}"};
    (void)state;

    assert_true(r->good);
    assert_int_equal(r->config.locals[0].user_count, 1);
    assert_string_equal(r->config.locals[0].users[0].name, "u");
    assert_string_equal(r->config.locals[0].users[0].password, "p");
    reading_end(r);

    reading_users(USERS);
    r = read_text(L, CLASSIC ",\"socks5_auth_config_path\":\"users.json\"}");
    assert_true(r->good);
    assert_int_equal(r->config.locals[0].user_count, 1);
    reading_end(r);
    r = read_text(L, "{\"server\":\"a.test\",\"server_port\":1,\"password\":\"x\",\"locals\":[{"
                     "\"local_port\":2,\"socks5_auth_config_path\":\"users.json\"}]}");
    assert_true(r->good);
    assert_int_equal(r->config.locals[0].user_count, 1);
    reading_end(r);
    r = read_text(L, CLASSIC ",\"socks5_auth_config_path\":\"nosuch\"}");
    assert_false(r->good);
    assert_int_equal(reading_count(r, "ERROR", "socks5_auth_config_path: nosuch"), 1);
    reading_end(r);

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[512];

        snprintf(text, sizeof text, CLASSIC ",\"socks5_auth\":%s}", wrong[i]);
        r = read_text(L, text);
        assert_false(r->good);
        assert_int_equal(r->exit_code, 255);
        reading_end(r);
    }
}

static void dns_as_a_list_of_addresses(void **state)
{
    struct reading *r =
        read_text(S, "{\"server_port\":1,\"password\":\"x\",\"dns\":\"udp://127.0.0.1:5353,::1\"}");
    (void)state;

    assert_string_equal(r->config.nameservers, "127.0.0.1:5353,::1");
    reading_end(r);
    r = read_text(S, "{\"server_port\":1,\"password\":\"x\",\"dns\":\"google_tls\"}");
    assert_true(r->good);
    assert_null(r->config.nameservers);
    assert_int_equal(reading_count(r, "WARN", "'dns'"), 1);
    reading_end(r);
}

int extended_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_servers_and_locals),
        cmocka_unit_test(the_line_replaces_the_lists),
        cmocka_unit_test(the_standard_server_stands_in_front),
        cmocka_unit_test(wrong_entries_are_named),
        cmocka_unit_test(servers_have_weights),
        cmocka_unit_test(the_way_of_balancing_is_fastest_or_random),
        cmocka_unit_test(unknown_members_of_entries_are_named_with_their_place),
        cmocka_unit_test(passwords_may_name_a_variable),
        cmocka_unit_test(a_password_that_looks_like_a_variable_is_not_shown),
        cmocka_unit_test(many_ports_in_one_server),
        cmocka_unit_test(users_of_socks_clients),
        cmocka_unit_test(dns_as_a_list_of_addresses),
    };

    return cmocka_run_group_tests_name("config: extended files", tests, NULL, NULL);
}
