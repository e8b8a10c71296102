/* What is said of methods that there are not, and of keys that don't fit. */
#include "service/service_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/log.h"
#include "codec/keys.h"
#include "crypto/random.h"
#include "crypto/secret.h"

/* Names of the classic suite that stand for ciphers no library here has, or, the second lot, that
 * some versions of Mbed TLS have: where the table of methods lacks one, so does the library. */
static const char *const unknown_to_library[] = {
    "cast5-cfb",        "des-cfb",     "idea-cfb",    "rc2-cfb",          "seed-cfb",
    "rc4-md5",          "aes-128-cfb", "aes-192-cfb", "aes-256-cfb",      "aes-128-ctr",
    "aes-192-ctr",      "aes-256-ctr", "bf-cfb",      "camellia-128-cfb", "camellia-192-cfb",
    "camellia-256-cfb", "salsa20",     "chacha20",    "chacha20-ietf"};

static bool is_unknown_to_library(const char *name)
{
    for (size_t i = 0; i < sizeof unknown_to_library / sizeof unknown_to_library[0]; i++)
        if (strcmp(unknown_to_library[i], name) == 0)
            return true;
    return false;
}

/* Whether the stream methods were left out when this was built. */
static bool has_no_streams(void)
{
    size_t count;
    const struct ss_method *methods = ss_method_all(&count);

    for (size_t i = 0; i < count; i++)
        if (methods[i].family == SS_METHODS_STREAM)
            return false;
    return true;
}

void ss_service_warn_of_streams(void)
{
    ss_log_info("Stream ciphers are insecure, therefore deprecated, and should be almost always "
                "avoided.");
}

/* In the words by which people know each cause. */
void ss_service_log_unknown_method(const char *name)
{
    if (strcmp(name, "table") == 0) {
        ss_service_warn_of_streams();
        ss_log_error("Table is deprecated");
    } else if (is_unknown_to_library(name)) {
        ss_service_warn_of_streams();
        if (has_no_streams())
            ss_log_error("stream methods are not in this build");
        ss_log_error("Cipher %s currently is not supported by mbed TLS library", name);
        ss_log_error("Cipher %s not found in crypto library", name);
        ss_log_error("Cannot initialize cipher");
        return;
    } else if (strcmp(name, "rc4") == 0) {
        ss_log_error("rc4 is broken and not offered; use aes-256-gcm");
        return;
    } else {
        ss_log_error("invalid cipher name: %s", name);
    }
    ss_log_error("failed to initialize ciphers");
}

/* "users[3] 'name': ", or which server it is where there are several. */
static void name_place(char *text, size_t size, const struct ss_config *config, size_t index,
                       const struct ss_key_problem *problem)
{
    const struct ss_config_server *server = &config->servers[index];
    int used = 0;

    text[0] = '\0';
    if (config->server_count > 1)
        used = snprintf(text, size, "server %s, port %u: ", server->addresses[0].host,
                        server->addresses[0].port);
    if (problem->of_user && used >= 0 && (size_t)used < size)
        snprintf(text + used, size - (size_t)used, "users[%zu] '%s': ", problem->fault.user,
                 server->identities[problem->fault.user].name);
}

static void fault_text(char *text, size_t size, enum ss_program program, const char *method,
                       const struct ss_key_fault *fault)
{
    const char *name = ss_program_name(program);
    char which[32] = "the one given";

    if (fault->position != 0)
        snprintf(which, sizeof which, "key %zu of the chain", fault->position + 1);
    switch (fault->kind) {
    case SS_KEY_NOT_BASE64:
        snprintf(text, size,
                 "%s needs a key of %zu bytes in base64, %s is not base64; make one with "
                 "%s --gen-key %s",
                 method, fault->needed, which, name, method);
        break;
    case SS_KEY_HAS_OTHER_LENGTH:
        snprintf(text, size,
                 "%s needs a key of %zu bytes in base64, %s has %zu; make one with %s "
                 "--gen-key %s",
                 method, fault->needed, which, fault->given, name, method);
        break;
    case SS_KEY_HAS_NO_CHAINS:
        snprintf(text, size,
                 "%s has no identity headers, and so neither users nor chains of keys; use "
                 "2022-blake3-aes-128-gcm or 2022-blake3-aes-256-gcm",
                 method);
        break;
    case SS_KEY_CHAIN_TOO_LONG:
        snprintf(text, size, "a chain of %zu keys is too long, at most %zu can be used",
                 fault->given, fault->needed);
        break;
    case SS_KEY_OF_SERVER_IS_CHAIN:
        snprintf(text, size, "a chain of %zu keys is for clients, here one key is needed",
                 fault->given);
        break;
    case SS_KEY_IS_DOUBLE:
        snprintf(text, size, "another user has the same key");
        break;
    case SS_KEY_IS_THE_SERVERS:
        snprintf(text, size, "that is the server's own key, which all users have");
        break;
    case SS_KEY_IS_FINE:
        text[0] = '\0';
        break;
    }
}

void ss_service_key_text(char *text, size_t size, enum ss_program program,
                         const struct ss_method *method, const struct ss_key_problem *problem)
{
    if (!problem->is_short)
        fault_text(text, size, program, method->name, &problem->fault);
    else if (problem->is_base64)
        snprintf(text, size, "%s needs %zu bytes, the key given has %zu", method->name,
                 method->key_len, problem->len);
    else
        snprintf(text, size, "%s needs %zu bytes, the key given is not base64", method->name,
                 method->key_len);
}

/* Where the classic suite offers a fresh key. */
static void log_short_key(const struct ss_method *method, const char *why)
{
    uint8_t key[SS_KEY_MAX];
    char text[SS_BASE64_LEN(SS_KEY_MAX) + 1];

    ss_random_bytes(key, method->key_len);
    ss_base64_encode(text, key, method->key_len, SS_BASE64_URL);
    ss_log_error("It requires a %zu-byte key encoded with URL-safe Base64", method->key_len);
    ss_log_error("%s", why);
    ss_log_error("Generating a new random key: %s", text);
    ss_log_error("Please use the key above or input a valid key");
    ss_wipe(key, sizeof key);
    ss_wipe(text, sizeof text);
}

void ss_service_log_key_problem(const struct ss_config *config, size_t index,
                                const struct ss_method *method,
                                const struct ss_key_problem *problem)
{
    char place[512], why[512];

    ss_service_key_text(why, sizeof why, config->program, method, problem);
    ss_log_error("Invalid key for your chosen cipher!");
    if (problem->is_short) {
        log_short_key(method, why);
        return;
    }
    name_place(place, sizeof place, config, index, problem);
    ss_log_error("%s%s", place, why);
}
