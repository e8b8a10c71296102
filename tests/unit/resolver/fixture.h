/* A loop, a name server on loopback, a resolver that asks it, and what came of the questions. */
#ifndef SS_TESTS_RESOLVER_FIXTURE_H
#define SS_TESTS_RESOLVER_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <uv.h>

#include "resolver/resolver.h"
#include "unit/resolver/dns_stub.h"

struct result {
    struct ss_query *query; /* NULL: refused, answered or cancelled */
    unsigned calls;
    enum ss_status status;
    size_t count;
    struct ss_ip addresses[SS_ADDRESSES_MAX];
};

struct fixture {
    uv_loop_t loop;
    uv_timer_t tick; /* so that a turn of the loop never blocks for long */
    struct dns_stub stub;
    struct ss_resolver *resolver;
    struct ss_resolver_options options;
    char hosts_path[64]; /* an empty file until a test writes it */
};

/* cmocka set-up and tear-down: the stub runs, `options` name it; the resolver is not there yet. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

/* Makes the resolver from `options`. */
void fixture_open(struct fixture *f);

void fixture_write_hosts(struct fixture *f, const char *text);

/* Asks; the answer goes to *result. */
void fixture_ask(struct fixture *f, const char *name, struct result *result);

/* Turns the loop until the result is there. */
void fixture_await(struct fixture *f, const struct result *result);

/* Asks and awaits. */
struct result fixture_resolve(struct fixture *f, const char *name);

/* Turns the loop until the stub holds so many answers back. */
void fixture_await_held(struct fixture *f, unsigned count);

/* Turns the loop once: until something happened, or a tick of 10 ms. */
void fixture_turn(struct fixture *f);

/* Active poll and timer handles on the loop, but for the tick: what the resolver has open. */
unsigned fixture_active(struct fixture *f);

/* Turns the loop until the resolver has nothing open. */
void fixture_await_idle(struct fixture *f);

void assert_addresses(const struct result *result, const char *list);

#define TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

#endif
