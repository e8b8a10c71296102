/* Which upstream server is chosen, with a clock handed in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "crypto/random.h"
#include "relay/upstreams.h"

#define TCP   SS_TRANSPORT_TCP
#define UDP   SS_TRANSPORT_UDP
#define START UINT64_C(1000000)
#define MIN   UINT64_C(60000)

struct rig {
    struct ss_upstream list[4];
    struct ss_upstream_set set;
    uint64_t now_ms;
};

static struct rig rig_of(size_t count)
{
    struct rig rig = {.now_ms = START};

    for (size_t i = 0; i < count; i++) {
        snprintf(rig.list[i].endpoint.host, sizeof rig.list[i].endpoint.host, "192.0.2.%zu", i);
        rig.list[i].endpoint.port = 8388;
    }
    return rig;
}

static void begin(struct rig *rig, size_t count, enum ss_balance balance)
{
    *rig = rig_of(count);
    assert_int_equal(ss_upstream_set_init(&rig->set, rig->list, count, balance), SS_OK);
}

static size_t choose(struct rig *rig, enum ss_transport transport)
{
    struct ss_upstream_bits tried = {0};

    return ss_upstreams_choose(&rig->set, transport, &tried, rig->now_ms);
}

static void connected(struct rig *rig, size_t index, uint64_t ms)
{
    (void)ss_upstream_connected(rig->set.states[index], ms * 1000, rig->now_ms);
}

static void failed(struct rig *rig, size_t index, enum ss_transport transport)
{
    (void)ss_upstream_failed(rig->set.states[index], transport, true, rig->now_ms, rig->now_ms);
}

/* Each is measured by one connection. */
static void measure(struct rig *rig, size_t count, const uint64_t *ms)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(choose(rig, TCP), i);
        connected(rig, i, ms[i]);
    }
}

static void each_is_measured_once_and_the_fastest_is_kept(void **state)
{
    static const uint64_t ms[] = {80, 20, 50};
    struct rig rig;
    (void)state;

    begin(&rig, 3, SS_BALANCE_FASTEST);
    measure(&rig, 3, ms);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(choose(&rig, TCP), 1);
        connected(&rig, 1, 20);
    }
    /* After a while the others get one connection each, in case that they are better now. */
    rig.now_ms += 11 * MIN;
    connected(&rig, 1, 20);
    assert_int_equal(choose(&rig, TCP), 0);
    assert_int_equal(choose(&rig, TCP), 2);
    assert_int_equal(choose(&rig, TCP), 1);
    ss_upstream_set_clear(&rig.set);
}

static void small_differences_do_not_change_the_choice(void **state)
{
    static const uint64_t ms[] = {50, 48};
    struct rig rig;
    (void)state;

    begin(&rig, 2, SS_BALANCE_FASTEST);
    measure(&rig, 2, ms);
    assert_int_equal(choose(&rig, TCP), 0);
    for (int i = 0; i < 50; i++) {
        connected(&rig, 0, i % 2 == 0 ? 40 : 60);
        assert_int_equal(choose(&rig, TCP), 0);
    }
    /* A clear one does, and the way back takes as much. */
    for (int i = 0; i < 20; i++)
        connected(&rig, 0, 90);
    assert_int_equal(choose(&rig, TCP), 1);
    for (int i = 0; i < 20; i++)
        connected(&rig, 0, 45);
    assert_int_equal(choose(&rig, TCP), 1);
    for (int i = 0; i < 20; i++)
        connected(&rig, 0, 10);
    assert_int_equal(choose(&rig, TCP), 0);
    ss_upstream_set_clear(&rig.set);
}

static void a_weight_counts_against_the_connect_time(void **state)
{
    static const uint64_t ms[] = {20, 40};
    struct rig rig = rig_of(2);
    (void)state;

    rig.list[1].weight = 4 * SS_WEIGHT_ONE;
    assert_int_equal(ss_upstream_set_init(&rig.set, rig.list, 2, SS_BALANCE_FASTEST), SS_OK);
    measure(&rig, 2, ms);
    assert_int_equal(choose(&rig, TCP), 1);
    ss_upstream_set_clear(&rig.set);
}

