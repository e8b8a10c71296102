/* The heap of the libraries: as malloc, but from the thread's own reservation. */
#include "base/heap.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static void blocks_of_every_size_hold_their_bytes(void **state)
{
    enum { COUNT = 300 };
    uint8_t *blocks[COUNT];
    size_t sizes[COUNT];

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        sizes[i] = i < 200 ? (size_t)i : (size_t)1 << (i % 18); /* up to 128 KiB */
        blocks[i] = ss_heap_malloc(sizes[i]);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        memset(blocks[i], i & 0xff, sizes[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        for (size_t k = 0; k < sizes[i]; k++)
            if (blocks[i][k] != (i & 0xff))
                fail_msg("byte %zu of block %d was overwritten", k, i);
        ss_heap_free(blocks[i]);
    }
}

static void blocks_around_each_class_edge_are_large_enough(void **state)
{
    (void)state;
    for (size_t base = 16; base <= 131072; base += base < 128 ? 16 : base / 4) {
        for (size_t size = base - 1; size <= base + 1; size++) {
            uint8_t *a = ss_heap_malloc(size);
            uint8_t *b = ss_heap_malloc(size);

            assert_true(a != NULL && b != NULL && a != b);
            memset(a, 0xaa, size);
            memset(b, 0xbb, size);
            assert_int_equal(a[0], 0xaa);
            assert_int_equal(a[size - 1], 0xaa);
            ss_heap_free(a);
            ss_heap_free(b);
        }
    }
}

static void calloc_gives_zeros_where_something_was_before(void **state)
{
    static const size_t sizes[] = {1, 16, 100, 5000, 65536, 70000};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint8_t *block = ss_heap_malloc(sizes[i]);

        memset(block, 0xff, sizes[i]);
        ss_heap_free(block);
        block = ss_heap_calloc(1, sizes[i]);
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(block[k], 0);
        ss_heap_free(block);
    }
}

static void realloc_keeps_what_fits_on_every_way(void **state)
{
    static const size_t sizes[] = {10,     16,    17,    200,   129, 70000,
                                   100000, 60000, 65536, 65537, 3,   5000};
    size_t held = 1;
    uint8_t *block = ss_heap_realloc(NULL, 1);

    (void)state;
    assert_non_null(block);
    block[0] = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        block = ss_heap_realloc(block, sizes[i]);
        assert_non_null(block);
        for (size_t k = 0; k < held && k < sizes[i]; k++)
            if (block[k] != (uint8_t)(k * 7))
                fail_msg("byte %zu was lost on the way to %zu bytes", k, sizes[i]);
        for (size_t k = 0; k < sizes[i]; k++)
            block[k] = (uint8_t)(k * 7);
        held = sizes[i];
    }
    assert_null(ss_heap_realloc(block, 0)); /* frees */
}

#ifndef SS_SANITIZED /* which is the system's there, and says so itself */
static void a_product_or_size_that_overflows_is_refused(void **state)
{
    volatile size_t most = SIZE_MAX; /* hidden from the compiler, which warns about such calls */
    void *block;

    (void)state;
    errno = 0;
    assert_null(ss_heap_calloc(most / 2, 3));
    assert_int_equal(errno, ENOMEM);
    assert_null(ss_heap_calloc(most, most));
    assert_null(ss_heap_malloc(most));
    assert_null(ss_heap_malloc(most - 8));
    block = ss_heap_malloc(100000);
    memset(block, 1, 100000);
    assert_null(ss_heap_realloc(block, most - 8));
    assert_int_equal(*(uint8_t *)block, 1); /* still there */
    ss_heap_free(block);
    block = ss_heap_malloc(10);
    assert_null(ss_heap_realloc(block, most - 8));
    ss_heap_free(block);
    ss_heap_free(NULL);
}

static void a_freed_block_is_the_next_of_its_class(void **state)
{
    void *block = ss_heap_malloc(1000);

    (void)state;
    ss_heap_free(block);
    assert_ptr_equal(ss_heap_malloc(1024), block); /* 897 to 1,024 bytes are a class */
    ss_heap_free(block);
    assert_ptr_equal(ss_heap_malloc(900), block);
    ss_heap_free(block);
}

static void realloc_within_a_class_stays_in_place(void **state)
{
    void *block = ss_heap_malloc(900);

    (void)state;
    assert_ptr_equal(ss_heap_realloc(block, 1024), block);
    assert_ptr_equal(ss_heap_realloc(block, 600), block); /* not yet half idle */
    assert_ptr_not_equal(block = ss_heap_realloc(block, 200), NULL);
    assert_ptr_equal(ss_heap_realloc(block, 224), block);
    ss_heap_free(block);
}

