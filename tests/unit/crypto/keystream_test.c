/* The ciphers of the stream methods: any cuts give the same bytes, and both directions meet. */
#include "crypto/keystream.h"

#include <stdlib.h>
#include <string.h>

#include "crypto/random.h"
#include "vectors/read.h"

#define LEN 5000

unsigned long allocation_count(void); /* in aead_test.c */

static uint8_t plain[LEN], whole[LEN], pieces[LEN];
static uint8_t key[32], iv[16];

static void *context_of(const struct ss_keystream *keystream)
{
    size_t size = keystream->context_size != 0 ? keystream->context_size : 64;
    void *context = aligned_alloc(SS_KEYSTREAM_CONTEXT_ALIGN, size);

    assert_non_null(context);
    memset(context, 0, size);
    return context;
}

/* Calls for each that is here: at least those of libsodium, AES and no cipher. */
static void for_each(void (*check)(const struct ss_keystream *))
{
    int found = 0;

    for (int i = 0; i < SS_KEYSTREAM_ALGORITHM_COUNT; i++) {
        const struct ss_keystream *keystream = ss_keystream_find((enum ss_keystream_algorithm)i);

        if (keystream == NULL)
            continue;
        assert_int_equal(keystream->algorithm, i);
        ss_random_bytes(key, sizeof key);
        ss_random_bytes(iv, sizeof iv);
        ss_random_bytes(plain, sizeof plain);
        check(keystream);
        found++;
    }
    assert_true(found >= 10);
    assert_null(ss_keystream_find(SS_KEYSTREAM_ALGORITHM_COUNT));
}

static void check_cuts(const struct ss_keystream *keystream)
{
    void *context = context_of(keystream);

    for (int use = SS_KEYSTREAM_ENCRYPT; use <= SS_KEYSTREAM_DECRYPT; use++) {
        const uint8_t *from = use == SS_KEYSTREAM_ENCRYPT ? plain : whole;

        /* Into another buffer, at once; then in place, in all kinds of pieces. */
        if (use == SS_KEYSTREAM_ENCRYPT) {
            assert_int_equal(keystream->start(context, use, key, iv), SS_OK);
            assert_int_equal(keystream->apply(context, plain, LEN, whole), SS_OK);
        }
        for (size_t most = 1; most < 300; most += most < 70 ? 1 : 37) {
            memcpy(pieces, from, LEN);
            assert_int_equal(keystream->start(context, (enum ss_keystream_use)use, key, iv), SS_OK);
            for (size_t at = 0; at < LEN;) {
                size_t take = 1 + ss_random_below((uint32_t)most);

                if (take > LEN - at)
                    take = LEN - at;
                assert_int_equal(keystream->apply(context, pieces + at, take, pieces + at), SS_OK);
                at += take;
            }
            assert_memory_equal(pieces, use == SS_KEYSTREAM_ENCRYPT ? whole : plain, LEN);
        }
    }
    if (keystream->algorithm != SS_KEYSTREAM_NONE)
        assert_memory_not_equal(whole, plain, 64);
    keystream->wipe(context);
    for (size_t i = 0; i < keystream->context_size; i++)
        assert_int_equal(((uint8_t *)context)[i], 0);
    free(context);
}

static void any_cuts_give_the_same_bytes(void **state)
{
    (void)state;
    for_each(check_cuts);
}

/* Key and IV both count, to the last byte. */
static void check_inputs(const struct ss_keystream *keystream)
{
    void *context = context_of(keystream);

    assert_int_equal(keystream->start(context, SS_KEYSTREAM_ENCRYPT, key, iv), SS_OK);
    assert_int_equal(keystream->apply(context, plain, LEN, whole), SS_OK);
    for (size_t i = 0; i < keystream->key_len + keystream->iv_len; i++) {
        uint8_t *byte = i < keystream->key_len ? &key[i] : &iv[i - keystream->key_len];

        *byte ^= 1;
        assert_int_equal(keystream->start(context, SS_KEYSTREAM_ENCRYPT, key, iv), SS_OK);
        assert_int_equal(keystream->apply(context, plain, LEN, pieces), SS_OK);
        assert_memory_not_equal(pieces, whole, 64);
        *byte ^= 1;
    }
    keystream->wipe(context);
    free(context);
}

static void every_byte_of_key_and_iv_counts(void **state)
{
    (void)state;
    for_each(check_inputs);
}

static void check_allocations(const struct ss_keystream *keystream)
{
    void *context = context_of(keystream);
    unsigned long before = allocation_count();
    int failed = 0;

    for (int i = 0; i < 20; i++) {
        failed |= keystream->start(context, SS_KEYSTREAM_DECRYPT, key, iv) != SS_OK;
        failed |= keystream->apply(context, plain, LEN, pieces) != SS_OK;
        keystream->wipe(context);
    }
    before = allocation_count() - before;
    assert_int_equal(failed, 0);
    assert_int_equal(before, 0);
    free(context);
}

static void nothing_is_allocated(void **state)
{
    (void)state;
    for_each(check_allocations);
}

int keystream_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_cuts_give_the_same_bytes),
        cmocka_unit_test(every_byte_of_key_and_iv_counts),
        cmocka_unit_test(nothing_is_allocated),
    };

    return cmocka_run_group_tests_name("crypto/keystream", tests, NULL, NULL);
}
