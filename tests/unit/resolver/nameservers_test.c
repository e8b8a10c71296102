/* Lists of name servers, from a setting and from a resolv.conf. */
#include "resolver/nameservers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

static void assert_list(const struct ss_nameservers *servers, const char *list)
{
    char text[SS_NAMESERVERS_TEXT_MAX];

    ss_nameservers_format(servers, true, text);
    assert_string_equal(text, list);
}

static void lists_are_read_with_their_ports(void **state)
{
    static const struct {
        const char *list, *read;
    } cases[] = {
        {"127.0.0.1", "127.0.0.1:53"},
        {"127.0.0.1:5353", "127.0.0.1:5353"},
        {"::1", "[::1]:53"},
        {"[::1]:5353", "[::1]:5353"},
        {"[::1]", "[::1]:53"},
        {"127.0.0.1, ::1", "127.0.0.1:53,[::1]:53"},
        {"192.0.2.1:1,[2001:db8::1]:65535,192.0.2.2",
         "192.0.2.1:1,[2001:db8::1]:65535,192.0.2.2:53"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct ss_nameservers servers;

        assert_int_equal(ss_nameservers_read(&servers, cases[i].list), SS_OK);
        assert_list(&servers, cases[i].read);
    }
}

static void what_is_no_list_is_refused(void **state)
{
    static const char *const bad[] = {"",      ",",         ",1.1.1.1",        "name",
                                      "1.1.1", "1.1.1.1:0", "1.1.1.1:65536",   "1.1.1.1,name",
                                      "[::1",  "::1]:53",   "1.1.1.1;1.1.1.2", "[1.1.1.1:53"};
    char many[SS_NAMESERVERS_MAX * 8 + 16] = "1.1.1.1";
    struct ss_nameservers servers;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_int_equal(ss_nameservers_read(&servers, bad[i]), SS_ERR_ARGUMENT);
    for (int i = 1; i < SS_NAMESERVERS_MAX; i++)
        strcat(many, ",1.1.1.1");
    assert_int_equal(ss_nameservers_read(&servers, many), SS_OK);
    strcat(many, ",1.1.1.1");
    assert_int_equal(ss_nameservers_read(&servers, many), SS_ERR_ARGUMENT);
}

/* The text lies in memory of exactly its length, without a NUL. */
static void read_conf(struct ss_nameservers *servers, const char *text, size_t len)
{
    char *exact = malloc(len + (len == 0));

    assert_non_null(exact);
    memcpy(exact, text, len);
    ss_nameservers_read_resolv_conf(servers, exact, len);
    free(exact);
}

static void the_first_servers_of_a_resolv_conf_are_taken(void **state)
{
    static const struct {
        const char *text, *read;
    } cases[] = {
        {"", ""},
        {"\n\n", ""},
        {"nameserver 192.0.2.1", "192.0.2.1:53"},
        {"nameserver 192.0.2.1\n", "192.0.2.1:53"},
        {"nameserver\t192.0.2.1 \r\n", "192.0.2.1:53"},
        {"# nameserver 192.0.2.9\n;nameserver 192.0.2.9\nsearch corp.test\noptions ndots:5\n"
         "nameserver ::1#comment\nnameserver 192.0.2.1 more words\n",
         "[::1]:53,192.0.2.1:53"},
        {" nameserver 192.0.2.9\nnameservers 192.0.2.9\nnameserver192.0.2.9\nNAMESERVER 1.1.1.1\n",
         ""},
        {"nameserver name\nnameserver\nnameserver \nnameserver 1.2.3\nnameserver 192.0.2.1\n",
         "192.0.2.1:53"},
        {"nameserver 192.0.2.1\nnameserver 192.0.2.2\nnameserver 192.0.2.3\nnameserver 192.0.2.4\n",
         "192.0.2.1:53,192.0.2.2:53,192.0.2.3:53"},
        {"nameserver 127.0.0.1:5353\nnameserver [::1]:5353\n", "127.0.0.1:5353,[::1]:5353"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct ss_nameservers servers;

        read_conf(&servers, cases[i].text, strlen(cases[i].text));
        assert_list(&servers, cases[i].read);
    }
}

static void any_bytes_and_every_prefix_are_read_within_bounds(void **state)
{
    static const char text[] =
        "nameserver 1.1\0.1.1\nnameserver [2001:db8::1]:53 x\nnameserver \xff\n"
        "nameserver 111111111111111111111111111111111111111111111111111111"
        "11111111111111111111111111111111111111\nnameserver 192.0.2.1";
    struct ss_nameservers servers;

    (void)state;
    for (size_t len = 0; len < sizeof text; len++)
        read_conf(&servers, text, len);
    read_conf(&servers, text, sizeof text - 1);
    assert_list(&servers, "[2001:db8::1]:53,192.0.2.1:53");
}

static void a_zone_is_left_out_where_it_is_not_known(void **state)
{
    struct ss_nameservers servers;
    char text[SS_NAMESERVERS_TEXT_MAX];

    (void)state;
    assert_int_equal(ss_nameservers_read(&servers, "fe80::1%1,192.0.2.1"), SS_OK);
    assert_list(&servers, "[fe80::1%1]:53,192.0.2.1:53");
    ss_nameservers_format(&servers, false, text);
    assert_string_equal(text, "192.0.2.1:53");
}

static void lists_are_compared_with_order_port_and_zone(void **state)
{
    static const char *const lists[] = {
        "192.0.2.1",           "192.0.2.2", "192.0.2.1:54", "192.0.2.1,192.0.2.2",
        "192.0.2.2,192.0.2.1", "fe80::1%1", "fe80::1%2"};
    struct ss_nameservers a, b;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        for (size_t k = 0; k < COUNT_OF(lists); k++) {
            assert_int_equal(ss_nameservers_read(&a, lists[i]), SS_OK);
            assert_int_equal(ss_nameservers_read(&b, lists[k]), SS_OK);
            assert_int_equal(ss_nameservers_equal(&a, &b), i == k);
        }
    }
}

int nameservers_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_read_with_their_ports),
        cmocka_unit_test(what_is_no_list_is_refused),
        cmocka_unit_test(the_first_servers_of_a_resolv_conf_are_taken),
        cmocka_unit_test(any_bytes_and_every_prefix_are_read_within_bounds),
        cmocka_unit_test(a_zone_is_left_out_where_it_is_not_known),
        cmocka_unit_test(lists_are_compared_with_order_port_and_zone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
