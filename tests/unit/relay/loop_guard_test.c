/* What is refused since it would come back, and how often that is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "relay/loop_guard.h"

static unsigned lines;

static void count_line(enum ss_log_level level, const char *text)
{
    (void)level;
    (void)text;
    lines++;
}

static const struct ss_endpoint servers[] = {{"192.0.2.9", 8388}, {"proxy.test", 8389}};
static const struct ss_role role = {.options = {.guarded = servers, .guarded_count = 2}};

static struct ss_addr address(const char *host, uint16_t port)
{
    struct ss_addr addr = {.port = port};

    assert_int_equal(ss_ip_parse(&addr.ip, host), SS_OK);
    return addr;
}

static bool refuses(struct ss_loop_guard *guard, const struct ss_dialed *dialed, bool udp,
                    const char *client, const char *host, uint16_t port, uint64_t now_ms)
{
    const struct ss_addr from = address(client, 40000), to = address(host, port);

    return ss_loop_guard_refuses(guard, dialed, &role, udp, &from, &to, now_ms);
}

static int begin(void **state)
{
    lines = 0;
    ss_log_set_sink(count_line);
    *state = ss_loop_guard_new();
    return *state != NULL ? 0 : 1;
}

static int end(void **state)
{
    ss_log_set_sink(NULL);
    ss_loop_guard_free(*state);
    return 0;
}

static void ports_of_our_own(void **state)
{
    struct ss_loop_guard *guard = *state;
    struct ss_dialed dialed = {.next = 0};

    ss_loop_guard_add_port(guard, false, 1080);
    ss_loop_guard_add_port(guard, true, 65535);
    assert_true(refuses(guard, &dialed, false, "192.0.2.1", "127.0.0.1", 1080, 0));
    assert_true(refuses(guard, &dialed, false, "127.0.0.1", "127.1.2.3", 1080, 0));
    assert_true(refuses(guard, &dialed, true, "192.0.2.1", "127.0.0.1", 65535, 0));
    assert_false(refuses(guard, &dialed, true, "192.0.2.1", "127.0.0.1", 1080, 0));
    assert_false(refuses(guard, &dialed, false, "192.0.2.1", "127.0.0.1", 65535, 0));
    assert_false(refuses(guard, &dialed, false, "192.0.2.1", "127.0.0.1", 1081, 0));
    assert_false(refuses(guard, &dialed, false, "192.0.2.1", "198.51.100.1", 1080, 0));
}

static void servers_from_this_machine(void **state)
{
    struct ss_loop_guard *guard = *state;
    struct ss_dialed dialed = {.next = 0};
    const struct ss_addr named = address("192.0.2.10", 8389);

    assert_true(refuses(guard, &dialed, false, "127.0.0.1", "192.0.2.9", 8388, 0));
    assert_true(refuses(guard, &dialed, true, "127.0.0.1", "192.0.2.9", 8388, 0));
    assert_false(refuses(guard, &dialed, false, "127.0.0.1", "192.0.2.9", 8389, 0));
    assert_false(refuses(guard, &dialed, false, "198.51.100.7", "192.0.2.9", 8388, 0));
    /* A name is known by the addresses that it was dialled at. */
    assert_false(refuses(guard, &dialed, false, "127.0.0.1", "192.0.2.10", 8389, 0));
    ss_dialed_note(&dialed, &named);
    assert_true(refuses(guard, &dialed, false, "127.0.0.1", "192.0.2.10", 8389, 0));
    assert_false(refuses(guard, &dialed, false, "198.51.100.7", "192.0.2.10", 8389, 0));
}

static void the_latest_addresses_are_kept(void **state)
{
    struct ss_loop_guard *guard = *state;
    struct ss_dialed dialed = {.next = 0};

    for (uint16_t i = 0; i < 20; i++) {
        const struct ss_addr server = address("192.0.2.10", (uint16_t)(5000 + i));

        ss_dialed_note(&dialed, &server);
        ss_dialed_note(&dialed, &server);
    }
    assert_false(refuses(guard, &dialed, false, "127.0.0.1", "192.0.2.10", 5003, 0));
    for (uint16_t i = 4; i < 20; i++)
        assert_true(
            refuses(guard, &dialed, false, "127.0.0.1", "192.0.2.10", (uint16_t)(5000 + i), 0));
}

static void each_cause_is_said_once_a_minute(void **state)
{
    struct ss_loop_guard *guard = *state;
    struct ss_dialed dialed = {.next = 0};

    ss_loop_guard_add_port(guard, false, 1080);
    ss_loop_guard_add_port(guard, true, 1080);
    for (uint64_t now_ms = 1000; now_ms < 60000; now_ms += 100) {
        assert_true(refuses(guard, &dialed, false, "192.0.2.1", "127.0.0.1", 1080, now_ms));
        assert_true(refuses(guard, &dialed, true, "192.0.2.1", "127.0.0.1", 1080, now_ms));
        assert_true(refuses(guard, &dialed, true, "127.0.0.1", "192.0.2.9", 8388, now_ms));
    }
    assert_int_equal(lines, 3);
    assert_true(refuses(guard, &dialed, false, "192.0.2.1", "127.0.0.1", 1080, 61000));
    assert_int_equal(lines, 4);
}

int loop_guard_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ports_of_our_own, begin, end),
        cmocka_unit_test_setup_teardown(servers_from_this_machine, begin, end),
        cmocka_unit_test_setup_teardown(the_latest_addresses_are_kept, begin, end),
        cmocka_unit_test_setup_teardown(each_cause_is_said_once_a_minute, begin, end),
    };

    return cmocka_run_group_tests_name("relay: loop guard", tests, NULL, NULL);
}
