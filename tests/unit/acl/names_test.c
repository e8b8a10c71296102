/* The set of names and ends of names. */
#include "acl/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "acl/lists.h"

static void add(struct acl_names *names, const char *name, unsigned covers, unsigned list)
{
    assert_int_equal(acl_names_add(names, name, strlen(name), covers, list), SS_OK);
}

static unsigned find(const struct acl_names *names, const char *name)
{
    return acl_names_find(names, name, strlen(name));
}

static void a_name_covers_itself_what_is_below_or_both(void **state)
{
    struct acl_names names = {.seed = 42};
    (void)state;

    assert_int_equal(find(&names, "a"), 0);
    add(&names, "both.test", ACL_ITSELF | ACL_BELOW, ACL_BLACK);
    add(&names, "only.test", ACL_ITSELF, ACL_WHITE);
    add(&names, "below.test", ACL_BELOW, ACL_BLOCK);
    assert_int_equal(find(&names, "both.test"), ACL_BIT(ACL_BLACK));
    assert_int_equal(find(&names, "www.both.test"), ACL_BIT(ACL_BLACK));
    assert_int_equal(find(&names, "a.b.c.both.test"), ACL_BIT(ACL_BLACK));
    assert_int_equal(find(&names, ".both.test"), ACL_BIT(ACL_BLACK));
    assert_int_equal(find(&names, "notboth.test"), 0);
    assert_int_equal(find(&names, "both.test.org"), 0);
    assert_int_equal(find(&names, "test"), 0);
    assert_int_equal(find(&names, "only.test"), ACL_BIT(ACL_WHITE));
    assert_int_equal(find(&names, "www.only.test"), 0);
    assert_int_equal(find(&names, "below.test"), 0);
    assert_int_equal(find(&names, "www.below.test"), ACL_BIT(ACL_BLOCK));
    assert_int_equal(find(&names, ""), 0);
    assert_int_equal(find(&names, "."), 0);
    assert_int_equal(find(&names, ".."), 0);
    acl_names_clear(&names);
}

static void rules_for_one_name_add_up(void **state)
{
    struct acl_names names = {.seed = 42};
    (void)state;

    add(&names, "a.test", ACL_ITSELF, ACL_BLACK);
    add(&names, "a.test", ACL_BELOW, ACL_ALLOW);
    add(&names, "test", ACL_ITSELF | ACL_BELOW, ACL_WHITE);
    assert_int_equal(names.count, 2);
    assert_int_equal(find(&names, "a.test"), ACL_BIT(ACL_BLACK) | ACL_BIT(ACL_WHITE));
    assert_int_equal(find(&names, "b.a.test"), ACL_BIT(ACL_ALLOW) | ACL_BIT(ACL_WHITE));
    assert_int_equal(find(&names, "test"), ACL_BIT(ACL_WHITE));
    acl_names_clear(&names);
}

static void many_names_are_all_found_and_no_others(void **state)
{
    struct acl_names names = {.seed = UINT64_C(0x0123456789abcdef)};
    char name[64];
    (void)state;

    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof name, "n%d.example%d.test", i, i % 7);
        add(&names, name, ACL_ITSELF | ACL_BELOW, (unsigned)i % ACL_LISTS);
    }
    acl_names_trim(&names);
    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof name, "www.n%d.example%d.test", i, i % 7);
        assert_int_equal(find(&names, name), ACL_BIT((unsigned)i % ACL_LISTS));
        assert_int_equal(find(&names, name + 4), ACL_BIT((unsigned)i % ACL_LISTS));
        snprintf(name, sizeof name, "n%d.example%d.test", i, (i + 1) % 7);
        assert_int_equal(find(&names, name), 0);
    }
    acl_names_clear(&names);
}

static void the_longest_names_are_found(void **state)
{
    struct acl_names names = {.seed = 7};
    char name[256];
    (void)state;

    memset(name, 'a', 255);
    name[255] = '\0';
    for (size_t i = 1; i < 255; i += 2)
        name[i] = '.';
    add(&names, name, ACL_ITSELF, ACL_BLACK);
    add(&names, name + 250, ACL_ITSELF | ACL_BELOW, ACL_WHITE);
    assert_int_equal(find(&names, name), ACL_BIT(ACL_BLACK) | ACL_BIT(ACL_WHITE));
    assert_int_equal(find(&names, name + 2), ACL_BIT(ACL_WHITE));
    acl_names_clear(&names);
}

int names_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_covers_itself_what_is_below_or_both),
        cmocka_unit_test(rules_for_one_name_add_up),
        cmocka_unit_test(many_names_are_all_found_and_no_others),
        cmocka_unit_test(the_longest_names_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
