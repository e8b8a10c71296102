/* Reservations of address space. */
#include "base/pages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <sys/mman.h>

static size_t resident_pages(void *start, size_t len)
{
    unsigned char pages[64];
    size_t count = 0;

    assert_true(len / ss_pages_size() <= sizeof pages);
    assert_int_equal(mincore(start, len, pages), 0);
    for (size_t i = 0; i < len / ss_pages_size(); i++)
        count += pages[i] & 1;
    return count;
}

static void lengths_are_rounded_to_whole_pages(void **state)
{
    size_t page = ss_pages_size();

    (void)state;
    assert_true(page >= 512 && (page & (page - 1)) == 0);
    assert_int_equal(ss_pages_round(0), 0);
    assert_int_equal(ss_pages_round(1), page);
    assert_int_equal(ss_pages_round(page), page);
    assert_int_equal(ss_pages_round(page + 1), 2 * page);
    assert_int_equal(ss_pages_round(SIZE_MAX), 0);
}

static void a_reservation_is_resident_where_it_is_touched(void **state)
{
    size_t page = ss_pages_size();
    uint8_t *start = ss_pages_reserve(16 * page);

    (void)state;
    assert_non_null(start);
    assert_int_equal(resident_pages(start, 16 * page), 0);
    start[3 * page] = 1;
    start[9 * page + 1] = 1;
    assert_int_equal(resident_pages(start, 16 * page), 2);
    ss_pages_release(start, 16 * page);
}

static void discarded_pages_are_gone_and_read_as_zero(void **state)
{
    size_t page = ss_pages_size();
    uint8_t *start = ss_pages_reserve(4 * page);

    (void)state;
    assert_non_null(start);
    memset(start, 0xaa, 4 * page);
    ss_pages_discard(start + page, 2 * page);
    assert_int_equal(resident_pages(start, 4 * page), 2);
    for (size_t i = 0; i < 4 * page; i++)
        assert_int_equal(start[i], i < page || i >= 3 * page ? 0xaa : 0);
    ss_pages_release(start, 4 * page);
}

static void what_cannot_be_had_is_refused(void **state)
{
    (void)state;
    assert_null(ss_pages_reserve(0));
    assert_null(ss_pages_reserve(SIZE_MAX));
    assert_null(ss_pages_reserve(SIZE_MAX / 2));
    ss_pages_release(NULL, 0);
}

int pages_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_are_rounded_to_whole_pages),
        cmocka_unit_test(a_reservation_is_resident_where_it_is_touched),
        cmocka_unit_test(discarded_pages_are_gone_and_read_as_zero),
        cmocka_unit_test(what_cannot_be_had_is_refused),
    };

    return cmocka_run_group_tests_name("pages", tests, NULL, NULL);
}
