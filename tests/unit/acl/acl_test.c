/* Lists as a whole: which rule wins, what stands for what, and what is not loaded. */
#include "acl/acl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What was reported, a line each. */
static char faults[4096];

static void on_fault(void *owner, const struct ss_acl_fault *fault)
{
    const size_t used = strlen(faults);

    assert_ptr_equal(owner, faults);
    snprintf(faults + used, sizeof faults - used, "%zu:%zu %s: %s%s\n", fault->text, fault->line,
             fault->line_text, fault->reason, fault->fatal ? " FATAL" : "");
}

static enum ss_status parse_texts(struct ss_acl **acl, const char *const *texts, size_t count)
{
    struct ss_view views[4];

    for (size_t i = 0; i < count; i++)
        views[i] = (struct ss_view){(const uint8_t *)texts[i], strlen(texts[i])};
    faults[0] = '\0';
    return ss_acl_parse(acl, views, count, 99, on_fault, faults);
}

static struct ss_acl *parse(const char *text)
{
    struct ss_acl *acl;

    assert_int_equal(parse_texts(&acl, &text, 1), SS_OK);
    assert_string_equal(faults, "");
    return acl;
}

static struct ss_acl_scratch *scratch;

static enum ss_acl_route route(const struct ss_acl *acl, const char *name)
{
    return ss_acl_name_route(acl, scratch, name, strlen(name));
}

static enum ss_acl_outbound outbound(const struct ss_acl *acl, const char *name)
{
    return ss_acl_outbound_name(acl, scratch, name, strlen(name));
}

static struct ss_ip ip_of(const char *text)
{
    struct ss_ip ip;

    assert_int_equal(ss_ip_parse(&ip, text), SS_OK);
    return ip;
}

static enum ss_acl_route addresses(const struct ss_acl *acl, const char *one, const char *two)
{
    struct ss_ip ips[2] = {ip_of(one)};

    if (two != NULL)
        ips[1] = ip_of(two);
    return ss_acl_addresses_route(acl, ips, two != NULL ? 2 : 1);
}

static bool refused(const struct ss_acl *acl, const char *client)
{
    const struct ss_ip ip = ip_of(client);

    return ss_acl_client_refused(acl, &ip);
}

static bool blocked(const struct ss_acl *acl, const char *target, bool named)
{
    const struct ss_ip ip = ip_of(target);

    return ss_acl_outbound_blocked(acl, &ip, named);
}

static void an_empty_list_changes_nothing(void **state)
{
    struct ss_acl *acl = parse("");
    (void)state;

    assert_int_equal(route(acl, "example.com"), SS_ACL_PROXY);
    assert_int_equal(route(acl, "192.0.2.1"), SS_ACL_PROXY);
    assert_int_equal(addresses(acl, "192.0.2.1", NULL), SS_ACL_PROXY);
    assert_false(refused(acl, "192.0.2.1"));
    assert_int_equal(outbound(acl, "example.com"), SS_ACL_BY_ADDRESS);
    assert_false(blocked(acl, "192.0.2.1", false));
    ss_acl_release(acl);
}

static void a_mode_alone_sets_the_default(void **state)
{
    struct ss_acl *acl = parse("[bypass_all]");
    (void)state;

    assert_int_equal(route(acl, "example.com"), SS_ACL_BYPASS);
    assert_int_equal(addresses(acl, "192.0.2.1", NULL), SS_ACL_BYPASS);
    ss_acl_release(acl);
    acl = parse("[reject_all]");
    assert_true(refused(acl, "192.0.2.1"));
    assert_true(refused(acl, "::1"));
    ss_acl_release(acl);
    acl = parse("[reject_all]\n[accept_all]");
    assert_false(refused(acl, "192.0.2.1"));
    ss_acl_release(acl);
    acl = parse("[proxy_all]");
    assert_int_equal(route(acl, "example.com"), SS_ACL_PROXY);
    ss_acl_release(acl);
    acl = parse("[outbound_block_all]");
    assert_int_equal(outbound(acl, "example.com"), SS_ACL_REFUSED);
    assert_true(blocked(acl, "192.0.2.1", false));
    assert_int_equal(route(acl, "example.com"), SS_ACL_PROXY);
    ss_acl_release(acl);
}

