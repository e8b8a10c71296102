/* What an answer says, record by record, and what it can't make us believe. */
#include "resolver/answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

enum { A = 1, NS = 2, CNAME = 5, SOA = 6, AAAA = 28 };

/* A message under construction. */
struct message {
    uint8_t bytes[4096];
    size_t len;
};

static void put(struct message *m, const void *bytes, size_t len)
{
    assert_true(len <= sizeof m->bytes - m->len);
    memcpy(m->bytes + m->len, bytes, len);
    m->len += len;
}

static void put_u16(struct message *m, unsigned value)
{
    const uint8_t b[2] = {(uint8_t)(value >> 8), (uint8_t)value};

    put(m, b, sizeof b);
}

static void put_u32(struct message *m, uint32_t value)
{
    put_u16(m, value >> 16);
    put_u16(m, value & 0xffff);
}

static void put_name(struct message *m, const char *text)
{
    while (*text != '\0') {
        const size_t len = strcspn(text, ".");
        const uint8_t byte = (uint8_t)len;

        put(m, &byte, 1);
        put(m, text, len);
        text += len + (text[len] == '.');
    }
    put(m, "", 1);
}

static void begin(struct message *m, unsigned rcode, const char *name, unsigned type)
{
    memset(m, 0, sizeof *m);
    put_u16(m, 0x1234);
    put_u16(m, 0x8180 | rcode);
    put_u16(m, 1);
    put_u16(m, 0);
    put_u16(m, 0);
    put_u16(m, 0);
    put_name(m, name);
    put_u16(m, type);
    put_u16(m, 1);
}

/* Section 1 holds answers, 2 authorities. */
static void put_record_head(struct message *m, int section, const char *owner, unsigned type,
                            uint32_t ttl, unsigned len)
{
    m->bytes[4 + 2 * section + 1]++;
    if (m->bytes[4 + 2 * section + 1] == 0)
        m->bytes[4 + 2 * section]++;
    put_name(m, owner);
    put_u16(m, type);
    put_u16(m, 1);
    put_u32(m, ttl);
    put_u16(m, len);
}

static void put_a(struct message *m, const char *owner, uint32_t ttl, uint8_t number)
{
    const uint8_t ip[4] = {192, 0, 2, number};

    put_record_head(m, 1, owner, A, ttl, sizeof ip);
    put(m, ip, sizeof ip);
}

static void put_cname(struct message *m, const char *owner, uint32_t ttl, const char *target)
{
    put_record_head(m, 1, owner, CNAME, ttl, (unsigned)strlen(target) + 2);
    put_name(m, target);
}

static void put_soa(struct message *m, const char *zone, uint32_t ttl, uint32_t minimum)
{
    put_record_head(m, 2, zone, SOA, ttl, 2 + 20);
    put(m, "\0", 2);
    for (int i = 0; i < 4; i++)
        put_u32(m, 7777);
    put_u32(m, minimum);
}

static struct ss_answer read_as(const struct message *m, const char *name, enum ss_family family)
{
    /* Memory of exactly that length, so that a sanitizer sees a read beyond it. */
    uint8_t *bytes = malloc(m->len + (m->len == 0));
    struct ss_answer answer;

    assert_non_null(bytes);
    memcpy(bytes, m->bytes, m->len);
    ss_answer_read(&answer, (struct ss_view){bytes, m->len}, name, family);
    free(bytes);
    return answer;
}

static void assert_answer(const struct ss_answer *answer, const char *list, int64_t ttl)
{
    char text[SS_ADDRESSES_MAX * (SS_IP_TEXT_MAX + 1)] = "", ip[SS_IP_TEXT_MAX];

    for (size_t i = 0; i < answer->count; i++) {
        strcat(text, i != 0 ? " " : "");
        strcat(text, ss_ip_format(&answer->ips[i], ip));
    }
    assert_string_equal(text, list);
    assert_int_equal(answer->status, *list != '\0' ? SS_OK : SS_ERR_NOT_FOUND);
    assert_int_equal(answer->has_ttl ? (int64_t)answer->ttl_s : -1, ttl);
}

static void addresses_come_with_the_least_time_to_live(void **state)
{
    static const uint8_t ipv6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1};
    struct ss_answer answer;
    struct message m;

    (void)state;
    begin(&m, 0, "a.test", A);
    put_a(&m, "a.test", 300, 1);
    put_a(&m, "A.Test", 20, 2);
    put_a(&m, "a.test", 600, 3);
    answer = read_as(&m, "a.test.", SS_FAMILY_IPV4);
    assert_answer(&answer, "192.0.2.1 192.0.2.2 192.0.2.3", 20);
    answer = read_as(&m, "a.test", SS_FAMILY_IPV4);
    assert_answer(&answer, "192.0.2.1 192.0.2.2 192.0.2.3", 20);

    begin(&m, 0, "a.test", AAAA);
    put_record_head(&m, 1, "a.test", AAAA, 40, sizeof ipv6);
    put(&m, ipv6, sizeof ipv6);
    answer = read_as(&m, "a.test.", SS_FAMILY_IPV6);
    assert_answer(&answer, "2001:db8::1", 40);
}

