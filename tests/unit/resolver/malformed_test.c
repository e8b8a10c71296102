/* Answers that are no answers: each ends its own query within the time-outs and harms nothing. */
#include "resolver/resolver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/resolver/fixture.h"

/* Places in the stub's answer to "broken.test": header 12, name 13, type and class 4, then the
 * record: name 2, type 2, class 2, time to live 4, length 2, data. */
enum { QUESTION = 12, RECORD = 29, RECORD_TYPE = 31, RECORD_CLASS = 33, DATA_LEN = 39, DATA = 41 };

static void empty(uint8_t *answer, size_t *len, const char *name)
{
    (void)answer;
    (void)name;
    *len = 0;
}

static void one_byte(uint8_t *answer, size_t *len, const char *name)
{
    (void)answer;
    (void)name;
    *len = 1;
}

static void header_alone(uint8_t *answer, size_t *len, const char *name)
{
    (void)answer;
    (void)name;
    *len = QUESTION;
}

static void other_id(uint8_t *answer, size_t *len, const char *name)
{
    (void)len;
    (void)name;
    answer[0] ^= 0x55;
}

static void no_question(uint8_t *answer, size_t *len, const char *name)
{
    (void)len;
    (void)name;
    answer[5] = 0;
}

static void many_questions(uint8_t *answer, size_t *len, const char *name)
{
    (void)len;
    (void)name;
    answer[4] = 0xff;
}

static void other_name(uint8_t *answer, size_t *len, const char *name)
{
    (void)len;
    (void)name;
    answer[QUESTION + 1] ^= 1;
}

static void records_that_are_not_there(uint8_t *answer, size_t *len, const char *name)
{
    (void)name;
    answer[6] = 0xff;
    answer[7] = 0xff;
    *len = RECORD;
}

static void data_beyond_the_end(uint8_t *answer, size_t *len, const char *name)
{
    (void)len;
    (void)name;
    answer[DATA_LEN] = 0xff;
}

static void no_data(uint8_t *answer, size_t *len, const char *name)
{
    (void)name;
    answer[DATA_LEN + 1] = 0;
    *len = DATA;
}

static void short_data(uint8_t *answer, size_t *len, const char *name)
{
    (void)name;
    answer[DATA_LEN + 1] = 3;
    *len = DATA + 3;
}

static void name_that_points_at_itself(uint8_t *answer, size_t *len, const char *name)
{
    (void)len;
    (void)name;
    answer[RECORD] = 0xc0;
    answer[RECORD + 1] = RECORD;
}

static void name_that_points_ahead(uint8_t *answer, size_t *len, const char *name)
{
    (void)len;
    (void)name;
    answer[RECORD] = 0xff;
    answer[RECORD + 1] = 0xff;
}

static void question_that_points_at_itself(uint8_t *answer, size_t *len, const char *name)
{
    (void)len;
    (void)name;
    answer[QUESTION] = 0xc0;
    answer[QUESTION + 1] = QUESTION;
}

static void label_without_an_end(uint8_t *answer, size_t *len, const char *name)
{
    (void)name;
    answer[RECORD] = 63;
    *len = RECORD + 20;
}

static void label_of_a_reserved_kind(uint8_t *answer, size_t *len, const char *name)
{
    (void)len;
    (void)name;
    answer[RECORD] = 0x80;
}

static void other_class(uint8_t *answer, size_t *len, const char *name)
{
    (void)len;
    (void)name;
    answer[RECORD_CLASS + 1] = 3;
}

static void other_type(uint8_t *answer, size_t *len, const char *name)
{
    (void)len;
    (void)name;
    answer[RECORD_TYPE + 1] = 16;
}

static void alias_of_itself(uint8_t *answer, size_t *len, const char *name)
{
    (void)name;
    answer[RECORD_TYPE + 1] = 5;
    answer[DATA_LEN + 1] = 2;
    answer[DATA] = 0xc0;
    answer[DATA + 1] = QUESTION;
    *len = DATA + 2;
}