static void rules_before_any_section_are_black(void **state)
{
    struct ss_acl *acl = parse("192.0.2.1\n||direct.test\n[bypass_all]\n192.0.2.2");
    (void)state;

    assert_true(refused(acl, "192.0.2.1"));
    ss_acl_release(acl);
    acl = parse("192.0.2.1\n||direct.test\n[proxy_all]\n192.0.2.2");
    assert_int_equal(addresses(acl, "192.0.2.2", NULL), SS_ACL_BYPASS);
    assert_int_equal(route(acl, "a.direct.test"), SS_ACL_BYPASS);
    ss_acl_release(acl);
}

static void black_comes_before_white(void **state)
{
    struct ss_acl *acl = parse("[bypass_all]\n[proxy_list]\n||test\n10.0.0.0/8\n"
                               "[bypass_list]\n^five\\.test$\nsix.*test\n10.1.0.0/16\n");
    (void)state;

    assert_int_equal(route(acl, "five.test"), SS_ACL_BYPASS);
    assert_int_equal(route(acl, "www.six.test"), SS_ACL_BYPASS);
    assert_int_equal(route(acl, "seven.test"), SS_ACL_PROXY);
    assert_int_equal(route(acl, "10.1.2.3"), SS_ACL_BYPASS);
    assert_int_equal(route(acl, "10.2.2.3"), SS_ACL_PROXY);
    assert_int_equal(route(acl, "11.2.2.3"), SS_ACL_BYPASS);
    ss_acl_release(acl);
    acl = parse("[reject_all]\n[white_list]\n10.0.0.0/8\n[black_list]\n10.0.0.1");
    assert_true(refused(acl, "10.0.0.1"));
    assert_false(refused(acl, "10.0.0.2"));
    assert_true(refused(acl, "11.0.0.2"));
    ss_acl_release(acl);
    acl = parse("[white_list]\n10.0.0.0/8\n");
    assert_false(refused(acl, "11.0.0.2"));
    ss_acl_release(acl);
}

static void names_are_looked_up_only_where_an_address_could_decide(void **state)
{
    static const struct {
        const char *text;
        enum ss_acl_route route;
    } cases[] = {
        {"[bypass_list]\n||x.test", SS_ACL_PROXY},
        {"[bypass_list]\n192.0.2.1", SS_ACL_RESOLVE},
        {"[proxy_list]\n192.0.2.1", SS_ACL_PROXY},
        {"[bypass_all]\n[proxy_list]\n||x.test", SS_ACL_BYPASS},
        {"[bypass_all]\n[proxy_list]\n192.0.2.1", SS_ACL_RESOLVE},
        {"[bypass_all]\n[bypass_list]\n192.0.2.1", SS_ACL_BYPASS},
        {"[outbound_block_list]\n192.0.2.1", SS_ACL_PROXY},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ss_acl *acl = parse(cases[i].text);

        assert_int_equal(route(acl, "example.com"), cases[i].route);
        ss_acl_release(acl);
    }
}

static void any_address_of_a_name_decides(void **state)
{
    struct ss_acl *acl = parse("[bypass_list]\n192.0.2.1");
    (void)state;

    assert_int_equal(addresses(acl, "192.0.2.2", "192.0.2.1"), SS_ACL_BYPASS);
    assert_int_equal(addresses(acl, "192.0.2.2", "192.0.2.3"), SS_ACL_PROXY);
    assert_int_equal(ss_acl_addresses_route(acl, NULL, 0), SS_ACL_PROXY);
    ss_acl_release(acl);
    acl = parse("[bypass_all]\n[proxy_list]\n192.0.2.1");
    assert_int_equal(addresses(acl, "192.0.2.2", "192.0.2.1"), SS_ACL_PROXY);
    assert_int_equal(addresses(acl, "192.0.2.2", "192.0.2.3"), SS_ACL_BYPASS);
    assert_int_equal(ss_acl_addresses_route(acl, NULL, 0), SS_ACL_PROXY);
    ss_acl_release(acl);
}

