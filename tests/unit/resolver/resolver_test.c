/* What a name comes to: families and their order, failures, and what never reaches a name server.
 */
#include "resolver/resolver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "unit/resolver/fixture.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

static void ipv4_comes_first_unless_ipv6_is_preferred(void **state)
{
    struct fixture *f = *state;
    struct result result;

    fixture_open(f);
    result = fixture_resolve(f, "both.test");
    assert_addresses(&result, "192.0.2.1 2001:db8::1");
    result = fixture_resolve(f, "cname.test");
    assert_addresses(&result, "192.0.2.1 2001:db8::1");
    result = fixture_resolve(f, "four.test");
    assert_addresses(&result, "192.0.2.1");
    result = fixture_resolve(f, "six.test");
    assert_addresses(&result, "2001:db8::1");
}

static void ipv6_comes_first_when_it_is_preferred(void **state)
{
    struct fixture *f = *state;
    struct result result;

    f->options.ipv6_first = true;
    fixture_open(f);
    result = fixture_resolve(f, "both.test");
    assert_addresses(&result, "2001:db8::1 192.0.2.1");
    result = fixture_resolve(f, "four.test");
    assert_addresses(&result, "192.0.2.1");
    result = fixture_resolve(f, "localhost");
    assert_addresses(&result, "::1 127.0.0.1");
}

static void addresses_come_once_by_turns_and_no_more_than_fit(void **state)
{
    struct fixture *f = *state;
    struct result result;

    fixture_open(f);
    result = fixture_resolve(f, "double.test");
    assert_addresses(&result, "192.0.2.1 2001:db8::1 192.0.2.2 2001:db8::2");
    result = fixture_resolve(f, "mapped.test");
    assert_addresses(&result, "192.0.2.1");
    result = fixture_resolve(f, "many.test");
    assert_addresses(&result, "192.0.2.1 2001:db8::1 192.0.2.2 2001:db8::2 192.0.2.3 2001:db8::3 "
                              "192.0.2.4 2001:db8::4 192.0.2.5 2001:db8::5 192.0.2.6 2001:db8::6 "
                              "192.0.2.7 2001:db8::7 192.0.2.8 2001:db8::8");
    result = fixture_resolve(f, "many4.test");
    assert_addresses(&result, "192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.4 192.0.2.5 192.0.2.6 "
                              "192.0.2.7 192.0.2.8 192.0.2.9 192.0.2.10 192.0.2.11 192.0.2.12 "
                              "192.0.2.13 192.0.2.14 192.0.2.15 192.0.2.16");
}

static void an_answer_that_was_cut_is_fetched_over_tcp(void **state)
{
    struct fixture *f = *state;
    struct result result;

    fixture_open(f);
    result = fixture_resolve(f, "cut.test");
    assert_addresses(&result, "192.0.2.1 2001:db8::1");
    assert_int_equal(f->stub.asked_tcp, 2);
}

static void failures_are_told_apart(void **state)
{
    static const struct {
        const char *name;
        enum ss_status status;
    } cases[] = {
        {"nx.test", SS_ERR_NOT_FOUND},   {"none.test", SS_ERR_NOT_FOUND},
        {"servfail.test", SS_ERR_IO},    {"refused.test", SS_ERR_IO},
        {"silent.test", SS_ERR_TIMEOUT},
    };
    struct fixture *f = *state;

    f->options.timeout_ms = 20;
    fixture_open(f);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct result result = fixture_resolve(f, cases[i].name);

        assert_int_equal(result.status, cases[i].status);
    }
}

static void one_family_failing_leaves_the_other(void **state)
{
    struct fixture *f = *state;
    struct result result;

    fixture_open(f);
    result = fixture_resolve(f, "fail4.test");
    assert_addresses(&result, "2001:db8::1");
    result = fixture_resolve(f, "fail6.test");
    assert_addresses(&result, "192.0.2.1");
}

/* The time-out is far above what the test may take, so an answer can only come by the short wait.
 */
