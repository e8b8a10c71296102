/* A build without PCRE2: a list with a pattern is refused, any other works. */
#include "acl/acl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static size_t fatal_line;

static void on_fault(void *owner, const struct ss_acl_fault *fault)
{
    (void)owner;
    assert_true(fault->fatal);
    assert_string_equal(fault->reason, "regular expressions are not in this build");
    fatal_line = fault->line;
}

static enum ss_status parse(struct ss_acl **acl, const char *text)
{
    struct ss_view view = {(const uint8_t *)text, strlen(text)};

    fatal_line = 0;
    return ss_acl_parse(acl, &view, 1, 99, on_fault, NULL);
}

/* Whatever the list is for: a rule that can't be kept is never passed over. */
static void a_list_with_a_pattern_is_refused(void **state)
{
    struct ss_acl *acl = NULL;
    (void)state;

    assert_int_not_equal(parse(&acl, "[proxy_list]\n127.0.0.0/8\n^ad[0-9]+\\.\n"), SS_OK);
    assert_int_equal(fatal_line, 3);
    assert_int_not_equal(parse(&acl, "[outbound_block_list]\n(a|b)+\\.test\n"), SS_OK);
    assert_int_equal(fatal_line, 2);
}

static void names_and_networks_need_none(void **state)
{
    struct ss_acl *acl = NULL;
    struct ss_acl_scratch *scratch = ss_acl_scratch_new();
    (void)state;

    assert_non_null(scratch);
    assert_int_equal(
        parse(&acl, "[outbound_block_list]\n10.0.0.0/8\n(^|\\.)example\\.com$\n||example.net\n"),
        SS_OK);
    assert_int_equal(ss_acl_outbound_name(acl, scratch, "www.example.com", 15), SS_ACL_REFUSED);
    assert_int_equal(ss_acl_outbound_name(acl, scratch, "example.net", 11), SS_ACL_REFUSED);
    ss_acl_scratch_free(scratch);
    ss_acl_release(acl);
}

int patterns_none_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_with_a_pattern_is_refused),
        cmocka_unit_test(names_and_networks_need_none),
    };

    return cmocka_run_group_tests_name("acl/patterns_none", tests, NULL, NULL);
}
