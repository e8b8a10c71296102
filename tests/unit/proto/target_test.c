/* Targets: what is refused, what a name may be, and how targets look in logs. */
#include "proto/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct ss_target target_of(const char *host, uint16_t port)
{
    struct ss_target target;

    memset(&target, 0xff, sizeof target);
    if (ss_target_from_host(&target, host, port) != SS_OK)
        fail_msg("refused: %s", host);
    return target;
}

static void what_follows_a_target_is_left(void **state)
{
    static const uint8_t wire[] = {3, 2, 'a', 'b', 0x12, 0x34, 'r', 'e', 's', 't'};
    struct ss_reader in = {wire, sizeof wire};
    struct ss_target target;

    (void)state;
    assert_int_equal(ss_target_read(&in, &target), SS_OK);
    assert_string_equal(target.name, "ab");
    assert_int_equal(target.port, 0x1234);
    assert_ptr_equal(in.ptr, wire + 6);
    assert_int_equal(in.len, 4);
}

static void only_three_address_types_are_known(void **state)
{
    (void)state;
    for (int atyp = 0; atyp < 256; atyp++) {
        uint8_t wire[300] = {0};
        struct ss_reader whole = {wire, sizeof wire};
        struct ss_reader first = {wire, 1};
        struct ss_target target;
        bool known = atyp == 1 || atyp == 3 || atyp == 4;

        wire[0] = (uint8_t)atyp;
        wire[1] = 'a'; /* as a length, 97 */
        memset(wire + 2, 'a', 97);
        assert_int_equal(ss_target_read(&whole, &target), known ? SS_OK : SS_ERR_FORMAT);
        /* One that is unknown is refused at once: how much more would come? */
        assert_int_equal(ss_target_read(&first, &target), known ? SS_NEED_INPUT : SS_ERR_FORMAT);
    }
}

static void a_failed_read_leaves_the_target_alone(void **state)
{
    static const uint8_t wire[] = {3, 3, 'a', ' ', 'b', 0, 80};
    struct ss_reader in = {wire, sizeof wire};
    struct ss_target target, before;

    (void)state;
    memset(&target, 0x5a, sizeof target);
    before = target;
    assert_int_equal(ss_target_read(&in, &target), SS_ERR_FORMAT);
    in.len = 4;
    assert_int_equal(ss_target_read(&in, &target), SS_NEED_INPUT);
    assert_memory_equal(&target, &before, sizeof target);
}

static void a_name_holds_any_byte_but_blanks_and_control_bytes(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        for (int at = 0; at < 3; at++) {
            uint8_t wire[7] = {3, 3, 'a', 'b', 'c', 0, 80};
            struct ss_reader in = {wire, sizeof wire};
            struct ss_target target;
            char text[4] = "abc";

            wire[2 + at] = (uint8_t)c;
            assert_int_equal(ss_target_read(&in, &target),
                             c <= ' ' || c == 0x7f ? SS_ERR_FORMAT : SS_OK);
            text[at] = (char)c;
            if (c != 0)
                assert_int_equal(ss_target_from_host(&target, text, 80),
                                 c <= ' ' || c == 0x7f ? SS_ERR_FORMAT : SS_OK);
        }
    }
}

static void names_need_not_follow_the_rules_of_host_names(void **state)
{
    /* Whether they exist is the resolver's to say. */
    static const char *const names[] = {"_srv._tcp.example.test",
                                        "1st.example",
                                        "example.test.",
                                        "UPPER.example",
                                        "a..b",
                                        "-a-",
                                        "[::1]",
                                        "127.1"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct ss_target target = target_of(names[i], 1);

        assert_int_equal(target.atyp, SS_ATYP_NAME);
        assert_string_equal(target.name, names[i]);
    }
}

static void a_host_may_be_as_long_as_the_wire_allows(void **state)
{
    char host[SS_HOST_MAX + 2];
    uint8_t wire[SS_TARGET_MAX];
    struct ss_writer out = {wire, sizeof wire};
    struct ss_target target;

    (void)state;
    memset(host, 'h', sizeof host);
    host[SS_HOST_MAX] = '\0';
    target = target_of(host, 65535);
    assert_int_equal(ss_target_write(&out, &target), SS_OK);
    assert_int_equal(out.len, 0); /* SS_TARGET_MAX is the longest */
    host[SS_HOST_MAX] = 'h';
    host[SS_HOST_MAX + 1] = '\0';
    assert_int_equal(ss_target_from_host(&target, host, 1), SS_ERR_FORMAT);
    assert_int_equal(ss_target_from_host(&target, "", 1), SS_ERR_FORMAT);
}

static void a_zone_is_sent_as_written(void **state)
{
    struct ss_target target = target_of("fe80::1%7", 22);
    struct ss_ip ip;

    (void)state;
    assert_int_equal(target.atyp, SS_ATYP_NAME);
    assert_true(ss_target_ip(&target, &ip));
    assert_int_equal(ip.family, SS_FAMILY_IPV6);
    assert_int_equal(ip.scope, 7);
    target = target_of("fe80::1%no-such-zone", 22);
    assert_int_equal(target.atyp, SS_ATYP_NAME);
    assert_false(ss_target_ip(&target, &ip));
}

