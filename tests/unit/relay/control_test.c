/* Controls: which datagrams a SOCKS5 connection lets in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "crypto/random.h"
#include "relay/control.h"

static struct ss_addr address(uint8_t last, uint16_t port)
{
    return (struct ss_addr){.ip = {.family = SS_FAMILY_IPV4, .bytes = {192, 0, 2, last}},
                            .port = port};
}

static void only_an_address_with_a_connection_is_let_in(void **state)
{
    struct ss_controls controls;
    struct ss_addr client = address(1, 4000);
    struct ss_addr other = address(2, 4000);
    const struct ss_addr anywhere = {0};
    struct ss_control *control;
    (void)state;

    assert_int_equal(ss_controls_init(&controls, 4), SS_OK);
    assert_null(ss_control_find(&controls, &client));
    control = ss_control_open(&controls, &client.ip, &anywhere);
    assert_ptr_equal(ss_control_find(&controls, &client), control);
    assert_null(ss_control_find(&controls, &other));
    client.port = 4001;
    assert_ptr_equal(ss_control_find(&controls, &client), control);
    ss_control_close(&controls, control);
    assert_null(ss_control_find(&controls, &client));
    ss_controls_clear(&controls);
}

static void a_request_narrows_it(void **state)
{
    struct ss_controls controls;
    struct ss_addr client = address(1, 4000);
    struct ss_addr wrong_port = address(1, 4001);
    struct ss_addr elsewhere = address(7, 0);
    struct ss_control *narrow, *never;
    (void)state;

    assert_int_equal(ss_controls_init(&controls, 4), SS_OK);
    narrow = ss_control_open(&controls, &client.ip, &client);
    assert_ptr_equal(ss_control_find(&controls, &client), narrow);
    assert_null(ss_control_find(&controls, &wrong_port));
    /* One that names an address other than its own lets nobody in. */
    never = ss_control_open(&controls, &client.ip, &elsewhere);
    assert_null(ss_control_find(&controls, &wrong_port));
    ss_control_close(&controls, narrow);
    ss_control_close(&controls, never);
    ss_controls_clear(&controls);
}

static void the_control_that_named_its_port_is_preferred(void **state)
{
    struct ss_controls controls;
    struct ss_addr client = address(1, 4000);
    const struct ss_addr anywhere = {0};
    struct ss_control *narrow, *wide;
    (void)state;

    assert_int_equal(ss_controls_init(&controls, 4), SS_OK);
    narrow = ss_control_open(&controls, &client.ip, &client);
    wide = ss_control_open(&controls, &client.ip, &anywhere);
    assert_ptr_equal(ss_control_find(&controls, &client), narrow);
    client.port = 4001;
    assert_ptr_equal(ss_control_find(&controls, &client), wide);
    ss_control_close(&controls, wide);
    assert_null(ss_control_find(&controls, &client));
    ss_control_close(&controls, narrow);
    ss_controls_clear(&controls);
}

static void places_are_bounded_and_come_back(void **state)
{
    struct ss_controls controls;
    struct ss_control *open[4];
    struct ss_addr client = address(1, 1);
    const struct ss_addr anywhere = {0};
    (void)state;

    assert_int_equal(ss_controls_init(&controls, 4), SS_OK);
    for (int round = 0; round < 3; round++) {
        for (uint8_t i = 0; i < 4; i++) {
            client = address(i, 1);
            open[i] = ss_control_open(&controls, &client.ip, &anywhere);
            assert_non_null(open[i]);
        }
        assert_null(ss_control_open(&controls, &client.ip, &anywhere));
        for (int i = 0; i < 4; i++)
            ss_control_close(&controls, open[i]);
    }
    ss_controls_clear(&controls);
}

int control_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_an_address_with_a_connection_is_let_in),
        cmocka_unit_test(a_request_narrows_it),
        cmocka_unit_test(the_control_that_named_its_port_is_preferred),
        cmocka_unit_test(places_are_bounded_and_come_back),
    };

    return ss_random_start() != SS_OK || cmocka_run_group_tests(tests, NULL, NULL);
}
