/* What is asked once: answers that are kept for their time, and one question for many who ask. */
#include "resolver/resolver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/resolver/fixture.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* Turns the loop until its clock has moved so far. */
static void pass(struct fixture *f, uint64_t ms)
{
    const uint64_t until = uv_now(&f->loop) + ms;

    while (uv_now(&f->loop) < until)
        fixture_turn(f);
}

/* Questions that the name server gets when this name is asked for. */
static unsigned cost(struct fixture *f, const char *name)
{
    const unsigned before = f->stub.asked;

    fixture_resolve(f, name);
    return f->stub.asked - before;
}

static void an_answer_is_kept_for_its_time(void **state)
{
    struct fixture *f = *state;
    struct result result;

    fixture_open(f);
    assert_int_equal(cost(f, "both.ttl1.test"), 2);
    assert_int_equal(cost(f, "both.ttl1.test"), 0);
    result = fixture_resolve(f, "Both.TTL1.test.");
    assert_addresses(&result, "192.0.2.1 2001:db8::1");
    assert_int_equal(f->stub.asked, 2);
    pass(f, 1000);
    assert_int_equal(cost(f, "both.ttl1.test"), 2);
    assert_int_equal(fixture_active(f), 0);
}

static void an_answer_with_no_time_is_not_kept(void **state)
{
    struct fixture *f = *state;

    fixture_open(f);
    assert_int_equal(cost(f, "both.ttl0.test"), 2);
    assert_int_equal(cost(f, "both.ttl0.test"), 2);
    assert_int_equal(cost(f, "both.ttl4294967295.test"), 2); /* RFC 2181, 8 */
    assert_int_equal(cost(f, "both.ttl4294967295.test"), 2);
}

static void no_answer_is_kept_for_longer_than_the_bound(void **state)
{
    struct fixture *f = *state;

    f->options.ttl_max_s = 1;
    fixture_open(f);
    assert_int_equal(cost(f, "both.ttl2147483647.test"), 2);
    assert_int_equal(cost(f, "both.ttl2147483647.test"), 0);
    pass(f, 1000);
    assert_int_equal(cost(f, "both.ttl2147483647.test"), 2);
}

static void the_families_have_their_own_times(void **state)
{
    struct fixture *f = *state;
    struct result result;

    fixture_open(f);
    assert_int_equal(cost(f, "both.aaaa-ttl1.test"), 2);
    pass(f, 1000);
    result = fixture_resolve(f, "both.aaaa-ttl1.test");
    assert_addresses(&result, "192.0.2.1 2001:db8::1");
    assert_int_equal(f->stub.asked, 3);
    assert_int_equal(cost(f, "both.a-ttl0.test"), 2);
    assert_int_equal(cost(f, "both.a-ttl0.test"), 1);
}

/* What a family said before its time was over is not mixed with what the other says now. */
static void an_address_that_is_past_its_time_is_not_told(void **state)
{
    struct fixture *f = *state;
    struct result result;

    fixture_open(f);
    fixture_ask(f, "hold6.aaaa-ttl0.test", &result);
    fixture_await_held(f, 1);
    dns_stub_release(&f->stub);
    fixture_await(f, &result);
    assert_addresses(&result, "192.0.2.1 2001:db8::1");
    result = fixture_resolve(f, "hold6.aaaa-ttl0.test");
    assert_addresses(&result, "192.0.2.1");
}

static void a_no_is_kept_for_its_time(void **state)
{
    static const struct {
        const char *name;
        uint64_t kept_ms;
    } cases[] = {
        {"nx.soa1.test", 1000}, {"none.soa1.test", 1000}, {"four.soa1.test", 1000},
        {"nx.test", 2000},      {"none.test", 2000},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const unsigned missing = strncmp(cases[i].name, "four", 4) == 0 ? 1 : 2;

        fixture_open(f);
        assert_int_equal(cost(f, cases[i].name), 2);
        assert_int_equal(cost(f, cases[i].name), 0);
        pass(f, cases[i].kept_ms);
        assert_int_equal(cost(f, cases[i].name), missing);
        ss_resolver_close(f->resolver);
    }
    fixture_open(f);
}

static void failures_are_remembered_briefly(void **state)
{
    static const struct {
        const char *name;
        uint64_t kept_ms;
    } cases[] = {{"servfail.test", 2000}, {"refused.test", 2000}, {"silent.test", 1000}};
    struct fixture *f = *state;

    f->options.timeout_ms = 20;
    f->options.tries = 1;
    fixture_open(f);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct result first = fixture_resolve(f, cases[i].name), second;
        const unsigned asked = f->stub.asked;

        second = fixture_resolve(f, cases[i].name);
        assert_int_equal(f->stub.asked, asked);
        assert_int_equal(second.status, first.status);
        pass(f, cases[i].kept_ms);
        assert_true(cost(f, cases[i].name) >= 2);
    }
}

