/* Methods and keys at the start: what is taken, and the lines for what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "crypto/random.h"
#include "service/service_internal.h"

static char lines[16][256];
static size_t line_count;

static void keep(enum ss_log_level level, const char *text)
{
    static const char *const names[] = {"ERROR", "WARN", "INFO", "DEBUG"};

    if (line_count < 16)
        snprintf(lines[line_count++], sizeof lines[0], "%s: %.200s", names[level], text);
}

static bool said(const char *line)
{
    for (size_t i = 0; i < line_count; i++)
        if (strstr(lines[i], line) != NULL)
            return true;
    return false;
}

static char *writable(const char *text)
{
    return (char *)(uintptr_t)text;
}

/* Whether profiles can be made for this server of the program; the lines are kept. */
static bool can_serve(enum ss_program program, struct ss_config_server *server)
{
    struct ss_endpoint address = {.host = "192.0.2.1", .port = 8388};
    struct ss_config config = {.program = program,
                               .servers = server,
                               .server_count = 1,
                               .salt_memory = 1000,
                               .salt_pool = 1000};
    struct ss_shared shared = {0};
    struct ss_service service = {.config = &config, .shared = &shared};
    const struct ss_method *method = ss_method_find(server->method);
    bool made;

    server->addresses = &address;
    server->address_count = 1;
    line_count = 0;
    ss_log_set_sink(keep);
    made = ss_service_make_profiles(&service, NULL);
    ss_log_set_sink(NULL);
    assert_true(!made || service.codec_size > 0);
    assert_true(!made || (shared.salt_pool != NULL) == (method->family == SS_METHODS_2022));
    ss_service_free_profiles(&service);
    ss_shared_clear(&shared);
    return made;
}

/* Whether a server of this method and key can be made. */
static bool can_be_made(const char *method, const char *password, const char *key)
{
    struct ss_config_server server = {
        .method = writable(method), .password = writable(password), .key = writable(key)};

    return can_serve(SS_PROGRAM_SERVER, &server);
}

static void every_method_with_a_password(void **state)
{
    size_t count;
    const struct ss_method *methods = ss_method_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        char line[64];

        if (methods[i].family == SS_METHODS_2022)
            continue;
        assert_true(can_be_made(methods[i].name, "pw", NULL));
        snprintf(line, sizeof line, "INFO: initializing ciphers... %s", methods[i].name);
        assert_true(said(line));
        assert_true(can_be_made(methods[i].name, "", NULL));
        assert_int_equal(said("INFO: Stream ciphers are insecure, therefore deprecated"),
                         methods[i].family != SS_METHODS_2017);
        assert_int_equal(said("WARN: "), methods[i].family == SS_METHODS_PLAIN);
    }
}

static void without_a_cipher_no_password(void **state)
{
    (void)state;

    assert_true(can_be_made("none", NULL, NULL));
    assert_true(can_be_made("plain", "ignored", NULL));
    assert_true(said("WARN: none encrypts nothing"));
}

#define KEY_16 "AAECAwQFBgcICQoLDA0ODw=="
#define KEY_32 "-_-_CAkKCwwNDg8QERITFBUWFxgZGhscHR4fICEiIyQ"

static void keys_of_2022_methods(void **state)
{
    size_t count;
    const struct ss_method *methods = ss_method_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        const char *good = methods[i].key_len == 16 ? KEY_16 : KEY_32;
        const char *other = methods[i].key_len == 16 ? KEY_32 : KEY_16;
        char line[256];

        if (methods[i].family != SS_METHODS_2022)
            continue;
        assert_true(can_be_made(methods[i].name, good, NULL));
        assert_true(can_be_made(methods[i].name, NULL, good));
        assert_int_equal(line_count, 1);

        /* The method, the bytes needed, those given, and how to make a key. */
        for (int by_key = 0; by_key <= 1; by_key++) {
            assert_false(
                can_be_made(methods[i].name, by_key ? "ignored" : other, by_key ? other : NULL));
            assert_true(said("ERROR: Invalid key for your chosen cipher!"));
            snprintf(line, sizeof line,
                     "ERROR: %s needs a key of %zu bytes in base64, the one given has %d; make one "
                     "with ss-server --gen-key %s",
                     methods[i].name, methods[i].key_len, methods[i].key_len == 16 ? 32 : 16,
                     methods[i].name);
            assert_true(said(line));
        }
        assert_false(can_be_made(methods[i].name, "barfoo!", NULL));
        snprintf(line, sizeof line,
                 "ERROR: %s needs a key of %zu bytes in base64, the one given is not base64; make "
                 "one with ss-server --gen-key %s",
                 methods[i].name, methods[i].key_len, methods[i].name);
        assert_true(said(line));
        assert_false(can_be_made(methods[i].name, "", NULL));
        assert_true(said("the one given has 0"));
    }
}

