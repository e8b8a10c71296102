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
    return ss_salt_pool_store(pool, salt_of(number), 32, now_s, now_s);
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

static enum ss_status store_stamped(struct ss_salt_pool *pool, uint32_t number, int64_t stamp_s,
                                    int64_t now_s)
{
    return ss_salt_pool_store(pool, salt_of(number), 32, stamp_s, now_s);
}

/* However the clock is set: a stamp that is good again finds its salt. */
static void a_clock_that_is_set_back_forgets_nothing(void **state)
{
    struct ss_salt_pool *pool = ss_salt_pool_new(200);

    (void)state;
    assert_int_equal(store_stamped(pool, 1, NOW + 30, NOW), SS_OK);
    assert_int_equal(store(pool, 2, NOW + 50), SS_OK);
    /* By five seconds: the stamp of the first is good for 65 s after it came. */
    assert_int_equal(store(pool, 3, NOW + 51 - 5), SS_OK);
    assert_int_equal(store_stamped(pool, 1, NOW + 30, NOW + 60), SS_ERR_REPLAY);
    /* By an hour, and the hour passes. Others come and go meanwhile. */
    for (int64_t now_s = NOW - 3600; now_s < NOW + 80; now_s++)
        assert_int_equal(store(pool, 100 + (uint32_t)(now_s - NOW + 3600), now_s), SS_OK);
    /* Those of before may hold up others until their own minute is over. */
    assert_true(ss_salt_pool_count(pool) <= 3 * 61);
    assert_int_equal(store(pool, 2, NOW + 80), SS_ERR_REPLAY);
    assert_int_equal(store(pool, 2, NOW + 110), SS_ERR_REPLAY);
    ss_salt_pool_free(pool);
}

/* What was forgotten while the clock was further can't be told from what is new. */
static void behind_what_was_forgotten_nothing_is_taken(void **state)
{
    struct ss_salt_pool *pool = ss_salt_pool_new(100);

    (void)state;
    assert_int_equal(store(pool, 1, NOW), SS_OK);
    assert_int_equal(store(pool, 2, NOW + 61), SS_OK); /* the first is forgotten */
    assert_int_equal(ss_salt_pool_count(pool), 1);
    assert_int_equal(store(pool, 1, NOW), SS_ERR_CLOCK);
    assert_int_equal(store(pool, 3, NOW + 30), SS_ERR_CLOCK);
    /* For no longer than that, and not for those who never were there so late. */
    assert_int_equal(store(pool, 3, NOW + 31), SS_OK);
    assert_int_equal(store(pool, 4, NOW + 61 - 30), SS_OK);
    assert_int_equal(store(pool, 5, NOW + 2), SS_ERR_CLOCK);
    assert_int_equal(ss_salt_pool_count(pool), 3);
    ss_salt_pool_free(pool);
}

/* Requests that come, and come again whenever their stamps are good, under a clock that is set to
 * and fro: none is taken twice. Under one that only goes on, or back by less than the tolerance
 * while the peers have the right time, none is refused that is new. */
static void no_clock_lets_anything_in_twice(void **state)
{
    enum { TURNS = 4000, LATE = 300 };
    static struct {
        int64_t stamp_s;
        bool is_in;
    } seen[TURNS];

    (void)state;
    for (unsigned how = 0; how < 4; how++) {
        struct ss_salt_pool *pool = ss_salt_pool_new(TURNS);
        int64_t now_s = NOW;
        uint32_t random = 12345 + how;

        for (uint32_t turn = 0; turn < TURNS; turn++) {
            enum ss_status status;

            random = random * 1664525 + 1013904223;
            now_s += random >> 24 < 100; /* a second passes */
            if (how == 1 && turn % 97 == 0)
                now_s -= 20;
            if (how >= 2 && turn % 97 == 0)
                now_s += (int64_t)((random >> 8) % 501) - (how == 2 ? 250 : 350);
            seen[turn].stamp_s = now_s + (how == 1 ? 0 : (int64_t)((random >> 16) % 61) - 30);
            status = store_stamped(pool, turn, seen[turn].stamp_s, now_s);
            assert_true(status == SS_OK || (status == SS_ERR_CLOCK && how >= 2));
            seen[turn].is_in = status == SS_OK;
            for (uint32_t i = turn > LATE ? turn - LATE : 0; i <= turn; i++)
                if (seen[i].stamp_s >= now_s - 30 && seen[i].stamp_s <= now_s + 30) {
                    status = store_stamped(pool, i, seen[i].stamp_s, now_s);
                    assert_true(!(seen[i].is_in && status == SS_OK));
                    seen[i].is_in |= status == SS_OK;
                }
        }
        ss_salt_pool_free(pool);
    }
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
    assert_int_equal(ss_salt_pool_store(pool, salt, 16, NOW, NOW), SS_OK);
    for (size_t bit = 0; bit < 16 * 8; bit++) {
        struct ss_salt_pool *other = ss_salt_pool_new(10);

        assert_int_equal(ss_salt_pool_store(other, salt, 16, NOW, NOW), SS_OK);
        salt[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(ss_salt_pool_store(other, salt, 16, NOW, NOW), SS_OK);
        salt[bit / 8] ^= (uint8_t)(1u << bit % 8);
        ss_salt_pool_free(other);
    }
    salt[31] = 1;
    assert_int_equal(ss_salt_pool_store(pool, salt, 32, NOW, NOW), SS_OK);
    assert_int_equal(ss_salt_pool_store(pool, salt, 32, NOW, NOW), SS_ERR_REPLAY);
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
        thread->stored += ss_salt_pool_store(thread->pool, salt, 32, NOW, NOW) == SS_OK;
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
        cmocka_unit_test(behind_what_was_forgotten_nothing_is_taken),
        cmocka_unit_test(no_clock_lets_anything_in_twice),
        cmocka_unit_test(many_salts_come_and_go),
        cmocka_unit_test(salts_of_both_lengths_are_kept_apart_from_others),
        cmocka_unit_test(each_salt_is_taken_from_one_thread_alone),
        cmocka_unit_test(nothing_is_allocated_for_a_salt),
        cmocka_unit_test(sizes_that_can_not_be_are_refused),
    };

    return cmocka_run_group_tests_name("codec/salt pool", tests, NULL, NULL);
}
