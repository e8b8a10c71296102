/* Pools: what a slot keeps, where the next one comes from, and what is given back. */
#include "base/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/pages.h"

#define BIG ((size_t)64 * 1024) /* slots of this size have a slab each */

static unsigned retired;

static void count_retired(void *slot)
{
    (void)slot;
    retired++;
}

static struct ss_pool *new_pool(size_t slot_size, uint32_t capacity, uint32_t keep)
{
    const struct ss_pool_options options = {slot_size, capacity, keep, count_retired};
    struct ss_pool *pool = ss_pool_new(&options);

    assert_non_null(pool);
    retired = 0;
    return pool;
}

static bool is_resident(void *at)
{
    unsigned char page = 0;
    uintptr_t start = (uintptr_t)at & ~(uintptr_t)(ss_pages_size() - 1);

    assert_int_equal(mincore((void *)start, 1, &page), 0);
    return (page & 1) != 0;
}

static void slots_are_apart_aligned_and_zero_at_first(void **state)
{
    static const size_t sizes[] = {1, 64, 65, 200, 4096, 5000, 20000, 65535, 65536, 70000};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        enum { COUNT = 50 };
        struct ss_pool *pool = new_pool(sizes[i], COUNT, 0);
        uint8_t *slots[COUNT];

        for (int k = 0; k < COUNT; k++) {
            slots[k] = ss_pool_acquire(pool);
            assert_non_null(slots[k]);
            assert_int_equal((uintptr_t)slots[k] % 64, 0);
            for (size_t b = 0; b < sizes[i]; b++)
                if (slots[k][b] != 0)
                    fail_msg("byte %zu of a fresh slot is not zero", b);
            memset(slots[k], k + 1, sizes[i]);
        }
        for (int k = 0; k < COUNT; k++) { /* nobody wrote into another's slot */
            assert_int_equal(slots[k][0], k + 1);
            assert_int_equal(slots[k][sizes[i] - 1], k + 1);
            ss_pool_release(pool, slots[k]);
        }
        ss_pool_free(pool);
    }
}

static void no_more_slots_than_the_capacity_are_given(void **state)
{
    static const uint32_t capacities[] = {1, 15, 16, 17, 100};

    (void)state;
    for (size_t i = 0; i < sizeof capacities / sizeof capacities[0]; i++) {
        struct ss_pool *pool = new_pool(100, capacities[i], 0);
        void *slots[100];

        assert_int_equal(ss_pool_capacity(pool), capacities[i]);
        for (uint32_t k = 0; k < capacities[i]; k++) {
            assert_int_equal(ss_pool_used(pool), k);
            slots[k] = ss_pool_acquire(pool);
            assert_non_null(slots[k]);
        }
        assert_null(ss_pool_acquire(pool));
        assert_int_equal(ss_pool_used(pool), capacities[i]);
        ss_pool_release(pool, slots[0]);
        assert_ptr_equal(ss_pool_acquire(pool), slots[0]);
        assert_null(ss_pool_acquire(pool));
        for (uint32_t k = 0; k < capacities[i]; k++)
            ss_pool_release(pool, slots[k]);
        assert_int_equal(ss_pool_used(pool), 0);
        ss_pool_free(pool);
    }
}

static void a_slot_keeps_its_content_for_the_next_user(void **state)
{
    struct ss_pool *pool = new_pool(1000, 40, 0);
    char *first = ss_pool_acquire(pool);
    char *other = ss_pool_acquire(pool);

    (void)state;
    memset(first, 'a', 1000);
    memset(other, 'b', 1000);
    ss_pool_release(pool, first);
    ss_pool_release(pool, other);
    assert_ptr_equal(ss_pool_acquire(pool), other); /* last in, first out */
    assert_ptr_equal(ss_pool_acquire(pool), first);
    for (int i = 0; i < 1000; i++)
        assert_true(first[i] == 'a' && other[i] == 'b');
    ss_pool_release(pool, first);
    ss_pool_release(pool, other);
    ss_pool_free(pool);
}

