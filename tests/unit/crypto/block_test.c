/* One block of AES, and HChaCha with 8 rounds. */
#include "crypto/block.h"

#include <string.h>

#include "crypto/chacha8.h"
#include "vectors/read.h"

unsigned long allocation_count(void); /* in aead_test.c */

static void blocks_are_those_of_the_vectors(void **state)
{
    json_t *file = vectors_load("primitives.json");
    const json_t *vector;
    size_t i;

    (void)state;
    json_array_foreach(json_object_get(file, "aes_block"), i, vector)
    {
        uint8_t key[32], plain[SS_BLOCK_LEN], cipher[SS_BLOCK_LEN], out[SS_BLOCK_LEN];
        size_t key_len = vector_bytes(vector, "key", key, sizeof key);
        struct ss_block_key encrypt, decrypt;

        assert_int_equal(vector_bytes(vector, "plain", plain, sizeof plain), SS_BLOCK_LEN);
        assert_int_equal(vector_bytes(vector, "cipher", cipher, sizeof cipher), SS_BLOCK_LEN);
        assert_int_equal(ss_block_key_init(&encrypt, SS_BLOCK_ENCRYPT, key, key_len), SS_OK);
        assert_int_equal(ss_block_key_init(&decrypt, SS_BLOCK_DECRYPT, key, key_len), SS_OK);
        ss_block_apply(&encrypt, plain, out);
        assert_memory_equal(out, cipher, sizeof cipher);
        ss_block_apply(&decrypt, out, out);
        assert_memory_equal(out, plain, sizeof plain);
        ss_block_key_clear(&encrypt);
        ss_block_key_clear(&decrypt);
        for (size_t k = 0; k < sizeof encrypt; k++)
            assert_true(((uint8_t *)&encrypt)[k] == 0 && ((uint8_t *)&decrypt)[k] == 0);
    }
    assert_int_equal(i, 3); /* each size of key */
    json_decref(file);
}

static void a_key_of_another_size_is_refused(void **state)
{
    static const uint8_t key[40];
    struct ss_block_key block;

    (void)state;
    assert_int_equal(ss_block_key_init(&block, SS_BLOCK_ENCRYPT, key, 8), SS_ERR_ARGUMENT);
    assert_int_equal(ss_block_key_init(&block, SS_BLOCK_DECRYPT, key, 40), SS_ERR_ARGUMENT);
}

static void a_new_key_takes_no_memory(void **state)
{
    static const uint8_t key[32] = {1};
    struct ss_block_key block;
    uint8_t out[SS_BLOCK_LEN] = {0};
    unsigned long before;
    int failed = 0;

    (void)state;
    failed |= ss_block_key_init(&block, SS_BLOCK_ENCRYPT, key, sizeof key) != SS_OK; /* tables */
    before = allocation_count();
    for (int i = 0; i < 20; i++) {
        failed |= ss_block_key_init(&block, SS_BLOCK_DECRYPT, key, 16) != SS_OK;
        ss_block_apply(&block, out, out);
        ss_block_key_clear(&block);
    }
    before = allocation_count() - before;
    assert_int_equal(failed, 0);
    assert_int_equal(before, 0);
}

static void hchacha8_is_that_of_the_vectors(void **state)
{
    json_t *file = vectors_load("primitives.json");
    const json_t *vector;
    size_t i, checked = 0;

    (void)state;
    json_array_foreach(json_object_get(file, "hchacha"), i, vector)
    {
        uint8_t key[32], in[16], wanted[32], out[32];

        if (vector_number(vector, "rounds") != 8)
            continue;
        vector_bytes(vector, "key", key, sizeof key);
        vector_bytes(vector, "in", in, sizeof in);
        vector_bytes(vector, "out", wanted, sizeof wanted);
        ss_hchacha8(out, key, in);
        assert_memory_equal(out, wanted, sizeof wanted);
        checked++;
    }
    assert_true(checked >= 1);
    json_decref(file);
}

/* The stream is the same wherever one begins and however it is cut at the blocks. */
static void chacha8_counts_its_blocks(void **state)
{
    static uint8_t zeroes[4096], whole[4096], part[4096];
    static const uint8_t key[32] = {9}, nonce[12] = {3};

    (void)state;
    ss_chacha8_xor(whole, zeroes, sizeof whole, key, nonce, 0);
    for (uint32_t block = 0; block < sizeof whole / 64; block++)
        for (size_t len = 1; len < sizeof whole - 64 * block; len += 67) {
            ss_chacha8_xor(part, zeroes, len, key, nonce, block);
            assert_memory_equal(part, whole + 64 * block, len);
        }
}

int block_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_those_of_the_vectors),
        cmocka_unit_test(a_key_of_another_size_is_refused),
        cmocka_unit_test(a_new_key_takes_no_memory),
        cmocka_unit_test(hchacha8_is_that_of_the_vectors),
        cmocka_unit_test(chacha8_counts_its_blocks),
    };

    return cmocka_run_group_tests_name("crypto/block", tests, NULL, NULL);
}
