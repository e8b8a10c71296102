/* Commands of the manager protocol, in both grammars, and what is no command. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/json.h"
#include "control/request.h"

/* Parses a copy with nothing behind it. */
static enum ss_status parse_bytes(struct ss_request *request, const char *text, size_t len)
{
    char *copy = malloc(len != 0 ? len : 1);
    struct ss_reason reason;
    enum ss_status status;

    assert_non_null(copy);
    memcpy(copy, text, len);
    status = ss_request_parse(request, copy, len, &reason);
    free(copy);
    if (status != SS_OK)
        assert_int_not_equal(reason.text[0], '\0');
    return status;
}

static enum ss_status parse(struct ss_request *request, const char *text)
{
    return parse_bytes(request, text, strlen(text));
}

static void words_are_commands(void **state)
{
    static const struct {
        const char *text;
        enum ss_command command;
    } cases[] = {
        {"", SS_COMMAND_NONE},           {"  \n\t ", SS_COMMAND_NONE},
        {"list", SS_COMMAND_LIST},       {"list:\n", SS_COMMAND_LIST},
        {"ping", SS_COMMAND_PING},       {"ping:", SS_COMMAND_PING},
        {"ping {}", SS_COMMAND_PING},    {"  ping  x", SS_COMMAND_PING},
        {"ping\n", SS_COMMAND_PING},     {"users", SS_COMMAND_USERS},
        {"pingx", SS_COMMAND_UNKNOWN},   {"adder: {}", SS_COMMAND_UNKNOWN},
        {"ADD: {}", SS_COMMAND_UNKNOWN}, {": {}", SS_COMMAND_UNKNOWN},
        {"{}", SS_COMMAND_UNKNOWN},      {"\xff\xfe\x01", SS_COMMAND_UNKNOWN},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ss_request request;

        assert_int_equal(parse(&request, cases[i].text), SS_OK);
        assert_int_equal(request.command, cases[i].command);
        ss_request_clear(&request);
    }
}

static void an_added_port_is_read_in_every_form(void **state)
{
    static const char *const forms[] = {
        "add: {\"server_port\": 8001, \"password\": \"pw\"}",
        "add:{\"server_port\":8001,\"password\":\"pw\"}",
        "add {\"server_port\":\"8001\",\"password\":\"pw\"}",
        "add :{\"server_port\":8001,\"password\":\"pw\"}",
        "add{\"server_port\":8001,\"password\":\"pw\"}",
        "  \nadd:\n{\"server_port\":8001,\"password\":\"pw\"}\n",
        "add: {\"foo\": [{}], \"server_port\": 8001, \"password\": \"pw\"}",
        "add: {\"server_port\": 8001, \"password\": \"pw\", \"foo\": 1}",
        "add: {\"password\": \"no\", \"server_port\": 8001, \"password\": \"pw\"}",
    };
    (void)state;

    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        struct ss_request request;

        assert_int_equal(parse(&request, forms[i]), SS_OK);
        assert_int_equal(request.command, SS_COMMAND_ADD);
        assert_int_equal(request.spec.port, 8001);
        assert_string_equal(request.spec.server.password, "pw");
        assert_null(request.spec.server.method);
        assert_int_equal(request.spec.server.address_count, 0);
        ss_request_clear(&request);
    }
}

