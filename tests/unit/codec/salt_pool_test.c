/* The exact salts of the last minute. */
#include "codec/salt_pool.h"

#include <pthread.h>
#include <string.h>

#include "support.h"
#include "vectors/read.h"

#define NOW INT64_C(1700000000)

static const uint8_t *salt_of(uint32_t number)
{
    static uint8_t salt[32];

    memset(salt, (int)(number % 3), sizeof salt);
    memcpy(salt + 7, &number, sizeof number);
    return salt;
}

static enum ss_status store(struct ss_salt_pool *pool, uint32_t number, int64_t now_s)
{
    return ss_salt_pool_store(pool, salt_of(number), 32, now_s);
}

static void a_salt_is_refused_for_sixty_seconds(void **state)
{
    struct ss_salt_pool *pool = ss_salt_pool_new(100);

    (void)state;
    for (int64_t wait = 0; wait <= 60; wait++) {
        int64_t now_s = NOW + 1000 * wait;

        assert_int_equal(store(pool, 1, now_s), SS_OK);
        assert_int_equal(store(pool, 1, now_s + wait), SS_ERR_REPLAY);
    }
    /* A request with a stamp 30 s ahead is good for 60 s, not for 61. */
    assert_int_equal(store(pool, 2, 2 * NOW), SS_OK);
    assert_int_equal(store(pool, 2, 2 * NOW + 60), SS_ERR_REPLAY);
    assert_int_equal(store(pool, 2, 2 * NOW + 61), SS_OK);
    ss_salt_pool_free(pool);
}

static void a_refusal_does_not_renew(void **state)
{
    struct ss_salt_pool *pool = ss_salt_pool_new(100);

    (void)state;
    assert_int_equal(store(pool, 1, NOW), SS_OK);
    assert_int_equal(store(pool, 1, NOW + 50), SS_ERR_REPLAY);
    assert_int_equal(store(pool, 1, NOW + 61), SS_OK);
    ss_salt_pool_free(pool);
}

static void a_full_pool_takes_nothing_and_forgets_nothing(void **state)
{
    struct ss_salt_pool *pool = ss_salt_pool_new(1000);

    (void)state;
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(store(pool, i, NOW + i / 100), SS_OK);
    assert_int_equal(store(pool, 5000, NOW + 60), SS_ERR_LIMIT);
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(store(pool, i, NOW + 60), SS_ERR_REPLAY);
    assert_int_equal(store(pool, 5000, NOW + 60), SS_ERR_LIMIT);
    /* The first hundred are of age a second later. */
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(store(pool, 5000 + i, NOW + 61), SS_OK);
    assert_int_equal(store(pool, 6000, NOW + 61), SS_ERR_LIMIT);
    assert_int_equal(ss_salt_pool_count(pool), 1000);
    for (uint32_t i = 100; i < 1000; i++)
        assert_int_equal(store(pool, i, NOW + 61), SS_ERR_REPLAY);
    ss_salt_pool_free(pool);
}

static void a_clock_that_is_set_back_forgets_nothing(void **state)
{
    struct ss_salt_pool *pool = ss_salt_pool_new(100);

    (void)state;
    assert_int_equal(store(pool, 1, NOW), SS_OK);
    assert_int_equal(store(pool, 2, NOW + 30), SS_OK);
    assert_int_equal(store(pool, 3, NOW - 100000), SS_OK);
    assert_int_equal(store(pool, 1, NOW - 100000 + 20), SS_ERR_REPLAY);
    assert_int_equal(store(pool, 2, NOW - 100000 + 60), SS_ERR_REPLAY);
    assert_int_equal(store(pool, 3, NOW - 100000 + 60), SS_ERR_REPLAY);
    /* And what is old by the clock as it went on is forgotten, though it never read so late. */
    assert_int_equal(store(pool, 1, NOW - 100000 + 61), SS_OK);
    /* Forward by any amount. */
    assert_int_equal(store(pool, 3, INT64_MAX), SS_OK);
    assert_int_equal(store(pool, 3, INT64_MAX), SS_ERR_REPLAY);
    ss_salt_pool_free(pool);
}

