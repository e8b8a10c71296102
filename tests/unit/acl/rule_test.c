/* Lines of lists: what each is taken for. */
#include "acl/rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "acl/names.h"

static struct acl_rule rule;

static enum acl_rule_kind kind_of(const char *line)
{
    memset(&rule, 0xff, sizeof rule);
    acl_rule_read(&rule, line, strlen(line));
    return rule.kind;
}

static void assert_kind(const char *line, enum acl_rule_kind kind)
{
    if (kind_of(line) != kind)
        fail_msg("'%s' is of kind %d, not %d", line, rule.kind, kind);
}

static void a_comment_begins_at_any_number_sign_but_an_escaped_one(void **state)
{
    (void)state;
    assert_kind("", ACL_RULE_NONE);
    assert_kind(" \t\r", ACL_RULE_NONE);
    assert_kind("# [bypass_all]", ACL_RULE_NONE);
    assert_kind("  # x", ACL_RULE_NONE);
    assert_kind("[bypass_list]# x", ACL_RULE_SECTION);
    assert_kind("10.0.0.1#x", ACL_RULE_NETWORK);
    assert_kind(" 10.0.0.1\t# \xc3\xa4\r", ACL_RULE_NETWORK);
    assert_kind("a\\#b", ACL_RULE_PATTERN);
    assert_string_equal(rule.text, "a\\#b");
    assert_kind("a\\\\#b", ACL_RULE_PATTERN);
    assert_string_equal(rule.text, "a\\\\");
}

static void sections_and_modes_have_two_names_each(void **state)
{
    static const struct {
        const char *line;
        enum acl_rule_kind kind;
        enum acl_list list;
        bool mode_on;
    } cases[] = {
        {"[bypass_list]", ACL_RULE_SECTION, ACL_BLACK, false},
        {"[black_list]", ACL_RULE_SECTION, ACL_BLACK, false},
        {"[proxy_list]", ACL_RULE_SECTION, ACL_WHITE, false},
        {"[white_list]", ACL_RULE_SECTION, ACL_WHITE, false},
        {"[outbound_block_list]", ACL_RULE_SECTION, ACL_BLOCK, false},
        {"[outbound_allow_list]", ACL_RULE_SECTION, ACL_ALLOW, false},
        {"  [Black_List]  ", ACL_RULE_SECTION, ACL_BLACK, false},
        {"[proxy_all]", ACL_RULE_CLIENT_MODE, ACL_BLACK, false},
        {"[accept_all]", ACL_RULE_CLIENT_MODE, ACL_BLACK, false},
        {"[bypass_all]", ACL_RULE_CLIENT_MODE, ACL_BLACK, true},
        {"[reject_all]\r", ACL_RULE_CLIENT_MODE, ACL_BLACK, true},
        {"[outbound_allow_all]", ACL_RULE_TARGET_MODE, ACL_BLOCK, false},
        {"[outbound_block_all]", ACL_RULE_TARGET_MODE, ACL_BLOCK, true},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_kind(cases[i].line, cases[i].kind);
        assert_int_equal(rule.list, cases[i].list);
        assert_int_equal(rule.mode_on, cases[i].mode_on);
    }
    assert_kind("[black_lists]", ACL_RULE_BAD_SECTION);
    assert_kind("[nosuch]", ACL_RULE_BAD_SECTION);
    assert_kind("[]", ACL_RULE_BAD_SECTION);
    assert_kind("[", ACL_RULE_PATTERN);
    assert_kind("[a-z]", ACL_RULE_PATTERN);
    assert_kind("[bypass_list] x", ACL_RULE_PATTERN);
}

static void addresses_and_networks(void **state)
{
    static const struct {
        const char *line, *ip;
        unsigned prefix;
    } cases[] = {
        {"192.0.2.1", "192.0.2.1", 32},
        {"192.0.2.77/24", "192.0.2.77", 24},
        {"0.0.0.0/0", "0.0.0.0", 0},
        {"192.0.2.0 /24", "192.0.2.0", 24},
        {"2001:db8::/32", "2001:db8::", 32},
        {"::1", "::1", 128},
        {"::/0", "::", 0},
        {"::ffff:192.0.2.1", "192.0.2.1", 32},
        {"::ffff:10.0.0.0/104", "10.0.0.0", 8},
        {"::ffff:0:0/96", "0.0.0.0", 0},
        {"::ffff:10.0.0.0/95", "::ffff:10.0.0.0", 95},
    };
    char text[SS_IP_TEXT_MAX];
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_kind(cases[i].line, ACL_RULE_NETWORK);
        assert_string_equal(ss_ip_format(&rule.ip, text), cases[i].ip);
        assert_int_equal(rule.prefix, cases[i].prefix);
    }
}

static void what_was_meant_for_an_address_is_no_pattern(void **state)
{
    static const char *const lines[] = {
        "127.0.0.0/abc",
        "127.0.0.1/33",
        "127.0.0.1/",
        "127.0.0.1/8/8",
        "127.0.0.1/-1",
        "127.0.0.1/+8",
        "127.0.0.1/1e1",
        "127.0.0.1/0008",
        "127.0.0.1/256",
        "127.0.0.1/4294967304",
        "::1/129",
        "::1/x",
        "10.0.0",
        "10.0.0/24",
        "10.0.0.300",
        "10.0.0.0.0/8",
        "010.0.0.1",
        "10.0.0.1-10.0.0.9",
        "10.0.0.1, 10.0.0.2",
        "10.0.0.1:80",
        "10.*.*.*",
        "192.168.0.*",
        "[::1]",
        "[::1]/128",
        "fe80::1%1",
        "fe80::1%eth0/64",
        "2001:db8::/32,",
        "1:2:3:4:5:6:7:8:9",
        "||10.0.0.1",
        "|10.0.0.1.",
    };
    (void)state;

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        assert_kind(lines[i], ACL_RULE_BAD_ADDRESS);
}

