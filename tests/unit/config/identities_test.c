/* The users of ss-server, keys of the 2022 methods in URLs, and --gen-key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base64.h"
#include "codec/method.h"
#include "config/config_internal.h"
#include "crypto/random.h"
#include "reading.h"

#define L SS_PROGRAM_LOCAL
#define S SS_PROGRAM_SERVER

#define METHOD "2022-blake3-aes-128-gcm"
#define KEY_1  "AAECAwQFBgcICQoLDA0ODw=="
#define KEY_2  "-_-_AwQFBgcICQoLDA0ODw"   /* the other alphabet, no padding */
#define KEY_2P "+/+/AwQFBgcICQoLDA0ODw==" /* the same, as it is written */

#define STANDARD                                                                             \
    "\"server\":\"192.0.2.1\",\"server_port\":8388,\"local_port\":1080,\"method\":\"" METHOD \
    "\",\"password\":\"" KEY_1 "\""
#define USERS                                                                             \
    "\"users\":[{\"name\":\"ann\",\"password\":\"" KEY_2 "\"},"                           \
    "{\"name\":\"bob\",\"password\":\"b\",\"server\":\"192.0.2.9\",\"server_port\":443}," \
    "{\"name\":\"cyd\",\"password\":\"c\",\"address\":\"[2001:db8::1]:99\",\"port\":98}]"

static struct reading *read_text(enum ss_program program, const char *text)
{
    reading_file(text);
    return reading_begin(program, "-c c.json");
}

static void check_users(const struct ss_config_server *server)
{
    assert_int_equal(server->identity_count, 3);
    assert_string_equal(server->identities[0].name, "ann");
    assert_string_equal(server->identities[0].password, KEY_2);
    assert_null(server->identities[0].next);
    assert_string_equal(server->identities[1].next->host, "192.0.2.9");
    assert_int_equal(server->identities[1].next->port, 443);
    assert_string_equal(server->identities[2].next->host, "2001:db8::1");
    assert_int_equal(server->identities[2].next->port, 98);
}

static void users_of_a_classic_file_and_of_an_entry(void **state)
{
    struct reading *r = read_text(S, "{" STANDARD "," USERS "}");
    (void)state;

    assert_true(r->good);
    assert_int_equal(r->config.server_count, 1);
    check_users(&r->config.servers[0]);
    reading_end(r);

    r = read_text(S, "{\"servers\":[{" STANDARD "," USERS "}]}");
    assert_true(r->good);
    assert_int_equal(r->config.server_count, 1);
    check_users(&r->config.servers[0]);
    reading_end(r);

    assert_true(reading_takes(S, "{" STANDARD ",\"users\":null}"));
}

static void clients_have_no_users(void **state)
{
    struct reading *r = read_text(L, "{" STANDARD "," USERS "}");
    (void)state;

    assert_true(r->good);
    assert_int_equal(r->config.servers[0].identity_count, 0);
    assert_int_equal(reading_count(r, "WARN", "'users' are for ss-server"), 1);
    reading_end(r);
}

static void wrong_users_are_named(void **state)
{
    static const struct {
        const char *users, *says;
    } cases[] = {
        {"5", "'users' must be a list of objects"},
        {"{}", "'users' must be a list of objects"},
        {"[]", "'users' must be a list with at least one user, or left out"},
        {"[5]", "users[0]: option 'users' must be a list of objects"},
        {"[{\"password\":\"x\"}]", "users[0]: 'name' is missing"},
        {"[{\"name\":5,\"password\":\"x\"}]", "users[0]: option 'name' must be a string"},
        {"[{\"name\":\"a\",\"password\":\"x\"},{\"name\":\"b\"}]",
         "users[1]: 'password' is missing"},
        {"[{\"name\":\"a\",\"password\":\"x\",\"server\":\"a.test\"}]",
         "users[0]: 'server_port' is missing"},
        {"[{\"name\":\"a\",\"password\":\"x\",\"server_port\":1}]",
         "users[0]: 'server' is missing"},
        {"[{\"name\":\"a\",\"password\":\"x\",\"server\":[],\"server_port\":1}]",
         "users[0]: option 'server' must be a string"},
        {"[{\"name\":\"a\",\"password\":\"x\",\"server\":\"a b\",\"server_port\":1}]",
         "server 'a b'"},
        {"[{\"name\":\"a\",\"password\":\"x\",\"server\":\"a\",\"server_port\":0}]",
         "users[0]: option 'server_port'"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int listed = 0; listed <= 1; listed++) {
            char text[512];
            struct reading *r;

            snprintf(text, sizeof text,
                     listed ? "{\"servers\":[{" STANDARD ",\"users\":%s}]}"
                            : "{" STANDARD ",\"users\":%s}",
                     cases[i].users);
            r = read_text(S, text);
            assert_false(r->good);
            assert_int_equal(r->exit_code, 255);
            if (reading_count(r, "ERROR", cases[i].says) != 1)
                fail_msg("%s: %s", text, r->line_count != 0 ? r->lines[0] : "no line");
            reading_end(r);
        }
    }
}

