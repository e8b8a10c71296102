/* Limits: what is granted, what is not, and when again. */
#include "relay/limiter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>

#define MS UINT64_C(1000000)

static void one_of_zero_limits_nothing(void **state)
{
    struct ss_limiter limiter = {0};
    bool wait;
    (void)state;

    assert_false(ss_limiter_is_active(&limiter));
    assert_false(ss_limiter_is_active(NULL));
    assert_int_equal(ss_limiter_draw(&limiter, 100000, 5, &wait), SS_GRANT_MAX);
    assert_true(ss_limiter_take(&limiter, 65507, 5));
    assert_true(ss_limiter_enter(&limiter));
    assert_int_equal(ss_limiter_reason(&limiter, INT64_MAX), SS_LIMIT_NONE);
}

static void a_quota_is_granted_to_the_byte(void **state)
{
    const struct ss_limits limits = {.quota = 40000};
    struct ss_limiter limiter = {0};
    bool wait;
    (void)state;

    ss_limiter_set(&limiter, &limits, 0);
    assert_true(ss_limiter_is_active(&limiter));
    assert_int_equal(ss_limiter_draw(&limiter, 100000, 0, &wait), 16384);
    assert_int_equal(ss_limiter_draw(&limiter, 100000, 0, &wait), 16384);
    assert_int_equal(ss_limiter_draw(&limiter, 100000, 0, &wait), 40000 - 2 * 16384);
    assert_int_equal(ss_limiter_draw(&limiter, 1, 0, &wait), 0);
    assert_false(wait);
    assert_int_equal(ss_limiter_reason(&limiter, 0), SS_LIMIT_QUOTA);
    assert_false(ss_limiter_take(&limiter, 1, 0));

    ss_limiter_return(&limiter, 100);
    assert_int_equal(ss_limiter_reason(&limiter, 0), SS_LIMIT_NONE);
    assert_false(ss_limiter_take(&limiter, 101, 0)); /* all or nothing */
    assert_true(ss_limiter_take(&limiter, 100, 0));

    ss_limiter_charge(&limiter, 5000, 0); /* beyond the grant: counted all the same */
    ss_limiter_return(&limiter, 4000);
    assert_int_equal(ss_limiter_reason(&limiter, 0), SS_LIMIT_QUOTA);
}

static void a_raised_quota_acts_at_once(void **state)
{
    struct ss_limits limits = {.quota = 1000};
    struct ss_limiter limiter = {0};
    bool wait;
    (void)state;

    ss_limiter_set(&limiter, &limits, 0);
    assert_int_equal(ss_limiter_draw(&limiter, 1000, 0, &wait), 1000);
    assert_int_equal(ss_limiter_reason(&limiter, 0), SS_LIMIT_QUOTA);
    limits.quota = 1500;
    ss_limiter_set(&limiter, &limits, 0);
    assert_int_equal(ss_limiter_reason(&limiter, 0), SS_LIMIT_NONE);
    assert_int_equal(ss_limiter_draw(&limiter, 1000, 0, &wait), 500);
    limits.quota = 10; /* lowered below what was used */
    ss_limiter_set(&limiter, &limits, 0);
    assert_int_equal(ss_limiter_draw(&limiter, 1000, 0, &wait), 0);
}

static void a_period_begins_the_count_anew(void **state)
{
    const struct ss_limits limits = {.quota = 10, .quota_period_s = 60};
    struct ss_limiter limiter = {0};
    bool wait;
    (void)state;

    ss_limiter_set(&limiter, &limits, 1000);
    assert_int_equal(ss_limiter_draw(&limiter, 10, 0, &wait), 10);
    assert_int_equal(ss_limiter_reason(&limiter, 1059), SS_LIMIT_QUOTA);
    assert_int_equal(ss_limiter_reason(&limiter, 1060), SS_LIMIT_NONE);
    assert_int_equal(ss_limiter_draw(&limiter, 10, 0, &wait), 10);
    /* What is given back belongs to the period before. */
    assert_int_equal(ss_limiter_reason(&limiter, 1060 + 10 * 60 + 5), SS_LIMIT_NONE);
    ss_limiter_return(&limiter, 10);
    assert_int_equal(atomic_load(&limiter.used), 0);
    /* Periods stay where they were. */
    assert_int_equal(ss_limiter_draw(&limiter, 10, 0, &wait), 10);
    assert_int_equal(ss_limiter_reason(&limiter, 1060 + 11 * 60 - 1), SS_LIMIT_QUOTA);
    assert_int_equal(ss_limiter_reason(&limiter, 1060 + 11 * 60), SS_LIMIT_NONE);
}

