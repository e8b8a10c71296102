/* What manager and server say to each other, and the lines it is said in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/json.h"
#include "control/lines.h"
#include "control/wire.h"

/* A text that a struct may own. */
#define TEXT(text) ((char[]){text})

static void requests_arrive(void **state)
{
    struct ss_port_spec spec = {.port = 8001, .server = {.password = TEXT("p\nw")}};
    (void)state;

    for (enum ss_wire_verb verb = SS_WIRE_ADD; verb < SS_WIRE_UNKNOWN; verb++) {
        bool bare = verb == SS_WIRE_STATS || verb == SS_WIRE_LIST;
        char *text = ss_wire_request_text(7, verb, bare ? NULL : &spec);
        size_t len = strlen(text);
        struct ss_wire_request request;
        struct ss_reason reason;

        assert_int_equal(text[len - 1], '\n');
        assert_null(memchr(text, '\n', len - 1));
        assert_int_equal(ss_wire_request_read(&request, text, len - 1, &reason), SS_OK);
        assert_int_equal(request.id, 7);
        assert_int_equal(request.verb, verb);
        assert_int_equal(request.spec.port, bare ? 0 : 8001);
        ss_wire_request_clear(&request);
        free(text);
    }
}

static void bad_requests_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "x",
        "{\"id\":1}",
        "{\"id\":0,\"list\":{}}",
        "{\"id\":1,\"add\":{}}",
        "{\"id\":1,\"add\":[]}",
        "{\"id\":1,\"remove\":{\"server_port\":70000}}",
        "{\"add\":{\"server_port\":1}}",
        "{\"id\":1,\"later\":{}}",
    };
    (void)state;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct ss_wire_request request;
        struct ss_reason reason;
        char *line = strdup(bad[i]);

        assert_int_equal(ss_wire_request_read(&request, line, strlen(line), &reason),
                         SS_ERR_FORMAT);
        ss_wire_request_clear(&request);
        free(line);
    }
}

static void answers_arrive(void **state)
{
    const struct ss_wire_use port = {
        .port = 8001, .rx_bytes = 1, .tx_bytes = 2, .total = 3, .sessions = 4};
    const struct ss_wire_use user = {.port = 8001, .user = "ann", .rx_bytes = 5, .state = "quota"};
    struct ss_wire_answer answer;
    struct ss_wire_heard heard;
    char *text;
    (void)state;

    ss_wire_answer_begin(&answer, 9);
    ss_wire_answer_result(&answer, SS_WIRE_NO_PORT, "Address already in use");
    ss_wire_answer_use(&answer, &port);
    ss_wire_answer_use(&answer, &user);
    text = ss_wire_answer_text(&answer);
    assert_int_equal(ss_wire_answer_read(&heard, text, strlen(text)), SS_OK);
    assert_false(heard.hello);
    assert_int_equal(heard.id, 9);
    assert_int_equal(heard.result, SS_WIRE_NO_PORT);
    assert_string_equal(heard.reason.text, "Address already in use");
    assert_int_equal(heard.use_count, 2);
    assert_null(heard.uses[0].user);
    assert_int_equal(heard.uses[0].total, 3);
    assert_string_equal(heard.uses[1].user, "ann");
    assert_string_equal(heard.uses[1].state, "quota");
    ss_wire_heard_clear(&heard);
    ss_json_text_free(text);
}

static void the_greeting_is_known(void **state)
{
    char usage[] = "shadowsocks-libev 3.3.5", later[] = "{\"hello\":\"ss-server\",\"protocol\":99}";
    struct ss_wire_answer answer;
    struct ss_wire_heard heard;
    char *text;
    (void)state;

    ss_wire_answer_begin(&answer, 0);
    text = ss_wire_answer_text(&answer);
    assert_int_equal(ss_wire_answer_read(&heard, text, strlen(text)), SS_OK);
    assert_true(heard.hello);
    ss_wire_heard_clear(&heard);
    ss_json_text_free(text);

    assert_int_equal(ss_wire_answer_read(&heard, usage, strlen(usage)), SS_ERR_FORMAT);
    assert_false(heard.hello);
    ss_wire_heard_clear(&heard);
    assert_int_equal(ss_wire_answer_read(&heard, later, strlen(later)), SS_ERR_UNSUPPORTED);
    assert_false(heard.hello);
    ss_wire_heard_clear(&heard);
}

/* However the bytes are cut, the lines are the same. */
static void lines_are_put_together(void **state)
{
    static const char text[] = "one\n\ntwo and more\nthree\nrest";
    static const char *const expected[] = {"one", "", "two and more", "three"};
    (void)state;

    for (size_t step = 1; step < sizeof text; step++) {
        struct ss_lines lines = {0};
        size_t count = 0, len;
        char *line;

        for (size_t at = 0; at < sizeof text - 1; at += step) {
            size_t left = sizeof text - 1 - at;

            assert_int_equal(ss_lines_put(&lines, text + at, left < step ? left : step, 100),
                             SS_OK);
            while (ss_lines_next(&lines, &line, &len)) {
                assert_int_equal(len, strlen(expected[count]));
                assert_memory_equal(line, expected[count], len);
                count++;
            }
        }
        assert_int_equal(count, 4);
        ss_lines_free(&lines);
    }
}

static void a_line_without_end_is_refused(void **state)
{
    struct ss_lines lines = {0};
    char bytes[1000], *line;
    enum ss_status status = SS_OK;
    size_t len, put = 0;
    (void)state;

    memset(bytes, 'x', sizeof bytes);
    for (; status == SS_OK && put < 100; put++) {
        status = ss_lines_put(&lines, bytes, sizeof bytes, 20000);
        assert_false(ss_lines_next(&lines, &line, &len));
    }
    assert_int_equal(status, SS_ERR_LIMIT);
    assert_int_equal(put, 21);
    ss_lines_free(&lines);
}

static int start(void **state)
{
    (void)state;
    ss_json_start();
    return 0;
}

int wire_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_arrive),        cmocka_unit_test(bad_requests_are_refused),
        cmocka_unit_test(answers_arrive),         cmocka_unit_test(the_greeting_is_known),
        cmocka_unit_test(lines_are_put_together), cmocka_unit_test(a_line_without_end_is_refused),
    };

    return cmocka_run_group_tests(tests, start, NULL);
}