/* Tens of thousands come and go, twice; each is found while it must be and never afterwards. */
static void many_salts_come_and_go(void **state)
{
    enum { A_SECOND = 500 };
    struct ss_salt_pool *pool = ss_salt_pool_new(1 << 16);

    (void)state;
    for (int round = 0; round < 2; round++) {
        int64_t start = NOW + 100000 * round;

        for (uint32_t second = 0; second < 90; second++)
            for (uint32_t i = 0; i < A_SECOND; i++) {
                uint32_t number = second * A_SECOND + i;

                assert_int_equal(store(pool, number, start + second), SS_OK);
                assert_int_equal(store(pool, number, start + second), SS_ERR_REPLAY);
                if (second >= 60)
                    assert_int_equal(store(pool, number - 60 * A_SECOND, start + second),
                                     SS_ERR_REPLAY);
            }
        assert_true(ss_salt_pool_count(pool) <= 61 * A_SECOND + A_SECOND);
    }
    /* After a pause it empties a little with each call, and gives its memory back. */
    for (uint32_t i = 0; i < 3000; i++)
        assert_int_equal(store(pool, 1000000 + i, NOW + 500000 + i), SS_OK);
    assert_int_equal(ss_salt_pool_count(pool), 61);
    ss_salt_pool_free(pool);
}

static void salts_of_both_lengths_are_kept_apart_from_others(void **state)
{
    struct ss_salt_pool *pool = ss_salt_pool_new(10);
    uint8_t salt[32] = {1};

    (void)state;
    assert_int_equal(ss_salt_pool_store(pool, salt, 16, NOW), SS_OK);
    for (size_t bit = 0; bit < 16 * 8; bit++) {
        struct ss_salt_pool *other = ss_salt_pool_new(10);

        assert_int_equal(ss_salt_pool_store(other, salt, 16, NOW), SS_OK);
        salt[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(ss_salt_pool_store(other, salt, 16, NOW), SS_OK);
        salt[bit / 8] ^= (uint8_t)(1u << bit % 8);
        ss_salt_pool_free(other);
    }
    salt[31] = 1;
    assert_int_equal(ss_salt_pool_store(pool, salt, 32, NOW), SS_OK);
    assert_int_equal(ss_salt_pool_store(pool, salt, 32, NOW), SS_ERR_REPLAY);
    ss_salt_pool_free(pool);
}

struct thread {
    pthread_t thread;
    struct ss_salt_pool *pool;
    unsigned stored;
};

static void *store_all(void *argument)
{
    struct thread *thread = argument;

    for (uint32_t i = 0; i < 20000; i++) {
        uint8_t salt[32] = {0};

        memcpy(salt, &i, sizeof i);
        thread->stored += ss_salt_pool_store(thread->pool, salt, 32, NOW) == SS_OK;
    }
    return NULL;
}

static void each_salt_is_taken_from_one_thread_alone(void **state)
{
    struct ss_salt_pool *pool = ss_salt_pool_new(30000);
    struct thread threads[3];
    unsigned sum = 0;

    (void)state;
    for (int i = 0; i < 3; i++) {
        threads[i] = (struct thread){.pool = pool};
        assert_int_equal(pthread_create(&threads[i].thread, NULL, store_all, &threads[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i].thread, NULL), 0);
        sum += threads[i].stored;
    }
    assert_int_equal(sum, 20000);
    ss_salt_pool_free(pool);
}

static void nothing_is_allocated_for_a_salt(void **state)
{
    struct ss_salt_pool *pool = ss_salt_pool_new(SS_SALT_POOL_DEFAULT);
    unsigned long before = allocation_count();

    (void)state;
    for (uint32_t i = 0; i < 20000; i++)
        (void)(store(pool, i, NOW + i / 100) == SS_OK);
    before = allocation_count() - before;
    assert_int_equal(before, 0);
    ss_salt_pool_free(pool);
}

static void sizes_that_can_not_be_are_refused(void **state)
{
    (void)state;
    assert_null(ss_salt_pool_new(0));
    assert_null(ss_salt_pool_new((size_t)SS_SALT_POOL_MAX + 1));
    ss_salt_pool_free(NULL);
}

int salt_pool_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_salt_is_refused_for_sixty_seconds),
        cmocka_unit_test(a_refusal_does_not_renew),
        cmocka_unit_test(a_full_pool_takes_nothing_and_forgets_nothing),
        cmocka_unit_test(a_clock_that_is_set_back_forgets_nothing),
        cmocka_unit_test(many_salts_come_and_go),
        cmocka_unit_test(salts_of_both_lengths_are_kept_apart_from_others),
        cmocka_unit_test(each_salt_is_taken_from_one_thread_alone),
        cmocka_unit_test(nothing_is_allocated_for_a_salt),
        cmocka_unit_test(sizes_that_can_not_be_are_refused),
    };

    return cmocka_run_group_tests_name("codec/salt pool", tests, NULL, NULL);
}
