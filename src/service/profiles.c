/* Methods and keys out of the configuration. */
#include "service/service_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/log.h"
#include "codec/codec.h"
#include "crypto/kdf.h"
#include "crypto/random.h"
#include "crypto/secret.h"

#define KEY_TEXT_MAX 1024 /* bytes of a key that are looked at; a method uses at most 32 */

/* Names of the classic suite that stand for ciphers no library here has. */
static const char *const unknown_to_library[] = {"cast5-cfb", "des-cfb", "idea-cfb", "rc2-cfb",
                                                 "seed-cfb"};

/* Stream methods of the classic suite. */
static const char *const streams[] = {
    "rc4-md5",          "aes-128-cfb", "aes-192-cfb",      "aes-256-cfb",  "aes-128-ctr",
    "aes-192-ctr",      "aes-256-ctr", "camellia-128-cfb", "bf-cfb",       "camellia-192-cfb",
    "camellia-256-cfb", "salsa20",     "chacha20",         "chacha20-ietf"};

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static void warn_of_streams(void)
{
    ss_log_info("Stream ciphers are insecure, therefore deprecated, and should be almost always "
                "avoided.");
}

/* In the words by which people know each cause. */
static void log_unknown_method(const char *name)
{
    if (strcmp(name, "table") == 0) {
        warn_of_streams();
        ss_log_error("Table is deprecated");
    } else if (is_among(name, unknown_to_library, COUNT(unknown_to_library))) {
        warn_of_streams();
        ss_log_error("Cipher %s currently is not supported by mbed TLS library", name);
        ss_log_error("Cipher %s not found in crypto library", name);
        ss_log_error("Cannot initialize cipher");
        return;
    } else if (strcmp(name, "rc4") == 0) {
        ss_log_error("rc4 is broken and not offered; use aes-256-gcm");
        return;
    } else if (is_among(name, streams, COUNT(streams))) {
        ss_log_error("%s: stream methods are not offered by this version; use aes-256-gcm", name);
        return;
    } else {
        ss_log_error("invalid cipher name: %s", name);
    }
    ss_log_error("failed to initialize ciphers");
}

static void log_bad_key(const struct ss_method *method, bool is_base64, size_t len)
{
    uint8_t key[SS_KEY_MAX];
    char text[SS_BASE64_LEN(SS_KEY_MAX) + 1];

    ss_random_bytes(key, method->key_len);
    ss_base64_encode(text, key, method->key_len, SS_BASE64_URL);
    ss_log_error("Invalid key for your chosen cipher!");
    ss_log_error("It requires a %zu-byte key encoded with URL-safe Base64", method->key_len);
    if (is_base64)
        ss_log_error("%s needs %zu bytes, the key given has %zu", method->name, method->key_len,
                     len);
    else
        ss_log_error("%s needs %zu bytes, the key given is not base64", method->name,
                     method->key_len);
    ss_log_error("Generating a new random key: %s", text);
    ss_log_error("Please use the key above or input a valid key");
    ss_wipe(key, sizeof key);
    ss_wipe(text, sizeof text);
}

static struct ss_profile *make_profile(struct ss_service *service,
                                       const struct ss_config_server *server,
                                       const struct ss_method *method)
{
    uint8_t key[KEY_TEXT_MAX];
    size_t key_len = 0;
    struct ss_profile *profile = NULL;
    struct ss_profile_options options = {
        .method = method, .salts = service->salts, .packet_salts = service->packet_salts};
    enum ss_status status = SS_OK;

    if (server->key != NULL) {
        status = ss_base64_decode(key, sizeof key, &key_len, server->key, strlen(server->key),
                                  SS_BASE64_EITHER);
        options.key = (struct ss_view){key, key_len};
        if (status != SS_OK || key_len < method->key_len) {
            log_bad_key(method, status == SS_OK, key_len);
            goto done;
        }
    } else {
        /* An empty password is one too; it is a key like that of any other. */
        ss_kdf_password(key, method->key_len, server->password, strlen(server->password));
        options.key = (struct ss_view){key, method->key_len};
    }
    status = ss_profile_new(&profile, &options);
    if (status != SS_OK) {
        ss_log_error("%s: %s", method->name, ss_status_text(status));
        ss_log_error("failed to initialize ciphers");
    }
done:
    ss_wipe(key, sizeof key);
    return profile;
}

/* The lines come once a method, however many ports have it. */
static bool was_said(const struct ss_config *config, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(config->servers[i].method, config->servers[index].method) == 0)
            return true;
    return false;
}

static void log_method(const struct ss_config *config, size_t index)
{
    const struct ss_method *method = ss_method_find(config->servers[index].method);

    if (index != 0 && was_said(config, index))
        return;
    ss_log_info("initializing ciphers... %s", config->servers[index].method);
    if (method != NULL && method->family == SS_METHODS_STREAM)
        warn_of_streams();
}

void ss_service_log_methods(const struct ss_config *config)
{
    for (size_t i = 0; i < config->server_count; i++)
        log_method(config, i);
}

bool ss_service_make_profiles(struct ss_service *service)
{
    const struct ss_config *config = service->config;
    bool only, udp = ss_service_wants_udp(config, &only);

    service->profiles = calloc(config->server_count, sizeof(struct ss_profile *));
    service->salts = ss_salt_memory_new(config->salt_memory);
    if (udp)
        service->packet_salts = ss_salt_memory_new(config->salt_memory);
    if (service->profiles == NULL || service->salts == NULL ||
        (udp && service->packet_salts == NULL)) {
        ss_log_error("%s", ss_status_text(SS_ERR_MEMORY));
        return false;
    }
    for (size_t i = 0; i < config->server_count; i++) {
        const struct ss_config_server *server = &config->servers[i];
        const struct ss_method *method = ss_method_find(server->method);
        size_t size;

        log_method(config, i);
        if (method == NULL) {
            log_unknown_method(server->method);
            return false;
        }
        service->profiles[i] = make_profile(service, server, method);
        if (service->profiles[i] == NULL)
            return false;
        size = ss_codec_size(service->profiles[i]);
        if (size > service->codec_size)
            service->codec_size = size;
    }
    return true;
}

void ss_service_log_providers(const struct ss_service *service)
{
    for (size_t i = 0; i < service->config->server_count; i++)
        if (i == 0 || !was_said(service->config, i))
            ss_log_debug("%s is done by %s", service->config->servers[i].method,
                         ss_profile_aead(service->profiles[i])->provider_name);
}

void ss_service_free_profiles(struct ss_service *service)
{
    for (size_t i = 0; service->profiles != NULL && i < service->config->server_count; i++)
        ss_profile_free(service->profiles[i]);
    free(service->profiles);
    service->profiles = NULL;
    ss_salt_memory_free(service->salts);
    ss_salt_memory_free(service->packet_salts);
    service->salts = service->packet_salts = NULL;
}