static void all_members_of_a_port_are_taken(void **state)
{
    struct ss_request request;
    const struct ss_config_server *server = &request.spec.server;
    (void)state;

    assert_int_equal(
        parse(&request,
              "add: "
              "{\"server_port\":1,\"password\":5,\"method\":\"aes-128-gcm\",\"mode\":\"udp_only\","
              "\"fast_open\":true,\"no_delay\":false,\"plugin\":\"\",\"plugin_opts\":\"a=b\","
              "\"plugin_mode\":\"tcp_and_udp\",\"plugin_args\":[\"-x\"],\"timeout\":77,"
              "\"server\":[\"192.0.2.1\"],\"quota\":10,\"quota_period\":\"86400\",\"expires\":"
              "1700000000,"
              "\"max_connections\":3,\"rate\":125000,\"quota_used\":9,"
              "\"users\":[{\"name\":\"ann\",\"password\":\"k\",\"rate\":7},"
              "{\"name\":\"bob\",\"password\":\"l\",\"server\":\"next.test\",\"server_port\":9}]}"),
        SS_OK);
    assert_string_equal(server->password, "5");
    assert_string_equal(server->method, "aes-128-gcm");
    assert_true(server->mode_given);
    assert_int_equal(server->mode, SS_MODE_UDP_ONLY);
    assert_int_equal(request.spec.fast_open, SS_CHOICE_ON);
    assert_int_equal(request.spec.no_delay, SS_CHOICE_OFF);
    assert_string_equal(server->plugin, "");
    assert_string_equal(server->plugin_opts, "a=b");
    assert_int_equal(server->plugin_mode, SS_MODE_TCP_AND_UDP);
    assert_string_equal(server->plugin_args[0], "-x");
    assert_int_equal(request.spec.timeout_s, 77);
    assert_int_equal(server->address_count, 0); /* where ports listen is not a client's to say */
    assert_int_equal(server->limits.quota, 10);
    assert_int_equal(server->limits.quota_period_s, 86400);
    assert_int_equal(server->limits.expires, 1700000000);
    assert_int_equal(server->limits.max_connections, 3);
    assert_int_equal(server->limits.rate, 125000);
    assert_int_equal(server->limits.quota_used, 0); /* is not a client's to say either */
    assert_int_equal(server->identity_count, 2);
    assert_string_equal(server->identities[0].name, "ann");
    assert_int_equal(server->identities[0].limits.rate, 7);
    assert_string_equal(server->identities[1].next->host, "next.test");
    assert_int_equal(server->identities[1].next->port, 9);
    ss_request_clear(&request);
}

static void wrong_types_are_as_if_absent(void **state)
{
    struct ss_request request;
    (void)state;

    assert_int_equal(parse(&request, "add: {\"server_port\":1,\"password\":\"p\",\"method\":[],"
                                     "\"fast_open\":1,\"mode\":5,\"plugin\":{},\"server\":\"x\"}"),
                     SS_OK);
    assert_null(request.spec.server.method);
    assert_null(request.spec.server.plugin);
    assert_int_equal(request.spec.fast_open, SS_CHOICE_NONE);
    assert_false(request.spec.server.mode_given);
    ss_request_clear(&request);
}

static void what_is_malformed_is_refused(void **state)
{
    static const char *const bad[] = {
        "add",
        "add:",
        "add: {",
        "add: {}",
        "add: [1]",
        "add: {\"server_port\": 8001, ",
        "add: {\"password\": \"pw\"}",
        "add: {\"server_port\": 8001, \"password\": \"pw\"} x",
        "add: {\"server_port\": 8001.0, \"password\": \"pw\"}",
        "add: {\"server_port\": null, \"password\": \"pw\"}",
        "add: {\"server_port\": 1, \"password\": \"pw\", \"mode\": \"both\"}",
        "add: {\"server_port\": 1, \"password\": \"p\\u0000w\"}",
        "add: {\"server_port\": 1, \"password\": \"\xff\"}",
        "add: {\"server_port\": 1, \"password\": \"p\", \"quota\": -1}",
        "add: {\"server_port\": 1, \"password\": \"p\", \"quota\": \"1 GiB\"}",
        "add: {\"server_port\": 1, \"password\": \"p\", \"quota\": 99999999999999999999}",
        "add: {\"server_port\": 1, \"password\": \"p\", \"users\": {}}",
        "add: {\"server_port\": 1, \"password\": \"p\", \"users\": [{\"name\":\"a\"}]}",
        "add: {\"server_port\": 1, \"password\": \"p\", \"users\": [{\"password\":\"a\"}]}",
        "remove:",
        "remove: {}",
        "adduser: {\"server_port\": 1}",
        "adduser: {\"server_port\": 1, \"users\": []}",
        "adduser: {\"server_port\": 1, \"name\": \"ann\"}",
        "adduser: {\"name\": \"ann\", \"password\": \"k\"}",
        "deluser: {\"server_port\": 1}",
        "users: {",
        "stat: ",
    };
    (void)state;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct ss_request request;

        assert_int_equal(parse(&request, bad[i]), SS_ERR_FORMAT);
        ss_request_clear(&request);
    }
}