static void the_second_family_is_waited_for_only_shortly(void **state)
{
    struct fixture *f = *state;
    struct result result;
    uint64_t began;

    fixture_open(f);
    began = uv_hrtime();
    result = fixture_resolve(f, "hold6.test");
    assert_addresses(&result, "192.0.2.1");
    assert_true(uv_hrtime() - began >= 45 * 1000000u);
    result = fixture_resolve(f, "hold4.test");
    assert_addresses(&result, "2001:db8::1");
    assert_int_equal(f->stub.held_count, 2);

    /* What comes too late is taken off the wire and changes nothing. */
    dns_stub_release(&f->stub);
    fixture_await_idle(f);
    result = fixture_resolve(f, "both.test");
    assert_addresses(&result, "192.0.2.1 2001:db8::1");
}

static void a_second_family_in_time_is_taken_along(void **state)
{
    struct fixture *f = *state;
    struct result result;

    fixture_open(f);
    fixture_ask(f, "holdboth.test", &result);
    fixture_await_held(f, 2);
    assert_int_equal(result.calls, 0);
    dns_stub_release(&f->stub);
    fixture_await(f, &result);
    assert_addresses(&result, "192.0.2.1 2001:db8::1");
}

static void a_silent_name_server_costs_no_cpu(void **state)
{
    static const char *const names[] = {"silent.test", "servfail.test", "refused.test"};
    struct fixture *f = *state;

    f->options.timeout_ms = 100;
    fixture_open(f);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct result result;
        unsigned turns = 0;

        fixture_ask(f, names[i], &result);
        while (result.calls == 0) {
            fixture_turn(f);
            turns++;
        }
        assert_true(turns < 500);
    }
}

/* Ports that were just given back: nobody listens there. */
static void add_refusing(struct fixture *f, char *list, size_t cap, int count)
{
    for (int i = 0; i < count; i++) {
        struct sockaddr_in addr;
        int len = sizeof addr;
        uv_udp_t closed;

        uv_udp_init(&f->loop, &closed);
        uv_ip4_addr("127.0.0.1", 0, &addr);
        uv_udp_bind(&closed, (const struct sockaddr *)&addr, 0);
        uv_udp_getsockname(&closed, (struct sockaddr *)&addr, &len);
        uv_close((uv_handle_t *)&closed, NULL);
        fixture_turn(f);
        snprintf(list + strlen(list), cap - strlen(list), "%s127.0.0.1:%d",
                 *list != '\0' ? "," : "", ntohs(addr.sin_port));
    }
}

/* The time-out is far above what the test may take: the refusal itself has to be noticed. */
static void a_refusing_port_ends_the_query(void **state)
{
    struct fixture *f = *state;
    char list[64] = "";
    struct result result;

    add_refusing(f, list, sizeof list, 1);
    f->options.nameservers = list;
    f->options.timeout_ms = 600000;
    fixture_open(f);
    result = fixture_resolve(f, "both.test");
    assert_int_not_equal(result.status, SS_OK);
    assert_int_equal(fixture_active(f), 0);
}

static void refusing_ports_make_way_at_once(void **state)
{
    enum { NAMES = 50 };
    struct fixture *f = *state;
    struct result results[NAMES];
    char list[128] = "", name[32];

    add_refusing(f, list, sizeof list, 3);
    strcat(list, ",");
    strcat(list, f->stub.address);
    f->options.nameservers = list;
    f->options.timeout_ms = 600000;
    fixture_open(f);
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "both.n%d.test", i);
        fixture_ask(f, name, &results[i]);
    }
    for (int i = 0; i < NAMES; i++) {
        fixture_await(f, &results[i]);
        assert_addresses(&results[i], "192.0.2.1 2001:db8::1");
    }
    assert_int_equal(fixture_active(f), 0);
}

