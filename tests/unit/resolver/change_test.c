/* Name servers that change, fall silent, or have been asked for long from the same ports. */
#include "resolver/resolver.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit/resolver/fixture.h"

/* So long the resolv.conf may go without being looked at, and a little. */
#define LOOKED_AT_MS 1050

static char resolv_path[64];
static struct dns_stub second, third;

static void write_resolv_conf(const char *text)
{
    FILE *file = fopen(resolv_path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void name_server(const struct dns_stub *stub)
{
    char text[128];

    snprintf(text, sizeof text, "search corp.test\nnameserver %s\noptions ndots:3\n",
             stub->address);
    write_resolv_conf(text);
}

/* Three name servers; the resolv.conf, which the resolver follows, names the first. */
static int setup(void **state)
{
    struct fixture *f;
    int fd;

    fixture_setup(state);
    f = *state;
    dns_stub_start(&second, &f->loop);
    dns_stub_start(&third, &f->loop);
    snprintf(resolv_path, sizeof resolv_path, P_tmpdir "/resolv-XXXXXX");
    fd = mkstemp(resolv_path);
    assert_true(fd >= 0);
    close(fd);
    name_server(&f->stub);
    f->options.nameservers = NULL;
    f->options.resolv_path = resolv_path;
    f->options.timeout_ms = 60000;
    return 0;
}

static int teardown(void **state)
{
    dns_stub_stop(&second);
    dns_stub_stop(&third);
    unlink(resolv_path);
    return fixture_teardown(state);
}

static void pass(struct fixture *f, uint64_t ms)
{
    const uint64_t until = uv_now(&f->loop) + ms;

    while (uv_now(&f->loop) < until)
        fixture_turn(f);
}

/* R19 */
static void a_changed_resolv_conf_is_taken_up(void **state)
{
    struct fixture *f = *state;
    struct result result;

    fixture_open(f);
    result = fixture_resolve(f, "both.test");
    assert_addresses(&result, "192.0.2.1 2001:db8::1");
    assert_int_equal(f->stub.asked, 2);

    name_server(&second);
    pass(f, LOOKED_AT_MS);
    result = fixture_resolve(f, "both.test"); /* what the old one said counts no more */
    assert_addresses(&result, "192.0.2.1 2001:db8::1");
    assert_int_equal(f->stub.asked, 2);
    assert_int_equal(second.asked, 2);

    name_server(&second); /* another file with the same servers */
    pass(f, LOOKED_AT_MS);
    fixture_resolve(f, "both.test");
    assert_int_equal(second.asked, 2);
    assert_int_equal(fixture_active(f), 0);
}

static void what_the_old_server_was_asked_comes_to_its_end(void **state)
{
    struct fixture *f = *state;
    struct result early, late;

    fixture_open(f);
    fixture_ask(f, "holdboth.test", &early);
    fixture_await_held(f, 2);
    name_server(&second);
    pass(f, 500);
    fixture_resolve(f, "both.test"); /* keeps the old one from being silent for long */
    pass(f, LOOKED_AT_MS - 500);
    late = fixture_resolve(f, "both.late.test");
    assert_addresses(&late, "192.0.2.1 2001:db8::1");
    assert_int_equal(second.asked, 2);
    assert_int_equal(early.calls, 0);
    dns_stub_release(&f->stub);
    fixture_await(f, &early);
    assert_addresses(&early, "192.0.2.1 2001:db8::1");
    fixture_await_idle(f);
    assert_int_equal(second.asked, 2);

    /* It came from the old server, and so was not kept. */
    fixture_ask(f, "holdboth.test", &late);
    while (second.held_count < 2)
        fixture_turn(f);
    dns_stub_release(&second);
    fixture_await(f, &late);
}

/* An old server that has said nothing for a second is not waited for. */
static void who_waits_for_a_silent_old_server_is_answered_by_the_new_one(void **state)
{
    struct fixture *f = *state;
    struct result early, other;

    fixture_open(f);
    fixture_ask(f, "holdboth.test", &early);
    fixture_await_held(f, 2);
    name_server(&second);
    pass(f, LOOKED_AT_MS);
    other = fixture_resolve(f, "both.test");
    assert_addresses(&other, "192.0.2.1 2001:db8::1");
    fixture_ask(f, "both.more.test", &other);
    while (second.held_count < 2)
        fixture_turn(f);
    dns_stub_release(&second);
    fixture_await(f, &early);
    fixture_await(f, &other);
    assert_addresses(&early, "192.0.2.1 2001:db8::1");
}

static void changes_one_after_the_other_leave_nobody_waiting(void **state)
{
    struct fixture *f = *state;
    struct result first, next, last;

    fixture_open(f);
    fixture_ask(f, "holdboth.first.test", &first);
    fixture_await_held(f, 2);
    name_server(&second);
    pass(f, LOOKED_AT_MS);
    fixture_ask(f, "holdboth.next.test", &next);
    while (second.held_count < 2)
        fixture_turn(f);
    name_server(&third);
    pass(f, LOOKED_AT_MS);
    fixture_ask(f, "both.test", &last);
    fixture_await(f, &last);
    assert_addresses(&last, "192.0.2.1 2001:db8::1");
    /* The first was asked for again when its server was given up. */
    while (first.calls == 0) {
        dns_stub_release(&second);
        dns_stub_release(&third);
        fixture_turn(f);
    }
    assert_addresses(&first, "192.0.2.1 2001:db8::1");
    while (next.calls == 0) {
        dns_stub_release(&second);
        fixture_turn(f);
    }
    assert_addresses(&next, "192.0.2.1 2001:db8::1");
    fixture_await_idle(f);
}

static void a_file_without_servers_leaves_those_we_have(void **state)
{
    static const char *const texts[] = {"", "# nothing\n", "nameserver name\n", NULL};
    struct fixture *f = *state;
    char name[32];

    fixture_open(f);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct result result;

        if (texts[i] != NULL)
            write_resolv_conf(texts[i]);
        else
            unlink(resolv_path);
        pass(f, LOOKED_AT_MS);
        snprintf(name, sizeof name, "both.n%zu.test", i);
        result = fixture_resolve(f, name);
        assert_addresses(&result, "192.0.2.1 2001:db8::1");
    }
    name_server(&second);
    pass(f, LOOKED_AT_MS);
    fixture_resolve(f, "both.test");
    assert_int_equal(second.asked, 2);
}

static void a_file_that_comes_later_is_taken_up(void **state)
{
    struct fixture *f = *state;
    struct result result;

    unlink(resolv_path);
    f->options.timeout_ms = 20;
    f->options.tries = 1;
    fixture_open(f);
    result = fixture_resolve(f, "both.test"); /* of this host, which may have a server or not */
    assert_int_equal(result.calls, 1);
    name_server(&second);
    pass(f, LOOKED_AT_MS);
    result = fixture_resolve(f, "both.test");
    assert_addresses(&result, "192.0.2.1 2001:db8::1");
    assert_int_equal(second.asked, 2);
}

/* R20: neither search list nor ndots, from whatever place. */
static void names_stay_absolute(void **state)
{
    struct fixture *f = *state;
    struct result result;

    fixture_open(f);
    result = fixture_resolve(f, "nx");
    assert_int_equal(result.status, SS_ERR_NOT_FOUND);
    assert_string_equal(f->stub.last_name, "nx.");
    assert_int_equal(f->stub.asked, 2);
}

/* R25: with a server that hears nothing any more, new lookups leave from new sockets, and those
 * that wait are sent again. */
static void silence_is_answered_with_new_sockets(void **state)
{
    struct fixture *f = *state;
    struct result first, next, last;
    uint16_t before, after;

    fixture_open(f);
    fixture_ask(f, "holdboth.first.test", &first);
    fixture_await_held(f, 2);
    before = f->stub.peer_ports[0];
    f->stub.held_count = 0; /* lost */
    pass(f, 1000);
    fixture_ask(f, "holdboth.next.test", &next);
    fixture_await_held(f, 2);
    after = f->stub.peer_ports[2];
    assert_int_not_equal(before, after);
    assert_int_equal(f->stub.peer_ports[3], after);
    f->stub.held_count = 0;
    pass(f, 3000);
    fixture_ask(f, "both.last.test", &last);
    fixture_await_held(f, 2); /* the first, once more */
    assert_int_equal(f->stub.asked, 8);
    assert_int_not_equal(f->stub.peer_ports[4], before);
    assert_int_not_equal(f->stub.peer_ports[4], after);
    dns_stub_release(&f->stub);
    fixture_await(f, &first);
    fixture_await(f, &last);
    assert_addresses(&first, "192.0.2.1 2001:db8::1");
    assert_addresses(&last, "192.0.2.1 2001:db8::1");
    assert_int_equal(next.calls, 0);
}

/* A network that stays away: every lookup ends. */
static void lookups_end_though_they_are_sent_again(void **state)
{
    enum { NAMES = 40 };
    struct fixture *f = *state;
    struct result results[NAMES];
    char name[40];

    f->options.timeout_ms = 2500;
    fixture_open(f);
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "silent.n%d.test", i);
        fixture_ask(f, name, &results[i]);
        pass(f, 200);
    }
    for (int i = 0; i < NAMES; i++) {
        fixture_await(f, &results[i]);
        assert_int_equal(results[i].status, SS_ERR_TIMEOUT);
    }
    fixture_await_idle(f);
}