static void a_name_has_no_case_and_no_dot_at_its_end(void **state)
{
    struct ss_acl *acl = parse("[bypass_list]\n||Direct.Test\n^mixed[0-9]\\.Case$\n|one.test.\n");
    (void)state;

    assert_int_equal(route(acl, "WWW.DIRECT.test."), SS_ACL_BYPASS);
    assert_int_equal(route(acl, "Mixed1.Case."), SS_ACL_BYPASS);
    assert_int_equal(route(acl, "ONE.test"), SS_ACL_BYPASS);
    assert_int_equal(route(acl, "two.one.test"), SS_ACL_PROXY);
    assert_int_equal(route(acl, "direct.test.."), SS_ACL_PROXY);
    assert_int_equal(route(acl, "."), SS_ACL_PROXY);
    assert_int_equal(route(acl, ""), SS_ACL_PROXY);
    ss_acl_release(acl);
}

static void a_name_that_is_an_address_is_that_address(void **state)
{
    struct ss_acl *acl = parse("[bypass_list]\n127.0.0.0/8\nfe80::/10\n.*\n");
    (void)state;

    assert_int_equal(route(acl, "127.0.0.1"), SS_ACL_BYPASS);
    assert_int_equal(route(acl, "127.0.0.1."), SS_ACL_BYPASS);
    assert_int_equal(route(acl, "::ffff:127.0.0.1"), SS_ACL_BYPASS);
    assert_int_equal(route(acl, "::FFFF:7f00:1"), SS_ACL_BYPASS);
    assert_int_equal(route(acl, "fe80::1%nosuch"), SS_ACL_BYPASS);
    assert_int_equal(route(acl, "192.0.2.1"), SS_ACL_PROXY);
    assert_int_equal(route(acl, "::1"), SS_ACL_PROXY);
    assert_int_equal(route(acl, "127.1"), SS_ACL_BYPASS); /* a name, by the pattern */
    ss_acl_release(acl);
}

static void mapped_addresses_are_ipv4(void **state)
{
    struct ss_acl *acl = parse("[reject_all]\n[white_list]\n127.0.0.0/8\n"
                               "[outbound_block_list]\n::ffff:10.0.0.0/104\n::ffff:192.0.2.1\n");
    (void)state;

    assert_false(refused(acl, "::ffff:127.0.0.1"));
    assert_true(refused(acl, "::ffff:128.0.0.1"));
    assert_true(blocked(acl, "10.1.2.3", false));
    assert_true(blocked(acl, "::ffff:10.1.2.3", false));
    assert_true(blocked(acl, "192.0.2.1", false));
    assert_int_equal(outbound(acl, "::ffff:10.1.2.3"), SS_ACL_REFUSED);
    ss_acl_release(acl);
    acl = parse("::/0");
    assert_true(refused(acl, "::1"));
    assert_false(refused(acl, "::ffff:127.0.0.1"));
    ss_acl_release(acl);
}