static void one_that_failed_is_avoided_with_growing_pauses(void **state)
{
    static const uint64_t ms[] = {20, 100};
    uint64_t pause_ms = SS_AVOIDED_FIRST_MS;
    struct rig rig;
    (void)state;

    begin(&rig, 2, SS_BALANCE_FASTEST);
    measure(&rig, 2, ms);
    for (int i = 0; i < 12; i++) {
        assert_int_equal(choose(&rig, TCP), 0);
        failed(&rig, 0, TCP);
        failed(&rig, 0, TCP); /* one that was begun before the pause adds nothing */
        assert_int_equal(choose(&rig, TCP), 1);
        rig.now_ms += pause_ms - 1;
        assert_int_equal(choose(&rig, TCP), 1);
        rig.now_ms += 1;
        pause_ms = 2 * pause_ms < SS_AVOIDED_MOST_MS ? 2 * pause_ms : SS_AVOIDED_MOST_MS;
        connected(&rig, 1, 100); /* so that it is not measured anew */
    }
    /* One at a time finds out whether it is there again. */
    assert_int_equal(choose(&rig, TCP), 0);
    assert_int_equal(choose(&rig, TCP), 1);
    assert_true(ss_upstream_connected(rig.set.states[0], 20000, rig.now_ms));
    assert_int_equal(choose(&rig, TCP), 0);
    assert_int_equal(choose(&rig, TCP), 0);
    /* And the pauses begin anew. */
    assert_true(ss_upstream_failed(rig.set.states[0], TCP, true, rig.now_ms, rig.now_ms));
    assert_int_equal(ss_upstream_avoided_until(rig.set.states[0], TCP),
                     rig.now_ms + SS_AVOIDED_FIRST_MS);
    ss_upstream_set_clear(&rig.set);
}

/* Once a row, and not when it was merely late for once. */
static void failing_is_said_once(void **state)
{
    struct ss_upstream_state *server;
    struct rig rig;
    (void)state;

    begin(&rig, 2, SS_BALANCE_FASTEST);
    server = rig.set.states[0];
    assert_false(ss_upstream_failed(server, TCP, false, rig.now_ms, rig.now_ms));
    assert_false(ss_upstream_connected(server, 1000, rig.now_ms));
    assert_false(ss_upstream_failed(server, TCP, false, rig.now_ms, rig.now_ms));
    rig.now_ms += SS_AVOIDED_FIRST_MS;
    assert_true(ss_upstream_failed(server, TCP, false, rig.now_ms, rig.now_ms));
    rig.now_ms += MIN;
    assert_false(ss_upstream_failed(server, TCP, true, rig.now_ms, rig.now_ms));
    assert_true(ss_upstream_connected(server, 1000, rig.now_ms));
    assert_false(ss_upstream_connected(server, 1000, rig.now_ms));
    assert_true(ss_upstream_failed(server, UDP, true, rig.now_ms, rig.now_ms));
    assert_true(ss_upstream_answered(server, rig.now_ms));
    assert_false(ss_upstream_answered(server, rig.now_ms));
    ss_upstream_set_clear(&rig.set);
}

static void a_dial_goes_to_each_once_those_avoided_last(void **state)
{
    static const uint64_t ms[] = {20, 40, 60};
    struct ss_upstream_bits tried = {0};
    struct rig rig;
    (void)state;

    begin(&rig, 3, SS_BALANCE_FASTEST);
    measure(&rig, 3, ms);
    failed(&rig, 1, TCP);
    rig.now_ms += 10;
    failed(&rig, 0, TCP);
    assert_int_equal(ss_upstreams_choose(&rig.set, TCP, &tried, rig.now_ms), 2);
    assert_int_equal(ss_upstreams_choose(&rig.set, TCP, &tried, rig.now_ms), 1);
    assert_int_equal(ss_upstreams_choose(&rig.set, TCP, &tried, rig.now_ms), 0);
    assert_int_equal(ss_upstreams_choose(&rig.set, TCP, &tried, rig.now_ms), SS_UPSTREAM_NONE);
    ss_upstream_set_clear(&rig.set);
}

static void all_avoided_still_gives_one(void **state)
{
    struct rig rig;
    (void)state;

    begin(&rig, 1, SS_BALANCE_FASTEST);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(choose(&rig, TCP), 0);
        failed(&rig, 0, TCP);
        failed(&rig, 0, UDP);
        assert_int_equal(choose(&rig, UDP), 0);
    }
    ss_upstream_set_clear(&rig.set);
}

