/* Addresses to listen on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sys/names.h"

static void a_text_of_an_address_is_that_address(void **state)
{
    static const char *const texts[] = {"127.0.0.1", "::1",       "0.0.0.0",
                                        "::",        "192.0.2.1", "2001:db8::1"};
    const char *error_text;
    (void)state;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct ss_ip ip, same;

        assert_int_equal(ss_names_first(&ip, texts[i], &error_text), SS_OK);
        assert_int_equal(ss_ip_parse(&same, texts[i]), SS_OK);
        assert_true(ss_ip_equal(&ip, &same));
    }
}

static void localhost_is_one_address(void **state)
{
    const char *error_text;
    char text[SS_IP_TEXT_MAX];
    struct ss_ip ip;
    (void)state;

    assert_int_equal(ss_names_first(&ip, "LocalHost", &error_text), SS_OK);
    assert_string_equal(ss_ip_format(&ip, text), "127.0.0.1");
}

static void what_is_no_name_is_said(void **state)
{
    const char *error_text = NULL;
    struct ss_ip ip;
    (void)state;

    assert_int_equal(ss_names_first(&ip, "a b", &error_text), SS_ERR_NOT_FOUND);
    assert_non_null(error_text);
}

int names_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_of_an_address_is_that_address),
        cmocka_unit_test(localhost_is_one_address),
        cmocka_unit_test(what_is_no_name_is_said),
    };

    return cmocka_run_group_tests_name("sys: names", tests, NULL, NULL);
}