static void the_lowest_slab_with_a_free_slot_is_used_first(void **state)
{
    enum { COUNT = 64 }; /* four slabs of sixteen pages */
    size_t size = ss_pages_size();
    struct ss_pool *pool = new_pool(size, COUNT, 0);
    char *slots[COUNT];

    (void)state;
    if (size != 4096)
        skip();
    for (int i = 0; i < COUNT; i++)
        slots[i] = ss_pool_acquire(pool);
    for (int i = 1; i < COUNT; i++)
        assert_ptr_equal(slots[i], slots[0] + i * size);
    ss_pool_release(pool, slots[50]);
    ss_pool_release(pool, slots[20]);
    ss_pool_release(pool, slots[35]);
    for (int i = 0; i < 16; i++) /* the lowest slab is wholly free */
        ss_pool_release(pool, slots[i]);
    assert_ptr_equal(ss_pool_acquire(pool), slots[20]); /* used ones before free ones */
    assert_ptr_equal(ss_pool_acquire(pool), slots[35]);
    assert_ptr_equal(ss_pool_acquire(pool), slots[50]);
    for (int i = 15; i >= 0; i--)
        assert_ptr_equal(ss_pool_acquire(pool), slots[i]);
    assert_null(ss_pool_acquire(pool));
    for (int i = 0; i < COUNT; i++)
        ss_pool_release(pool, slots[i]);
    ss_pool_free(pool);
}

static void nothing_is_resident_before_it_is_touched(void **state)
{
    struct ss_pool *pool = new_pool(BIG, 1000, 0);
    char *slot = ss_pool_acquire(pool);

    (void)state;
    for (size_t at = 0; at < BIG; at += 4096)
        assert_false(is_resident(slot + at));
    slot[0] = 1;
    assert_true(is_resident(slot));
    assert_false(is_resident(slot + BIG / 2));
    ss_pool_release(pool, slot);
    ss_pool_free(pool);
}

static void what_was_free_since_the_last_trim_is_given_back(void **state)
{
    enum { COUNT = 6 };
    struct ss_pool *pool = new_pool(BIG, COUNT, 0);
    char *slots[COUNT];

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        slots[i] = ss_pool_acquire(pool);
        memset(slots[i], 'x', BIG);
    }
    assert_int_equal(ss_pool_trim(pool), 0);
    for (int i = 0; i < COUNT; i++)
        ss_pool_release(pool, slots[i]);

    /* They were in use since the last call: not yet. */
    assert_int_equal(ss_pool_trim(pool), COUNT);
    assert_int_equal(retired, 0);
    for (int i = 0; i < COUNT; i++)
        assert_true(is_resident(slots[i]));

    /* Two were needed meanwhile, so four were free the whole time. */
    assert_ptr_equal(ss_pool_acquire(pool), slots[0]);
    assert_ptr_equal(ss_pool_acquire(pool), slots[1]);
    ss_pool_release(pool, slots[1]);
    ss_pool_release(pool, slots[0]);
    assert_int_equal(ss_pool_trim(pool), 2);
    assert_int_equal(retired, 4);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(is_resident(slots[i]), i < 2);

    assert_int_equal(ss_pool_trim(pool), 0);
    assert_int_equal(retired, 6);
    for (int i = 0; i < COUNT; i++)
        assert_false(is_resident(slots[i]));

    /* They can be had again, all zero. */
    for (int i = 0; i < COUNT; i++) {
        assert_ptr_equal(ss_pool_acquire(pool), slots[i]);
        assert_int_equal(slots[i][0], 0);
        assert_int_equal(slots[i][BIG - 1], 0);
    }
    for (int i = 0; i < COUNT; i++)
        ss_pool_release(pool, slots[i]);
    ss_pool_free(pool);
}

static void a_burst_that_recurs_between_trims_costs_no_pages(void **state)
{
    enum { COUNT = 8 };
    struct ss_pool *pool = new_pool(BIG, COUNT, 0);
    char *slots[COUNT];

    (void)state;
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < COUNT; i++) {
            slots[i] = ss_pool_acquire(pool);
            assert_int_equal(is_resident(slots[i]), round > 0);
            slots[i][0] = 'x';
        }
        for (int i = 0; i < COUNT; i++)
            ss_pool_release(pool, slots[i]);
        assert_int_equal(ss_pool_trim(pool), COUNT);
    }
    assert_int_equal(retired, 0);
    ss_pool_free(pool);
}