static void random_follows_the_weights(void **state)
{
    size_t counts[3] = {0};
    struct rig rig = rig_of(3);
    (void)state;

    rig.list[0].weight = SS_WEIGHT_ONE / 2;
    rig.list[1].weight = 2 * SS_WEIGHT_ONE;
    rig.list[2].weight = SS_WEIGHT_ONE / 2;
    assert_int_equal(ss_upstream_set_init(&rig.set, rig.list, 3, SS_BALANCE_RANDOM), SS_OK);
    for (int i = 0; i < 6000; i++)
        counts[choose(&rig, TCP)]++;
    assert_in_range(counts[0], 800, 1200);
    assert_in_range(counts[1], 3700, 4300);
    assert_in_range(counts[2], 800, 1200);
    failed(&rig, 1, TCP);
    counts[1] = 0;
    for (int i = 0; i < 500; i++)
        counts[choose(&rig, TCP)]++;
    assert_int_equal(counts[1], 0);
    ss_upstream_set_clear(&rig.set);
}

static void udp_and_tcp_share_what_they_may(void **state)
{
    static const uint64_t ms[] = {20, 100};
    struct rig rig;
    (void)state;

    begin(&rig, 2, SS_BALANCE_FASTEST);
    measure(&rig, 2, ms);
    assert_int_equal(choose(&rig, UDP), 0);
    /* Silence over UDP says nothing of TCP. */
    failed(&rig, 0, UDP);
    assert_int_equal(choose(&rig, UDP), 1);
    assert_int_equal(choose(&rig, TCP), 0);
    ss_upstream_answered(rig.set.states[0], rig.now_ms);
    assert_int_equal(choose(&rig, UDP), 0);
    /* A server that can't be connected to is avoided by both, unless its datagrams come. */
    failed(&rig, 0, TCP);
    assert_int_equal(choose(&rig, UDP), 0);
    rig.now_ms += MIN;
    connected(&rig, 1, 100);
    failed(&rig, 0, TCP);
    assert_int_equal(choose(&rig, UDP), 1);
    ss_upstream_set_clear(&rig.set);
}

static void a_failing_server_is_probed_once_a_minute(void **state)
{
    struct ss_upstream_state *server;
    struct rig rig;
    (void)state;

    begin(&rig, 2, SS_BALANCE_FASTEST);
    server = rig.set.states[0];
    assert_false(ss_upstream_wants_probe(server, rig.now_ms));
    failed(&rig, 0, TCP);
    assert_false(ss_upstream_wants_probe(server, rig.now_ms));
    rig.now_ms += MIN;
    assert_true(ss_upstream_wants_probe(server, rig.now_ms));
    assert_false(ss_upstream_wants_probe(server, rig.now_ms));
    rig.now_ms += MIN - 1;
    assert_false(ss_upstream_wants_probe(server, rig.now_ms));
    rig.now_ms += 1;
    assert_true(ss_upstream_wants_probe(server, rig.now_ms));
    connected(&rig, 0, 30);
    rig.now_ms += MIN;
    assert_false(ss_upstream_wants_probe(server, rig.now_ms));
    ss_upstream_set_clear(&rig.set);
}

static void patience_comes_from_the_connect_time(void **state)
{
    struct ss_upstream_state *server;
    struct rig rig;
    (void)state;

    begin(&rig, 1, SS_BALANCE_FASTEST);
    server = rig.set.states[0];
    assert_int_equal(ss_upstream_patience_ms(server), 250);
    connected(&rig, 0, 1);
    assert_int_equal(ss_upstream_patience_ms(server), 100);
    for (int i = 0; i < 40; i++)
        connected(&rig, 0, 101);
    assert_in_range(ss_upstream_patience_ms(server), 290, 303);
    for (int i = 0; i < 40; i++)
        connected(&rig, 0, 900);
    assert_int_equal(ss_upstream_patience_ms(server), 2000);
    for (int i = 0; i < 100; i++)
        (void)ss_upstream_connected(server, 1, rig.now_ms);
    assert_in_range(ss_upstream_connect_time(server), 1, 10);
    /* Fast open tells no time. */
    (void)ss_upstream_connected(server, 0, rig.now_ms);
    assert_in_range(ss_upstream_connect_time(server), 1, 10);
    ss_upstream_set_clear(&rig.set);
}

static struct ss_ip ip_of(const char *text)
{
    struct ss_ip ip;

    assert_int_equal(ss_ip_parse(&ip, text), SS_OK);
    return ip;
}