static void targets_block_then_allow_then_mode(void **state)
{
    struct ss_acl *acl = parse("[outbound_block_all]\n[outbound_allow_list]\n||good.test\n"
                               "192.0.2.0/24\n[outbound_block_list]\n|bad.good.test\n192.0.2.9\n");
    (void)state;

    assert_int_equal(outbound(acl, "bad.good.test"), SS_ACL_REFUSED);
    assert_int_equal(outbound(acl, "www.good.test"), SS_ACL_NAMED);
    assert_int_equal(outbound(acl, "other.test"), SS_ACL_BY_ADDRESS);
    assert_int_equal(outbound(acl, "192.0.2.9"), SS_ACL_REFUSED);
    assert_int_equal(outbound(acl, "192.0.2.1"), SS_ACL_BY_ADDRESS);
    assert_true(blocked(acl, "192.0.2.9", true));
    assert_false(blocked(acl, "192.0.2.1", false));
    assert_true(blocked(acl, "198.51.100.1", false));
    assert_false(blocked(acl, "198.51.100.1", true));
    ss_acl_release(acl);
    acl = parse("[outbound_allow_list]\n192.0.2.9\n[outbound_block_list]\n192.0.2.0/24");
    assert_true(blocked(acl, "192.0.2.9", false)); /* no exceptions from what is blocked */
    assert_false(blocked(acl, "198.51.100.1", false));
    ss_acl_release(acl);
}

static void the_lists_of_one_side_are_nothing_to_the_other(void **state)
{
    struct ss_acl *acl = parse("[reject_all]\n[white_list]\n192.0.2.1\n||a.test\n");
    (void)state;

    assert_false(blocked(acl, "198.51.100.1", false));
    assert_int_equal(outbound(acl, "a.test"), SS_ACL_BY_ADDRESS);
    ss_acl_release(acl);
    acl = parse("[outbound_block_list]\n192.0.2.1\n||a.test\n[outbound_allow_list]\n||b.test\n");
    assert_false(refused(acl, "192.0.2.1"));
    assert_int_equal(route(acl, "a.test"), SS_ACL_PROXY);
    ss_acl_release(acl);
}

static void bad_lines_are_told_and_left_out(void **state)
{
    const char *text = "\xef\xbb\xbf[bypass_list]\r\n(abc\n\n10.0.0.0/abc\n||*\n||ok.test\r\n"
                       "[nosuch_list]\n||lost.test\n[white_list]\n10.0.0.300\n||w.test";
    struct ss_acl *acl;
    (void)state;

    assert_int_equal(parse_texts(&acl, &text, 1), SS_OK);
    assert_string_equal(
        faults, "0:2 (abc: regex compilation failed: missing closing parenthesis, offset 4\n"
                "0:4 10.0.0.0/abc: not a prefix length of its family\n"
                "0:5 ||*: not a name behind the bar\n"
                "0:7 [nosuch_list]: there is no such section: it is left out with its rules\n"
                "0:10 10.0.0.300: not an address or network\n");
    assert_int_equal(route(acl, "ok.test"), SS_ACL_BYPASS);
    assert_int_equal(route(acl, "lost.test"), SS_ACL_PROXY);
    assert_false(refused(acl, "10.0.0.1"));
    assert_int_equal(ss_acl_count(acl).names, 2);
    assert_int_equal(ss_acl_count(acl).networks, 0);
    ss_acl_release(acl);
}

static void what_leaves_a_gap_is_fatal(void **state)
{
    static const struct {
        const char *text;
        bool fatal;
    } cases[] = {
        {"[outbound_block_list]\n10.0.0.0/40", true},
        {"[outbound_block_list]\n(abc", false},
        {"[outbound_block_list]\n||*", false},
        {"[white_list]\n10.0.0/8", false},
        {"[reject_all]\n[white_list]\n10.0.0/8", true},
        {"[white_list]\n10.0.0/8\n[reject_all]", true},
        {"[reject_all]\n[white_list]\n10.0.0/8\n[accept_all]", false},
        {"[reject_all]\n[black_list]\n10.0.0/8", false},
        {"[outbound_allow_list]\n10.0.0/8", false},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ss_acl *acl;

        assert_int_equal(parse_texts(&acl, &cases[i].text, 1),
                         cases[i].fatal ? SS_ERR_FORMAT : SS_OK);
        assert_int_equal(strstr(faults, " FATAL") != NULL, cases[i].fatal);
        assert_int_equal(acl == NULL, cases[i].fatal);
        ss_acl_release(acl);
    }
}