static void users_without_their_server_are_an_error(void **state)
{
    struct reading *r = read_text(S, "{" USERS ",\"servers\":[{\"server\":\"::\",\"server_port\":1,"
                                     "\"method\":\"aes-128-gcm\",\"password\":\"x\"}]}");
    (void)state;

    assert_false(r->good);
    assert_int_equal(reading_count(r, "ERROR", "'users' belong to"), 1);
    reading_end(r);
}

static void unknown_keys_are_told_once_a_list(void **state)
{
    struct reading *r = read_text(S, "{" STANDARD ",\"users\":["
                                     "{\"name\":\"a\",\"password\":\"x\",\"uid\":1},"
                                     "{\"name\":\"b\",\"password\":\"y\",\"uid\":2}]}");
    (void)state;

    assert_true(r->good);
    assert_int_equal(reading_count(r, "WARN", "users[0]: unknown key 'uid'"), 1);
    assert_int_equal(reading_count(r, "WARN", "unknown key"), 1);
    reading_end(r);
}

static void many_users_are_read(void **state)
{
    enum { COUNT = 50000, SIZE = COUNT * 64 + 1024 };
    char *text = malloc(SIZE);
    size_t used = (size_t)snprintf(text, SIZE, "{" STANDARD ",\"users\":[");
    struct reading *r;
    (void)state;

    for (unsigned i = 0; i < COUNT; i++)
        used +=
            (size_t)snprintf(text + used, SIZE - used, "%s{\"name\":\"u%u\",\"password\":\"%u\"}",
                             i != 0 ? "," : "", i, i);
    snprintf(text + used, SIZE - used, "]}");
    r = read_text(S, text);
    assert_true(r->good);
    assert_int_equal(r->config.servers[0].identity_count, COUNT);
    assert_string_equal(r->config.servers[0].identities[COUNT - 1].name, "u49999");
    reading_end(r);
    free(text);
}

static char *printed(const struct reading *r, bool url)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    assert_non_null(out);
    if (url)
        (void)ss_config_print_url(&r->config, out);
    else
        ss_config_print(&r->config, out);
    fclose(out);
    return text;
}

static void passwords_of_users_are_hidden(void **state)
{
    struct reading *r = read_text(S, "{" STANDARD "," USERS "}");
    char *text = printed(r, false);
    (void)state;

    assert_null(strstr(text, KEY_1));
    assert_null(strstr(text, KEY_2));
    assert_non_null(strstr(text, "\"name\": \"ann\""));
    assert_non_null(strstr(text, "\"server\": \"192.0.2.9:443\""));
    assert_non_null(strstr(text, "\"salt_pool\": 262144"));
    free(text);
    reading_end(r);
}

#define URL_1 "AAECAwQFBgcICQoLDA0ODw%3D%3D"
#define URL_2 "%2B%2F%2B%2FAwQFBgcICQoLDA0ODw%3D%3D"

static void urls_of_2022_methods(void **state)
{
    static const struct {
        const char *words, *url;
    } cases[] = {
        {"-k " KEY_1, "ss://" METHOD ":" URL_1 "@192.0.2.1:8388\n"},
        {"-k " KEY_2, "ss://" METHOD ":" URL_2 "@192.0.2.1:8388\n"},
        {"--key " KEY_2, "ss://" METHOD ":" URL_2 "@192.0.2.1:8388\n"},
        {"-k " KEY_1 ":" KEY_2, "ss://" METHOD ":" URL_1 "%3A" URL_2 "@192.0.2.1:8388\n"},
        {"-k n:o", "ss://" METHOD ":n%3Ao@192.0.2.1:8388\n"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[256];
        struct reading *r;
        char *text;

        snprintf(line, sizeof line, "-s 192.0.2.1 -p 8388 -l 1080 -m " METHOD " %s --print-url",
                 cases[i].words);
        r = reading_begin(L, line);
        assert_true(r->good);
        text = printed(r, true);
        assert_string_equal(text, cases[i].url);
        free(text);
        reading_end(r);
    }
}

static void a_url_for_each_user(void **state)
{
    struct reading *r = read_text(S, "{" STANDARD "," USERS "}");
    char *text = printed(r, true);
    (void)state;

    /* Those who are passed on have keys that this server does not know. */
    assert_string_equal(text, "ss://" METHOD ":" URL_1 "%3A" URL_2 "@192.0.2.1:8388#ann\n");
    free(text);
    reading_end(r);
}

static void urls_of_2022_methods_are_read(void **state)
{
    static const struct {
        const char *user, *password;
    } cases[] = {{URL_1, KEY_1},
                 {KEY_1, KEY_1},
                 {URL_1 "%3A" URL_2, KEY_1 ":" KEY_2P},
                 {URL_1 ":" URL_2, KEY_1 ":" KEY_2P}};
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[256];
        struct reading *r;

        snprintf(line, sizeof line, "-c ss://" METHOD ":%s@192.0.2.1:8388", cases[i].user);
        r = reading_begin(L, line);
        assert_true(r->good);
        assert_string_equal(r->config.servers[0].method, METHOD);
        assert_string_equal(r->config.servers[0].password, cases[i].password);
        reading_end(r);
    }
}

