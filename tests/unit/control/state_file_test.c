/* Records of the state file: what is written is read again, and a torn file costs one line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/json.h"
#include "control/state_file.h"

/* A text that a struct may own. */
#define TEXT(text) ((char[]){text})

static char *copy_of(const char *text)
{
    char *copy = strdup(text);

    assert_non_null(copy);
    return copy;
}

static void a_port_comes_back_whole(void **state)
{
    struct ss_config_identity user = {
        .name = TEXT("ann"), .password = TEXT("k\""), .limits = {.rate = 5}};
    struct ss_port_spec spec = {
        .port = 8001,
        .fast_open = SS_CHOICE_OFF,
        .timeout_s = 7,
        .server = {.password = TEXT("p\"w\n"),
                   .method = TEXT("m"),
                   .mode = SS_MODE_TCP_AND_UDP,
                   .mode_given = true,
                   .identities = &user,
                   .identity_count = 1,
                   .limits = {.quota = 1, .expires = 2, .quota_used = 3, .quota_period_end = 4}}};
    char *text = ss_record_text(SS_RECORD_ADD, &spec), *at = text;
    size_t len = strlen(text);
    struct ss_record record;
    bool torn;
    (void)state;

    assert_true(ss_record_next(&record, &at, &len, &torn));
    assert_int_equal(record.status, SS_OK);
    assert_int_equal(record.kind, SS_RECORD_ADD);
    assert_int_equal(record.spec.port, 8001);
    assert_string_equal(record.spec.server.password, "p\"w\n");
    assert_int_equal(record.spec.fast_open, SS_CHOICE_OFF);
    assert_int_equal(record.spec.timeout_s, 7);
    assert_true(record.spec.of_users);
    assert_int_equal(record.spec.server.mode, SS_MODE_TCP_AND_UDP);
    assert_int_equal(record.spec.server.limits.quota, 1);
    assert_int_equal(record.spec.server.limits.expires, 2);
    assert_int_equal(record.spec.server.limits.quota_used, 3);
    assert_int_equal(record.spec.server.limits.quota_period_end, 4);
    assert_string_equal(record.spec.server.identities[0].password, "k\"");
    assert_int_equal(record.spec.server.identities[0].limits.rate, 5);
    ss_port_spec_clear(&record.spec);
    assert_false(ss_record_next(&record, &at, &len, &torn));
    assert_false(torn);
    free(text);
}

static void kinds_are_told_apart(void **state)
{
    struct ss_config_identity user = {.name = TEXT("ann")};
    struct ss_port_spec spec = {.port = 5, .server = {.identities = &user, .identity_count = 1}};
    (void)state;

    for (enum ss_record_kind kind = SS_RECORD_HEAD; kind < SS_RECORD_UNKNOWN; kind++) {
        bool bare = kind == SS_RECORD_HEAD || kind == SS_RECORD_END, torn;
        char *text = ss_record_text(kind, bare ? NULL : &spec), *at = text;
        size_t len = strlen(text);
        struct ss_record record;

        assert_true(ss_record_next(&record, &at, &len, &torn));
        assert_int_equal(record.status, SS_OK);
        assert_int_equal(record.kind, kind);
        assert_int_equal(record.spec.port, bare ? 0 : 5);
        ss_port_spec_clear(&record.spec);
        free(text);
    }
}

static void bad_lines_cost_themselves_alone(void **state)
{
    char *text = copy_of("{\"ss-manager\":1}\n"
                         "nonsense\n"
                         "{\"add\":{\"server_port\":0,\"password\":\"x\"}}\n"
                         "{\"add\":5}\n"
                         "\n"
                         "{\"later\":{}}\n"
                         "{\"add\":{\"server_port\":7,\"password\":\"pw\"}}\n"
                         "{\"add\":{\"server_port\":8,\"passw");
    static const enum ss_status expected[] = {
        SS_OK, SS_ERR_FORMAT, SS_ERR_ARGUMENT, SS_ERR_FORMAT, SS_ERR_FORMAT, SS_OK, SS_OK};
    char *at = text;
    size_t len = strlen(text), count = 0;
    struct ss_record record;
    bool torn;
    (void)state;

    while (ss_record_next(&record, &at, &len, &torn)) {
        assert_int_equal(record.status, expected[count]);
        if (count == 5)
            assert_int_equal(record.kind, SS_RECORD_UNKNOWN);
        if (count == 6)
            assert_int_equal(record.spec.port, 7);
        count++;
        ss_port_spec_clear(&record.spec);
    }
    assert_int_equal(count, 7);
    assert_true(torn);
    free(text);
}

static int start(void **state)
{
    (void)state;
    ss_json_start();
    return 0;
}

int state_file_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_port_comes_back_whole),
        cmocka_unit_test(kinds_are_told_apart),
        cmocka_unit_test(bad_lines_cost_themselves_alone),
    };

    return cmocka_run_group_tests(tests, start, NULL);
}
