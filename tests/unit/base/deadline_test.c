/* Queues of deadlines. */
#include "base/deadline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void an_entry_is_due_after_the_duration_and_not_before(void **state)
{
    struct ss_deadline_queue queue;
    struct ss_deadline entry = {0};

    (void)state;
    ss_deadline_queue_init(&queue, 100);
    ss_deadline_start(&queue, &entry, 1000);
    assert_true(ss_deadline_pending(&entry));
    assert_ptr_equal(ss_deadline_first(&queue), &entry);
    assert_null(ss_deadline_pop(&queue, 1099));
    assert_ptr_equal(ss_deadline_pop(&queue, 1100), &entry);
    assert_false(ss_deadline_pending(&entry));
    assert_null(ss_deadline_first(&queue));
    assert_null(ss_deadline_pop(&queue, UINT64_MAX));
}

static void entries_come_out_in_the_order_they_were_started(void **state)
{
    struct ss_deadline_queue queue;
    struct ss_deadline entries[4] = {{0}};

    (void)state;
    ss_deadline_queue_init(&queue, 10);
    for (uint64_t i = 0; i < 4; i++)
        ss_deadline_start(&queue, &entries[i], 100 + i / 2); /* two in a millisecond */
    for (uint64_t i = 0; i < 4; i++)
        assert_ptr_equal(ss_deadline_pop(&queue, 200), &entries[i]);
    assert_null(ss_deadline_pop(&queue, 200));
}

static void starting_again_moves_an_entry_to_the_end(void **state)
{
    struct ss_deadline_queue queue;
    struct ss_deadline a = {0}, b = {0};

    (void)state;
    ss_deadline_queue_init(&queue, 10);
    ss_deadline_start(&queue, &a, 0);
    ss_deadline_start(&queue, &b, 1);
    ss_deadline_start(&queue, &a, 5);
    assert_ptr_equal(ss_deadline_pop(&queue, 11), &b);
    assert_null(ss_deadline_pop(&queue, 14));
    assert_ptr_equal(ss_deadline_pop(&queue, 15), &a);
}

static void starting_in_another_queue_leaves_the_first(void **state)
{
    struct ss_deadline_queue brief, lasting;
    struct ss_deadline entry = {0};

    (void)state;
    ss_deadline_queue_init(&brief, 10);
    ss_deadline_queue_init(&lasting, 1000);
    ss_deadline_start(&brief, &entry, 0);
    ss_deadline_start(&lasting, &entry, 0);
    assert_null(ss_deadline_first(&brief));
    assert_null(ss_deadline_pop(&brief, 5000));
    assert_null(ss_deadline_pop(&lasting, 999));
    assert_ptr_equal(ss_deadline_pop(&lasting, 1000), &entry);
}

static void a_stopped_entry_never_comes(void **state)
{
    struct ss_deadline_queue queue;
    struct ss_deadline entries[3] = {{0}};

    (void)state;
    ss_deadline_queue_init(&queue, 10);
    for (int i = 0; i < 3; i++)
        ss_deadline_start(&queue, &entries[i], 0);
    ss_deadline_stop(&entries[1]);
    ss_deadline_stop(&entries[1]); /* once more is fine */
    assert_false(ss_deadline_pending(&entries[1]));
    assert_ptr_equal(ss_deadline_pop(&queue, 10), &entries[0]);
    assert_ptr_equal(ss_deadline_pop(&queue, 10), &entries[2]);
    assert_null(ss_deadline_pop(&queue, 10));
}

static void an_entry_that_began_earlier_is_put_in_order(void **state)
{
    struct ss_deadline_queue queue;
    struct ss_deadline entries[5] = {{0}};
    static const uint64_t since[5] = {50, 70, 60, 10, 60};
    static const int order[5] = {3, 0, 2, 4, 1}; /* of equals the one that came later is later */

    (void)state;
    ss_deadline_queue_init(&queue, 100);
    for (int i = 0; i < 5; i++)
        ss_deadline_start_since(&queue, &entries[i], since[i]);
    for (int i = 0; i < 5; i++) {
        uint64_t due = since[order[i]] + 100;

        assert_null(ss_deadline_pop(&queue, due - 1));
        assert_ptr_equal(ss_deadline_pop(&queue, due), &entries[order[i]]);
    }
}

static void a_clock_that_lags_a_little_keeps_the_order(void **state)
{
    struct ss_deadline_queue queue;
    struct ss_deadline ahead = {0}, behind = {0};

    (void)state;
    ss_deadline_queue_init(&queue, 100);
    ss_deadline_start_since(&queue, &ahead, 52); /* as another thread's clock said */
    ss_deadline_start(&queue, &behind, 50);
    assert_ptr_equal(ss_deadline_first(&queue), &behind);
    assert_ptr_equal(ss_deadline_pop(&queue, 150), &behind);
    assert_null(ss_deadline_pop(&queue, 151));
    assert_ptr_equal(ss_deadline_pop(&queue, 152), &ahead);
}

static void a_duration_beyond_the_clock_never_ends(void **state)
{
    struct ss_deadline_queue queue;
    struct ss_deadline entry = {0};

    (void)state;
    ss_deadline_queue_init(&queue, UINT64_MAX);
    ss_deadline_start(&queue, &entry, 12345);
    assert_null(ss_deadline_pop(&queue, UINT64_MAX - 1));
    assert_true(ss_deadline_pending(&entry));
}

static void an_entry_may_be_started_again_from_its_own_end(void **state)
{
    struct ss_deadline_queue queue;
    struct ss_deadline entry = {0};
    int rounds = 0;

    (void)state;
    ss_deadline_queue_init(&queue, 10);
    ss_deadline_start(&queue, &entry, 0);
    while (ss_deadline_pop(&queue, 10) != NULL) {
        rounds++;
        ss_deadline_start(&queue, &entry, 10);
    }
    assert_int_equal(rounds, 1); /* a loop over what is due ends */
}

int deadline_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_is_due_after_the_duration_and_not_before),
        cmocka_unit_test(entries_come_out_in_the_order_they_were_started),
        cmocka_unit_test(starting_again_moves_an_entry_to_the_end),
        cmocka_unit_test(starting_in_another_queue_leaves_the_first),
        cmocka_unit_test(a_stopped_entry_never_comes),
        cmocka_unit_test(an_entry_that_began_earlier_is_put_in_order),
        cmocka_unit_test(a_clock_that_lags_a_little_keeps_the_order),
        cmocka_unit_test(a_duration_beyond_the_clock_never_ends),
        cmocka_unit_test(an_entry_may_be_started_again_from_its_own_end),
    };

    return cmocka_run_group_tests_name("deadline", tests, NULL, NULL);
}
