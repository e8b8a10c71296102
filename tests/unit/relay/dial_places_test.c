/* Addresses that are left to try: in which order they are taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "relay/dial_places.h"

static struct ss_ip ip_of(const char *text)
{
    struct ss_ip ip;

    assert_int_equal(ss_ip_parse(&ip, text), SS_OK);
    return ip;
}

static void families_take_turns(void **state)
{
    const struct ss_ip addresses[] = {ip_of("192.0.2.1"), ip_of("192.0.2.2"), ip_of("2001:db8::1")};
    struct ss_dial_places places = {.count = 0};
    struct ss_dial_place place = {.server = 0};
    (void)state;

    ss_dial_places_add(&places, 0, addresses, 3, 80);
    assert_true(ss_dial_places_take(&places, &place, false, SS_FAMILY_NONE));
    assert_true(ss_ip_equal(&place.ip, &addresses[0]));
    assert_int_equal(place.port, 80);
    assert_true(ss_dial_places_take(&places, &place, false, SS_FAMILY_IPV4));
    assert_true(ss_ip_equal(&place.ip, &addresses[2]));
    assert_true(ss_dial_places_take(&places, &place, false, SS_FAMILY_IPV4));
    assert_true(ss_ip_equal(&place.ip, &addresses[1]));
    assert_false(ss_dial_places_take(&places, &place, true, SS_FAMILY_NONE));
    assert_true(ss_ip_equal(&place.ip, &addresses[1]));
}

static void servers_are_kept_apart(void **state)
{
    const struct ss_ip one = ip_of("192.0.2.1"), two = ip_of("192.0.2.2");
    struct ss_dial_places places = {.count = 0};
    struct ss_dial_place place = {.server = 7};
    (void)state;

    ss_dial_places_add(&places, 3, &one, 1, 8388);
    assert_true(ss_dial_places_have(&places, 3));
    assert_false(ss_dial_places_have(&places, 7));
    assert_false(ss_dial_places_take(&places, &place, false, SS_FAMILY_NONE));
    ss_dial_places_add(&places, 7, &two, 1, 8389);
    assert_true(ss_dial_places_take(&places, &place, false, SS_FAMILY_NONE));
    assert_int_equal(place.port, 8389);
    assert_true(ss_dial_places_take(&places, &place, true, SS_FAMILY_IPV4));
    assert_int_equal(place.server, 3);
    assert_int_equal(places.count, 0);
}

static void what_there_is_no_room_for_is_left_out(void **state)
{
    const struct ss_ip one = ip_of("192.0.2.1");
    struct ss_dial_places places = {.count = 0};
    struct ss_dial_place place = {.server = 1};
    (void)state;

    for (int i = 0; i < SS_DIAL_PLACES_MAX + 5; i++)
        ss_dial_places_add(&places, 1, &one, 1, 1);
    for (int i = 0; i < SS_DIAL_PLACES_MAX; i++)
        assert_true(ss_dial_places_take(&places, &place, false, SS_FAMILY_NONE));
    assert_false(ss_dial_places_take(&places, &place, false, SS_FAMILY_NONE));
}

int dial_places_tests(void);

int dial_places_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_take_turns),
        cmocka_unit_test(servers_are_kept_apart),
        cmocka_unit_test(what_there_is_no_room_for_is_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
