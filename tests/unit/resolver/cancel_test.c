/* Queries that are given up, and resolvers that are closed, at every moment of a query's life. */
#include "resolver/resolver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/resolver/fixture.h"

static void noise_of_names(uint8_t *answer, size_t *len, const char *name)
{
    (void)name;
    for (size_t i = 12; i < *len; i++)
        answer[i] ^= (uint8_t)(i * 37);
}

/* Where in its life a query is, brought about for the tests below. */
struct moment {
    const char *what, *name;
    void (*reach)(struct fixture *f, struct result *result);
};

static void at_once(struct fixture *f, struct result *result)
{
    (void)f;
    (void)result;
}

static void both_asked(struct fixture *f, struct result *result)
{
    (void)result;
    fixture_await_held(f, 2);
}

/* The stub has sent one family's answer; turn the loop until the resolver has read it, which it
 * shows by the timer of the short wait: poll, time-out, wait. */
static void one_answered(struct fixture *f, struct result *result)
{
    fixture_await_held(f, 1);
    while (fixture_active(f) < 3)
        fixture_turn(f);
    assert_int_equal(result->calls, 0);
}

static void long_asked(struct fixture *f, struct result *result)
{
    const uint64_t until = uv_hrtime() + 300 * 1000000u; /* no longer counted in the window */

    fixture_await_held(f, 2);
    while (uv_hrtime() < until)
        fixture_turn(f);
    assert_int_equal(result->calls, 0);
}

static const struct moment moments[] = {
    {"answered at home, not yet delivered", "localhost", at_once},
    {"just asked", "both.test", at_once},
    {"with the name server", "holdboth.test", both_asked},
    {"one family came", "hold6.test", one_answered},
    {"the other family came", "hold4.test", one_answered},
    {"no longer counted", "holdboth.long.test", long_asked},
};

#define MOMENTS (sizeof moments / sizeof moments[0])

static void a_cancelled_query_is_not_answered(void **state)
{
    struct fixture *f = *state;

    f->options.max_queries = 2;
    fixture_open(f);
    for (size_t i = 0; i < MOMENTS; i++) {
        struct result result, other;

        fixture_ask(f, moments[i].name, &result);
        assert_non_null(result.query);
        moments[i].reach(f, &result);
        ss_resolver_cancel(result.query);
        other = fixture_resolve(f, "both.test");
        assert_addresses(&other, "192.0.2.1 2001:db8::1");
        dns_stub_release(&f->stub);
        fixture_await_idle(f);
        assert_int_equal(result.calls, 0);
    }
    ss_resolver_cancel(NULL);
}

static void a_resolver_closes_at_any_moment(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < MOMENTS; i++) {
        struct result result;

        fixture_open(f);
        fixture_ask(f, moments[i].name, &result);
        assert_non_null(result.query);
        moments[i].reach(f, &result);
        ss_resolver_close(f->resolver);
        f->resolver = NULL;
        fixture_await_idle(f);
        fixture_turn(f);
        f->stub.held_count = 0;
        assert_int_equal(result.calls, 0);
    }
}

/* More than the window lets out, so that some are still waiting. */
static void waiting_queries_can_be_cancelled(void **state)
{
    enum { QUERIES = 300 };
    struct fixture *f = *state;
    struct result results[QUERIES];

    fixture_open(f);
    for (int i = 0; i < QUERIES; i++)
        fixture_ask(f, "both.test", &results[i]);
    for (int i = 0; i < QUERIES; i += 2)
        ss_resolver_cancel(results[i].query);
    for (int i = 1; i < QUERIES; i += 2)
        fixture_await(f, &results[i]);
    fixture_await_idle(f);
    for (int i = 0; i < QUERIES; i++)
        assert_int_equal(results[i].calls, i % 2);
}

static void a_resolver_closes_with_queries_waiting(void **state)
{
    enum { QUERIES = 300 };
    struct fixture *f = *state;
    struct result results[QUERIES];

    fixture_open(f);
    for (int i = 0; i < QUERIES; i++)
        fixture_ask(f, i % 3 == 0 ? "localhost" : "both.test", &results[i]);
    ss_resolver_cancel(results[250].query);
    ss_resolver_close(f->resolver);
    f->resolver = NULL;
    fixture_await_idle(f);
    for (int i = 0; i < QUERIES; i++)
        assert_int_equal(results[i].calls, 0);
}

/* What callbacks do to their resolver. */
struct actor {
    struct fixture *f;
    struct ss_query *query, *others[3];
    unsigned calls, more;
};

static void cancel_all(void *owner, enum ss_status status, const struct ss_ip *addresses,
                       size_t count)
{
    struct actor *actor = owner;

    (void)status;
    (void)addresses;
    (void)count;
    actor->calls++;
    ss_resolver_cancel(actor->query); /* the one that is being answered: harmless */
    for (int i = 0; i < 3; i++)
        ss_resolver_cancel(actor->others[i]);
}

static void a_callback_may_cancel_other_queries(void **state)
{
    static const char *const names[][4] = {
        {"localhost", "localhost", "localhost", "localhost"},
        {"both.test", "both.test", "both.test", "both.test"},
        {"localhost", "both.test", "silent.test", "localhost"},
        {"servfail.test", "both.test", "silent.test", "hold6.test"},
    };
    struct fixture *f = *state;

    f->options.timeout_ms = 20;
    fixture_open(f);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct actor actor = {f, NULL, {NULL}, 0, 0};

        /* The first to answer cancels the rest; whichever it is, it must be the only one. */
        actor.query = ss_resolver_ask(f->resolver, names[i][0], cancel_all, &actor);
        for (int k = 0; k < 3; k++) {
            struct result result;

            fixture_ask(f, names[i][k + 1], &result);
            ss_resolver_cancel(result.query);
            actor.others[k] = ss_resolver_ask(f->resolver, names[i][k + 1], cancel_all, &actor);
            assert_non_null(actor.others[k]);
        }
        while (actor.calls == 0 || fixture_active(f) != 0)
            fixture_turn(f);
        assert_int_equal(actor.calls, 1);
    }
}

