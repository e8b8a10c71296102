/* Addresses, endpoints and host names as text. */
#include "base/addr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <net/if.h>

static struct ss_ip ip(const char *text)
{
    struct ss_ip parsed;

    memset(&parsed, 0xff, sizeof parsed);
    if (ss_ip_parse(&parsed, text) != SS_OK)
        fail_msg("refused: %s", text);
    return parsed;
}

static void addresses_are_read_and_written_in_the_shortest_form(void **state)
{
    static const struct {
        const char *text;
        const char *shortest;
    } cases[] = {
        {"127.0.0.1", "127.0.0.1"},
        {"0.0.0.0", "0.0.0.0"},
        {"255.255.255.255", "255.255.255.255"},
        {"::", "::"},
        {"::1", "::1"},
        {"2001:db8::1", "2001:db8::1"},
        {"2001:DB8:0:0:0:0:0:1", "2001:db8::1"},
        {"2001:0db8:0000:0000:0001:0000:0000:0001", "2001:db8::1:0:0:1"},
        {"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"}, /* one group of zeros is written out */
        {"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"},
        {"::ffff:192.0.2.1", "::ffff:192.0.2.1"},
        {"::ffff:c000:201", "::ffff:192.0.2.1"},
        {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
        {"fe80::1%7", "fe80::1%7"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[SS_IP_TEXT_MAX];
        struct ss_ip parsed = ip(cases[i].text);

        assert_string_equal(ss_ip_format(&parsed, text), cases[i].shortest);
    }
}

static void bytes_of_an_address_are_in_network_order(void **state)
{
    static const uint8_t v4[] = {192, 0, 2, 1};
    static const uint8_t v6[] = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, 0x34};
    struct ss_ip parsed = ip("192.0.2.1");

    (void)state;
    assert_int_equal(parsed.family, SS_FAMILY_IPV4);
    assert_memory_equal(parsed.bytes, v4, 4);
    assert_int_equal(parsed.scope, 0);
    parsed = ip("2001:db8::1234");
    assert_int_equal(parsed.family, SS_FAMILY_IPV6);
    assert_memory_equal(parsed.bytes, v6, 16);
    assert_int_equal(parsed.scope, 0);
}

static void what_is_no_address_is_refused(void **state)
{
    static const char *const refused[] = {
        "",
        " ",
        "127.0.0.1 ",
        " 127.0.0.1",
        "127.1",
        "127.0.1",
        "1.2.3.4.5",
        "1.2.3.",
        "1.2.3.256",
        "1.2.3.-1",
        "1.2.3.+4",
        "1..3.4",
        "01.2.3.4",
        "010.0.0.1",
        "0x7f.0.0.1",
        "2130706433",
        "127.0.0.1%lo",
        "127.0.0.1%1",
        "127.0.0.1:80",
        "[::1]",
        ":",
        ":::",
        "1::2::3",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "12345::",
        "g::1",
        "::1.2.3",
        "::1.2.3.04",
        "::1%",
        "::1%0",
        "::1%4294967296",
        "::1%99999999999999999999",
        "::1%no-such-zone",
        "::1%a-name-that-is-longer-than-any-interface-may-have",
        "%1",
        "localhost",
        "1111:1111:1111:1111:1111:1111:1111:1111:1111:1111:1111:1111:1111:1111:1111:1111",
    };

    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct ss_ip parsed = {.family = 99};

        if (ss_ip_parse(&parsed, refused[i]) != SS_ERR_FORMAT)
            fail_msg("not refused: %s", refused[i]);
        assert_int_equal(parsed.family, 99);
    }
}

static void a_zone_is_a_number_or_an_interface(void **state)
{
    char name[IF_NAMESIZE];
    char text[IF_NAMESIZE + 16] = "fe80::1%";

    (void)state;
    assert_int_equal(ip("fe80::1%4294967295").scope, UINT32_MAX);
    if (if_indextoname(1, name) == NULL)
        skip();
    strcat(text, name);
    assert_int_equal(ip(text).scope, 1);
}