static void assert_name(const char *line, const char *name, unsigned covers)
{
    assert_kind(line, ACL_RULE_NAME);
    assert_string_equal(rule.name, name);
    assert_int_equal(rule.covers, covers);
}

static void names_behind_bars(void **state)
{
    (void)state;
    assert_name("||example.com", "example.com", ACL_ITSELF | ACL_BELOW);
    assert_name("|example.com", "example.com", ACL_ITSELF);
    assert_name("||Example.COM.", "example.com", ACL_ITSELF | ACL_BELOW);
    assert_name("||com", "com", ACL_ITSELF | ACL_BELOW);
    assert_name("|xn--bcher-kva.example", "xn--bcher-kva.example", ACL_ITSELF);
    assert_name("||_dmarc.example.com", "_dmarc.example.com", ACL_ITSELF | ACL_BELOW);
    assert_kind("|", ACL_RULE_BAD);
    assert_kind("||", ACL_RULE_BAD);
    assert_kind("||.", ACL_RULE_BAD);
    assert_kind("|||example.com", ACL_RULE_BAD);
    assert_kind("||.example.com", ACL_RULE_BAD);
    assert_kind("||example..com", ACL_RULE_BAD);
    assert_kind("||example.com..", ACL_RULE_BAD);
    assert_kind("||*.example.com", ACL_RULE_BAD);
    assert_kind("||example.com x", ACL_RULE_BAD);
    assert_kind("|(a|b)", ACL_RULE_BAD);
    assert_kind("||b\xc3\xbc"
                "cher.example",
                ACL_RULE_BAD);
}

static void a_name_behind_a_bar_may_be_as_long_as_names_are(void **state)
{
    char line[2 + SS_HOST_MAX + 2] = "||";
    (void)state;

    for (size_t i = 0; i < SS_HOST_MAX + 1; i++)
        line[2 + i] = i % 50 == 49 ? '.' : 'a';
    line[2 + SS_HOST_MAX + 1] = '\0';
    assert_kind(line, ACL_RULE_BAD);
    line[2 + SS_HOST_MAX] = '\0';
    assert_kind(line, ACL_RULE_NAME);
    assert_int_equal(strlen(rule.name), SS_HOST_MAX);
}

static void patterns_that_are_names(void **state)
{
    (void)state;
    assert_name("(^|\\.)example\\.com$", "example.com", ACL_ITSELF | ACL_BELOW);
    assert_name("(?:^|\\.)Example\\.com$", "example.com", ACL_ITSELF | ACL_BELOW);
    assert_name("^(.*\\.)?example\\.com$", "example.com", ACL_ITSELF | ACL_BELOW);
    assert_name("^(?:.+\\.)?my\\-site\\.com$", "my-site.com", ACL_ITSELF | ACL_BELOW);
    assert_name("^([^.]+\\.)*example\\.com$", "example.com", ACL_ITSELF | ACL_BELOW);
    assert_name("^.*\\.example\\.com$", "example.com", ACL_BELOW);
    assert_name("\\.cn$", "cn", ACL_BELOW);
    assert_name("^www\\.example\\.com$", "www.example.com", ACL_ITSELF);
}

static void patterns_that_say_more_stay_patterns(void **state)
{
    static const char *const lines[] = {
        "(^|\\.)example\\.com",
        "(^|\\.)example.com$",
        "example\\.com$",
        "example.com",
        "^example\\.com",
        "^example\\.com.$",
        "$",
        "^$",
        "(^|\\.)$",
        "\\.com\\$",
        "^a\\.$",
        "^a\\.\\.b$",
        "(^|\\.)(a|b)\\.example$",
        "^www[0-9]\\.example$",
        "^a\\d$",
        ".",
        ".*",
        "163",
        "localhost:80",
        "(abc",
    };
    (void)state;

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        assert_kind(lines[i], ACL_RULE_PATTERN);
}

static void lines_without_measure_are_bad(void **state)
{
    const size_t len = SS_ACL_LINE_MAX + 2;
    char *line = malloc(len + 1);
    (void)state;

    memset(line, 'a', len);
    line[len] = '\0';
    line[0] = line[SS_ACL_LINE_MAX + 1] = ' ';
    assert_kind(line, ACL_RULE_PATTERN);
    assert_int_equal(strlen(rule.text), SS_ACL_LINE_MAX);
    line[0] = 'a';
    assert_kind(line, ACL_RULE_BAD);
    assert_int_equal(strlen(rule.text), SS_ACL_LINE_MAX);
    free(line);

    acl_rule_read(&rule, "a\0b", 3);
    assert_int_equal(rule.kind, ACL_RULE_BAD);
    assert_kind("\xff", ACL_RULE_BAD);
}

int rule_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_comment_begins_at_any_number_sign_but_an_escaped_one),
        cmocka_unit_test(sections_and_modes_have_two_names_each),
        cmocka_unit_test(addresses_and_networks),
        cmocka_unit_test(what_was_meant_for_an_address_is_no_pattern),
        cmocka_unit_test(names_behind_bars),
        cmocka_unit_test(a_name_behind_a_bar_may_be_as_long_as_names_are),
        cmocka_unit_test(patterns_that_are_names),
        cmocka_unit_test(patterns_that_say_more_stay_patterns),
        cmocka_unit_test(lines_without_measure_are_bad),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