static void ask_again(void *owner, enum ss_status status, const struct ss_ip *addresses,
                      size_t count)
{
    struct actor *actor = owner;

    (void)status;
    (void)addresses;
    (void)count;
    if (++actor->calls < actor->more)
        assert_non_null(ss_resolver_ask(actor->f->resolver,
                                        actor->calls % 2 != 0 ? "both.test" : "localhost",
                                        ask_again, actor));
}

static void a_callback_may_ask_again(void **state)
{
    struct fixture *f = *state;
    struct actor actor = {f, NULL, {NULL}, 0, 50};

    f->options.max_queries = 2; /* the one that is being answered, and the new one */
    fixture_open(f);
    assert_non_null(ss_resolver_ask(f->resolver, "both.test", ask_again, &actor));
    while (actor.calls < actor.more)
        fixture_turn(f);
}

static void close_resolver(void *owner, enum ss_status status, const struct ss_ip *addresses,
                           size_t count)
{
    struct actor *actor = owner;

    (void)status;
    (void)addresses;
    (void)count;
    actor->calls++;
    ss_resolver_close(actor->f->resolver);
    assert_null(ss_resolver_ask(actor->f->resolver, "both.test", close_resolver, actor));
    actor->f->resolver = NULL;
}

static void a_callback_may_close_the_resolver(void **state)
{
    static const char *const names[] = {"localhost", "both.test", "servfail.test", "silent.test",
                                        "hold6.test"};
    struct fixture *f = *state;

    f->options.timeout_ms = 20;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct actor actor = {f, NULL, {NULL}, 0, 0};
        struct result others[5];

        fixture_open(f);
        assert_non_null(ss_resolver_ask(f->resolver, names[i], close_resolver, &actor));
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
            fixture_ask(f, names[k], &others[k]);
        while (actor.calls == 0)
            fixture_turn(f);
        fixture_await_idle(f);
        fixture_turn(f);
        f->stub.held_count = 0;
        assert_int_equal(actor.calls, 1);
    }
}

/* The next number of a fixed sequence, below `bound`. */
static unsigned pick(unsigned bound)
{
    static uint32_t state = 1;

    state = state * 1664525u + 1013904223u;
    return (state >> 8) % bound;
}

/* Asking and giving up in any order, of names of every kind: each that is not given up is answered
 * once, and closing at any point leaves nothing behind. */
static void any_order_of_events_answers_each_once(void **state)
{
    enum { ROUNDS = 8, STEPS = 600, AT_ONCE = 40 };
    static const char *const names[] = {
        "both.test",         "both.ttl0.test",
        "both.a-ttl0.test",  "both.aaaa-ttl0.test",
        "hold4.ttl0.test",   "hold6.ttl0.test",
        "hold6.test",        "holdboth.ttl0.test",
        "nx.test",           "none.soa1.test",
        "servfail.test",     "fail4.test",
        "silent.test",       "silent.other.test",
        "cut.ttl0.test",     "localhost",
        "many.a-ttl0.test",  "broken.test",
        "192.0.2.1",         "nx.a.name.that.is.long.test",
        "fail6.a-ttl0.test", "double.a-ttl1.test",
        "both.ttl1.test",    "cname.ttl0.test",
    };
    struct fixture *f = *state;
    static struct result results[AT_ONCE];
    static bool expected[AT_ONCE];

    f->options.timeout_ms = 30;
    f->options.max_names = 7;
    f->options.cache_names = 5;
    f->options.max_queries = AT_ONCE;
    f->stub.breakage = noise_of_names;
    for (int round = 0; round < ROUNDS; round++) {
        memset(results, 0, sizeof results);
        memset(expected, 0, sizeof expected);
        fixture_open(f);
        for (int step = 0; step < STEPS; step++) {
            const unsigned i = pick(AT_ONCE);

            if (results[i].calls > 1)
                fail_msg("answered %u times", results[i].calls);
            if (!expected[i]) {
                fixture_ask(f, names[pick(sizeof names / sizeof names[0])], &results[i]);
                assert_non_null(results[i].query);
                expected[i] = true;
            } else if (results[i].calls == 1) {
                expected[i] = false;
            } else if (pick(3) == 0) {
                ss_resolver_cancel(results[i].query);
                assert_int_equal(results[i].calls, 0);
                expected[i] = false;
            }
            if (pick(4) == 0 || f->stub.held_count > 40)
                dns_stub_release(&f->stub);
            if (pick(3) == 0)
                fixture_turn(f);
        }
        /* Half of the rounds end with everything answered, the others in the middle. */
        for (unsigned i = 0; i < AT_ONCE && round % 2 == 0; i++) {
            while (expected[i] && results[i].calls == 0) {
                dns_stub_release(&f->stub);
                fixture_turn(f);
            }
        }
        ss_resolver_close(f->resolver);
        f->resolver = NULL;
        fixture_await_idle(f);
        fixture_turn(f);
        f->stub.held_count = 0;
    }
}

int cancel_tests(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_cancelled_query_is_not_answered),   TEST(a_resolver_closes_at_any_moment),
        TEST(waiting_queries_can_be_cancelled),    TEST(a_resolver_closes_with_queries_waiting),
        TEST(a_callback_may_cancel_other_queries), TEST(a_callback_may_ask_again),
        TEST(a_callback_may_close_the_resolver),   TEST(any_order_of_events_answers_each_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