static void so_many_slots_as_are_to_be_kept_stay(void **state)
{
    enum { COUNT = 10 };
    struct ss_pool *pool = new_pool(BIG, COUNT, 3);
    char *slots[COUNT];

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        slots[i] = ss_pool_acquire(pool);
        slots[i][0] = 'x';
    }
    for (int i = 0; i < COUNT; i++)
        ss_pool_release(pool, slots[i]);
    assert_int_equal(ss_pool_trim(pool), COUNT - 3);
    assert_int_equal(ss_pool_trim(pool), 0);
    assert_int_equal(retired, COUNT - 3);
    for (int i = 0; i < COUNT; i++) /* the upper ones went */
        assert_int_equal(is_resident(slots[i]), i < 3);
    assert_int_equal(ss_pool_trim(pool), 0);
    assert_int_equal(retired, COUNT - 3);
    ss_pool_free(pool);
}

static void a_slab_goes_only_when_all_its_slots_are_free(void **state)
{
    enum { COUNT = 48 }; /* three slabs of sixteen */
    struct ss_pool *pool = new_pool(256, COUNT, 0);
    char *slots[COUNT];

    (void)state;
    if (ss_pages_size() != 4096)
        skip();
    for (int i = 0; i < COUNT; i++) {
        slots[i] = ss_pool_acquire(pool);
        memset(slots[i], i + 1, 256);
    }
    for (int i = 0; i < COUNT; i++)
        if (i != 5)
            ss_pool_release(pool, slots[i]);
    assert_int_equal(ss_pool_trim(pool), 32);
    assert_int_equal(ss_pool_trim(pool),
                     0); /* what is left can't be given back: that is told too */
    assert_int_equal(retired, 32);
    assert_true(is_resident(slots[0]));
    assert_false(is_resident(slots[16]));
    assert_false(is_resident(slots[32]));
    for (int i = 0; i < 256; i++)
        assert_int_equal(slots[5][i], 6);
    ss_pool_release(pool, slots[5]);
    assert_int_equal(ss_pool_trim(pool), 16);
    assert_int_equal(ss_pool_trim(pool), 0);
    assert_int_equal(retired, 48);
    ss_pool_free(pool);
    assert_int_equal(retired, 48);
}

static void every_slot_that_was_used_is_retired_once(void **state)
{
    struct ss_pool *pool = new_pool(100, 100, 0);
    void *slots[5];

    (void)state;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 5; i++)
            slots[i] = ss_pool_acquire(pool);
        for (int i = 0; i < 5; i++)
            ss_pool_release(pool, slots[i]);
    }
    ss_pool_free(pool);
    assert_int_equal(retired, 5);
}

static void a_pool_of_nothing_or_too_much_is_refused(void **state)
{
    (void)state;
    assert_null(ss_pool_new(&(struct ss_pool_options){.slot_size = 0, .capacity = 1}));
    assert_null(ss_pool_new(&(struct ss_pool_options){.slot_size = 1, .capacity = 0}));
    assert_null(ss_pool_new(&(struct ss_pool_options){.slot_size = SIZE_MAX, .capacity = 1}));
    assert_null(
        ss_pool_new(&(struct ss_pool_options){.slot_size = SIZE_MAX / 4, .capacity = UINT32_MAX}));
    ss_pool_free(NULL);
}

/* In a process of its own: the capacity of a pool of `len` bytes made with 96 MiB left to reserve.
 */
