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

/* Whether a server of this method and key can be made; its lines are kept. */
static bool can_be_made(const char *method, const char *password, const char *key)
{
    struct ss_config_server server = {.method = (char *)(uintptr_t)method,
                                      .password = (char *)(uintptr_t)password,
                                      .key = (char *)(uintptr_t)key};
    struct ss_config config = {
        .program = SS_PROGRAM_SERVER, .servers = &server, .server_count = 1, .salt_memory = 1000};
    struct ss_service service = {.config = &config};
    bool made;

    line_count = 0;
    ss_log_set_sink(keep);
    made = ss_service_make_profiles(&service);
    ss_log_set_sink(NULL);
    assert_true(!made || service.codec_size > 0);
    ss_service_free_profiles(&service);
    return made;
}

static void every_method_with_a_password(void **state)
{
    size_t count;
    const struct ss_method *methods = ss_method_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        char line[64];

        if (methods[i].family != SS_METHODS_2017)
            continue;
        assert_true(can_be_made(methods[i].name, "pw", NULL));
        snprintf(line, sizeof line, "INFO: initializing ciphers... %s", methods[i].name);
        assert_true(said(line));
        assert_true(can_be_made(methods[i].name, "", NULL));
    }
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

    assert_true(ss_service_only_ipv6(&ipv6, 1, NULL));
    assert_false(ss_service_only_ipv6(both, 2, NULL));
    assert_false(ss_service_only_ipv6(NULL, 0, NULL));
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
        cmocka_unit_test(methods_that_are_none),
        cmocka_unit_test(keys_in_either_alphabet_padded_or_not),
        cmocka_unit_test(a_key_that_is_too_short_says_both_lengths),
        cmocka_unit_test(the_key_that_is_offered_is_one),
        cmocka_unit_test(literal_servers_tell_their_family),
    };

    return cmocka_run_group_tests_name("service: methods and keys", tests, start, NULL);
}
