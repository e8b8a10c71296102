/* Queries that are given up, and resolvers that are closed, at every moment of a query's life. */
#include "resolver/resolver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/resolver/fixture.h"

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

int cancel_tests(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_cancelled_query_is_not_answered),   TEST(a_resolver_closes_at_any_moment),
        TEST(waiting_queries_can_be_cancelled),    TEST(a_resolver_closes_with_queries_waiting),
        TEST(a_callback_may_cancel_other_queries), TEST(a_callback_may_ask_again),
        TEST(a_callback_may_close_the_resolver),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