/* RFC 2181, 8 */
static void a_time_to_live_beyond_31_bits_is_zero(void **state)
{
    struct ss_answer answer;
    struct message m;

    (void)state;
    begin(&m, 0, "a.test", A);
    put_a(&m, "a.test", 0x80000000u, 1);
    answer = read_as(&m, "a.test.", SS_FAMILY_IPV4);
    assert_answer(&answer, "192.0.2.1", 0);
    begin(&m, 0, "a.test", A);
    put_a(&m, "a.test", 0x7fffffffu, 1);
    answer = read_as(&m, "a.test.", SS_FAMILY_IPV4);
    assert_answer(&answer, "192.0.2.1", 0x7fffffff);
}

static void aliases_are_followed_in_any_order(void **state)
{
    struct ss_answer answer;
    struct message m;

    (void)state;
    begin(&m, 0, "a.test", A);
    put_cname(&m, "a.test", 300, "b.test");
    put_cname(&m, "b.test", 10, "c.test");
    put_a(&m, "c.test", 200, 1);
    answer = read_as(&m, "a.test.", SS_FAMILY_IPV4);
    assert_answer(&answer, "192.0.2.1", 10);

    begin(&m, 0, "a.test", A);
    put_a(&m, "d.test", 200, 1);
    put_cname(&m, "c.test", 10, "d.test");
    put_cname(&m, "b.test", 300, "c.test");
    put_cname(&m, "a.test", 300, "b.test");
    answer = read_as(&m, "a.test.", SS_FAMILY_IPV4);
    assert_answer(&answer, "192.0.2.1", 10);
}

static void aliases_end(void **state)
{
    struct ss_answer answer;
    struct message m;
    char from[32], to[32];

    (void)state;
    begin(&m, 0, "a.test", A); /* a circle */
    put_cname(&m, "a.test", 300, "b.test");
    put_cname(&m, "b.test", 300, "a.test");
    put_a(&m, "a.test", 300, 1);
    answer = read_as(&m, "a.test.", SS_FAMILY_IPV4);
    assert_int_equal(answer.status, SS_ERR_FORMAT);
    assert_int_equal(answer.count, 0);

    for (int aliases = 16; aliases <= 17; aliases++) {
        begin(&m, 0, "n0.test", A);
        for (int i = 0; i < aliases; i++) {
            snprintf(from, sizeof from, "n%d.test", i);
            snprintf(to, sizeof to, "n%d.test", i + 1);
            put_cname(&m, from, 300, to);
        }
        put_a(&m, to, 300, 1);
        answer = read_as(&m, "n0.test.", SS_FAMILY_IPV4);
        assert_int_equal(answer.status, aliases == 16 ? SS_OK : SS_ERR_FORMAT);
    }
}

static void records_of_other_names_do_not_count(void **state)
{
    struct ss_answer answer;
    struct message m;

    (void)state;
    begin(&m, 0, "a.test", A);
    put_a(&m, "other.test", 300, 6);
    put_cname(&m, "x.test", 1, "a.test");
    put_a(&m, "a.test", 300, 1);
    put_cname(&m, "other.test", 1, "a.test");
    put_a(&m, "sub.a.test", 1, 7);
    put_a(&m, "test", 1, 8);
    answer = read_as(&m, "a.test.", SS_FAMILY_IPV4);
    assert_answer(&answer, "192.0.2.1", 300);

    /* An address beside an alias is not the alias's. */
    begin(&m, 0, "a.test", A);
    put_cname(&m, "a.test", 300, "b.test");
    put_a(&m, "a.test", 300, 1);
    answer = read_as(&m, "a.test.", SS_FAMILY_IPV4);
    assert_answer(&answer, "", -1);

    /* The dot of a label is no border between labels. */
    begin(&m, 0, "a.test", A);
    put_record_head(&m, 1, "", A, 300, 4);
    m.len -= 1 + 10;
    put(&m, "\006a.test\0", 8);
    put_u16(&m, A);
    put_u16(&m, 1);
    put_u32(&m, 300);
    put_u16(&m, 4);
    put_u32(&m, 0x01020304);
    answer = read_as(&m, "a.test.", SS_FAMILY_IPV4);
    assert_answer(&answer, "", -1);
}

