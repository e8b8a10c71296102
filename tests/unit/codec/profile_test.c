/* Methods by name, and keys from passwords and raw bytes. */
#include "codec/profile.h"

#include <string.h>

#include "codec/packet.h"
#include "support.h"
#include "vectors/read.h"

static void methods_are_found_by_name_and_alias(void **state)
{
    size_t count;
    const struct ss_method *all = ss_method_all(&count);

    (void)state;
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(ss_method_find(all[i].name), &all[i]);
        if (all[i].alias != NULL)
            assert_ptr_equal(ss_method_find(all[i].alias), &all[i]);
        assert_true(all[i].key_len <= SS_KEY_MAX && all[i].salt_len <= SS_SALT_MAX);
    }
    assert_non_null(ss_method_find(SS_METHOD_DEFAULT));
    assert_ptr_equal(ss_method_find("aead_aes_256_GCM"), ss_method_find("aes-256-gcm"));
    assert_null(ss_method_find("AES-256-GCM"));
    assert_null(ss_method_find(""));
    assert_null(ss_method_find("aes-256-gcm "));
    assert_null(ss_method_find("rc4"));
}

static enum ss_status try_key(const char *method, size_t key_len, const char *password)
{
    static const uint8_t key[64];
    struct ss_profile_options options = {.method = ss_method_find(method)};
    struct ss_profile *profile;
    enum ss_status status;

    if (key_len != 0)
        options.key = (struct ss_view){key, key_len};
    options.password = (struct ss_view){(const uint8_t *)password, strlen(password)};
    status = ss_profile_new(&profile, &options);
    assert_true((status == SS_OK) == (profile != NULL));
    if (profile != NULL)
        assert_ptr_equal(ss_profile_method(profile), options.method);
    ss_profile_release(profile);
    return status;
}

static void keys_have_the_methods_length(void **state)
{
    (void)state;
    assert_int_equal(try_key("aes-192-gcm", 0, "x"), SS_OK);
    assert_int_equal(try_key("aes-192-gcm", 0, ""), SS_ERR_KEY);
    assert_int_equal(try_key("aes-192-gcm", 24, ""), SS_OK);
    assert_int_equal(try_key("aes-192-gcm", 64, ""), SS_OK);
    assert_int_equal(try_key("aes-192-gcm", 23, "a key that is too short is no password"),
                     SS_ERR_KEY);
    assert_int_equal(try_key("no-such-method", 32, "x"), SS_ERR_ARGUMENT);
}

static void a_cipher_of_another_method_is_refused(void **state)
{
    const struct ss_profile_options options = {
        .method = ss_method_find("aes-128-gcm"),
        .password = {(const uint8_t *)"x", 1},
        .aead = ss_aead_best(SS_AEAD_AES_256_GCM),
    };
    struct ss_profile *profile;

    (void)state;
    assert_int_equal(ss_profile_new(&profile, &options), SS_ERR_ARGUMENT);
    assert_null(profile);
}

/* What is sealed under a password opens under the key that is made from it, cut from a longer one.
 */
static void a_long_key_is_cut(void **state)
{
    const struct ss_method *method = ss_method_find("aes-128-gcm");
    uint8_t key[40], wire[512], plain[] = "payload";
    struct ss_profile *by_password = profile_of(method, NULL, NULL), *by_key;
    struct ss_profile_options options = {.method = method, .key = {key, sizeof key}};
    struct reader reader = {.plain = calloc(1, 64), .plain_cap = 64};
    struct ss_codec *sender;
    size_t len;

    (void)state;
    memset(key, 9, sizeof key);
    vector_hex(key, sizeof key, "3858f62230ac3c915f300c664312c63f");
    assert_int_equal(ss_profile_new(&by_key, &options), SS_OK);
    sender = codec_of(by_password, SS_CODEC_SERVER);
    reader.codec = codec_of(by_key, SS_CODEC_CLIENT);
    len = seal_all(sender, plain, sizeof plain, wire, sizeof wire);
    assert_int_equal(feed(&reader, wire, len), SS_OK);
    assert_int_equal(reader.plain_len, sizeof plain);
    assert_memory_equal(reader.plain, plain, sizeof plain);
    free_reader(&reader);
    free_codec(sender);
    ss_profile_release(by_key);
    ss_profile_release(by_password);
}

/* Slots that are made before the method is known have room for it. */
static void the_largest_sizes_cover_all_methods_but_one(void **state)
{
    size_t count;
    const struct ss_method *all = ss_method_all(&count);

    (void)state;
    for (size_t i = 0; i < count; i++)
        for (int provider = 0; provider < SS_AEAD_PROVIDER_COUNT; provider++) {
            const struct ss_aead *aead = ss_aead_find(all[i].aead, (enum ss_aead_provider)provider);
            struct ss_profile *profile;

            if ((aead == NULL) != (all[i].aead == SS_AEAD_ALGORITHM_COUNT))
                continue;
            profile = profile_of(&all[i], aead, NULL);
            assert_true(ss_packet_link_size(profile) <= ss_packet_link_size_max());
            assert_true((ss_codec_size(profile) <= ss_codec_size_max()) ==
                        (strcmp(all[i].name, "bf-cfb") != 0));
            ss_profile_release(profile);
        }
}

int profile_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(methods_are_found_by_name_and_alias),
        cmocka_unit_test(keys_have_the_methods_length),
        cmocka_unit_test(a_cipher_of_another_method_is_refused),
        cmocka_unit_test(a_long_key_is_cut),
        cmocka_unit_test(the_largest_sizes_cover_all_methods_but_one),
    };

    return cmocka_run_group_tests_name("codec/profile", tests, NULL, NULL);
}