static void a_port_that_can_not_be_is_told_apart(void **state)
{
    static const char *const bad[] = {
        "add: {\"server_port\": \"abc\", \"password\": \"pw\"}",
        "add: {\"server_port\": 0, \"password\": \"pw\"}",
        "add: {\"server_port\": 70000, \"password\": \"pw\"}",
        "add: {\"server_port\": -1, \"password\": \"pw\"}",
        "remove: {\"server_port\": \"x\"}",
        "users: {\"server_port\": \"8001 \"}",
    };
    (void)state;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct ss_request request;

        assert_int_equal(parse(&request, bad[i]), SS_ERR_ARGUMENT);
        ss_request_clear(&request);
    }
}

static void a_nul_ends_a_request(void **state)
{
    static const char stat[] = "stat: {\"8001\":11370}\0garbage";
    static const char add[] = "add: {\"server_port\":1,\"password\":\"p\"\0}";
    struct ss_request request;
    (void)state;

    assert_int_equal(parse_bytes(&request, stat, sizeof stat), SS_OK);
    assert_int_equal(request.stat_count, 1);
    assert_int_equal(request.stats[0].port, 8001);
    assert_int_equal(request.stats[0].total, 11370);
    ss_request_clear(&request);
    assert_int_equal(parse_bytes(&request, add, sizeof add), SS_ERR_FORMAT);
    ss_request_clear(&request);
}

static void counters_that_are_none_are_left_out(void **state)
{
    struct ss_request request;
    (void)state;

    assert_int_equal(parse(&request,
                           "stat: {\"1\":5,\"x\":6,\"70000\":7,\"2\":\"8\",\"3\":-1,\"4\":1.5,"
                           "\"\":9,\"5 \":1,\"65535\":10}"),
                     SS_OK);
    assert_int_equal(request.stat_count, 2);
    assert_int_equal(request.stats[0].port, 1);
    assert_int_equal(request.stats[1].port, 65535);
    ss_request_clear(&request);
}

static void users_come_alone_or_in_a_list(void **state)
{
    struct ss_request request;
    (void)state;

    assert_int_equal(
        parse(&request,
              "adduser: {\"server_port\":1,\"name\":\"ann\",\"password\":\"k\",\"quota\":5}"),
        SS_OK);
    assert_int_equal(request.spec.server.identity_count, 1);
    assert_null(request.spec.server.identities[0].next);
    assert_int_equal(request.spec.server.identities[0].limits.quota, 5);
    ss_request_clear(&request);

    assert_int_equal(parse(&request, "deluser:{\"server_port\":1,\"users\":[{\"name\":\"ann\"},"
                                     "{\"name\":\"bob\"},{\"name\":\"ann\"}]}"),
                     SS_OK);
    assert_int_equal(request.command, SS_COMMAND_DEL_USER);
    assert_int_equal(request.spec.server.identity_count, 2);
    ss_request_clear(&request);

    assert_int_equal(parse(&request, "users: {\"server_port\":1}"), SS_OK);
    assert_int_equal(request.spec.port, 1);
    ss_request_clear(&request);
}

/* Cut at any byte a request is refused, or known by its word; nothing is read behind its end. */
static void every_prefix_is_survived(void **state)
{
    static const char whole[] =
        "add: {\"server_port\":8001,\"password\":\"\\u00e9\\ud83d\\ude00\",\"users\":"
        "[{\"name\":\"ann\",\"password\":\"k\"}],\"quota\":12}";
    (void)state;

    for (size_t len = 0; len < sizeof whole - 1; len++) {
        struct ss_request request;
        enum ss_status status = parse_bytes(&request, whole, len);

        assert_true(status == SS_ERR_FORMAT || request.command == SS_COMMAND_NONE ||
                    request.command == SS_COMMAND_UNKNOWN);
        ss_request_clear(&request);
    }
}

static int start(void **state)
{
    (void)state;
    ss_json_start();
    return 0;
}

int request_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_commands),
        cmocka_unit_test(an_added_port_is_read_in_every_form),
        cmocka_unit_test(all_members_of_a_port_are_taken),
        cmocka_unit_test(wrong_types_are_as_if_absent),
        cmocka_unit_test(what_is_malformed_is_refused),
        cmocka_unit_test(a_port_that_can_not_be_is_told_apart),
        cmocka_unit_test(a_nul_ends_a_request),
        cmocka_unit_test(counters_that_are_none_are_left_out),
        cmocka_unit_test(users_come_alone_or_in_a_list),
        cmocka_unit_test(every_prefix_is_survived),
    };

    return cmocka_run_group_tests(tests, start, NULL);
}