static void too_little_room_is_told_and_nothing_is_written(void **state)
{
    static const char *const hosts[] = {"192.0.2.1", "2001:db8::1", "example.test"};
    static const size_t lens[] = {7, 19, 16};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct ss_target target = target_of(hosts[i], 80);
        uint8_t wire[32];

        for (size_t room = 0; room <= lens[i]; room++) {
            struct ss_writer out = {wire, room};

            assert_int_equal(ss_target_write(&out, &target), room < lens[i] ? SS_NEED_ROOM : SS_OK);
            assert_ptr_equal(out.ptr, room < lens[i] ? wire : wire + lens[i]);
            assert_int_equal(out.len, room < lens[i] ? room : 0);
        }
    }
}

static void what_is_no_target_is_not_written(void **state)
{
    uint8_t wire[32];
    struct ss_writer out = {wire, sizeof wire};
    struct ss_target target = {.atyp = 0};

    (void)state;
    assert_int_equal(ss_target_write(&out, &target), SS_ERR_ARGUMENT);
    target.atyp = SS_ATYP_NAME; /* without a name */
    assert_int_equal(ss_target_write(&out, &target), SS_ERR_ARGUMENT);
    assert_int_equal(out.len, sizeof wire);
}

static void an_address_becomes_its_target(void **state)
{
    struct ss_addr addr = {.port = 53};
    struct ss_target target;
    char text[SS_TARGET_TEXT_MAX];

    (void)state;
    assert_int_equal(ss_ip_parse(&addr.ip, "192.0.2.1"), SS_OK);
    ss_target_from_addr(&target, &addr);
    assert_string_equal(ss_target_format(&target, text), "192.0.2.1:53");
    assert_int_equal(ss_ip_parse(&addr.ip, "2001:db8::1"), SS_OK);
    ss_target_from_addr(&target, &addr);
    assert_string_equal(ss_target_format(&target, text), "[2001:db8::1]:53");
    addr.ip = (struct ss_ip){0};
    memset(addr.ip.bytes, 0xff, sizeof addr.ip.bytes);
    ss_target_from_addr(&target, &addr);
    assert_string_equal(ss_target_format(&target, text), "0.0.0.0:53");
}

static void a_name_that_is_the_text_of_an_address_is_that_address(void **state)
{
    static const struct {
        const char *name;
        const char *address; /* NULL: it is none */
    } cases[] = {
        {"192.0.2.1", "192.0.2.1"},     {"::1", "::1"},       {"::ffff:192.0.2.1", "192.0.2.1"},
        {"2001:DB8::1", "2001:db8::1"}, {"192.0.2.1.", NULL}, {"192.0.2", NULL},
        {"0x7f000001", NULL},           {"[::1]", NULL},      {"example.test", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ss_target target = {.atyp = SS_ATYP_NAME};
        struct ss_ip ip;
        char text[SS_IP_TEXT_MAX];

        strcpy(target.name, cases[i].name);
        assert_int_equal(ss_target_ip(&target, &ip), cases[i].address != NULL);
        if (cases[i].address != NULL)
            assert_string_equal(ss_ip_format(&ip, text), cases[i].address);
    }
}

static void a_mapped_address_counts_as_ipv4_and_is_written_as_it_came(void **state)
{
    struct ss_target target = target_of("::ffff:192.0.2.1", 80);
    struct ss_ip ip;
    char text[SS_TARGET_TEXT_MAX];

    (void)state;
    assert_int_equal(target.atyp, SS_ATYP_IPV6);
    assert_true(ss_target_ip(&target, &ip));
    assert_string_equal(ss_ip_format(&ip, text), "192.0.2.1");
    assert_string_equal(ss_target_format(&target, text), "[::ffff:192.0.2.1]:80");
}

static void the_text_of_a_target_shows_where_the_port_begins(void **state)
{
    char text[SS_TARGET_TEXT_MAX];
    char host[SS_HOST_MAX + 1];
    struct ss_target target = target_of("example.test", 443);

    (void)state;
    assert_string_equal(ss_target_format(&target, text), "example.test:443");
    target = (struct ss_target){.atyp = SS_ATYP_NAME, .port = 65535, .name = "::1"};
    assert_string_equal(ss_target_format(&target, text), "[::1]:65535");
    memset(host, ':', SS_HOST_MAX);
    host[SS_HOST_MAX] = '\0';
    target = target_of(host, 65535);
    assert_int_equal(strlen(ss_target_format(&target, text)), SS_HOST_MAX + 2 + 6);
}

int target_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_follows_a_target_is_left),
        cmocka_unit_test(only_three_address_types_are_known),
        cmocka_unit_test(a_failed_read_leaves_the_target_alone),
        cmocka_unit_test(a_name_holds_any_byte_but_blanks_and_control_bytes),
        cmocka_unit_test(names_need_not_follow_the_rules_of_host_names),
        cmocka_unit_test(a_host_may_be_as_long_as_the_wire_allows),
        cmocka_unit_test(a_zone_is_sent_as_written),
        cmocka_unit_test(too_little_room_is_told_and_nothing_is_written),
        cmocka_unit_test(what_is_no_target_is_not_written),
        cmocka_unit_test(an_address_becomes_its_target),
        cmocka_unit_test(a_name_that_is_the_text_of_an_address_is_that_address),
        cmocka_unit_test(a_mapped_address_counts_as_ipv4_and_is_written_as_it_came),
        cmocka_unit_test(the_text_of_a_target_shows_where_the_port_begins),
    };

    return cmocka_run_group_tests_name("target", tests, NULL, NULL);
}