static void an_address_with_a_port_has_brackets_only_when_it_has_colons(void **state)
{
    char text[SS_ADDR_TEXT_MAX];
    struct ss_addr addr = {.ip = ip("192.0.2.1"), .port = 80};

    (void)state;
    assert_string_equal(ss_addr_format(&addr, text), "192.0.2.1:80");
    addr.ip = ip("2001:db8::1");
    addr.port = 65535;
    assert_string_equal(ss_addr_format(&addr, text), "[2001:db8::1]:65535");
    addr.ip = ip("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%4294967295");
    assert_string_equal(ss_addr_format(&addr, text),
                        "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%4294967295]:65535");
    addr = (struct ss_addr){.port = 0};
    assert_string_equal(ss_addr_format(&addr, text), "?:0");
}

static void only_mapped_addresses_are_unmapped(void **state)
{
    static const char *const others[] = {"::",
                                         "::1",
                                         "::192.0.2.1",
                                         "::fffe:192.0.2.1",
                                         "::ffff:0:192.0.2.1",
                                         "1::ffff:192.0.2.1",
                                         "192.0.2.1"};
    struct ss_ip mapped = ip("::ffff:192.0.2.1");
    struct ss_ip plain = ip("192.0.2.1");

    (void)state;
    ss_ip_unmap(&mapped);
    assert_memory_equal(&mapped, &plain, sizeof plain);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct ss_ip before = ip(others[i]);
        struct ss_ip after = before;

        ss_ip_unmap(&after);
        assert_memory_equal(&after, &before, sizeof before);
    }
}

static void equality_counts_family_bytes_and_zone(void **state)
{
    struct ss_ip v4 = ip("192.0.2.1");
    struct ss_ip none = {0};
    struct ss_ip v6 = ip("fe80::1%2");
    struct ss_ip other;

    (void)state;
    other = v4;
    memset(other.bytes + 4, 0xaa, 12); /* bytes that do not count */
    assert_true(ss_ip_equal(&v4, &other));
    other.bytes[3] = 2;
    assert_false(ss_ip_equal(&v4, &other));
    assert_false(ss_ip_equal(&v4, &v6));
    other = v6;
    assert_true(ss_ip_equal(&v6, &other));
    other.scope = 3;
    assert_false(ss_ip_equal(&v6, &other));
    other = v6;
    other.bytes[15] ^= 1;
    assert_false(ss_ip_equal(&v6, &other));
    assert_false(ss_ip_equal(&none, &v4));
    assert_true(ss_ip_equal(&none, &none));
}

static void any_address_is_all_zero(void **state)
{
    struct ss_ip none = {0};
    struct ss_ip addr = ip("0.0.0.0");

    (void)state;
    assert_true(ss_ip_is_any(&addr));
    addr = ip("::");
    assert_true(ss_ip_is_any(&addr));
    addr = ip("::1");
    assert_false(ss_ip_is_any(&addr));
    addr = ip("0.0.0.1");
    assert_false(ss_ip_is_any(&addr));
    assert_false(ss_ip_is_any(&none));
}

static void endpoints_are_split_as_the_classic_suite_does(void **state)
{
    static const struct {
        const char *text;
        const char *host;
        uint16_t port;
    } cases[] = {
        {"example.test", "example.test", 0},
        {"example.test:80", "example.test", 80},
        {"example.test:65535", "example.test", 65535},
        {"example.test:1", "example.test", 1},
        {"1.2.3.4", "1.2.3.4", 0},
        {"1.2.3.4:8388", "1.2.3.4", 8388},
        {"::1", "::1", 0},
        {"::", "::", 0},
        {"2001:db8::1:80", "2001:db8::1:80", 0}, /* an address as a whole */
        {"[::1]", "::1", 0},
        {"[::1]:443", "::1", 443},
        {"[fe80::1%7]:443", "fe80::1%7", 443},
        {"fe80::1%no-such-zone", "fe80::1%no-such-zone", 0},
        {"[example.test]:80", "example.test", 80},
        {"a_name-.test.:00080", "a_name-.test.", 80},
        {"80", "80", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ss_endpoint endpoint;

        if (ss_endpoint_parse(&endpoint, cases[i].text) != SS_OK)
            fail_msg("refused: %s", cases[i].text);
        assert_string_equal(endpoint.host, cases[i].host);
        assert_int_equal(endpoint.port, cases[i].port);
    }
}

static void what_is_no_endpoint_is_refused(void **state)
{
    static const char *const refused[] = {
        "",          ":80",     "[]:80",       "[]",
        "host:",     "host:0",  "host:65536",  "host:80x",
        "host:-1",   "host:+1", "host: 80",    "host:4294967376",
        "[::1]:",    "[::1]:0", "[::1",        "[::1]80",
        "::1]:80",   "[[::1]]", "[::1]:80:90", "ho st:80",
        "host\n:80", " host",   "host\x7f",    "ho\tst:80",
        "[",         "]",       ":",           "]:80",
    };

    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct ss_endpoint endpoint = {.port = 4242};

        if (ss_endpoint_parse(&endpoint, refused[i]) != SS_ERR_FORMAT)
            fail_msg("not refused: %s", refused[i]);
        assert_int_equal(endpoint.port, 4242);
    }
}