static void an_end_in_time_ends(void **state)
{
    const struct ss_limits limits = {.expires_s = 5000};
    struct ss_limiter limiter = {0};
    (void)state;

    ss_limiter_set(&limiter, &limits, 0);
    assert_int_equal(ss_limiter_reason(&limiter, 4999), SS_LIMIT_NONE);
    assert_int_equal(ss_limiter_reason(&limiter, 5000), SS_LIMIT_EXPIRED);
}

/* Draws whatever there is each millisecond; bytes after so many. */
static uint64_t drawn(struct ss_limiter *limiter, uint64_t from_ms, uint64_t ms)
{
    uint64_t sum = 0;

    for (uint64_t at = from_ms; at < from_ms + ms; at++) {
        bool wait;
        size_t got;

        while ((got = ss_limiter_draw(limiter, 65536, at * MS, &wait)) != 0)
            sum += got;
        assert_true(wait);
    }
    return sum;
}

static void a_rate_holds_whatever_it_is(void **state)
{
    static const uint64_t rates[] = {1, 9, 100, 5000, 1000000, 125000000, UINT64_C(20000000000)};
    (void)state;

    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        const struct ss_limits limits = {.rate = rates[i]};
        struct ss_limiter limiter = {0};
        uint64_t got;

        ss_limiter_set(&limiter, &limits, 0);
        (void)drawn(&limiter, 100000, 2000); /* the bucket's own contents */
        got = drawn(&limiter, 102000, 10000);
        assert_in_range(got, rates[i] * 10 - rates[i] / 5 - 1, rates[i] * 10 + rates[i] / 5 + 1);
    }
}

static void a_bucket_holds_a_tenth_of_a_second(void **state)
{
    const struct ss_limits limits = {.rate = 1000000};
    struct ss_limiter limiter = {0};
    (void)state;

    ss_limiter_set(&limiter, &limits, 0);
    assert_in_range(drawn(&limiter, 1000, 1), 90000, 101000);
    /* However long nobody drew. */
    assert_in_range(drawn(&limiter, 9000000, 1), 90000, 101000);
}

static void a_datagram_larger_than_the_bucket_passes_when_it_is_full(void **state)
{
    const struct ss_limits limits = {.rate = 1000};
    struct ss_limiter limiter = {0};
    (void)state;

    ss_limiter_set(&limiter, &limits, 0);
    assert_true(ss_limiter_take(&limiter, 1400, 1000 * MS));
    assert_false(ss_limiter_take(&limiter, 1400, 2000 * MS));
    assert_true(ss_limiter_take(&limiter, 1400, 2400 * MS));
}

static void connections_are_counted(void **state)
{
    const struct ss_limits limits = {.max_connections = 2};
    struct ss_limiter limiter = {0};
    (void)state;

    ss_limiter_set(&limiter, &limits, 0);
    assert_true(ss_limiter_enter(&limiter));
    assert_true(ss_limiter_enter(&limiter));
    assert_false(ss_limiter_enter(&limiter));
    ss_limiter_leave(&limiter);
    assert_true(ss_limiter_enter(&limiter));
}

static void *draw_all(void *argument)
{
    static _Thread_local uint64_t sum;
    bool wait;
    size_t got;

    sum = 0;
    while ((got = ss_limiter_draw(argument, 1000, 0, &wait)) != 0) {
        size_t unused = got / 3;

        ss_limiter_return(argument, unused);
        sum += got - unused;
    }
    return (void *)(uintptr_t)sum;
}

static void threads_share_a_quota_to_the_byte(void **state)
{
    const struct ss_limits limits = {.quota = 10000000};
    struct ss_limiter limiter = {0};
    pthread_t threads[4];
    uint64_t sum = 0;
    (void)state;

    ss_limiter_set(&limiter, &limits, 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, draw_all, &limiter), 0);
    for (int i = 0; i < 4; i++) {
        void *got;

        assert_int_equal(pthread_join(threads[i], &got), 0);
        sum += (uintptr_t)got;
    }
    /* One may see nothing left while another is about to give back. */
    assert_in_range(sum, limits.quota - 4 * 1000, limits.quota);
    assert_int_equal(atomic_load(&limiter.used), sum);
}

int limiter_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_of_zero_limits_nothing),
        cmocka_unit_test(a_quota_is_granted_to_the_byte),
        cmocka_unit_test(a_raised_quota_acts_at_once),
        cmocka_unit_test(a_period_begins_the_count_anew),
        cmocka_unit_test(an_end_in_time_ends),
        cmocka_unit_test(a_rate_holds_whatever_it_is),
        cmocka_unit_test(a_bucket_holds_a_tenth_of_a_second),
        cmocka_unit_test(a_datagram_larger_than_the_bucket_passes_when_it_is_full),
        cmocka_unit_test(connections_are_counted),
        cmocka_unit_test(threads_share_a_quota_to_the_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
