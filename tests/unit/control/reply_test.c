/* Answers byte for byte, and in datagrams that are each complete. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/span.h"
#include "config/json.h"
#include "control/reply.h"

/* A text that a struct may own. */
#define TEXT(text) ((char[]){text})

static void assert_datagram(const struct ss_reply *reply, size_t index, const char *expected)
{
    struct ss_view datagram = ss_reply_datagram(reply, index);

    assert_int_equal(datagram.len, strlen(expected));
    assert_memory_equal(datagram.ptr, expected, datagram.len);
}

static struct ss_port_spec spec_of(uint16_t port, char *password, char *method)
{
    return (struct ss_port_spec){.port = port, .server = {.password = password, .method = method}};
}

static void empty_answers(void **state)
{
    struct ss_reply reply;
    (void)state;

    ss_reply_begin_list(&reply);
    assert_int_equal(ss_reply_end(&reply), SS_OK);
    assert_int_equal(reply.count, 1);
    assert_datagram(&reply, 0, "[\n]");
    ss_reply_free(&reply);

    ss_reply_begin_ping(&reply);
    assert_int_equal(ss_reply_end(&reply), SS_OK);
    assert_datagram(&reply, 0, "stat: {}");
    ss_reply_free(&reply);
}

static void the_classic_bytes(void **state)
{
    struct ss_port_spec one = spec_of(8001, TEXT("pw"), NULL),
                        two = spec_of(8002, TEXT("a\"b\\c\n\xc3\xa9"), TEXT("m"));
    struct ss_reply reply;
    (void)state;

    ss_reply_begin_list(&reply);
    ss_reply_put_port(&reply, &one, "aes-256-gcm", NULL);
    ss_reply_put_port(&reply, &two, "aes-256-gcm", NULL);
    assert_int_equal(ss_reply_end(&reply), SS_OK);
    assert_datagram(
        &reply, 0,
        "[\n\t{\"server_port\":\"8001\",\"password\":\"pw\",\"method\":\"aes-256-gcm\"},"
        "\n\t{\"server_port\":\"8002\",\"password\":\"a\\\"b\\\\c\\n\xc3\xa9\",\"method\":\"m\"}"
        "\n]");
    ss_reply_free(&reply);

    ss_reply_begin_ping(&reply);
    ss_reply_put_total(&reply, 8001, 11370);
    ss_reply_put_total(&reply, 8002, UINT64_MAX);
    assert_int_equal(ss_reply_end(&reply), SS_OK);
    assert_datagram(&reply, 0, "stat: {\"8001\":11370,\"8002\":18446744073709551615}");
    ss_reply_free(&reply);
}

/* Each datagram parses by itself, none is longer than it may be, and no entry is lost or doubled.
 */
static void long_lists_are_cut_between_entries(void **state)
{
    char password[20000];
    struct ss_port_spec spec = spec_of(1, password, TEXT("aes-256-gcm"));
    struct ss_reply reply;
    unsigned next = 1;
    (void)state;

    memset(password, 'p', sizeof password - 1);
    ss_reply_begin_list(&reply);
    for (unsigned port = 1; port <= 500; port++) {
        spec.port = (uint16_t)port;
        password[port % 7 == 0 ? sizeof password - 1 : port] = '\0';
        ss_reply_put_port(&reply, &spec, NULL, NULL);
        password[port % 7 == 0 ? sizeof password - 1 : port] = port % 7 == 0 ? '\0' : 'p';
    }
    assert_int_equal(ss_reply_end(&reply), SS_OK);
    assert_true(reply.count > 20);
    for (size_t i = 0; i < reply.count; i++) {
        struct ss_view datagram = ss_reply_datagram(&reply, i);
        json_t *list = json_loadb((const char *)datagram.ptr, datagram.len, 0, NULL);

        assert_true(datagram.len <= SS_REPLY_LIST_MAX);
        assert_true(json_is_array(list) && json_array_size(list) != 0);
        for (size_t entry = 0; entry < json_array_size(list); entry++) {
            char expected[8];

            snprintf(expected, sizeof expected, "%u", next++);
            assert_string_equal(
                json_string_value(json_object_get(json_array_get(list, entry), "server_port")),
                expected);
        }
        json_decref(list);
    }
    assert_int_equal(next, 501);
    ss_reply_free(&reply);
}

static void long_pings_are_cut_too(void **state)
{
    struct ss_reply reply;
    size_t entries = 0;
    (void)state;

    ss_reply_begin_ping(&reply);
    for (unsigned port = 1; port <= 65535; port += 13)
        ss_reply_put_total(&reply, (uint16_t)port, 1234567890123);
    assert_int_equal(ss_reply_end(&reply), SS_OK);
    for (size_t i = 0; i < reply.count; i++) {
        struct ss_view datagram = ss_reply_datagram(&reply, i);
        json_t *object;

        assert_true(datagram.len <= SS_REPLY_PING_MAX);
        assert_memory_equal(datagram.ptr, "stat: ", 6);
        object = json_loadb((const char *)datagram.ptr + 6, datagram.len - 6, 0, NULL);
        assert_non_null(object);
        entries += json_object_size(object);
        json_decref(object);
    }
    assert_int_equal(entries, 65535 / 13 + 1);
    ss_reply_free(&reply);
}

static void users_with_what_they_have_used(void **state)
{
    struct ss_config_identity ann = {
        .name = TEXT("ann"), .password = TEXT("secret"), .limits = {.quota = 9, .quota_used = 4}};
    const struct ss_user_use use = {1, 2, 3, NULL};
    struct ss_reply reply;
    (void)state;

    ss_reply_begin_list(&reply);
    ss_reply_put_user(&reply, 0, &ann, &use);
    ss_reply_put_user(&reply, 8001, &ann, &use);
    assert_int_equal(ss_reply_end(&reply), SS_OK);
    assert_datagram(&reply, 0,
                    "[\n\t{\"name\":\"ann\",\"received\":1,\"sent\":2,\"sessions\":3,\"quota\":9,"
                    "\"quota_used\":4},"
                    "\n\t{\"server_port\":8001,\"name\":\"ann\",\"received\":1,\"sent\":2,"
                    "\"sessions\":3,\"quota\":9,\"quota_used\":4}\n]");
    ss_reply_free(&reply);
}

static int start(void **state)
{
    (void)state;
    ss_json_start();
    return 0;
}

int reply_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_answers),
        cmocka_unit_test(the_classic_bytes),
        cmocka_unit_test(long_lists_are_cut_between_entries),
        cmocka_unit_test(long_pings_are_cut_too),
        cmocka_unit_test(users_with_what_they_have_used),
    };

    return cmocka_run_group_tests(tests, start, NULL);
}