/* One family's failure leaves the other's addresses, and is asked for again before those are. */
static void a_failed_family_is_asked_for_again_alone(void **state)
{
    struct fixture *f = *state;
    struct result result;
    unsigned again;

    fixture_open(f);
    result = fixture_resolve(f, "fail6.test");
    assert_addresses(&result, "192.0.2.1");
    assert_int_equal(cost(f, "fail6.test"), 0);
    pass(f, 2000);
    again = cost(f, "fail6.test"); /* tried twice, but not for the other family */
    assert_in_range(again, 1, 2);
}

/* R24: what could not be reached is asked again by the next who wants to know. */
static void a_server_that_was_down_is_asked_at_once_when_it_is_up(void **state)
{
    struct fixture *f = *state;
    struct result result;
    struct sockaddr_in addr;
    unsigned port;

    fixture_open(f);
    assert_int_equal(sscanf(f->stub.address, "127.0.0.1:%u", &port), 1);
    uv_udp_recv_stop(&f->stub.udp);
    uv_close((uv_handle_t *)&f->stub.udp, NULL);
    fixture_turn(f);
    result = fixture_resolve(f, "both.test");
    assert_int_equal(result.status, SS_ERR_IO);
    assert_int_equal(fixture_active(f), 0);

    uv_udp_init(&f->loop, &f->stub.udp);
    uv_ip4_addr("127.0.0.1", (int)port, &addr);
    assert_int_equal(uv_udp_bind(&f->stub.udp, (const struct sockaddr *)&addr, 0), 0);
    dns_stub_listen(&f->stub);
    result = fixture_resolve(f, "both.test");
    assert_addresses(&result, "192.0.2.1 2001:db8::1");
}

static void many_wait_for_one_question(void **state)
{
    enum { ASKERS = 500 };
    struct fixture *f = *state;
    struct result results[ASKERS];

    fixture_open(f);
    for (int i = 0; i < ASKERS; i++)
        fixture_ask(f, i % 2 != 0 ? "holdboth.test" : "HoldBoth.Test.", &results[i]);
    fixture_await_held(f, 2);
    for (int i = 0; i < ASKERS; i += 5)
        ss_resolver_cancel(results[i].query);
    assert_int_equal(f->stub.asked, 2);
    dns_stub_release(&f->stub);
    for (int i = 0; i < ASKERS; i++) {
        if (i % 5 == 0)
            continue;
        fixture_await(f, &results[i]);
        assert_addresses(&results[i], "192.0.2.1 2001:db8::1");
    }
    fixture_await_idle(f);
    for (int i = 0; i < ASKERS; i += 5)
        assert_int_equal(results[i].calls, 0);
    assert_int_equal(f->stub.asked, 2);
}

static void an_answer_that_nobody_waits_for_any_more_is_kept(void **state)
{
    struct fixture *f = *state;
    struct result result;

    fixture_open(f);
    fixture_ask(f, "holdboth.test", &result);
    fixture_await_held(f, 2);
    ss_resolver_cancel(result.query);
    dns_stub_release(&f->stub);
    fixture_await_idle(f);
    assert_int_equal(cost(f, "holdboth.test"), 0);
}

/* One family is there and used; who comes later does not wait for the other once more. */
static void who_comes_late_does_not_wait_for_a_silent_family(void **state)
{
    struct fixture *f = *state;
    struct result result;
    uint64_t took = UINT64_MAX;

    f->options.timeout_ms = 60000;
    fixture_open(f);
    result = fixture_resolve(f, "hold6.test");
    assert_addresses(&result, "192.0.2.1");
    for (int i = 0; i < 20 && took >= 45; i++) { /* a busy machine may take long, not each time */
        const uint64_t began = uv_hrtime();

        result = fixture_resolve(f, "hold6.test");
        assert_addresses(&result, "192.0.2.1");
        took = (uv_hrtime() - began) / 1000000;
    }
    assert_true(took < 45);
    assert_int_equal(f->stub.asked, 2);
}

/* R25: what was sent before the network changed must not hold up what is asked after it. */
static void a_long_silent_lookup_is_not_joined(void **state)
{
    struct fixture *f = *state;
    struct result early, late;

    f->options.timeout_ms = 60000;
    fixture_open(f);
    fixture_ask(f, "holdboth.test", &early);
    fixture_await_held(f, 2);
    pass(f, 1000);
    f->stub.held_count = 0; /* lost */
    fixture_ask(f, "holdboth.test", &late);
    fixture_await_held(f, 2);
    dns_stub_release(&f->stub);
    fixture_await(f, &late);
    assert_addresses(&late, "192.0.2.1 2001:db8::1");
    assert_int_equal(early.calls, 0);
    assert_int_equal(cost(f, "holdboth.test"), 0);
}

static void a_full_cache_gives_up_what_is_least_used(void **state)
{
    struct fixture *f = *state;
    char name[32];

    f->options.cache_names = 8;
    fixture_open(f);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "both.n%d.test", i);
        assert_int_equal(cost(f, name), 2);
        assert_int_equal(cost(f, "both.often.test"), i == 0 ? 2 : 0);
    }
    for (int i = 93; i < 100; i++) {
        snprintf(name, sizeof name, "both.n%d.test", i);
        assert_int_equal(cost(f, name), 0);
    }
    assert_int_equal(cost(f, "both.n92.test"), 2);
}

