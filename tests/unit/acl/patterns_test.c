/* Patterns: what they match, and that no name keeps one busy for long. */
#include "acl/patterns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "acl/acl.h"

static bool matches(const char *pattern, const char *name, bool unknown)
{
    struct ss_acl_scratch *scratch = ss_acl_scratch_new();
    struct acl_patterns patterns = {0};
    char reason[ACL_PATTERN_REASON_MAX];
    bool matched;

    assert_non_null(scratch);
    assert_int_equal(acl_patterns_add(&patterns, pattern, reason), SS_OK);
    matched = acl_patterns_match(&patterns, scratch, name, strlen(name), unknown);
    acl_patterns_clear(&patterns);
    ss_acl_scratch_free(scratch);
    return matched;
}

static void a_pattern_matches_anywhere_and_in_any_case(void **state)
{
    (void)state;
    assert_true(matches("example.com", "notexample-com.evil.org", false));
    assert_false(matches("example\\.com", "notexample-com.evil.org", false));
    assert_true(matches("^WWW\\.Example\\.COM$", "www.example.com", false));
    assert_false(matches("^www\\.example\\.com$", "www.example.com\n", true));
    assert_true(matches("^(?!db)\\w+\\.internal$", "web.internal", false));
    assert_false(matches("^(?!db)\\w+\\.internal$", "db.internal", true));
    assert_true(matches("^(\\w)\\1\\.test$", "aa.test", false));
    assert_true(matches("a\\#", "a#", false));
}

static void what_does_not_compile_says_why(void **state)
{
    struct acl_patterns patterns = {0};
    char reason[ACL_PATTERN_REASON_MAX] = "";
    (void)state;

    assert_int_equal(acl_patterns_add(&patterns, "(abc", reason), SS_ERR_FORMAT);
    assert_string_equal(reason, "regex compilation failed: missing closing parenthesis, offset 4");
    assert_int_equal(acl_patterns_add(&patterns, "(*UTF)a", reason), SS_ERR_FORMAT);
    assert_int_equal(patterns.count, 0);
    acl_patterns_clear(&patterns);
}

/* Without a bound each of these tries some 2^200 ways. */
static void a_pattern_that_goes_astray_is_stopped(void **state)
{
    static const char *const stray[] = {
        "^(a+)+$",
        "^(a|a)*$",
        "^(a*)*$",
        "^([a-z]+)*[^-]$",
        "(*NO_JIT)^(a+)+$",
        "(*LIMIT_MATCH=4000000000)^(a|aa)+$",
        "^(?:(?:(a)|(aa)|b)+)+[cd]$",
    };
    char name[SS_HOST_MAX + 1];
    (void)state;

    memset(name, 'a', SS_HOST_MAX);
    name[SS_HOST_MAX - 1] = '-';
    name[SS_HOST_MAX] = '\0';
    for (size_t i = 0; i < sizeof stray / sizeof stray[0]; i++) {
        assert_false(matches(stray[i], name, false));
        if (!matches(stray[i], name, true))
            fail_msg("%s was not stopped", stray[i]);
    }
}

static void usual_patterns_are_not_stopped(void **state)
{
    static const char *const usual[] = {
        "^(.*\\.)?zz\\.(com|net)$",
        "[a-z0-9-]+\\.zz\\.[a-z]+$",
        "^([^.]+\\.)*ads?[0-9]*\\..*zz$",
        "(^|\\.)(a|b|c)+z\\.com$",
        "a.*a.*z$",
    };
    char name[SS_HOST_MAX + 1];
    (void)state;

    for (size_t i = 0; i < SS_HOST_MAX; i++)
        name[i] = i % 40 == 39 ? '.' : 'a';
    name[SS_HOST_MAX] = '\0';
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        if (matches(usual[i], name, true))
            fail_msg("%s was stopped", usual[i]);
}

static void any_pattern_of_a_set_will_do(void **state)
{
    struct ss_acl_scratch *scratch = ss_acl_scratch_new();
    struct acl_patterns patterns = {0};
    char reason[ACL_PATTERN_REASON_MAX], text[8] = "^a.b$";
    (void)state;

    assert_false(acl_patterns_match(&patterns, scratch, "a-b", 3, true));
    for (char c = 'a'; c <= 'z'; c++) {
        text[3] = c;
        assert_int_equal(acl_patterns_add(&patterns, text, reason), SS_OK);
    }
    assert_true(acl_patterns_match(&patterns, scratch, "a-b", 3, false));
    assert_true(acl_patterns_match(&patterns, scratch, "a-z", 3, false));
    assert_false(acl_patterns_match(&patterns, scratch, "a-0", 3, true));
    acl_patterns_clear(&patterns);
    ss_acl_scratch_free(scratch);
}

int patterns_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pattern_matches_anywhere_and_in_any_case),
        cmocka_unit_test(what_does_not_compile_says_why),
        cmocka_unit_test(a_pattern_that_goes_astray_is_stopped),
        cmocka_unit_test(usual_patterns_are_not_stopped),
        cmocka_unit_test(any_pattern_of_a_set_will_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