static void a_host_of_an_endpoint_has_at_most_255_bytes(void **state)
{
    char text[SS_HOST_MAX + 8];
    struct ss_endpoint endpoint;

    (void)state;
    memset(text, 'h', sizeof text);
    memcpy(text + SS_HOST_MAX, ":80", 4);
    assert_int_equal(ss_endpoint_parse(&endpoint, text), SS_OK);
    assert_int_equal(strlen(endpoint.host), SS_HOST_MAX);
    assert_int_equal(endpoint.port, 80);
    memcpy(text + SS_HOST_MAX, "h:80", 5);
    assert_int_equal(ss_endpoint_parse(&endpoint, text), SS_ERR_FORMAT);
    memcpy(text + SS_HOST_MAX, "h", 2);
    assert_int_equal(ss_endpoint_parse(&endpoint, text), SS_ERR_FORMAT);
}

static void names_that_a_resolver_takes_are_valid(void **state)
{
    static const char *const valid[] = {
        "a",
        "example.test",
        "EXAMPLE.Test",
        "example.test.",
        "_dmarc.example.test",
        "1and1.example",
        "-dash-.example",
        "a_b",
        "123",
        "xn--nxasmq6b.example",
        "1.2.3.4",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.63",
    };
    static const char *const invalid[] = {
        "",
        ".",
        "..",
        ".a",
        "a..b",
        "a..",
        "a b",
        " a",
        "a ",
        "a\tb",
        "a\n",
        "a\x7f",
        "a\x80",
        "\xc3\xbc.example",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.64",
        "b.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    };

    (void)state;
    for (size_t i = 0; i < sizeof valid / sizeof valid[0]; i++)
        if (!ss_host_is_valid(valid[i], strlen(valid[i])))
            fail_msg("refused: %s", valid[i]);
    for (size_t i = 0; i < sizeof invalid / sizeof invalid[0]; i++)
        if (ss_host_is_valid(invalid[i], strlen(invalid[i])))
            fail_msg("not refused: %s", invalid[i]);
    assert_false(ss_host_is_valid("a\0b", 3));
    assert_true(ss_host_is_valid("ab", 1)); /* only what the length says */
}

static void a_name_has_at_most_255_bytes(void **state)
{
    char name[SS_HOST_MAX + 1];

    (void)state;
    for (size_t i = 0; i < sizeof name; i++)
        name[i] = i % 4 == 3 ? '.' : 'a';
    assert_true(ss_host_is_valid(name, SS_HOST_MAX));
    assert_false(ss_host_is_valid(name, SS_HOST_MAX + 1));
}

int addr_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_read_and_written_in_the_shortest_form),
        cmocka_unit_test(bytes_of_an_address_are_in_network_order),
        cmocka_unit_test(what_is_no_address_is_refused),
        cmocka_unit_test(a_zone_is_a_number_or_an_interface),
        cmocka_unit_test(an_address_with_a_port_has_brackets_only_when_it_has_colons),
        cmocka_unit_test(only_mapped_addresses_are_unmapped),
        cmocka_unit_test(equality_counts_family_bytes_and_zone),
        cmocka_unit_test(any_address_is_all_zero),
        cmocka_unit_test(endpoints_are_split_as_the_classic_suite_does),
        cmocka_unit_test(what_is_no_endpoint_is_refused),
        cmocka_unit_test(a_host_of_an_endpoint_has_at_most_255_bytes),
        cmocka_unit_test(names_that_a_resolver_takes_are_valid),
        cmocka_unit_test(a_name_has_at_most_255_bytes),
    };

    return cmocka_run_group_tests_name("addr", tests, NULL, NULL);
}
