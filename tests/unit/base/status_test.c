/* The words for results. */
#include "base/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void every_result_has_words_of_its_own(void **state)
{
    (void)state;
    for (int i = 0; i < SS_STATUS_COUNT; i++) {
        const char *text = ss_status_text((enum ss_status)i);

        assert_non_null(text);
        assert_true(text[0] != '\0');
        assert_string_not_equal(text, ss_status_text(SS_STATUS_COUNT));
        for (int k = 0; k < i; k++)
            assert_string_not_equal(text, ss_status_text((enum ss_status)k));
    }
}

static void a_number_that_is_no_result_has_words_too(void **state)
{
    (void)state;
    assert_string_equal(ss_status_text(SS_STATUS_COUNT), "unknown result");
    assert_string_equal(ss_status_text((enum ss_status) - 1), "unknown result");
}

int status_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_result_has_words_of_its_own),
        cmocka_unit_test(a_number_that_is_no_result_has_words_too),
    };

    return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
