/* The file of a server that serves one port. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "config/json.h"
#include "control/port_file.h"

/* A text that a struct may own. */
#define TEXT(text) ((char[]){text})

static void the_classic_layout(void **state)
{
    struct ss_config config = {.method = TEXT("aes-256-gcm"), .reuse_port = true};
    struct ss_port_spec spec = {.port = 8001,
                                .fast_open = SS_CHOICE_ON,
                                .no_delay = SS_CHOICE_OFF,
                                .server = {.password = TEXT("pw"),
                                           .method = TEXT("aes-128-gcm"),
                                           .mode = SS_MODE_UDP_ONLY,
                                           .mode_given = true,
                                           .plugin = TEXT(""),
                                           .plugin_opts = TEXT("a=b")}};
    char *text = ss_port_file_text(&spec, &config);
    (void)state;

    assert_string_equal(text, "{\n\"server_port\":8001,\n\"password\":\"pw\",\n"
                              "\"method\":\"aes-128-gcm\",\n\"fast_open\": true,\n"
                              "\"no_delay\": false,\n\"reuse_port\": true,\n"
                              "\"mode\":\"udp_only\",\n\"plugin\":\"\",\n"
                              "\"plugin_opts\":\"a=b\"\n}\n");
    free(text);
}

static void what_is_not_set_is_not_there(void **state)
{
    struct ss_config config = {.method = TEXT("aes-256-gcm")};
    struct ss_port_spec spec = {.port = 1, .server = {.password = TEXT("pw")}};
    char *text = ss_port_file_text(&spec, &config);
    (void)state;

    assert_string_equal(
        text, "{\n\"server_port\":1,\n\"password\":\"pw\",\n\"method\":\"aes-256-gcm\"\n}\n");
    free(text);
}

/* R43: a standard parser reads it, and no value can become another member. */
static void texts_are_escaped(void **state)
{
    static char password[] = "q\" b\\ n\n t\t \",\"plugin\":\"x";
    struct ss_config config = {.method = TEXT("aes-256-gcm")};
    struct ss_port_spec spec = {.port = 1, .server = {.password = password}};
    char *text = ss_port_file_text(&spec, &config);
    json_t *object = json_loads(text, 0, NULL);
    (void)state;

    assert_int_equal(json_object_size(object), 3);
    assert_string_equal(json_string_value(json_object_get(object, "password")), password);
    json_decref(object);
    free(text);
}

static int start(void **state)
{
    (void)state;
    ss_json_start();
    return 0;
}

int port_file_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_classic_layout),
        cmocka_unit_test(what_is_not_set_is_not_there),
        cmocka_unit_test(texts_are_escaped),
    };

    return cmocka_run_group_tests(tests, start, NULL);
}