static bool chain_serves(enum ss_program program, const char *method, const char *chain)
{
    struct ss_config_server server = {.method = writable(method), .password = writable(chain)};

    return can_serve(program, &server);
}

static void chains_are_for_clients(void **state)
{
    (void)state;

    assert_true(chain_serves(SS_PROGRAM_LOCAL, "2022-blake3-aes-128-gcm", KEY_16 ":" KEY_16));
    assert_true(
        chain_serves(SS_PROGRAM_TUNNEL, "2022-blake3-aes-256-gcm", KEY_32 ":" KEY_32 ":" KEY_32));
    assert_false(chain_serves(SS_PROGRAM_SERVER, "2022-blake3-aes-128-gcm", KEY_16 ":" KEY_16));
    assert_true(said("ERROR: a chain of 2 keys is for clients, here one key is needed"));
    assert_false(chain_serves(SS_PROGRAM_LOCAL, "2022-blake3-aes-128-gcm", KEY_16 ":" KEY_32));
    assert_true(said("key 2 of the chain has 32; make one with ss-local --gen-key"));
    assert_false(
        chain_serves(SS_PROGRAM_LOCAL, "2022-blake3-chacha20-poly1305", KEY_32 ":" KEY_32));
    assert_true(said("has no identity headers"));
}

static bool users_serve(const char *method, const char *password, const char *second)
{
    struct ss_config_identity users[2] = {
        {.name = writable("ann"), .password = writable("/////////////////////w==")},
        {.name = writable("bob"), .password = writable(second)}};
    struct ss_config_server server = {.method = writable(method),
                                      .password = writable(password),
                                      .identities = users,
                                      .identity_count = 2};

    return can_serve(SS_PROGRAM_SERVER, &server);
}

static void users_and_their_keys(void **state)
{
    static const char method[] = "2022-blake3-aes-128-gcm";
    (void)state;

    assert_true(users_serve(method, KEY_16, "AAAAAAAAAAAAAAAAAAAAAA=="));
    assert_false(users_serve(method, KEY_16, KEY_16));
    assert_true(said("ERROR: users[1] 'bob': that is the server's own key, which all users have"));
    assert_false(users_serve(method, KEY_16, "/////////////////////w"));
    assert_true(said("ERROR: users[1] 'bob': another user has the same key"));
    assert_false(users_serve(method, KEY_16, "AAAA"));
    assert_true(said("ERROR: users[1] 'bob': 2022-blake3-aes-128-gcm needs a key of 16 bytes in "
                     "base64, the one given has 3; make one with"));
    assert_false(users_serve(method, KEY_16, KEY_16 ":" KEY_16));
    assert_true(said("ERROR: users[1] 'bob': "));
    assert_false(users_serve(method, KEY_16 ":" KEY_16, KEY_16));
    assert_true(said("ERROR: a chain of 2 keys is for clients"));
    assert_false(users_serve("2022-blake3-chacha20-poly1305", KEY_32, KEY_32));
    assert_true(said("ERROR: 2022-blake3-chacha20-poly1305 has no identity headers"));
    assert_false(users_serve("aes-256-gcm", "barfoo!", "pw"));
    assert_true(said("ERROR: aes-256-gcm has no identity headers"));
}

