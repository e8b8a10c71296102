/* The settings of ss-redir, and the mark of all programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "unit/config/reading.h"

#define R     SS_PROGRAM_REDIR
#define REDIR "-s 192.0.2.1 -p 8388 -l 1080 -k pw "

static void what_it_can_not_do_without_is_asked_for(void **state)
{
    static const char *const lines[] = {"-p 8388 -l 1080 -k pw", "-s 192.0.2.1 -l 1080 -k pw",
                                        "-s 192.0.2.1 -p 8388 -k pw",
                                        "-s 192.0.2.1 -p 8388 -l 1080"};
    (void)state;

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct reading *r = reading_begin(R, lines[i]);

        assert_false(r->good);
        assert_int_equal(r->exit_code, 1);
        reading_end(r);
    }
}

static void its_time_out_is_longer(void **state)
{
    struct reading *r = reading_begin(R, REDIR);
    (void)state;

    assert_true(r->good);
    assert_int_equal(r->config.timeout_s, 600);
    assert_int_equal(r->config.udp_timeout_s, 600);
    assert_false(r->config.locals[0].tproxy);
    reading_end(r);
}

static void every_address_is_listened_on(void **state)
{
    struct reading *r = reading_begin(R, REDIR "-b 0.0.0.0 -b :: -T -u");
    (void)state;

    assert_true(r->good);
    assert_int_equal(r->config.local_count, 2);
    assert_string_equal(r->config.locals[0].address, "0.0.0.0");
    assert_string_equal(r->config.locals[1].address, "::");
    for (size_t i = 0; i < 2; i++) {
        assert_true(r->config.locals[i].tproxy);
        assert_int_equal(r->config.locals[i].port, 1080);
        assert_int_equal(r->config.locals[i].mode, SS_MODE_TCP_AND_UDP);
    }
    reading_end(r);
}

static void dscp_ports_stand_beside_each_address(void **state)
{
    struct reading *r;
    (void)state;

    reading_file("{\"dscp\": {\"1081\": \"ef\", \"1082\": \"AF41\", \"1083\": \"0x0b\", "
                 "\"1084\": \"CS8\", \"1085\": 63}}");
    r = reading_begin(R, REDIR "-c c.json -b 127.0.0.1 -b ::1");
    assert_true(r->good);
    assert_int_equal(r->config.local_count, 12);
    assert_int_equal(r->config.locals[1].dscp, 0);
    for (size_t i = 2; i < 12; i++) {
        static const uint8_t values[] = {46, 34, 11, 0, 63};

        assert_int_equal(r->config.locals[i].port, 1081 + (i - 2) / 2);
        assert_int_equal(r->config.locals[i].dscp, values[(i - 2) / 2]);
        assert_string_equal(r->config.locals[i].address, i % 2 == 0 ? "127.0.0.1" : "::1");
    }
    assert_int_equal(reading_count(r, "ERROR", "Invalid DSCP value (CS8)"), 1);
    reading_end(r);
}

static void dscp_of_another_type_is_refused(void **state)
{
    static const char *const texts[] = {"{\"dscp\": []}", "{\"dscp\": {\"0\": \"EF\"}}",
                                        "{\"dscp\": {\"1081\": 64}}", "{\"dscp\": {\"1081\": []}}",
                                        "{\"dscp\": 5}"};
    (void)state;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct reading *r;

        reading_file(texts[i]);
        r = reading_begin(R, REDIR "-c c.json");
        assert_false(r->good);
        assert_int_equal(r->exit_code, 255);
        assert_int_equal(reading_count(r, "ERROR", "dscp"), 1);
        reading_end(r);
    }
}

static void at_most_64_dscp_ports(void **state)
{
    char text[70 * 16 + 64];
    size_t used = (size_t)snprintf(text, sizeof text, "{\"dscp\": {");
    struct reading *r;
    (void)state;

    for (int i = 0; i < 70; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s\"%d\": \"EF\"", i ? "," : "",
                                 2000 + i);
    snprintf(text + used, sizeof text - used, "}}");
    reading_file(text);
    r = reading_begin(R, REDIR "-c c.json");
    assert_true(r->good);
    assert_int_equal(r->config.local_count, 65);
    assert_int_equal(reading_count(r, "WARN", "dscp"), 6);
    reading_end(r);
}

static void an_extended_file_says_how_tcp_comes(void **state)
{
    struct reading *r;
    (void)state;

    reading_file("{\"servers\": [{\"server\": \"192.0.2.1\", \"server_port\": 8388, \"method\": "
                 "\"aes-256-gcm\", \"password\": \"pw\"}], \"tcp_tproxy\": true, \"locals\": ["
                 "{\"protocol\": \"socks\", \"local_port\": 1079},"
                 "{\"protocol\": \"redir\", \"local_port\": 1080, \"tcp_redir\": \"redirect\"},"
                 "{\"protocol\": \"redir\", \"local_port\": 1081, \"tcp_redir\": \"tproxy\", "
                 "\"udp_redir\": \"tproxy\", \"local_udp_port\": 1082, \"mode\": \"tcp_and_udp\"},"
                 "{\"protocol\": \"redir\", \"local_port\": 1083}]}");
    r = reading_begin(R, "-c c.json");
    assert_true(r->good);
    assert_int_equal(r->config.local_count, 3);
    assert_false(r->config.locals[0].tproxy);
    assert_true(r->config.locals[1].tproxy);
    assert_int_equal(r->config.locals[1].udp_port, 1082);
    assert_true(r->config.locals[2].tproxy);
    reading_end(r);

    reading_file("{\"server\": \"192.0.2.1\", \"server_port\": 8388, \"password\": \"pw\", "
                 "\"locals\": [{\"protocol\": \"redir\", \"local_port\": 1080, "
                 "\"tcp_redir\": \"dnat\"}]}");
    r = reading_begin(R, "-c c.json");
    assert_false(r->good);
    assert_int_equal(reading_count(r, "ERROR", "'tcp_redir' must be \"redirect\" or \"tproxy\""),
                     1);
    reading_end(r);
}

static uint32_t mark_of(const char *line)
{
    struct reading *r = reading_begin(SS_PROGRAM_LOCAL, line);
    uint32_t mark = r->good ? r->config.outbound_fwmark : 99999;

    reading_end(r);
    return mark;
}

static void a_mark_in_either_form_and_by_either_name(void **state)
{
    (void)state;
    assert_int_equal(mark_of(REDIR), 0);
    assert_int_equal(mark_of(REDIR "--outbound-fwmark 255"), 255);
    assert_int_equal(mark_of(REDIR "--outbound-fwmark=0xff"), 255);
    assert_int_equal(mark_of(REDIR "--fwmark 0XFF"), 255);
    assert_int_equal(mark_of(REDIR "--fwmark 1 --outbound-fwmark 2"), 2);
    assert_int_equal(mark_of(REDIR "--fwmark 4294967295"), UINT32_MAX);
    assert_int_equal(mark_of(REDIR "--fwmark 0x1ffffffff"), 99999);
    assert_int_equal(mark_of(REDIR "--fwmark x"), 99999);
    reading_file("{\"outbound_fwmark\": 255}");
    assert_int_equal(mark_of(REDIR "-c c.json"), 255);
    assert_int_equal(mark_of(REDIR "-c c.json --fwmark 7"), 7);
    reading_file("{\"outbound_fwmark\": \"0xff\"}");
    assert_int_equal(mark_of(REDIR "-c c.json"), 255);
}

int redir_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_it_can_not_do_without_is_asked_for),
        cmocka_unit_test(its_time_out_is_longer),
        cmocka_unit_test(every_address_is_listened_on),
        cmocka_unit_test(dscp_ports_stand_beside_each_address),
        cmocka_unit_test(dscp_of_another_type_is_refused),
        cmocka_unit_test(at_most_64_dscp_ports),
        cmocka_unit_test(an_extended_file_says_how_tcp_comes),
        cmocka_unit_test(a_mark_in_either_form_and_by_either_name),
    };

    return cmocka_run_group_tests_name("config: redir", tests, NULL, NULL);
}