static int capacity_under_a_limit(size_t slot_size, uint32_t capacity)
{
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        const struct ss_pool_options options = {.slot_size = slot_size, .capacity = capacity};
        struct rlimit limit;
        unsigned long pages = 0;
        FILE *statm = fopen("/proc/self/statm", "r");
        struct ss_pool *pool;

        if (statm == NULL || fscanf(statm, "%lu", &pages) != 1)
            _exit(255);
        limit.rlim_cur = limit.rlim_max = pages * ss_pages_size() + ((rlim_t)96 << 20);
        if (setrlimit(RLIMIT_AS, &limit) != 0)
            _exit(255);
        pool = ss_pool_new(&options);
        _exit(pool == NULL ? 0 : (int)ss_pool_capacity(pool));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void half_a_pool_is_made_where_a_whole_one_does_not_fit(void **state)
{
    const size_t mib = (size_t)1 << 20;

    (void)state;
#ifdef SS_SANITIZED
    skip(); /* the sanitizer's own reservations are beyond any limit */
#endif
    assert_int_equal(capacity_under_a_limit(mib, 32), 32);
    assert_int_equal(capacity_under_a_limit(mib, 128), 64);
    assert_int_equal(capacity_under_a_limit(2 * mib, 128), 0);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WATCHED 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define WATCHED 1
#endif
#ifdef WATCHED
#include <sanitizer/asan_interface.h>

static void a_free_slot_is_poisoned_in_sanitizer_builds(void **state)
{
    struct ss_pool *pool = new_pool(256, 20, 0);
    char *a = ss_pool_acquire(pool);
    char *b = ss_pool_acquire(pool);

    (void)state;
    memset(a, 'a', 256);
    assert_false(__asan_address_is_poisoned(a + 255));
    ss_pool_release(pool, a);
    assert_true(__asan_address_is_poisoned(a));
    assert_true(__asan_address_is_poisoned(a + 255));
    assert_false(__asan_address_is_poisoned(b));
    assert_true(__asan_address_is_poisoned(b + 256)); /* never acquired */
    assert_ptr_equal(ss_pool_acquire(pool), a);
    assert_false(__asan_address_is_poisoned(a));
    assert_int_equal(a[0], 'a');
    ss_pool_release(pool, a);
    ss_pool_release(pool, b);
    (void)ss_pool_trim(pool);
    (void)ss_pool_trim(pool);
    assert_true(__asan_address_is_poisoned(a));
    ss_pool_free(pool);
}
#endif

/* A fixed sequence of numbers, the same in each run. */
static uint32_t next_number(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

static void any_order_of_uses_keeps_slots_apart(void **state)
{
    enum { COUNT = 300 };
    static const size_t sizes[] = {64, 320, 6000, BIG};

    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        struct ss_pool *pool = new_pool(sizes[s], COUNT, 10);
        uint32_t *held[COUNT];
        uint32_t used = 0;
        uint32_t seed = 1;

        for (uint32_t step = 0; step < 20000; step++) {
            uint32_t number = next_number(&seed);

            /* Fill for a while, then drain for a while. */
            if (number % 100 < (step / 2000 % 2 == 0 ? 60u : 40u)) {
                uint32_t *slot = ss_pool_acquire(pool);

                assert_int_equal(slot == NULL, used == COUNT);
                if (slot == NULL)
                    continue;
                slot[0] = used;
                slot[sizes[s] / 4 - 1] = ~used;
                held[used++] = slot;
            } else if (used > 0) {
                uint32_t which = number / 100 % used;

                assert_int_equal(held[which][0], which);
                assert_int_equal(held[which][sizes[s] / 4 - 1], ~which);
                ss_pool_release(pool, held[which]);
                if (which != --used) {
                    held[which] = held[used];
                    held[which][0] = which;
                    held[which][sizes[s] / 4 - 1] = ~which;
                }
            }
            assert_int_equal(ss_pool_used(pool), used);
            if (step % 500 == 0)
                (void)ss_pool_trim(pool);
        }
        while (used > 0)
            ss_pool_release(pool, held[--used]);
        (void)ss_pool_trim(pool);
        assert_int_equal(ss_pool_trim(pool), 0);
        ss_pool_free(pool);
    }
}

int pool_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_apart_aligned_and_zero_at_first),
        cmocka_unit_test(no_more_slots_than_the_capacity_are_given),
        cmocka_unit_test(a_slot_keeps_its_content_for_the_next_user),
        cmocka_unit_test(the_lowest_slab_with_a_free_slot_is_used_first),
        cmocka_unit_test(nothing_is_resident_before_it_is_touched),
        cmocka_unit_test(what_was_free_since_the_last_trim_is_given_back),
        cmocka_unit_test(a_burst_that_recurs_between_trims_costs_no_pages),
        cmocka_unit_test(so_many_slots_as_are_to_be_kept_stay),
        cmocka_unit_test(a_slab_goes_only_when_all_its_slots_are_free),
        cmocka_unit_test(every_slot_that_was_used_is_retired_once),
        cmocka_unit_test(a_pool_of_nothing_or_too_much_is_refused),
        cmocka_unit_test(half_a_pool_is_made_where_a_whole_one_does_not_fit),
#ifdef WATCHED
        cmocka_unit_test(a_free_slot_is_poisoned_in_sanitizer_builds),
#endif
        cmocka_unit_test(any_order_of_uses_keeps_slots_apart),
    };

    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