static void addresses_of_a_name_are_remembered(void **state)
{
    const struct ss_endpoint endpoint = {.host = "server.test", .port = 8388};
    struct ss_upstream_state *server = ss_upstream_state_new(&endpoint);
    struct ss_ip known[] = {ip_of("192.0.2.1"), ip_of("2001:db8::1"), ip_of("192.0.2.2")};
    struct ss_ip got[SS_UPSTREAM_ADDRESSES_MAX];
    (void)state;

    assert_true(ss_upstream_has_name(server));
    assert_int_equal(ss_upstream_addresses(server, got, START), 0);
    ss_upstream_remember(server, known, 3);
    assert_int_equal(ss_upstream_addresses(server, got, START), 3);
    assert_memory_equal(got, known, sizeof known);
    /* The one that was connected to goes first for a while. */
    ss_upstream_prefer(server, &known[2], START);
    assert_int_equal(ss_upstream_addresses(server, got, START + 9 * MIN), 3);
    assert_true(ss_ip_equal(&got[0], &known[2]));
    assert_true(ss_ip_equal(&got[1], &known[0]));
    assert_true(ss_ip_equal(&got[2], &known[1]));
    assert_int_equal(ss_upstream_addresses(server, got, START + 11 * MIN), 3);
    assert_true(ss_ip_equal(&got[0], &known[0]));
    /* A failed look-up changes nothing. */
    ss_upstream_remember(server, NULL, 0);
    assert_int_equal(ss_upstream_addresses(server, got, START), 3);
    ss_upstream_state_release(server);
}

static void a_state_outlives_its_list(void **state)
{
    struct ss_upstream list[1] = {{.endpoint = {.host = "192.0.2.1", .port = 1}}};
    const struct ss_endpoint other = {.host = "192.0.2.1", .port = 2};
    struct ss_upstream_set one, two;
    struct ss_upstream_view view;
    (void)state;

    list[0].state = ss_upstream_state_new(&list[0].endpoint);
    assert_int_equal(ss_upstream_set_init(&one, list, 1, SS_BALANCE_FASTEST), SS_OK);
    assert_ptr_equal(ss_upstreams_find(list, 1, &list[0].endpoint), list[0].state);
    assert_null(ss_upstreams_find(list, 1, &other));
    (void)ss_upstream_failed(one.states[0], TCP, true, START, START);
    ss_upstream_state_release(list[0].state);
    assert_int_equal(ss_upstream_set_init(&two, list, 1, SS_BALANCE_FASTEST), SS_OK);
    ss_upstream_set_clear(&one);
    ss_upstream_state_view(two.states[0], START + 400, &view);
    assert_int_equal(view.failures, 1);
    assert_int_equal(view.avoided_ms, 600);
    ss_upstream_set_clear(&two);
}

static void too_many_are_refused(void **state)
{
    static struct ss_upstream list[SS_UPSTREAMS_MAX + 1];
    struct ss_upstream_set set;
    (void)state;

    assert_int_equal(ss_upstream_set_init(&set, list, SS_UPSTREAMS_MAX + 1, SS_BALANCE_RANDOM),
                     SS_ERR_ARGUMENT);
    ss_upstream_set_clear(&set);
    assert_int_equal(ss_upstream_set_init(&set, list, SS_UPSTREAMS_MAX, SS_BALANCE_RANDOM), SS_OK);
    ss_upstream_set_clear(&set);
}

int upstreams_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_measured_once_and_the_fastest_is_kept),
        cmocka_unit_test(small_differences_do_not_change_the_choice),
        cmocka_unit_test(a_weight_counts_against_the_connect_time),
        cmocka_unit_test(one_that_failed_is_avoided_with_growing_pauses),
        cmocka_unit_test(failing_is_said_once),
        cmocka_unit_test(a_dial_goes_to_each_once_those_avoided_last),
        cmocka_unit_test(all_avoided_still_gives_one),
        cmocka_unit_test(random_follows_the_weights),
        cmocka_unit_test(udp_and_tcp_share_what_they_may),
        cmocka_unit_test(a_failing_server_is_probed_once_a_minute),
        cmocka_unit_test(patience_comes_from_the_connect_time),
        cmocka_unit_test(addresses_of_a_name_are_remembered),
        cmocka_unit_test(a_state_outlives_its_list),
        cmocka_unit_test(too_many_are_refused),
    };

    return ss_random_start() != SS_OK || cmocka_run_group_tests(tests, NULL, NULL);
}