static void texts_add_up(void **state)
{
    const char *const texts[] = {"[reject_all]\n[white_list]\n192.0.2.1\n[outbound_block_list]",
                                 "198.51.100.1", "x\n[outbound_block_list]\n10.0.0.0/8\n(",
                                 "[white_list]\n192.0.2.2"};
    struct ss_acl *acl;
    (void)state;

    assert_int_equal(parse_texts(&acl, texts, 4), SS_OK);
    assert_string_equal(faults,
                        "2:4 (: regex compilation failed: missing closing parenthesis, offset 1\n");
    assert_false(refused(acl, "192.0.2.1"));
    assert_false(refused(acl, "192.0.2.2"));
    assert_true(refused(acl, "192.0.2.3"));
    assert_true(refused(acl, "198.51.100.1"));
    assert_false(blocked(acl, "198.51.100.1", false));
    assert_true(blocked(acl, "10.0.0.1", false));
    assert_int_equal(ss_acl_count(acl).networks, 4);
    assert_int_equal(ss_acl_count(acl).patterns, 1);
    ss_acl_release(acl);
}

static void a_list_stays_until_its_last_holder_lets_go(void **state)
{
    struct ss_acl *acl = parse("[bypass_list]\n||x.test");
    (void)state;

    ss_acl_hold(acl);
    ss_acl_release(acl);
    assert_int_equal(route(acl, "x.test"), SS_ACL_BYPASS);
    ss_acl_release(acl);
    ss_acl_release(NULL);
}

static void a_pattern_that_goes_astray_is_decided_for_safety(void **state)
{
    char name[SS_HOST_MAX + 1];
    struct ss_acl *acl;
    (void)state;

    memset(name, 'a', SS_HOST_MAX);
    name[SS_HOST_MAX - 1] = '-';
    name[SS_HOST_MAX] = '\0';
    acl = parse("[bypass_list]\n^(a+)+$\n[outbound_block_list]\n^(a+)+$\n");
    assert_int_equal(route(acl, name), SS_ACL_PROXY);
    assert_int_equal(outbound(acl, name), SS_ACL_REFUSED);
    ss_acl_release(acl);
    acl = parse("[bypass_all]\n[proxy_list]\n^(a+)+$\n"
                "[outbound_block_all]\n[outbound_allow_list]\n^(a+)+$\n");
    assert_int_equal(route(acl, name), SS_ACL_PROXY);
    assert_int_equal(outbound(acl, name), SS_ACL_REFUSED);
    ss_acl_release(acl);
}

static int make_scratch(void **state)
{
    (void)state;
    scratch = ss_acl_scratch_new();
    return scratch == NULL;
}

static int free_scratch(void **state)
{
    (void)state;
    ss_acl_scratch_free(scratch);
    return 0;
}

int acl_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_list_changes_nothing),
        cmocka_unit_test(a_mode_alone_sets_the_default),
        cmocka_unit_test(rules_before_any_section_are_black),
        cmocka_unit_test(black_comes_before_white),
        cmocka_unit_test(names_are_looked_up_only_where_an_address_could_decide),
        cmocka_unit_test(any_address_of_a_name_decides),
        cmocka_unit_test(a_name_has_no_case_and_no_dot_at_its_end),
        cmocka_unit_test(a_name_that_is_an_address_is_that_address),
        cmocka_unit_test(mapped_addresses_are_ipv4),
        cmocka_unit_test(targets_block_then_allow_then_mode),
        cmocka_unit_test(the_lists_of_one_side_are_nothing_to_the_other),
        cmocka_unit_test(bad_lines_are_told_and_left_out),
        cmocka_unit_test(what_leaves_a_gap_is_fatal),
        cmocka_unit_test(texts_add_up),
        cmocka_unit_test(a_list_stays_until_its_last_holder_lets_go),
        cmocka_unit_test(a_pattern_that_goes_astray_is_decided_for_safety),
    };

    return cmocka_run_group_tests(tests, make_scratch, free_scratch);
}