/* 10,000 names at once and nobody left to hear: the pools hold, and others are answered after. */
static void a_flood_of_names_is_bounded(void **state)
{
    enum { NAMES = 10000, AT_ONCE = 100 };
    struct fixture *f = *state;
    struct result results[AT_ONCE], result;
    char name[40];

    f->options.max_queries = AT_ONCE;
    f->options.max_names = 50;
    f->options.cache_names = 10;
    fixture_open(f);
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "both.n%d.test", i);
        fixture_ask(f, name, &results[i % AT_ONCE]);
        assert_non_null(results[i % AT_ONCE].query);
        if (i % AT_ONCE != AT_ONCE - 1)
            continue;
        for (int k = 0; k < AT_ONCE; k += 3)
            ss_resolver_cancel(results[k].query);
        for (int k = 0; k < AT_ONCE; k++) {
            if (k % 3 != 0)
                fixture_await(f, &results[k]);
        }
    }
    result = fixture_resolve(f, "both.test");
    assert_addresses(&result, "192.0.2.1 2001:db8::1");
}

static void no_more_names_than_configured_are_asked_at_once(void **state)
{
    enum { NAMES = 10, AT_ONCE = 3 };
    struct fixture *f = *state;
    struct result results[NAMES];
    char name[40];

    f->options.max_names = AT_ONCE;
    f->options.timeout_ms = 60000;
    fixture_open(f);
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "holdboth.n%d.test", i);
        fixture_ask(f, name, &results[i]);
    }
    fixture_await_held(f, 2 * AT_ONCE);
    pass(f, 600); /* nor later: they are with the server still */
    assert_int_equal(f->stub.asked, 2 * AT_ONCE);
    for (int i = 0; i < NAMES; i++) {
        while (results[i].calls == 0) {
            dns_stub_release(&f->stub);
            fixture_turn(f);
            assert_true(f->stub.held_count <= 2 * AT_ONCE);
        }
        assert_addresses(&results[i], "192.0.2.1 2001:db8::1");
    }
}

static struct {
    struct fixture *f;
    struct result inner;
    unsigned calls;
} again;

static void on_first(void *owner, enum ss_status status, const struct ss_ip *addresses,
                     size_t count)
{
    (void)owner;
    (void)addresses;
    (void)count;
    assert_int_equal(status, SS_OK);
    again.calls++;
    fixture_ask(again.f, "both.test", &again.inner); /* asserts that it is not answered inside */
}

static void what_is_known_is_told_later_too(void **state)
{
    memset(&again, 0, sizeof again);
    again.f = *state;
    fixture_open(again.f);
    assert_non_null(ss_resolver_ask(again.f->resolver, "both.test", on_first, NULL));
    while (again.calls == 0)
        fixture_turn(again.f);
    fixture_await(again.f, &again.inner);
    assert_addresses(&again.inner, "192.0.2.1 2001:db8::1");
    assert_int_equal(again.f->stub.asked, 2);
}

/* Appends an A record for another name to the answer. */
static void about_another_name(uint8_t *answer, size_t *len, const char *name)
{
    static const uint8_t record[] = {4, 'b', 'o', 't', 'h', 4, 't', 'e', 's', 't', 0,   0, 1,
                                     0, 1,   0,   0,   1,   0, 0,   4,   203, 0,   113, 66};

    (void)name;
    memcpy(answer + *len, record, sizeof record);
    *len += sizeof record;
    answer[7]++;
}

static void an_answer_says_nothing_of_other_names(void **state)
{
    struct fixture *f = *state;
    struct result result;

    fixture_open(f);
    f->stub.breakage = about_another_name;
    result = fixture_resolve(f, "broken.test");
    assert_addresses(&result, "192.0.2.1 2001:db8::1");
    result = fixture_resolve(f, "both.test");
    assert_addresses(&result, "192.0.2.1 2001:db8::1");
    assert_int_equal(f->stub.asked, 4);
}

int cache_tests(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_answer_is_kept_for_its_time),
        TEST(an_answer_with_no_time_is_not_kept),
        TEST(no_answer_is_kept_for_longer_than_the_bound),
        TEST(the_families_have_their_own_times),
        TEST(an_address_that_is_past_its_time_is_not_told),
        TEST(a_no_is_kept_for_its_time),
        TEST(failures_are_remembered_briefly),
        TEST(a_failed_family_is_asked_for_again_alone),
        TEST(a_server_that_was_down_is_asked_at_once_when_it_is_up),
        TEST(many_wait_for_one_question),
        TEST(an_answer_that_nobody_waits_for_any_more_is_kept),
        TEST(who_comes_late_does_not_wait_for_a_silent_family),
        TEST(a_long_silent_lookup_is_not_joined),
        TEST(a_full_cache_gives_up_what_is_least_used),
        TEST(a_flood_of_names_is_bounded),
        TEST(no_more_names_than_configured_are_asked_at_once),
        TEST(what_is_known_is_told_later_too),
        TEST(an_answer_says_nothing_of_other_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
