/* The window of packet IDs: the vectors', and any order against a plain set. */
#include "codec/replay_window.h"

#include <stdlib.h>
#include <string.h>

#include "crypto/random.h"
#include "vectors/read.h"

static bool offer(struct ss_replay_window *window, uint64_t id)
{
    bool accepted = ss_replay_window_accepts(window, id);

    assert_true(ss_replay_window_accepts(window, id) == accepted); /* asking does not mark */
    if (accepted) {
        ss_replay_window_mark(window, id);
        assert_false(ss_replay_window_accepts(window, id));
    }
    return accepted;
}

static void verdicts_are_those_of_the_vectors(void **state)
{
    json_t *file = vectors_load("packet-window.json");
    const json_t *vector, *id;
    size_t i, k;

    (void)state;
    json_array_foreach(json_object_get(file, "cases"), i, vector)
    {
        struct ss_replay_window window = {0};

        assert_true(vector_number(vector, "min_window") <= SS_REPLAY_WINDOW);
        assert_true(strtoull(vector_text(vector, "max_window"), NULL, 10) >= SS_REPLAY_WINDOW);
        json_array_foreach(json_object_get(vector, "ids"), k, id)
        {
            bool want = json_is_true(json_array_get(json_object_get(vector, "want"), k));

            assert_int_equal(offer(&window, strtoull(json_string_value(id), NULL, 10)), want);
        }
    }
    assert_true(i >= 9);
    json_decref(file);
}

/* Runs from far below the top to above it, and jumps of all sizes, also at the end of numbers. */
static void any_order_is_judged_as_by_a_set(void **state)
{
    enum { SPAN = 1 << 17 };
    static uint8_t seen[SPAN];

    (void)state;
    for (int round = 0; round < 40; round++) {
        uint64_t base = round % 2 == 0 ? 0 : UINT64_MAX - SPAN + 1;
        struct ss_replay_window window = {0};
        uint64_t top = base;

        memset(seen, 0, sizeof seen);
        if (base != 0)
            seen[0] = offer(&window, base);
        for (int i = 0; i < 3000; i++) {
            uint32_t below = ss_random_below(round % 4 < 2 ? 1200 : 60);
            uint64_t id = top - base > below ? top - below : base;
            bool want;

            switch (ss_random_below(8)) {
            case 0:
                id = top + ss_random_below(3);
                break;
            case 1:
                id = top + ss_random_below(round % 3 == 0 ? 2000 : 130);
                break;
            default:
                break;
            }
            if (id - base >= SPAN)
                break;
            want = !seen[id - base] && (id > top || top - id < SS_REPLAY_WINDOW);
            assert_int_equal(offer(&window, id), want);
            seen[id - base] = 1;
            if (id > top)
                top = id;
        }
    }
}

int replay_window_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_are_those_of_the_vectors),
        cmocka_unit_test(any_order_is_judged_as_by_a_set),
    };

    return cmocka_run_group_tests_name("codec/replay window", tests, NULL, NULL);
}