static void a_no_holds_as_long_as_its_zone_says(void **state)
{
    static const struct {
        unsigned rcode;
        const char *zone;
        uint32_t ttl, minimum;
        int64_t expected;
    } cases[] = {
        {3, "test", 900, 30, 30}, {3, "test", 20, 300, 20},         {0, "test", 900, 30, 30},
        {3, "", 900, 30, 30},     {3, "a.test", 900, 30, 30},       {3, "b.test", 900, 30, -1},
        {3, "est", 900, 30, -1},  {3, "test", 900, 0x80000000u, 0}, {0, "x.a.test", 900, 30, -1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct ss_answer answer;
        struct message m;

        begin(&m, cases[i].rcode, "a.test", A);
        put_record_head(&m, 2, "test", NS, 5, 1);
        put(&m, "", 1);
        put_soa(&m, cases[i].zone, cases[i].ttl, cases[i].minimum);
        answer = read_as(&m, "a.test.", SS_FAMILY_IPV4);
        assert_answer(&answer, "", cases[i].expected);
    }
}

static void a_no_behind_an_alias_is_the_alias_targets(void **state)
{
    struct ss_answer answer;
    struct message m;

    (void)state;
    begin(&m, 3, "a.test", A);
    put_cname(&m, "a.test", 10, "b.example");
    put_soa(&m, "example", 900, 30);
    answer = read_as(&m, "a.test.", SS_FAMILY_IPV4);
    assert_answer(&answer, "", 10);

    begin(&m, 3, "a.test", A);
    put_cname(&m, "a.test", 10, "b.example");
    put_soa(&m, "test", 900, 30);
    answer = read_as(&m, "a.test.", SS_FAMILY_IPV4);
    assert_answer(&answer, "", -1);

    begin(&m, 3, "a.test", A); /* "no such name" outweighs what stands beside it */
    put_a(&m, "a.test", 10, 1);
    answer = read_as(&m, "a.test.", SS_FAMILY_IPV4);
    assert_int_equal(answer.status, SS_ERR_NOT_FOUND);
    assert_int_equal(answer.count, 0);
}

static void only_the_first_addresses_are_taken(void **state)
{
    struct ss_answer answer;
    struct message m;

    (void)state;
    begin(&m, 0, "a.test", A);
    for (int i = 1; i <= 100; i++)
        put_a(&m, "a.test", (uint32_t)(1000 - i), (uint8_t)i);
    answer = read_as(&m, "a.test.", SS_FAMILY_IPV4);
    assert_int_equal(answer.status, SS_OK);
    assert_int_equal(answer.count, SS_ADDRESSES_MAX);
    assert_int_equal(answer.ips[SS_ADDRESSES_MAX - 1].bytes[3], SS_ADDRESSES_MAX);
}

static void what_answers_another_question_is_refused(void **state)
{
    struct ss_answer answer;
    struct message m;

    (void)state;
    begin(&m, 0, "a.test", A);
    put_a(&m, "a.test", 300, 1);
    answer = read_as(&m, "b.test.", SS_FAMILY_IPV4);
    assert_int_equal(answer.status, SS_ERR_FORMAT);
    answer = read_as(&m, "a.test.", SS_FAMILY_IPV6);
    assert_int_equal(answer.status, SS_ERR_FORMAT);
    m.bytes[2] &= 0x7f; /* a query */
    answer = read_as(&m, "a.test.", SS_FAMILY_IPV4);
    assert_int_equal(answer.status, SS_ERR_FORMAT);
    for (unsigned rcode = 0; rcode < 16; rcode++) {
        begin(&m, rcode, "a.test", A);
        put_a(&m, "a.test", 300, 1);
        answer = read_as(&m, "a.test.", SS_FAMILY_IPV4);
        assert_int_equal(answer.status, rcode == 0   ? SS_OK
                                        : rcode == 3 ? SS_ERR_NOT_FOUND
                                                     : SS_ERR_IO);
    }
}

static void every_prefix_and_every_flipped_bit_is_read_within_bounds(void **state)
{
    struct message whole, m;
    struct ss_answer answer;

    (void)state;
    begin(&whole, 0, "a.test", A);
    put_cname(&whole, "a.test", 300, "b.test");
    put_a(&whole, "b.test", 300, 1);
    for (size_t len = 0; len < whole.len; len++) {
        m = whole;
        m.len = len;
        answer = read_as(&m, "a.test.", SS_FAMILY_IPV4);
        assert_int_equal(answer.status, SS_ERR_FORMAT);
        assert_int_equal(answer.count, 0);
    }
    for (size_t bit = 0; bit < 8 * whole.len; bit++) {
        m = whole;
        m.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        answer = read_as(&m, "a.test.", SS_FAMILY_IPV4);
        assert_true((answer.status == SS_OK) == (answer.count != 0));
        assert_true(answer.count <= 1);
    }
}

int answer_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_come_with_the_least_time_to_live),
        cmocka_unit_test(a_time_to_live_beyond_31_bits_is_zero),
        cmocka_unit_test(aliases_are_followed_in_any_order),
        cmocka_unit_test(aliases_end),
        cmocka_unit_test(records_of_other_names_do_not_count),
        cmocka_unit_test(a_no_holds_as_long_as_its_zone_says),
        cmocka_unit_test(a_no_behind_an_alias_is_the_alias_targets),
        cmocka_unit_test(only_the_first_addresses_are_taken),
        cmocka_unit_test(what_answers_another_question_is_refused),
        cmocka_unit_test(every_prefix_and_every_flipped_bit_is_read_within_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