static void names_are_absolute(void **state)
{
    struct fixture *f = *state;
    struct result result;
    unsigned asked;

    setenv("LOCALDOMAIN", "search.test", 1);
    setenv("RES_OPTIONS", "ndots:5", 1);
    fixture_open(f);
    unsetenv("LOCALDOMAIN");
    unsetenv("RES_OPTIONS");
    result = fixture_resolve(f, "nx");
    assert_int_equal(result.status, SS_ERR_NOT_FOUND);
    assert_string_equal(f->stub.last_name, "nx.");
    assert_int_equal(f->stub.asked, 2);

    asked = f->stub.asked;
    result = fixture_resolve(f, "nx.sub.test.");
    assert_int_equal(result.status, SS_ERR_NOT_FOUND);
    assert_string_equal(f->stub.last_name, "nx.sub.test.");
    assert_int_equal(f->stub.asked, asked + 2);
}

static void names_that_a_resolver_takes_are_allowed(void **state)
{
    static const char *const names[] = {
        "both.under_score.test", "both.1digit.test", "both.test.", "BoTh.TEST",
        "both.-dash-.test",      "both.123",
    };
    struct fixture *f = *state;

    fixture_open(f);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct result result = fixture_resolve(f, names[i]);

        assert_addresses(&result, "192.0.2.1 2001:db8::1");
    }
}

static void names_that_are_none_are_refused(void **state)
{
    struct fixture *f = *state;
    char name[SS_HOST_MAX + 3];
    static const char *const names[] = {"",   " ",     "a b", "a\tb", "a..b",
                                        ".a", "a\\.b", "a\\", "\x7f"};
    struct result result;

    fixture_open(f);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        fixture_ask(f, names[i], &result);
        assert_null(result.query);
    }
    memset(name, 'a', sizeof name);
    name[64] = '\0'; /* a label of 64 */
    fixture_ask(f, name, &result);
    assert_null(result.query);
    for (size_t i = 1; i < sizeof name; i += 2) {
        name[i - 1] = 'a';
        name[i] = '.';
    }
    name[SS_HOST_MAX + 1] = '\0'; /* 256 bytes */
    fixture_ask(f, name, &result);
    assert_null(result.query);
    assert_int_equal(f->stub.asked, 0);
}

/* 255 bytes are taken, though DNS has room for 253 only: no such name. */
static void the_longest_names_end(void **state)
{
    struct fixture *f = *state;
    char name[SS_HOST_MAX + 1];

    fixture_open(f);
    for (size_t len = 240; len <= SS_HOST_MAX; len++) {
        struct result result;

        for (size_t i = 0; i < len; i++)
            name[i] = i % 50 == 49 && i + 1 < len ? '.' : 'n';
        memcpy(name, "nx.", 3);
        name[len] = '\0';
        result = fixture_resolve(f, name);
        assert_int_equal(result.status, SS_ERR_NOT_FOUND);
    }
}

static void some_names_are_answered_at_home(void **state)
{
    static const struct {
        const char *name, *list;
    } cases[] = {
        {"localhost", "127.0.0.1 ::1"},     {"LocalHost.", "127.0.0.1 ::1"},
        {"a.b.localhost", "127.0.0.1 ::1"}, {"192.0.2.9", "192.0.2.9"},
        {"2001:db8::9", "2001:db8::9"},
    };
    struct fixture *f = *state;
    struct result result;

    fixture_write_hosts(f, "192.0.2.3 localhost\n");
    fixture_open(f);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        result = fixture_resolve(f, cases[i].name);
        assert_addresses(&result, cases[i].list);
    }
    assert_int_equal(f->stub.asked, 0);
    result = fixture_resolve(f, "nx.xlocalhost");
    assert_int_equal(result.status, SS_ERR_NOT_FOUND);
    assert_int_equal(f->stub.asked, 2);
}

