/* The salt memory: nothing stored is forgotten too early, and memory follows what is stored. */
#include "codec/salt_memory.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "crypto/random.h"
#include "vectors/read.h"

#define SALT_LEN 32

static const uint8_t *salt_of(uint64_t number)
{
    static _Thread_local uint8_t salt[SALT_LEN];

    memset(salt, 0x5a, sizeof salt);
    ss_store_u64le(salt + 8, number);
    return salt;
}

static bool store(struct ss_salt_memory *memory, uint64_t number)
{
    return ss_salt_memory_store(memory, salt_of(number), SALT_LEN);
}

/* Foreseeing is part of every look-up here, and changes none. */
static bool contains(struct ss_salt_memory *memory, uint64_t number)
{
    ss_salt_memory_foresee(memory, ss_salt_memory_print(memory, salt_of(number), SALT_LEN));
    return ss_salt_memory_contains(memory, salt_of(number), SALT_LEN);
}

static void a_salt_is_stored_once(void **state)
{
    struct ss_salt_memory *memory = ss_salt_memory_new(1000);

    (void)state;
    assert_non_null(memory);
    for (uint64_t i = 0; i < 500; i++) {
        assert_false(contains(memory, i));
        assert_true(store(memory, i));
        assert_true(contains(memory, i));
        assert_false(store(memory, i));
    }
    /* A salt of another length is another salt. */
    assert_false(ss_salt_memory_contains(memory, salt_of(3), 16));
    assert_true(ss_salt_memory_store(memory, salt_of(3), 16));
    assert_true(ss_salt_memory_contains(memory, salt_of(3), 16));
    ss_salt_memory_free(memory);
}

/* At any time at least the last `capacity` salts are known, less what a shard may be ahead of the
 * others; what is two generations old is gone. */
static void the_older_generation_goes_when_the_younger_is_full(void **state)
{
    enum { CAPACITY = 20000 };
    struct ss_salt_memory *memory = ss_salt_memory_new(CAPACITY);
    uint64_t known = 0;

    (void)state;
    assert_non_null(memory);
    for (uint64_t i = 0; i < 6 * CAPACITY; i++) {
        assert_true(store(memory, i));
        if (i % 1000 == 0)
            for (uint64_t back = 0; back < CAPACITY * 9 / 10 && back <= i; back += 7)
                assert_true(contains(memory, i - back));
    }
    for (uint64_t i = 0; i < 6 * CAPACITY; i++)
        known += contains(memory, i);
    assert_true(known >= CAPACITY && known <= 2 * CAPACITY + 16);
    for (uint64_t i = 0; i < 3 * CAPACITY; i++)
        assert_false(contains(memory, i));
    ss_salt_memory_free(memory);
}

static void a_million_salts_are_known_exactly(void **state)
{
    struct ss_salt_memory *memory = ss_salt_memory_new(SS_SALT_MEMORY_SERVER);
    const uint64_t count = 900000;

    (void)state;
    assert_non_null(memory);
    for (uint64_t i = 0; i < count; i++)
        assert_true(store(memory, i));
    for (uint64_t i = 0; i < count; i++) {
        assert_true(contains(memory, i));
        assert_false(contains(memory, count + i));
    }
    ss_salt_memory_free(memory);
}

static void a_tiny_capacity_works(void **state)
{
    (void)state;
    for (size_t capacity = 0; capacity < 40; capacity++) {
        struct ss_salt_memory *memory = ss_salt_memory_new(capacity);

        assert_non_null(memory);
        for (uint64_t i = 0; i < 200; i++) {
            assert_true(store(memory, i));
            assert_false(store(memory, i));
        }
        ss_salt_memory_free(memory);
    }
}

/* Private bytes of the process, in KiB. */
static size_t private_kib(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    size_t kib = 0;

    if (status == NULL)
        return 0;
    while (fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "RssAnon: %zu", &kib) == 1)
            break;
    fclose(status);
    return kib;
}

static void memory_follows_what_is_stored(void **state)
{
    static const struct {
        uint64_t count;
        size_t kib; /* at most */
    } steps[] = {{0, 16}, {1000, 100}, {10000, 300}, {100000, 2300}};
    struct ss_salt_memory *memory;
    size_t before = private_kib();
    uint64_t stored = 0;

    (void)state;
#ifdef SS_SANITIZED
    skip(); /* a sanitizer's own memory is in the figure */
#endif
    if (before == 0 || getenv("LD_PRELOAD") != NULL)
        skip(); /* not Linux; or valgrind, whose memory is in the figure too */
    memory = ss_salt_memory_new(SS_SALT_MEMORY_SERVER);
    assert_non_null(memory);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        for (; stored < steps[i].count; stored++)
            assert_true(store(memory, stored));
        for (uint64_t ahead = 0; ahead < 1000; ahead++)
            ss_salt_memory_foresee(memory,
                                   ss_salt_memory_print(memory, salt_of(stored + ahead), SALT_LEN));
        assert_false(contains(memory, stored));
        assert_true(private_kib() <= before + steps[i].kib);
    }
    ss_salt_memory_free(memory);
    assert_true(private_kib() <= before + 64);
}

struct racer {
    struct ss_salt_memory *memory;
    uint64_t first, count;
    uint64_t won; /* stores that said "new" */
};

static void *race(void *argument)
{
    struct racer *racer = argument;

    for (uint64_t i = 0; i < racer->count; i++) {
        racer->won += store(racer->memory, racer->first + i);
        if (!contains(racer->memory, racer->first + i))
            racer->won += racer->count; /* seen by the check of the sum */
    }
    return NULL;
}

/* Threads store overlapping ranges: each salt is new to exactly one of them. */
static void threads_agree_on_who_was_first(void **state)
{
    enum { THREADS = 4, EACH = 20000 };
    struct ss_salt_memory *memory = ss_salt_memory_new(SS_SALT_MEMORY_SERVER);
    struct racer racers[THREADS];
    pthread_t threads[THREADS];
    uint64_t won = 0;

    (void)state;
    assert_non_null(memory);
    for (int i = 0; i < THREADS; i++) {
        racers[i] = (struct racer){memory, (uint64_t)i * EACH / 2, EACH, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        won += racers[i].won;
    }
    assert_int_equal(won, EACH + (THREADS - 1) * EACH / 2);
    ss_salt_memory_free(memory);
}

int salt_memory_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_salt_is_stored_once),
        cmocka_unit_test(the_older_generation_goes_when_the_younger_is_full),
        cmocka_unit_test(a_million_salts_are_known_exactly),
        cmocka_unit_test(a_tiny_capacity_works),
        cmocka_unit_test(memory_follows_what_is_stored),
        cmocka_unit_test(threads_agree_on_who_was_first),
    };

    return cmocka_run_group_tests_name("codec/salt memory", tests, NULL, NULL);
}