static void methods_that_are_none(void **state)
{
    static const char *const unknown[] = {"nosuch", "AES-256-GCM", "", "aes256gcm", "5"};
    static const char *const known[] = {"cast5-cfb", "des-cfb", "idea-cfb", "rc2-cfb", "seed-cfb"};
    (void)state;

    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        assert_false(can_be_made(unknown[i], "pw", NULL));
        assert_true(said("ERROR: invalid cipher name: "));
        assert_true(said("ERROR: failed to initialize ciphers"));
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        assert_false(can_be_made(known[i], "pw", NULL));
        assert_true(said("currently is not supported by mbed TLS library"));
        assert_true(said("ERROR: Cannot initialize cipher"));
    }
    assert_false(can_be_made("table", "pw", NULL));
    assert_true(said("ERROR: Table is deprecated"));
    assert_false(can_be_made("rc4", "pw", NULL));
    assert_true(said("ERROR: rc4 is broken and not offered; use aes-256-gcm"));
}

static void keys_in_either_alphabet_padded_or_not(void **state)
{
    static const char *const keys[] = {"-_-_CAkKCwwNDg8QERITFBUWFxgZGhscHR4fICEiIyQ",
                                       "-_-_CAkKCwwNDg8QERITFBUWFxgZGhscHR4fICEiIyQ=",
                                       "+/+/CAkKCwwNDg8QERITFBUWFxgZGhscHR4fICEiIyQ",
                                       "+/+/CAkKCwwNDg8QERITFBUWFxgZGhscHR4fICEiIyQ="};
    (void)state;

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        assert_true(can_be_made("aes-256-gcm", NULL, keys[i]));
        assert_true(can_be_made("aes-128-gcm", "ignored", keys[i])); /* the first bytes count */
    }
}

static void a_key_that_is_too_short_says_both_lengths(void **state)
{
    (void)state;

    assert_false(can_be_made("aes-256-gcm", NULL, "AAAA"));
    assert_true(said("ERROR: Invalid key for your chosen cipher!"));
    assert_true(said("ERROR: It requires a 32-byte key encoded with URL-safe Base64"));
    assert_true(said("ERROR: aes-256-gcm needs 32 bytes, the key given has 3"));
    assert_true(said("ERROR: Generating a new random key: "));
    assert_true(said("ERROR: Please use the key above or input a valid key"));
    assert_false(can_be_made("aes-128-gcm", NULL, "short!"));
    assert_true(said("the key given is not base64"));
    assert_false(can_be_made("aes-128-gcm", NULL, ""));
}

static void the_key_that_is_offered_is_one(void **state)
{
    char key[64] = "";
    (void)state;

    assert_false(can_be_made("chacha20-ietf-poly1305", NULL, "AAAA"));
    for (size_t i = 0; i < line_count; i++)
        sscanf(lines[i], "ERROR: Generating a new random key: %63s", key);
    assert_true(can_be_made("chacha20-ietf-poly1305", NULL, key));
}

static void literal_servers_tell_their_family(void **state)
{
    const struct ss_upstream ipv6 = {.endpoint = {.host = "2001:db8::1", .port = 1}};
    const struct ss_upstream both[2] = {ipv6, {.endpoint = {.host = "192.0.2.1", .port = 1}}};
    (void)state;

    assert_true(ss_service_only_ipv6(&ipv6, 1, NULL, true));
    assert_false(ss_service_only_ipv6(both, 2, NULL, true));
    assert_false(ss_service_only_ipv6(NULL, 0, NULL, true));
}

static int start(void **state)
{
    (void)state;
    return ss_random_start() != SS_OK;
}

int profiles_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_method_with_a_password),
        cmocka_unit_test(without_a_cipher_no_password),
        cmocka_unit_test(keys_of_2022_methods),
        cmocka_unit_test(chains_are_for_clients),
        cmocka_unit_test(users_and_their_keys),
        cmocka_unit_test(methods_that_are_none),
        cmocka_unit_test(keys_in_either_alphabet_padded_or_not),
        cmocka_unit_test(a_key_that_is_too_short_says_both_lengths),
        cmocka_unit_test(the_key_that_is_offered_is_one),
        cmocka_unit_test(literal_servers_tell_their_family),
    };

    return cmocka_run_group_tests_name("service: methods and keys", tests, start, NULL);
}
