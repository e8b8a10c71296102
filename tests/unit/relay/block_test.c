/* Blocks and their queues: bytes come out as they went in, and every block goes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "relay/block.h"

static struct ss_pool *new_pool(uint32_t capacity)
{
    struct ss_pool *pool =
        ss_pool_new(&(struct ss_pool_options){.slot_size = SS_BLOCK_SIZE, .capacity = capacity});

    assert_non_null(pool);
    return pool;
}

static void fill(uint8_t *bytes, size_t len, size_t from)
{
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)((from + i) % 251);
}

/* Takes all that waits in steps of `step`, checking each byte. */
static void drain(struct ss_block_queue *queue, struct ss_pool *pool, size_t step)
{
    size_t at = 0;

    while (queue->len != 0) {
        struct ss_span spans[4];
        size_t count = ss_block_queue_spans(queue, spans, 4);
        size_t take = step < queue->len ? step : queue->len;
        size_t seen = 0;

        for (size_t i = 0; i < count; i++) {
            for (size_t k = 0; k < spans[i].len && seen < take; k++, seen++)
                assert_int_equal(spans[i].ptr[k], (at + seen) % 251);
        }
        assert_int_equal(seen, take);
        ss_block_queue_consume(queue, pool, take);
        at += take;
    }
}

static void bytes_come_out_as_they_went_in(void **state)
{
    static const size_t steps[] = {1000, SS_BLOCK_CAPACITY - 1, SS_BLOCK_CAPACITY,
                                   SS_BLOCK_CAPACITY + 1, 300000};
    static uint8_t bytes[200000];
    struct ss_pool *pool = new_pool(8);
    (void)state;

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct ss_block_queue queue = {0};
        size_t at = 0;

        for (size_t len = 1; at + len <= 4 * (size_t)SS_BLOCK_CAPACITY && len <= sizeof bytes;
             len = len * 3) {
            fill(bytes, len, at);
            assert_true(
                ss_block_queue_append(&queue, pool, (struct ss_view){.ptr = bytes, .len = len}));
            at += len;
        }
        assert_int_equal(queue.len, at);
        drain(&queue, pool, steps[i]);
        assert_null(queue.first);
        assert_null(queue.last);
        assert_int_equal(ss_pool_used(pool), 0);
    }
    ss_pool_free(pool);
}

static void four_blocks_hold_a_sealed_read(void **state)
{
    (void)state;
    /* 256 KiB in chunks of 16,383 bytes, each 34 larger, with the longest salt and target. */
    assert_true(4 * (size_t)SS_BLOCK_CAPACITY >= 256 * 1024 + 18 * 34 + 32 + 259);
    /* The largest incomplete chunk of any method. */
    assert_true(SS_BLOCK_CAPACITY >= 2 + 16 + 65535 + 16);
}

static void a_pool_that_is_used_up_is_told(void **state)
{
    static uint8_t bytes[3 * SS_BLOCK_SIZE];
    struct ss_pool *pool = new_pool(2);
    struct ss_block_queue queue = {0};
    (void)state;

    assert_false(
        ss_block_queue_append(&queue, pool, (struct ss_view){.ptr = bytes, .len = sizeof bytes}));
    assert_int_equal(ss_pool_used(pool), 2);
    ss_block_queue_clear(&queue, pool);
    assert_int_equal(ss_pool_used(pool), 0);
    ss_pool_free(pool);
}

int block_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_come_out_as_they_went_in),
        cmocka_unit_test(four_blocks_hold_a_sealed_read),
        cmocka_unit_test(a_pool_that_is_used_up_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