/* Frees from another thread what this one allocated. */
static void *free_block(void *block)
{
    ss_heap_free(block);
    return NULL;
}

static void in_a_thread(void *(*run)(void *), void *argument)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, run, argument), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void a_block_freed_elsewhere_comes_back_to_its_owner(void **state)
{
    void *a = ss_heap_malloc(40000);
    void *b = ss_heap_malloc(40000);
    void *again;

    (void)state;
    in_a_thread(free_block, a);
    in_a_thread(free_block, b);
    again = ss_heap_malloc(40000);
    assert_true(again == a || again == b);
    ss_heap_free(again);
}

static void *give_address(void *result)
{
    void *block = ss_heap_malloc(3000);

    *(void **)result = block;
    ss_heap_free(block);
    return NULL;
}

static void the_heap_of_a_thread_that_ended_serves_the_next(void **state)
{
    void *first = NULL;

    (void)state;
    in_a_thread(give_address, &first);
    assert_non_null(first);
    for (int i = 0; i < 20; i++) {
        void *next = NULL;

        in_a_thread(give_address, &next);
        assert_ptr_equal(next, first);
    }
}

static void *use_up(void *unused)
{
    enum { COUNT = 200 }; /* of 64 KiB: more than a heap holds */
    static uint8_t *blocks[COUNT];

    (void)unused;
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = ss_heap_malloc(65536);
        if (blocks[i] == NULL)
            return NULL;
        memset(blocks[i], i, 65536);
    }
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = ss_heap_realloc(blocks[i], 65536 - 16);
        if (blocks[i] == NULL || blocks[i][0] != i || blocks[i][65000] != i)
            return NULL;
    }
    for (int i = 0; i < COUNT; i++)
        ss_heap_free(blocks[i]);
    return use_up;
}

static void a_heap_that_is_used_up_falls_back_to_the_system(void **state)
{
    pthread_t thread;
    void *result = NULL;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, use_up, NULL), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_non_null(result);
}
#endif

/* Two threads pass blocks to each other through slots and free what the other made. */
#define SLOT_COUNT 64
static _Atomic(uint8_t *) slots[SLOT_COUNT];

static void *exchange(void *seed_pointer)
{
    uint32_t seed = *(uint32_t *)seed_pointer;

    for (int i = 0; i < 20000; i++) {
        uint8_t *block;
        size_t size;

        seed = seed * 1664525 + 1013904223;
        size = 1 + (seed >> 8) % 3000;
        block = ss_heap_malloc(size);
        memset(block, (int)(size & 0xff), size);
        block[0] = (uint8_t)size;
        block = atomic_exchange(&slots[(seed >> 20) % SLOT_COUNT], block);
        ss_heap_free(block);
        if (i % 1000 == 0)
            sched_yield();
    }
    return NULL;
}

static void threads_may_free_each_others_blocks(void **state)
{
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    uint32_t seeds[THREADS];

    (void)state;
    for (uint32_t i = 0; i < THREADS; i++) {
        seeds[i] = i + 1;
        assert_int_equal(pthread_create(&threads[i], NULL, exchange, &seeds[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < SLOT_COUNT; i++)
        ss_heap_free(atomic_exchange(&slots[i], NULL));
}

int heap_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_every_size_hold_their_bytes),
        cmocka_unit_test(blocks_around_each_class_edge_are_large_enough),
        cmocka_unit_test(calloc_gives_zeros_where_something_was_before),
        cmocka_unit_test(realloc_keeps_what_fits_on_every_way),
#ifndef SS_SANITIZED
        cmocka_unit_test(a_product_or_size_that_overflows_is_refused),
        cmocka_unit_test(a_freed_block_is_the_next_of_its_class),
        cmocka_unit_test(realloc_within_a_class_stays_in_place),
        cmocka_unit_test(a_block_freed_elsewhere_comes_back_to_its_owner),
        cmocka_unit_test(the_heap_of_a_thread_that_ended_serves_the_next),
        cmocka_unit_test(a_heap_that_is_used_up_falls_back_to_the_system),
#endif
        cmocka_unit_test(threads_may_free_each_others_blocks),
    };

    return cmocka_run_group_tests_name("heap", tests, NULL, NULL);
}
