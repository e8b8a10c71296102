/* Profiles out of the keys in a vector. */
#include "vectors_2022.h"

#include <string.h>

#include "base/base64.h"
#include "vectors/read.h"

static size_t base64_of_hex(char *text, const char *hex)
{
    uint8_t key[SS_KEY_MAX];
    size_t len = vector_hex(key, sizeof key, hex);

    ss_base64_encode(text, key, len, SS_BASE64_STANDARD);
    return strlen(text);
}

struct ss_profile *client_of(const struct ss_method *method, const struct ss_aead *aead,
                             const char *password)
{
    struct ss_key_fault fault;
    const struct ss_profile_options options = {
        .method = method,
        .aead = aead,
        .password = {(const uint8_t *)password, strlen(password)},
        .first_chunk_len = VECTORS_CHUNK,
        .fault = &fault,
    };
    struct ss_profile *profile;

    assert_int_equal(ss_profile_new(&profile, &options), SS_OK);
    assert_int_equal(fault.kind, SS_KEY_IS_FINE);
    return profile;
}

struct ss_profile *server_of(const struct ss_method *method, const struct ss_aead *aead,
                             const char *key, const char *user_key, const struct ss_endpoint *next)
{
    char key_text[SS_BASE64_LEN(SS_KEY_MAX) + 1], user_text[SS_BASE64_LEN(SS_KEY_MAX) + 1];
    struct ss_profile_options options = {
        .method = method,
        .aead = aead,
        .password = {(const uint8_t *)key_text, base64_of_hex(key_text, key)},
        .first_chunk_len = VECTORS_CHUNK,
    };
    struct ss_profile *profile;

    if (user_key != NULL) {
        const struct ss_user_options user = {
            .name = "somebody",
            .password = {(const uint8_t *)user_text, base64_of_hex(user_text, user_key)},
            .next = next,
        };
        struct ss_key_fault fault;

        assert_int_equal(ss_users_new(&options.users, method, &user, 1, &fault), SS_OK);
    }
    assert_int_equal(ss_profile_new(&profile, &options), SS_OK);
    ss_users_release(options.users);
    return profile;
}

struct ss_profile *server_of_vector(const struct ss_method *method, const struct ss_aead *aead,
                                    const json_t *vector)
{
    static const struct ss_endpoint next = {.host = "next.example", .port = 8388};
    const json_t *chain = json_object_get(vector, "ipsks");
    const char *key = vector_text(vector, "psk");

    switch (json_array_size(chain)) {
    case 0:
        return server_of(method, aead, key, NULL, NULL);
    case 1:
        return server_of(method, aead, json_string_value(json_array_get(chain, 0)), key, NULL);
    default:
        return server_of(method, aead, json_string_value(json_array_get(chain, 0)),
                         json_string_value(json_array_get(chain, 1)), &next);
    }
}

const struct ss_method *method_of_vector(const json_t *vector)
{
    const char *id = vector_text(vector, "id");
    char name[64];
    const struct ss_method *method;

    snprintf(name, sizeof name, "%.*s", (int)strcspn(id, "/"), id);
    method = ss_method_find(name);
    assert_non_null(method);
    return method;
}