static void a_fresh_key_for_every_method(void **state)
{
    size_t count;
    const struct ss_method *methods = ss_method_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        char *texts[2] = {NULL, NULL};

        if (methods[i].family == SS_METHODS_PLAIN)
            continue;
        for (int t = 0; t < 2; t++) {
            uint8_t key[64];
            size_t len = 0;
            size_t size = 0;
            FILE *out = open_memstream(&texts[t], &size);

            assert_true(ss_key_print(methods[i].name, out));
            fclose(out);
            len = strlen(texts[t]);
            assert_int_equal(texts[t][len - 1], '\n');
            assert_int_equal(
                ss_base64_decode(key, sizeof key, &len, texts[t], len - 1, SS_BASE64_STANDARD),
                SS_OK);
            if (methods[i].family == SS_METHODS_2022)
                assert_int_equal(len, methods[i].key_len);
            else
                assert_true(len >= 16);
        }
        assert_string_not_equal(texts[0], texts[1]);
        free(texts[0]);
        free(texts[1]);
    }
}

/* Without a cipher there is nothing that a password is for. */
static void only_ciphers_need_a_password(void **state)
{
    struct reading *r;
    char *text;
    (void)state;

    assert_true(ss_method_needs_key(NULL)); /* the default method */
    assert_true(ss_method_needs_key("nosuch"));
    assert_true(ss_method_needs_key("aes-256-cfb"));
    assert_false(ss_method_needs_key("none"));
    assert_false(ss_method_needs_key("plain"));

    r = reading_begin(S, "-s 192.0.2.1 -p 8388 -m none --print-url");
    assert_true(r->good);
    assert_null(r->config.servers[0].password);
    text = printed(r, true);
    assert_string_equal(text, "ss://bm9uZTo@192.0.2.1:8388\n"); /* none: */
    free(text);
    reading_end(r);

    assert_true(reading_takes(S, "{\"servers\":[{\"server\":\"192.0.2.1\",\"server_port\":1,"
                                 "\"method\":\"none\"}]}"));
    assert_true(reading_takes(S, "{\"server_port\":2,\"method\":\"none\",\"servers\":[{\"server\":"
                                 "\"192.0.2.1\",\"server_port\":1,\"method\":\"none\"}]}"));
    r = reading_begin(S, "-s 192.0.2.1 -p 8388 -m aes-256-cfb");
    assert_false(r->good);
    reading_end(r);
    r = reading_begin(S, "--gen-key none");
    assert_int_equal(r->exit_code, 255);
    assert_int_equal(reading_count(r, "ERROR", "has no key"), 1);
    reading_end(r);
}

static void gen_key_needs_no_other_option_and_a_method(void **state)
{
    static const struct {
        const char *line;
        int exit_code;
    } cases[] = {{"--gen-key aes-128-gcm", 0}, {"--gen-key=" METHOD, 0}, {"--gen-key nosuch", 255},
                 {"--gen-key rc4", 255},       {"--gen-key", 1},         {"-v --gen " METHOD, 0}};
    static const enum ss_program programs[] = {SS_PROGRAM_LOCAL, SS_PROGRAM_SERVER,
                                               SS_PROGRAM_TUNNEL, SS_PROGRAM_REDIR,
                                               SS_PROGRAM_MANAGER};
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t p = 0; p < sizeof programs / sizeof programs[0]; p++) {
            struct reading *r = reading_begin(programs[p], cases[i].line);

            assert_false(r->good);
            assert_int_equal(r->exit_code, cases[i].exit_code);
            assert_int_equal(reading_count(r, "ERROR", "") != 0, cases[i].exit_code != 0);
            reading_end(r);
        }
    }
}

static int start(void **state)
{
    (void)state;
    return ss_random_start() != SS_OK;
}

int identities_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(users_of_a_classic_file_and_of_an_entry),
        cmocka_unit_test(clients_have_no_users),
        cmocka_unit_test(wrong_users_are_named),
        cmocka_unit_test(users_without_their_server_are_an_error),
        cmocka_unit_test(unknown_keys_are_told_once_a_list),
        cmocka_unit_test(many_users_are_read),
        cmocka_unit_test(passwords_of_users_are_hidden),
        cmocka_unit_test(urls_of_2022_methods),
        cmocka_unit_test(a_url_for_each_user),
        cmocka_unit_test(urls_of_2022_methods_are_read),
        cmocka_unit_test(a_fresh_key_for_every_method),
        cmocka_unit_test(only_ciphers_need_a_password),
        cmocka_unit_test(gen_key_needs_no_other_option_and_a_method),
    };

    return cmocka_run_group_tests_name("config: users and keys", tests, start, NULL);
}
