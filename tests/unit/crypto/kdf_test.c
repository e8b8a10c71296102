/* Keys and subkeys against published and independently computed values. */
#include "crypto/kdf.h"

#include <string.h>

#include "crypto/random.h"
#include "crypto/secret.h"
#include "vectors/read.h"

static void passwords_become_keys(void **state)
{
    json_t *file = vectors_load("kdf.json");
    const json_t *vector;
    size_t i;

    (void)state;
    json_array_foreach(json_object_get(file, "evp_bytes_to_key"), i, vector)
    {
        uint8_t password[512], wanted[64], key[64];
        size_t len = vector_bytes(vector, "password_hex", password, sizeof password);
        size_t key_len = vector_number(vector, "key_len");

        assert_int_equal(vector_bytes(vector, "key", wanted, sizeof wanted), key_len);
        ss_kdf_password(key, key_len, (const char *)password, len);
        assert_memory_equal(key, wanted, key_len);
    }
    assert_true(i >= 20);
    json_decref(file);
}

static void salts_become_subkeys(void **state)
{
    json_t *file = vectors_load("kdf.json");
    const json_t *vector;
    size_t i;

    (void)state;
    json_array_foreach(json_object_get(file, "hkdf_sha1_ss_subkey"), i, vector)
    {
        uint8_t key[64], salt[64], wanted[64], subkey[64];
        size_t len = vector_bytes(vector, "key", key, sizeof key);

        assert_int_equal(vector_bytes(vector, "salt", salt, sizeof salt), len);
        assert_int_equal(vector_bytes(vector, "subkey", wanted, sizeof wanted), len);
        ss_kdf_subkey_2017(subkey, key, salt, len);
        assert_memory_equal(subkey, wanted, len);
    }
    assert_true(i >= 6);
    json_decref(file);
}

/* Whatever way the processor allows: many more than there are vectors, of every length, by
 * themselves and two at once. */
static void a_subkey_is_hkdf(void **state)
{
    static const uint8_t info[] = {'s', 's', '-', 's', 'u', 'b', 'k', 'e', 'y'};

    (void)state;
    for (size_t i = 0; i < 3300; i++) {
        size_t len = i % 33;
        uint8_t key[33], salts[2][33], wanted[2][33], two[2][33], one[33];
        const uint8_t *const from[] = {salts[0], salts[1]};
        uint8_t *const to[] = {two[0], two[1]};

        ss_random_bytes(key, sizeof key);
        ss_random_bytes(salts, sizeof salts);
        memset(wanted, 0xee, sizeof wanted);
        memset(two, 0xee, sizeof two);
        ss_kdf_two_subkeys_2017(to, key, from, len);
        for (size_t k = 0; k < 2; k++) {
            ss_kdf_hkdf_sha1(wanted[k], len, (struct ss_view){key, len},
                             (struct ss_view){salts[k], len}, (struct ss_view){info, sizeof info});
            memset(one, 0xee, sizeof one);
            ss_kdf_subkey_2017(one, key, salts[k], len);
            assert_memory_equal(one, wanted[k], sizeof one); /* and nothing behind it */
        }
        assert_memory_equal(two, wanted, sizeof two);
    }
}

static void hkdf_is_that_of_rfc5869(void **state)
{
    json_t *file = vectors_load("kdf.json");
    const json_t *vector;
    size_t i;

    (void)state;
    json_array_foreach(json_object_get(file, "hkdf_sha1_rfc5869"), i, vector)
    {
        uint8_t key[128], salt[128], info[128], wanted[128], out[128];
        size_t len = vector_number(vector, "len");
        struct ss_view key_view = {key, vector_bytes(vector, "ikm", key, sizeof key)};
        struct ss_view salt_view = {salt, vector_bytes(vector, "salt", salt, sizeof salt)};
        struct ss_view info_view = {info, vector_bytes(vector, "info", info, sizeof info)};

        assert_int_equal(vector_bytes(vector, "okm", wanted, sizeof wanted), len);
        ss_kdf_hkdf_sha1(out, len, key_view, salt_view, info_view);
        assert_memory_equal(out, wanted, len);
    }
    assert_true(i >= 2);
    json_decref(file);
}

/* RFC 5869, test case 5: a key, a salt and an info that are longer than a block of SHA-1. */
static void hkdf_takes_long_inputs(void **state)
{
    static const char *const wanted_hex =
        "0bd770a74d1160f7c9f12cd5912a06ebff6adcae899d92191fe4305673"
        "ba2ffe8fa3f1a4e5ad79f3f334b3b202b2173c486ea37ce3d397ed034c7f"
        "9dfeb15c5e927336d0441f4c4300e2cff0d0900b52d3b4";
    uint8_t key[80], salt[80], info[80], wanted[82], out[82];

    (void)state;
    for (size_t i = 0; i < 80; i++) {
        key[i] = (uint8_t)i;
        salt[i] = (uint8_t)(0x60 + i);
        info[i] = (uint8_t)(0xb0 + i);
    }
    assert_int_equal(vector_hex(wanted, sizeof wanted, wanted_hex), sizeof wanted);
    ss_kdf_hkdf_sha1(out, sizeof out, (struct ss_view){key, 80}, (struct ss_view){salt, 80},
                     (struct ss_view){info, 80});
    assert_memory_equal(out, wanted, sizeof wanted);
}

static void the_fingerprint_is_siphash(void **state)
{
    uint8_t seed[16], message[15];

    (void)state;
    for (uint8_t i = 0; i < 16; i++)
        seed[i] = i;
    for (uint8_t i = 0; i < 15; i++)
        message[i] = i;
    assert_true(ss_fingerprint(seed, message, sizeof message) == 0xa129ca6149be45e5u);
    seed[3] ^= 1;
    assert_true(ss_fingerprint(seed, message, sizeof message) != 0xa129ca6149be45e5u);
}

static void secrets_are_compared_and_wiped(void **state)
{
    uint8_t a[40], b[40];

    (void)state;
    memset(a, 5, sizeof a);
    memset(b, 5, sizeof b);
    for (size_t len = 1; len <= sizeof a; len++) {
        assert_true(ss_equal_constant_time(a, b, len));
        b[len - 1] ^= 0x80;
        assert_false(ss_equal_constant_time(a, b, len));
        b[len - 1] ^= 0x80;
    }
    ss_wipe(a, sizeof a - 1);
    for (size_t i = 0; i < sizeof a - 1; i++)
        assert_int_equal(a[i], 0);
    assert_int_equal(a[sizeof a - 1], 5);
}

int kdf_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passwords_become_keys),
        cmocka_unit_test(salts_become_subkeys),
        cmocka_unit_test(a_subkey_is_hkdf),
        cmocka_unit_test(hkdf_is_that_of_rfc5869),
        cmocka_unit_test(hkdf_takes_long_inputs),
        cmocka_unit_test(the_fingerprint_is_siphash),
        cmocka_unit_test(secrets_are_compared_and_wiped),
    };

    return cmocka_run_group_tests_name("crypto/kdf", tests, NULL, NULL);
}