static void noise(uint8_t *answer, size_t *len, const char *name)
{
    (void)name;
    for (size_t i = 2; i < 512; i++)
        answer[i] = (uint8_t)(i * i * 31 + i * 7 + answer[1]);
    *len = 512;
}

static const struct {
    const char *what;
    dns_stub_breakage_fn *breakage;
} breakages[] = {
    {"empty", empty},
    {"one byte", one_byte},
    {"header alone", header_alone},
    {"other id", other_id},
    {"no question", no_question},
    {"many questions", many_questions},
    {"other name", other_name},
    {"records that are not there", records_that_are_not_there},
    {"data beyond the end", data_beyond_the_end},
    {"no data", no_data},
    {"short data", short_data},
    {"name that points at itself", name_that_points_at_itself},
    {"name that points ahead", name_that_points_ahead},
    {"question that points at itself", question_that_points_at_itself},
    {"label without an end", label_without_an_end},
    {"label of a reserved kind", label_of_a_reserved_kind},
    {"other class", other_class},
    {"other type", other_type},
    {"alias of itself", alias_of_itself},
    {"noise", noise},
};

static void malformed_answers_fail_their_query(void **state)
{
    struct fixture *f = *state;

    f->options.timeout_ms = 20;
    f->options.tries = 3; /* a busy machine may lose one */
    fixture_open(f);
    for (size_t i = 0; i < sizeof breakages / sizeof breakages[0]; i++) {
        struct result result;

        f->stub.breakage = breakages[i].breakage;
        result = fixture_resolve(f, "broken.test");
        if (result.status == SS_OK)
            fail_msg("an address was taken from: %s", breakages[i].what);
        result = fixture_resolve(f, "both.test");
        assert_addresses(&result, "192.0.2.1 2001:db8::1");
    }
}

/* The name says what is done: "broken.<n>.test". */
static unsigned number_of(const char *name)
{
    return (unsigned)strtoul(name + strlen("broken."), NULL, 10);
}

static void cut_short(uint8_t *answer, size_t *len, const char *name)
{
    (void)answer;
    if (number_of(name) < *len)
        *len = number_of(name);
}

static void flip_bit(uint8_t *answer, size_t *len, const char *name)
{
    const unsigned bit = number_of(name);

    if (bit / 8 < *len)
        answer[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

/* Asks "broken.0.test" to "broken.<count - 1>.test" all at once and awaits every end. */
static void ask_numbered(struct fixture *f, struct result *results, unsigned count)
{
    char name[32];

    for (unsigned i = 0; i < count; i++) {
        snprintf(name, sizeof name, "broken.%u.test", i);
        fixture_ask(f, name, &results[i]);
        assert_non_null(results[i].query);
    }
    for (unsigned i = 0; i < count; i++)
        fixture_await(f, &results[i]);
}

static void every_prefix_of_an_answer_ends(void **state)
{
    enum { PREFIXES = 45 }; /* all shorter than an answer with one IPv4 address */
    struct fixture *f = *state;
    struct result results[PREFIXES];

    f->options.timeout_ms = 20;
    f->options.tries = 3; /* a busy machine may lose one */
    f->stub.breakage = cut_short;
    fixture_open(f);
    ask_numbered(f, results, PREFIXES);
    for (unsigned i = 0; i < PREFIXES; i++)
        assert_int_not_equal(results[i].status, SS_OK);
}

static void every_flipped_bit_ends(void **state)
{
    enum { BITS = 60 * 8 };
    struct fixture *f = *state;
    struct result *results = calloc(BITS, sizeof *results), result;

    assert_non_null(results);
    f->options.timeout_ms = 20;
    f->options.tries = 3; /* a busy machine may lose one */
    f->stub.breakage = flip_bit;
    fixture_open(f);
    ask_numbered(f, results, BITS);
    result = fixture_resolve(f, "both.test");
    assert_addresses(&result, "192.0.2.1 2001:db8::1");
    free(results);
}

int malformed_tests(void)
{
    const struct CMUnitTest tests[] = {
        TEST(malformed_answers_fail_their_query),
        TEST(every_prefix_of_an_answer_ends),
        TEST(every_flipped_bit_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
