/* The settings of UDP: their defaults, bounds, and where they may stand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "config/config_internal.h"
#include "reading.h"

#define S SS_PROGRAM_SERVER
#define L SS_PROGRAM_LOCAL
#define T SS_PROGRAM_TUNNEL

#define LOCAL "-s 192.0.2.1 -p 8388 -k x -l 1080 "

static void the_time_of_an_association_is_that_of_timeout(void **state)
{
    static const struct {
        const char *line;
        uint32_t seconds;
    } cases[] = {
        {LOCAL "", 60},        {LOCAL "-t 5", 10},
        {LOCAL "-t 300", 300}, {LOCAL "-t 300 --udp-timeout 3", 3},
        {LOCAL "-t 0", 60},    {LOCAL "-t 31536000", 2592000},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct reading *r = reading_begin(L, cases[i].line);

        assert_true(r->good);
        assert_int_equal(r->config.udp_timeout_s, cases[i].seconds);
        reading_end(r);
    }
}

static void servers_have_room_for_more_associations(void **state)
{
    struct reading *r = reading_begin(L, LOCAL);
    (void)state;

    assert_int_equal(r->config.max_associations, 1024);
    reading_end(r);
    r = reading_begin(S, "-p 8388 -k x");
    assert_int_equal(r->config.max_associations, 4096);
    reading_end(r);
    r = reading_begin(S, "-p 8388 -k x --max-associations 7");
    assert_int_equal(r->config.max_associations, 7);
    reading_end(r);
    reading_file("{\"server_port\":1,\"password\":\"x\",\"udp_max_associations\":8}");
    r = reading_begin(S, "-c c.json");
    assert_int_equal(r->config.max_associations, 8);
    reading_end(r);
}

static void the_advertised_address_is_an_address(void **state)
{
    char text[SS_IP_TEXT_MAX];
    struct reading *r = reading_begin(L, LOCAL "--udp-advertised-address 2001:db8::9");
    (void)state;

    assert_true(r->good);
    assert_string_equal(ss_ip_format(&r->config.udp_advertised, text), "2001:db8::9");
    reading_end(r);

    r = reading_begin(L, LOCAL "--udp-advertised-address name.test");
    assert_false(r->good);
    assert_int_equal(r->exit_code, 255);
    assert_int_equal(reading_count(r, "ERROR", "udp_advertised_address: 'name.test'"), 1);
    reading_end(r);
}

static void only_socks_clients_may_be_open(void **state)
{
    struct reading *r = reading_begin(L, LOCAL "--udp-open");
    (void)state;

    assert_true(r->good);
    assert_true(r->config.udp_open);
    reading_end(r);
    r = reading_begin(S, "-p 8388 -k x --udp-open");
    assert_false(r->good);
    assert_int_equal(r->exit_code, 1);
    reading_end(r);
}

#define SERVERS                                                                    \
    "\"servers\":[{\"server\":\"192.0.2.1\",\"server_port\":1,\"password\":\"x\"," \
    "\"method\":\"aes-128-gcm\"}]"

static void udp_of_a_socks_listener_is_where_its_tcp_is(void **state)
{
    static const struct {
        const char *local;
        bool good;
    } cases[] = {
        {"\"local_udp_port\":1080", true},
        {"\"local_udp_address\":\"127.0.0.1\"", true},
        {"\"local_udp_port\":1081", false},
        {"\"local_udp_address\":\"127.0.0.2\"", false},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char file[512];
        struct reading *r;

        snprintf(file, sizeof file,
                 "{" SERVERS ",\"locals\":[{\"local_address\":\"127.0.0.1\",\"local_port\":1080,%s"
                 "}]}",
                 cases[i].local);
        reading_file(file);
        r = reading_begin(L, "-c c.json");
        assert_int_equal(r->good, cases[i].good);
        assert_int_equal(reading_count(r, "ERROR", "locals[0]: "), !cases[i].good);
        reading_end(r);
    }
}

static void a_tunnel_may_have_its_udp_elsewhere(void **state)
{
    struct reading *r;
    (void)state;

    reading_file("{" SERVERS ",\"locals\":[{\"protocol\":\"tunnel\",\"local_port\":1080,"
                 "\"local_udp_address\":\"127.0.0.2\",\"local_udp_port\":1081,"
                 "\"forward_address\":\"a.test\",\"forward_port\":53}]}");
    r = reading_begin(T, "-c c.json");
    assert_true(r->good);
    assert_string_equal(r->config.locals[0].udp_address, "127.0.0.2");
    assert_int_equal(r->config.locals[0].udp_port, 1081);
    reading_end(r);
}

/* What a client relays is one thing, what its servers take another. */
static void the_mode_of_a_client_is_not_that_of_its_servers(void **state)
{
    struct reading *r = reading_begin(L, LOCAL);
    (void)state;

    assert_int_equal(r->config.locals[0].mode, SS_MODE_TCP_ONLY);
    assert_int_equal(r->config.servers[0].mode, SS_MODE_TCP_AND_UDP);
    reading_end(r);
    r = reading_begin(S, "-p 8388 -k x");
    assert_int_equal(r->config.servers[0].mode, SS_MODE_TCP_ONLY);
    reading_end(r);
}

static void the_table_is_listed(void **state)
{
    static const enum ss_program programs[] = {L, S, T};
    (void)state;

    for (size_t i = 0; i < 3; i++) {
        char *text = NULL;
        size_t len = 0;
        FILE *out = open_memstream(&text, &len);
        json_t *list;
        bool timeout = false;

        assert_non_null(out);
        ss_settings_print(programs[i], out);
        fclose(out);
        list = json_loads(text, 0, NULL);
        assert_true(json_is_array(list) && json_array_size(list) > 30);
        for (size_t k = 0; k < json_array_size(list); k++) {
            const json_t *row = json_array_get(list, k);
            const char *key = json_string_value(json_object_get(row, "key"));

            assert_non_null(json_string_value(json_object_get(row, "kind")));
            if (key == NULL || strcmp(key, "udp_timeout") != 0)
                continue;
            timeout = true;
            assert_string_equal(json_string_value(json_object_get(row, "option")), "udp-timeout");
            assert_int_equal(json_integer_value(json_object_get(row, "min")), 1);
        }
        assert_true(timeout);
        json_decref(list);
        free(text);
    }
}

int udp_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_time_of_an_association_is_that_of_timeout),
        cmocka_unit_test(servers_have_room_for_more_associations),
        cmocka_unit_test(the_advertised_address_is_an_address),
        cmocka_unit_test(only_socks_clients_may_be_open),
        cmocka_unit_test(udp_of_a_socks_listener_is_where_its_tcp_is),
        cmocka_unit_test(a_tunnel_may_have_its_udp_elsewhere),
        cmocka_unit_test(the_mode_of_a_client_is_not_that_of_its_servers),
        cmocka_unit_test(the_table_is_listed),
    };

    return cmocka_run_group_tests_name("config: UDP", tests, NULL, NULL);
}