/* R26: also while there is always something that is not answered yet. */
static void source_ports_change_without_a_pause(void **state)
{
    enum { NAMES = 300 };
    struct fixture *f = *state;
    struct result waits;
    char name[32];
    bool changed = false;

    f->options.timeout_ms = 60000;
    fixture_open(f);
    fixture_ask(f, "silent.test", &waits);
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "both.n%d.test", i);
        fixture_resolve(f, name);
    }
    assert_int_equal(waits.calls, 0);
    for (unsigned i = 1; i < f->stub.asked; i++)
        changed |= f->stub.peer_ports[i] != f->stub.peer_ports[0];
    assert_true(changed);
    assert_int_equal(f->stub.peer_ports[200], f->stub.peer_ports[0]);
}

static void a_resolver_closes_amid_changes(void **state)
{
    struct fixture *f = *state;

    for (int moment = 0; moment < 3; moment++) {
        struct result results[4];

        name_server(&f->stub);
        fixture_open(f);
        fixture_ask(f, "silent.a.test", &results[0]);
        pass(f, LOOKED_AT_MS);
        fixture_ask(f, "silent.b.test", &results[1]);
        if (moment > 0) {
            name_server(&second);
            pass(f, LOOKED_AT_MS);
            fixture_ask(f, "silent.c.test", &results[2]);
        }
        if (moment > 1) {
            name_server(&third);
            pass(f, LOOKED_AT_MS);
            fixture_ask(f, "silent.d.test", &results[3]);
        }
        ss_resolver_close(f->resolver);
        f->resolver = NULL;
        fixture_await_idle(f);
        fixture_turn(f);
    }
}

