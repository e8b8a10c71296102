/* BLAKE3, and the subkeys of the 2022 edition, against values that others computed. */
#include "crypto/blake3.h"

#include <stdlib.h>
#include <string.h>

#include "crypto/kdf.h"
#include "vectors/read.h"

#define INPUT_MAX 200000

static uint8_t input[INPUT_MAX];

static void check_output(const json_t *vector, const char *key, const uint8_t *got, size_t len)
{
    uint8_t wanted[256];

    assert_int_equal(vector_bytes(vector, key, wanted, sizeof wanted), len);
    assert_memory_equal(got, wanted, len);
}

static void check_derived(const json_t *vector, const char *key, const char *context, size_t len)
{
    uint8_t out[SS_BLAKE3_LEN], shorter[7];

    ss_blake3_derive_key(out, sizeof out, context, input, len);
    check_output(vector, key, out, sizeof out);
    ss_blake3_derive_key(shorter, sizeof shorter, context, input, len);
    assert_memory_equal(shorter, out, sizeof shorter);
}

/* Of no byte up to many chunks; the outputs, too, are of several lengths. */
static void hashes_and_keys_are_those_of_the_vectors(void **state)
{
    json_t *file = vectors_load("kdf.json");
    const json_t *blake3 = json_object_get(file, "blake3");
    const json_t *contexts = json_object_get(blake3, "contexts");
    const json_t *vector;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof input; i++)
        input[i] = (uint8_t)(i % 251);
    json_array_foreach(json_object_get(blake3, "cases"), i, vector)
    {
        size_t len = vector_number(vector, "len");
        uint8_t out[131];

        assert_true(len <= sizeof input);
        ss_blake3(out, SS_BLAKE3_LEN, input, len);
        check_output(vector, "hash", out, SS_BLAKE3_LEN);
        ss_blake3(out, sizeof out, input, len);
        check_output(vector, "hash_xof_131", out, sizeof out);
        check_derived(vector, "derive_session", json_string_value(json_array_get(contexts, 0)),
                      len);
        check_derived(vector, "derive_identity", json_string_value(json_array_get(contexts, 1)),
                      len);
        check_derived(vector, "derive_official_context",
                      json_string_value(json_array_get(contexts, 2)), len);
    }
    assert_true(i >= 28);
    json_decref(file);
}

/* No byte beyond the end is read: a sanitizer watches. */
static void any_length_is_taken_from_its_own_memory(void **state)
{
    (void)state;
    for (size_t len = 0; len < 2200; len++) {
        uint8_t *copy = malloc(len != 0 ? len : 1);
        uint8_t a[SS_BLAKE3_LEN], b[SS_BLAKE3_LEN];

        assert_non_null(copy);
        memcpy(copy, input, len);
        ss_blake3(a, sizeof a, copy, len);
        ss_blake3(b, sizeof b, input, len);
        assert_memory_equal(a, b, sizeof a);
        if (len != 0) {
            copy[len - 1] ^= 1;
            ss_blake3(b, sizeof b, copy, len);
            assert_memory_not_equal(a, b, sizeof a);
        }
        free(copy);
    }
}

static void subkeys_are_those_of_the_vectors(void **state)
{
    json_t *file = vectors_load("kdf.json");
    const json_t *vector;
    size_t i;

    (void)state;
    json_array_foreach(json_object_get(file, "aead2022_session_subkey"), i, vector)
    {
        uint8_t key[32], salt[32], session[8], out[32], by_name[32], both[64];
        struct ss_view key_view = {key, vector_bytes(vector, "psk", key, sizeof key)};
        struct ss_view salt_view = {salt, vector_bytes(vector, "tcp_salt", salt, sizeof salt)};
        struct ss_view session_view = {
            session, vector_bytes(vector, "udp_session_id", session, sizeof session)};

        ss_kdf_session_subkey(out, key_view, salt_view);
        check_output(vector, "tcp_subkey", out, key_view.len);
        memcpy(both, key, key_view.len);
        memcpy(both + key_view.len, salt, salt_view.len);
        ss_blake3_derive_key(by_name, key_view.len, "shadowsocks 2022 session subkey", both,
                             key_view.len + salt_view.len);
        assert_memory_equal(out, by_name, key_view.len);

        ss_kdf_identity_subkey(out, key_view, salt_view);
        check_output(vector, "identity_subkey", out, key_view.len);
        ss_kdf_session_subkey(out, key_view, session_view);
        check_output(vector, "udp_subkey", out, key_view.len);
        ss_kdf_identity(out, key_view);
        check_output(vector, "psk_hash16", out, SS_IDENTITY_LEN);
    }
    assert_true(i >= 6);
    json_decref(file);
}

int blake3_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_and_keys_are_those_of_the_vectors),
        cmocka_unit_test(any_length_is_taken_from_its_own_memory),
        cmocka_unit_test(subkeys_are_those_of_the_vectors),
    };

    return cmocka_run_group_tests_name("crypto/blake3", tests, NULL, NULL);
}