static void the_hosts_file_comes_before_name_servers(void **state)
{
    struct fixture *f = *state;
    struct result result;

    fixture_write_hosts(f, "2001:db8::77 both.test\n192.0.2.77 both.test\n192.0.2.78 one.test\n");
    fixture_open(f);
    result = fixture_resolve(f, "Both.Test.");
    assert_addresses(&result, "192.0.2.77 2001:db8::77");
    result = fixture_resolve(f, "one.test");
    assert_addresses(&result, "192.0.2.78");
    assert_int_equal(f->stub.asked, 0);
}

static void a_thousand_at_once_all_succeed(void **state)
{
    enum { QUERIES = 1000 };
    struct fixture *f = *state;
    struct result *results = calloc(QUERIES, sizeof *results);
    char name[32];

    assert_non_null(results);
    fixture_open(f);
    for (unsigned i = 0; i < QUERIES; i++) {
        snprintf(name, sizeof name, "both.n%u.test", i);
        fixture_ask(f, name, &results[i]);
        assert_non_null(results[i].query);
    }
    for (unsigned i = 0; i < QUERIES; i++) {
        fixture_await(f, &results[i]);
        assert_addresses(&results[i], "192.0.2.1 2001:db8::1");
    }
    assert_int_equal(f->stub.asked, 2 * QUERIES);
    assert_int_equal(fixture_active(f), 0);
    free(results);
}

/* Silent names fill the window; one that is answered gets through long before they time out. */
static void silent_names_do_not_hold_up_the_others(void **state)
{
    enum { SILENT = 100 };
    struct fixture *f = *state;
    struct result silent[SILENT], result;

    f->options.timeout_ms = 60000;
    fixture_open(f);
    for (unsigned i = 0; i < SILENT; i++)
        fixture_ask(f, "silent.test", &silent[i]);
    fixture_ask(f, "both.test", &result);
    assert_non_null(result.query);
    fixture_await(f, &result);
    assert_addresses(&result, "192.0.2.1 2001:db8::1");
    for (unsigned i = 0; i < SILENT; i++)
        assert_int_equal(silent[i].calls, 0);
}

static void no_more_queries_than_configured(void **state)
{
    struct fixture *f = *state;
    struct result results[5];

    f->options.max_queries = 4;
    fixture_open(f);
    for (int i = 0; i < 4; i++) {
        fixture_ask(f, "both.test", &results[i]);
        assert_non_null(results[i].query);
    }
    fixture_ask(f, "both.test", &results[4]);
    assert_null(results[4].query);
    for (int i = 0; i < 4; i++)
        fixture_await(f, &results[i]);
    results[4] = fixture_resolve(f, "both.test");
    assert_addresses(&results[4], "192.0.2.1 2001:db8::1");
}

static unsigned open_descriptors(void)
{
    unsigned count = 0;

    for (int fd = 0; fd < 4096; fd++)
        count += fcntl(fd, F_GETFD) != -1;
    return count;
}

static void an_idle_resolver_has_no_socket_and_no_timer(void **state)
{
    struct fixture *f = *state;
    unsigned before;

    fixture_open(f);
    before = open_descriptors();
    assert_int_equal(fixture_active(f), 0);
    fixture_resolve(f, "both.test");
    assert_int_equal(open_descriptors(), before);
    assert_int_equal(fixture_active(f), 0);
}

static void source_ports_vary(void **state)
{
    struct fixture *f = *state;
    bool differ = false;

    fixture_open(f);
    for (int i = 0; i < 8; i++)
        fixture_resolve(f, "both.test");
    for (int i = 1; i < 16; i++)
        differ |= f->stub.peer_ports[i] != f->stub.peer_ports[0];
    assert_true(differ);
}

static void descriptors_above_1024_work(void **state)
{
    enum { BELOW = 1100 };
    struct fixture *f = *state;
    const rlim_t needed = BELOW + 64;
    struct rlimit limit;
    struct result result;
    int fds[BELOW], count = 0;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_cur < needed) {
        limit.rlim_cur = needed < limit.rlim_max ? needed : limit.rlim_max;
        if (limit.rlim_cur < needed || setrlimit(RLIMIT_NOFILE, &limit) != 0)
            skip();
    }
    fixture_open(f);
    do
        fds[count] = dup(0);
    while (fds[count] >= 0 && fds[count++] < BELOW);
    assert_true(fds[count - 1] >= BELOW);
    result = fixture_resolve(f, "both.test");
    assert_addresses(&result, "192.0.2.1 2001:db8::1");
    while (count > 0)
        close(fds[--count]);
}