static unsigned open_descriptors(void)
{
    unsigned count = 0;

    for (int fd = 0; fd < 4096; fd++)
        count += fcntl(fd, F_GETFD) != -1;
    return count;
}

static void descriptors_stay_within_what_was_said(void **state)
{
    enum { NAMES = 60 };
    struct fixture *f = *state;
    const unsigned limit = ss_resolver_descriptors(f->stub.address);
    struct result results[NAMES];
    unsigned before;
    char name[32], list[2 * sizeof f->stub.address + 2];

    snprintf(list, sizeof list, "%s,%s", f->stub.address, second.address);
    assert_int_equal(ss_resolver_descriptors(list) - limit, limit - 1);
    assert_true(ss_resolver_descriptors(NULL) > ss_resolver_descriptors(list));
    f->options.nameservers = f->stub.address;
    fixture_open(f);
    before = open_descriptors();
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "%s.n%d.test", i % 2 == 0 ? "silent" : "cut", i);
        fixture_ask(f, name, &results[i]);
        pass(f, 50);
        /* The stub's own ends of TCP connections are among them. */
        assert_true(open_descriptors() <= before + limit + f->stub.tcp_clients);
    }
}

#define TEST_CHANGE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int change_tests(void)
{
    const struct CMUnitTest tests[] = {
        TEST_CHANGE(a_changed_resolv_conf_is_taken_up),
        TEST_CHANGE(what_the_old_server_was_asked_comes_to_its_end),
        TEST_CHANGE(who_waits_for_a_silent_old_server_is_answered_by_the_new_one),
        TEST_CHANGE(changes_one_after_the_other_leave_nobody_waiting),
        TEST_CHANGE(a_file_without_servers_leaves_those_we_have),
        TEST_CHANGE(a_file_that_comes_later_is_taken_up),
        TEST_CHANGE(names_stay_absolute),
        TEST_CHANGE(silence_is_answered_with_new_sockets),
        TEST_CHANGE(lookups_end_though_they_are_sent_again),
        TEST_CHANGE(source_ports_change_without_a_pause),
        TEST_CHANGE(a_resolver_closes_amid_changes),
        TEST_CHANGE(descriptors_stay_within_what_was_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
