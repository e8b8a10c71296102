/* Cursors over wire bytes. */
#include "base/bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void a_read_takes_what_it_says_in_network_order(void **state)
{
    static const uint8_t wire[] = {7, 0x12, 0x34, 1, 2, 3, 4, 5, 6, 7, 8, 'a', 'b', 'c', 9};
    struct ss_reader in = {wire, sizeof wire};
    uint8_t one;
    uint16_t two;
    uint64_t eight;
    char text[3];

    (void)state;
    assert_true(ss_read_u8(&in, &one));
    assert_int_equal(one, 7);
    assert_true(ss_read_u16be(&in, &two));
    assert_int_equal(two, 0x1234);
    assert_true(ss_read_u64be(&in, &eight));
    assert_true(eight == UINT64_C(0x0102030405060708));
    assert_true(ss_read_bytes(&in, text, sizeof text));
    assert_memory_equal(text, "abc", 3);
    assert_true(ss_read_skip(&in, 1));
    assert_int_equal(in.len, 0);
    assert_ptr_equal(in.ptr, wire + sizeof wire);
}

static void a_read_that_does_not_fit_moves_nothing(void **state)
{
    static const uint8_t wire[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    uint8_t one = 0x55;
    uint16_t two = 0x5555;
    uint64_t eight = 0x55;
    uint8_t bytes[9] = {0};

    (void)state;
    for (size_t len = 0; len < sizeof wire; len++) {
        struct ss_reader in = {wire, len};

        assert_false(ss_read_u64be(&in, &eight));
        assert_false(ss_read_bytes(&in, bytes, len + 1));
        assert_false(ss_read_skip(&in, len + 1));
        assert_false(ss_read_skip(&in, SIZE_MAX));
        if (len < 2)
            assert_false(ss_read_u16be(&in, &two));
        if (len < 1)
            assert_false(ss_read_u8(&in, &one));
        assert_ptr_equal(in.ptr, wire);
        assert_int_equal(in.len, len);
    }
    assert_int_equal(one, 0x55);
    assert_int_equal(two, 0x5555);
    assert_true(eight == 0x55);
    assert_int_equal(bytes[0], 0);
}

static void what_is_written_is_read_back(void **state)
{
    uint8_t wire[14];
    struct ss_writer out = {wire, sizeof wire};
    struct ss_reader in = {wire, sizeof wire};
    uint8_t one;
    uint16_t two;
    uint64_t eight;
    char text[3];

    (void)state;
    assert_true(ss_write_u8(&out, 0xfe));
    assert_true(ss_write_u16be(&out, 0xfedc));
    assert_true(ss_write_u64be(&out, UINT64_C(0xfedcba9876543210)));
    assert_true(ss_write_bytes(&out, "xyz", 3));
    assert_int_equal(out.len, 0);
    assert_true(ss_read_u8(&in, &one));
    assert_true(ss_read_u16be(&in, &two));
    assert_true(ss_read_u64be(&in, &eight));
    assert_true(ss_read_bytes(&in, text, 3));
    assert_int_equal(one, 0xfe);
    assert_int_equal(two, 0xfedc);
    assert_true(eight == UINT64_C(0xfedcba9876543210));
    assert_memory_equal(text, "xyz", 3);
}

static void a_write_that_does_not_fit_changes_nothing(void **state)
{
    uint8_t wire[8];

    (void)state;
    memset(wire, 0x55, sizeof wire);
    for (size_t len = 0; len < sizeof wire; len++) {
        struct ss_writer out = {wire, len};

        assert_false(ss_write_u64be(&out, 0));
        assert_false(ss_write_bytes(&out, "12345678", len + 1));
        if (len < 2)
            assert_false(ss_write_u16be(&out, 0));
        if (len < 1)
            assert_false(ss_write_u8(&out, 0));
        assert_ptr_equal(out.ptr, wire);
        assert_int_equal(out.len, len);
    }
    for (size_t i = 0; i < sizeof wire; i++)
        assert_int_equal(wire[i], 0x55);
}

static void loads_and_stores_work_at_any_address(void **state)
{
    uint8_t bytes[10] = {0};

    (void)state;
    ss_store_u16be(bytes + 1, 0xa1b2);
    assert_int_equal(bytes[1], 0xa1);
    assert_int_equal(bytes[2], 0xb2);
    assert_int_equal(ss_load_u16be(bytes + 1), 0xa1b2);
    ss_store_u64le(bytes + 1, UINT64_C(0x8877665544332211));
    assert_int_equal(bytes[1], 0x11);
    assert_int_equal(bytes[8], 0x88);
    assert_int_equal(bytes[9], 0);
    assert_true(ss_load_u64le(bytes + 1) == UINT64_C(0x8877665544332211));
}

static void no_bytes_may_come_from_nowhere(void **state)
{
    struct ss_reader in = {NULL, 0};
    struct ss_writer out = {NULL, 0};
    uint8_t byte;

    (void)state;
    assert_true(ss_read_bytes(&in, NULL, 0));
    assert_true(ss_read_skip(&in, 0));
    assert_true(ss_write_bytes(&out, NULL, 0));
    assert_false(ss_read_u8(&in, &byte));
    assert_false(ss_write_u8(&out, 1));
}

int bytes_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_read_takes_what_it_says_in_network_order),
        cmocka_unit_test(a_read_that_does_not_fit_moves_nothing),
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(a_write_that_does_not_fit_changes_nothing),
        cmocka_unit_test(loads_and_stores_work_at_any_address),
        cmocka_unit_test(no_bytes_may_come_from_nowhere),
    };

    return cmocka_run_group_tests_name("bytes", tests, NULL, NULL);
}
