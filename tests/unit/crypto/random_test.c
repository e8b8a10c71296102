/* Random bytes: no repeats over threads and forks, even numbers, a source for tests. */
#include "crypto/random.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vectors/read.h"

#define DRAW_LEN 32

static int start(void **state)
{
    (void)state;
    return ss_random_start() != SS_OK;
}

static int compare_draws(const void *a, const void *b)
{
    return memcmp(a, b, DRAW_LEN);
}

/* More than is made at a time, and more than is made between two questions to the system. */
static void no_draw_repeats(void **state)
{
    enum { COUNT = 20000 };
    uint8_t *draws = malloc((size_t)COUNT * DRAW_LEN);

    (void)state;
    assert_non_null(draws);
    for (size_t i = 0; i < COUNT; i++)
        ss_random_bytes(draws + i * DRAW_LEN, DRAW_LEN);
    qsort(draws, COUNT, DRAW_LEN, compare_draws);
    for (size_t i = 1; i < COUNT; i++)
        assert_memory_not_equal(draws + (i - 1) * DRAW_LEN, draws + i * DRAW_LEN, DRAW_LEN);
    free(draws);
}

/* Each bit is set about half of the time, whatever length is asked for. */
static void bits_are_even(void **state)
{
    uint8_t bytes[3001];
    size_t ones = 0, all = 0;

    (void)state;
    for (size_t len = 1; len < sizeof bytes; len += 97) {
        ss_random_bytes(bytes, len);
        for (size_t i = 0; i < len; i++)
            for (int bit = 0; bit < 8; bit++)
                ones += bytes[i] >> bit & 1;
        all += len * 8;
    }
    /* Twenty standard deviations. */
    assert_true(ones > all / 2 - 6500 && ones < all / 2 + 6500);
}

static void a_forked_child_draws_other_bytes(void **state)
{
    uint8_t ours[DRAW_LEN], theirs[DRAW_LEN];
    int ends[2];
    int status;
    pid_t child;

    (void)state;
    ss_random_bytes(ours, 1); /* so that bytes are left over in the generator */
    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        ss_random_bytes(theirs, sizeof theirs);
        _exit(write(ends[1], theirs, sizeof theirs) != (ssize_t)sizeof theirs);
    }
    ss_random_bytes(ours, sizeof ours);
    assert_int_equal(read(ends[0], theirs, sizeof theirs), sizeof theirs);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_memory_not_equal(ours, theirs, DRAW_LEN);
    close(ends[0]);
    close(ends[1]);
}

static void *draw(void *out)
{
    ss_random_bytes(out, DRAW_LEN);
    return NULL;
}

static void threads_draw_different_bytes(void **state)
{
    uint8_t draws[4][DRAW_LEN];
    pthread_t threads[4];

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, draw, draws[i]), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++)
            assert_memory_not_equal(draws[i], draws[j], DRAW_LEN);
}

static void numbers_are_below_their_bound(void **state)
{
    unsigned seen[7] = {0};

    (void)state;
    for (int i = 0; i < 7000; i++) {
        uint32_t number = ss_random_below(7);

        assert_true(number < 7);
        seen[number]++;
    }
    for (int i = 0; i < 7; i++)
        assert_true(seen[i] > 700 && seen[i] < 1300);
    assert_int_equal(ss_random_below(1), 0);
    for (int i = 0; i < 100; i++)
        assert_true(ss_random_below(0xffffffff) < 0xffffffff);
}

static void sevens(void *out, size_t len)
{
    memset(out, 7, len);
}

static void a_test_may_put_a_source_behind(void **state)
{
    uint8_t bytes[50], wanted[50];

    (void)state;
    memset(wanted, 7, sizeof wanted);
    ss_random_set_source(sevens);
    ss_random_bytes(bytes, sizeof bytes);
    ss_random_set_source(NULL);
    assert_memory_equal(bytes, wanted, sizeof bytes);
    ss_random_bytes(bytes, sizeof bytes);
    assert_memory_not_equal(bytes, wanted, sizeof bytes);
}

int random_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_draw_repeats),
        cmocka_unit_test(bits_are_even),
        cmocka_unit_test(a_forked_child_draws_other_bytes),
        cmocka_unit_test(threads_draw_different_bytes),
        cmocka_unit_test(numbers_are_below_their_bound),
        cmocka_unit_test(a_test_may_put_a_source_behind),
    };

    return cmocka_run_group_tests_name("crypto/random", tests, start, NULL);
}
