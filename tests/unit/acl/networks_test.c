/* The prefix tree against a plain list of the same networks. */
#include "acl/networks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "acl/lists.h"

static struct ss_ip ip_of(const char *text)
{
    struct ss_ip ip;

    assert_int_equal(ss_ip_parse(&ip, text), SS_OK);
    return ip;
}

static void add(struct acl_networks *networks, const char *text, unsigned prefix, unsigned list)
{
    const struct ss_ip ip = ip_of(text);

    assert_int_equal(acl_networks_add(networks, &ip, prefix, list), SS_OK);
}

static unsigned find(const struct acl_networks *networks, const char *text)
{
    const struct ss_ip ip = ip_of(text);

    return acl_networks_find(networks, &ip);
}

static void an_address_is_on_the_lists_of_all_networks_around_it(void **state)
{
    struct acl_networks networks = {0};
    (void)state;

    assert_int_equal(find(&networks, "10.0.0.1"), 0);
    add(&networks, "10.1.2.3", 32, ACL_BLACK);
    add(&networks, "10.1.0.0", 16, ACL_WHITE);
    add(&networks, "10.0.0.0", 8, ACL_BLOCK);
    assert_int_equal(find(&networks, "10.1.2.3"),
                     ACL_BIT(ACL_BLACK) | ACL_BIT(ACL_WHITE) | ACL_BIT(ACL_BLOCK));
    assert_int_equal(find(&networks, "10.1.2.2"), ACL_BIT(ACL_WHITE) | ACL_BIT(ACL_BLOCK));
    assert_int_equal(find(&networks, "10.2.2.2"), ACL_BIT(ACL_BLOCK));
    assert_int_equal(find(&networks, "11.0.0.0"), 0);
    assert_int_equal(networks.lists, ACL_BIT(ACL_BLACK) | ACL_BIT(ACL_WHITE) | ACL_BIT(ACL_BLOCK));
    acl_networks_clear(&networks);
}

static void everything_is_everything_of_one_family(void **state)
{
    struct acl_networks networks = {0};
    const struct ss_ip none = {0};
    (void)state;

    add(&networks, "1.2.3.4", 0, ACL_BLACK);
    add(&networks, "2001:db8::1", 128, ACL_WHITE);
    assert_int_equal(find(&networks, "0.0.0.0"), ACL_BIT(ACL_BLACK));
    assert_int_equal(find(&networks, "255.255.255.255"), ACL_BIT(ACL_BLACK));
    assert_int_equal(find(&networks, "::"), 0);
    assert_int_equal(find(&networks, "2001:db8::1"), ACL_BIT(ACL_WHITE));
    assert_int_equal(find(&networks, "2001:db8::2"), 0);
    assert_int_equal(acl_networks_find(&networks, &none), 0);
    add(&networks, "::", 0, ACL_BLOCK);
    assert_int_equal(find(&networks, "2001:db8::2"), ACL_BIT(ACL_BLOCK));
    assert_int_equal(find(&networks, "0.0.0.0"), ACL_BIT(ACL_BLACK));
    acl_networks_clear(&networks);
}

/* A fixed sequence: a failure can be repeated. */
static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

static bool covers(const struct ss_ip *network, unsigned prefix, const struct ss_ip *ip)
{
    if (network->family != ip->family)
        return false;
    for (unsigned i = 0; i < prefix; i++)
        if (((network->bytes[i / 8] ^ ip->bytes[i / 8]) >> (7 - i % 8) & 1) != 0)
            return false;
    return true;
}

/* Few different bytes, so that prefixes nest, meet and part everywhere. */
static struct ss_ip random_ip(uint32_t *seed, bool ipv6)
{
    struct ss_ip ip = {.family = ipv6 ? SS_FAMILY_IPV6 : SS_FAMILY_IPV4};

    for (int i = 0; i < (ipv6 ? 16 : 4); i++)
        ip.bytes[i] = next(seed) % 3 == 0 ? (uint8_t)(0x80 >> next(seed) % 8) : 0;
    return ip;
}

static void it_answers_as_a_plain_list_does(void **state)
{
    enum { COUNT = 600 };
    struct ss_ip ips[COUNT];
    unsigned prefixes[COUNT], lists[COUNT];
    uint32_t seed = 1;
    (void)state;

    for (int round = 0; round < 8; round++) {
        struct acl_networks networks = {0};

        for (int i = 0; i < COUNT; i++) {
            const bool ipv6 = next(&seed) % 2 == 0;

            ips[i] = random_ip(&seed, ipv6);
            prefixes[i] = next(&seed) % (ipv6 ? 129 : 33);
            lists[i] = next(&seed) % ACL_LISTS;
            if (prefixes[i] < 3 && round % 2 == 0)
                prefixes[i] += 20; /* what covers all hides what goes wrong */
            assert_int_equal(acl_networks_add(&networks, &ips[i], prefixes[i], lists[i]), SS_OK);
        }
        acl_networks_trim(&networks);
        for (int i = 0; i < 4000; i++) {
            const struct ss_ip ip = random_ip(&seed, next(&seed) % 2 == 0);
            unsigned expected = 0;

            for (int n = 0; n < COUNT; n++)
                if (covers(&ips[n], prefixes[n], &ip))
                    expected |= ACL_BIT(lists[n]);
            assert_int_equal(acl_networks_find(&networks, &ip), expected);
        }
        assert_true(networks.count <= 2 * COUNT + 2);
        acl_networks_clear(&networks);
    }
}

int networks_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_on_the_lists_of_all_networks_around_it),
        cmocka_unit_test(everything_is_everything_of_one_family),
        cmocka_unit_test(it_answers_as_a_plain_list_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