static void more_than_sixteen_sockets_work(void **state)
{
    enum { SILENT = 20 };
    struct fixture *f = *state;
    uv_udp_t silent[SILENT];
    char list[SILENT * 24 + 32] = "";
    struct result result;

    for (int i = 0; i < SILENT; i++) {
        struct sockaddr_in addr;
        int len = sizeof addr;

        uv_udp_init(&f->loop, &silent[i]);
        uv_ip4_addr("127.0.0.1", 0, &addr);
        assert_int_equal(uv_udp_bind(&silent[i], (const struct sockaddr *)&addr, 0), 0);
        uv_udp_getsockname(&silent[i], (struct sockaddr *)&addr, &len);
        snprintf(list + strlen(list), sizeof list - strlen(list), "127.0.0.1:%d,",
                 ntohs(addr.sin_port));
    }
    strcat(list, f->stub.address);
    f->options.nameservers = list;
    f->options.timeout_ms = 10;
    fixture_open(f);
    result = fixture_resolve(f, "both.test");
    assert_addresses(&result, "192.0.2.1 2001:db8::1");
    for (int i = 0; i < SILENT; i++)
        uv_close((uv_handle_t *)&silent[i], NULL);
    fixture_turn(f);
}

static void name_servers_are_checked(void **state)
{
    static const char *const good[] = {
        "127.0.0.1", "127.0.0.1:5353", "::1", "[::1]:5353", "127.0.0.1, ::1", "127.0.0.1,::1:5",
    };
    static const char *const bad[] = {
        "",
        ",",
        "name",
        "127.0.0.1:0",
        "127.0.0.1:65536",
        "127.0.0.1:x",
        "127.0.0.1,name",
        "1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,"
        "1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,"
        "1.1.1.1,1.1.1.1,1.1.1.1",
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        f->options.nameservers = bad[i];
        assert_int_equal(ss_resolver_new(&f->resolver, &f->loop, &f->options), SS_ERR_ARGUMENT);
        assert_null(f->resolver);
    }
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        f->options.nameservers = good[i];
        fixture_open(f);
        ss_resolver_close(f->resolver);
    }
    f->options.nameservers = NULL; /* the system's */
    fixture_open(f);
}

int resolver_tests(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ipv4_comes_first_unless_ipv6_is_preferred),
        TEST(ipv6_comes_first_when_it_is_preferred),
        TEST(addresses_come_once_by_turns_and_no_more_than_fit),
        TEST(an_answer_that_was_cut_is_fetched_over_tcp),
        TEST(failures_are_told_apart),
        TEST(one_family_failing_leaves_the_other),
        TEST(the_second_family_is_waited_for_only_shortly),
        TEST(a_second_family_in_time_is_taken_along),
        TEST(a_silent_name_server_costs_no_cpu),
        TEST(a_refusing_port_ends_the_query),
        TEST(refusing_ports_make_way_at_once),
        TEST(names_are_absolute),
        TEST(names_that_a_resolver_takes_are_allowed),
        TEST(names_that_are_none_are_refused),
        TEST(the_longest_names_end),
        TEST(some_names_are_answered_at_home),
        TEST(the_hosts_file_comes_before_name_servers),
        TEST(a_thousand_at_once_all_succeed),
        TEST(silent_names_do_not_hold_up_the_others),
        TEST(no_more_queries_than_configured),
        TEST(an_idle_resolver_has_no_socket_and_no_timer),
        TEST(source_ports_vary),
        TEST(descriptors_above_1024_work),
        TEST(more_than_sixteen_sockets_work),
        TEST(name_servers_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
