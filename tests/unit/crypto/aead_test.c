/* Every algorithm by every provider of this machine: known answers, each other's bytes, refusals.
 */
#include "crypto/aead.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "crypto/random.h"
#include "vectors/allocations.h"
#include "vectors/read.h"

unsigned long allocation_count(void);

/* For the other tests of this program: the counters stand in this file. */
unsigned long allocation_count(void)
{
    return allocations;
}

#define MESSAGE_MAX 40000

static const struct {
    const char *name;
    enum ss_aead_algorithm algorithm;
} names[] = {
    {"aes-128-gcm", SS_AEAD_AES_128_GCM},
    {"aes-192-gcm", SS_AEAD_AES_192_GCM},
    {"aes-256-gcm", SS_AEAD_AES_256_GCM},
    {"chacha20-poly1305", SS_AEAD_CHACHA20_POLY1305},
    {"xchacha20-poly1305", SS_AEAD_XCHACHA20_POLY1305},
    {"chacha8-poly1305", SS_AEAD_CHACHA8_POLY1305},
    {"xchacha8-poly1305", SS_AEAD_XCHACHA8_POLY1305},
};

static uint8_t plain[MESSAGE_MAX], sealed[MESSAGE_MAX + SS_AEAD_TAG_LEN], opened[MESSAGE_MAX];
static uint8_t other[MESSAGE_MAX + SS_AEAD_TAG_LEN];

static void *context_of(const struct ss_aead *aead)
{
    void *context = aligned_alloc(SS_AEAD_CONTEXT_ALIGN, aead->context_size);

    assert_non_null(context);
    memset(context, 0, aead->context_size);
    assert_int_equal(aead->init(context), SS_OK);
    return context;
}

static void free_context(const struct ss_aead *aead, void *context)
{
    aead->clear(context);
    free(context);
}

/* Calls for each provider of each algorithm; at least Mbed TLS, libsodium or our own code has each.
 */
static void for_each(void (*check)(const struct ss_aead *))
{
    for (int algorithm = 0; algorithm < SS_AEAD_ALGORITHM_COUNT; algorithm++) {
        int found = 0;

        for (int provider = 0; provider < SS_AEAD_PROVIDER_COUNT; provider++) {
            const struct ss_aead *aead =
                ss_aead_find((enum ss_aead_algorithm)algorithm, (enum ss_aead_provider)provider);

            if (aead == NULL)
                continue;
            found++;
            check(aead);
        }
        assert_true(found >= 1);
    }
}

static void check_sizes(const struct ss_aead *aead)
{
    assert_true(aead->context_size <= SS_AEAD_CONTEXT_MAX);
    assert_int_equal(aead->context_size % SS_AEAD_CONTEXT_ALIGN, 0);
    assert_true(aead->key_len <= SS_AEAD_KEY_MAX && aead->nonce_len <= SS_AEAD_NONCE_MAX);
}

static void contexts_fit_a_slot(void **state)
{
    (void)state;
    for_each(check_sizes);
}

static void check_vector(const json_t *vector, const struct ss_aead *aead)
{
    uint8_t key[SS_AEAD_KEY_MAX], nonce[SS_AEAD_NONCE_MAX];
    size_t len = vector_plain(vector, "plain", plain, sizeof plain);
    size_t sealed_len = vector_bytes(vector, "sealed", other, sizeof other);
    void *context = context_of(aead);

    assert_int_equal(vector_bytes(vector, "key", key, sizeof key), aead->key_len);
    assert_int_equal(vector_bytes(vector, "nonce", nonce, sizeof nonce), aead->nonce_len);
    assert_int_equal(sealed_len, len + SS_AEAD_TAG_LEN);
    assert_int_equal(aead->set_key(context, key), SS_OK);

    assert_int_equal(aead->seal(context, nonce, plain, len, sealed), SS_OK);
    assert_memory_equal(sealed, other, sealed_len);
    assert_int_equal(aead->open(context, nonce, sealed, sealed_len, opened), SS_OK);
    assert_memory_equal(opened, plain, len);

    /* The same in place. */
    memcpy(sealed, plain, len);
    assert_int_equal(aead->seal(context, nonce, sealed, len, sealed), SS_OK);
    assert_memory_equal(sealed, other, sealed_len);
    assert_int_equal(aead->open(context, nonce, sealed, sealed_len, sealed), SS_OK);
    assert_memory_equal(sealed, plain, len);
    free_context(aead, context);
}

static void known_answers_by_every_provider(void **state)
{
    json_t *file = vectors_load("primitives.json");
    const json_t *vector;
    size_t i, checked = 0;

    (void)state;
    json_array_foreach(json_object_get(file, "aead"), i, vector)
    {
        size_t before = checked;

        for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
            if (strcmp(vector_text(vector, "alg"), names[n].name) != 0)
                continue;
            for (int provider = 0; provider < SS_AEAD_PROVIDER_COUNT; provider++) {
                const struct ss_aead *aead =
                    ss_aead_find(names[n].algorithm, (enum ss_aead_provider)provider);

                if (aead == NULL)
                    continue;
                check_vector(vector, aead);
                checked++;
            }
        }
        assert_true(checked > before);
    }
    assert_true(checked >= 77);
    json_decref(file);
}

static void check_flipped_bits(const struct ss_aead *aead)
{
    uint8_t key[SS_AEAD_KEY_MAX], nonce[SS_AEAD_NONCE_MAX];
    const size_t len = 37;
    void *context = context_of(aead);

    ss_random_bytes(key, sizeof key);
    ss_random_bytes(nonce, sizeof nonce);
    ss_random_bytes(plain, len);
    assert_int_equal(aead->set_key(context, key), SS_OK);
    assert_int_equal(aead->seal(context, nonce, plain, len, sealed), SS_OK);
    for (size_t bit = 0; bit < (len + SS_AEAD_TAG_LEN) * 8; bit++) {
        sealed[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(aead->open(context, nonce, sealed, len + SS_AEAD_TAG_LEN, opened),
                         SS_ERR_AUTH);
        sealed[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t bit = 0; bit < aead->nonce_len * 8; bit++) {
        nonce[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(aead->open(context, nonce, sealed, len + SS_AEAD_TAG_LEN, opened),
                         SS_ERR_AUTH);
        nonce[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t cut = SS_AEAD_TAG_LEN; cut < len + SS_AEAD_TAG_LEN; cut++)
        assert_int_equal(aead->open(context, nonce, sealed, cut, opened), SS_ERR_AUTH);
    assert_int_equal(aead->open(context, nonce, sealed, len + SS_AEAD_TAG_LEN, opened), SS_OK);
    assert_memory_equal(opened, plain, len);
    free_context(aead, context);
}

static void a_flipped_bit_is_refused(void **state)
{
    (void)state;
    for_each(check_flipped_bits);
}

/* What one provider seals, every other opens, and all seal to the same bytes. */
static void providers_agree_at_any_length(void **state)
{
    (void)state;
    for (int algorithm = 0; algorithm < SS_AEAD_ALGORITHM_COUNT; algorithm++) {
        const struct ss_aead *aeads[SS_AEAD_PROVIDER_COUNT];
        void *contexts[SS_AEAD_PROVIDER_COUNT];
        int count = 0;

        for (int provider = 0; provider < SS_AEAD_PROVIDER_COUNT; provider++) {
            aeads[count] =
                ss_aead_find((enum ss_aead_algorithm)algorithm, (enum ss_aead_provider)provider);
            if (aeads[count] != NULL) {
                contexts[count] = context_of(aeads[count]);
                count++;
            }
        }
        for (uint32_t round = 0; round < 400; round++) {
            /* Every short length, then some of the long ones. */
            size_t len = round < 300 ? round : ss_random_below(MESSAGE_MAX);
            uint8_t key[SS_AEAD_KEY_MAX], nonce[SS_AEAD_NONCE_MAX];

            ss_random_bytes(key, sizeof key);
            ss_random_bytes(nonce, sizeof nonce);
            ss_random_bytes(plain, len);
            for (int i = 0; i < count; i++) {
                uint8_t *out = i == 0 ? sealed : other;

                assert_int_equal(aeads[i]->set_key(contexts[i], key), SS_OK);
                assert_int_equal(aeads[i]->seal(contexts[i], nonce, plain, len, out), SS_OK);
                if (i != 0)
                    assert_memory_equal(other, sealed, len + SS_AEAD_TAG_LEN);
                assert_int_equal(
                    aeads[i]->open(contexts[i], nonce, sealed, len + SS_AEAD_TAG_LEN, opened),
                    SS_OK);
                assert_memory_equal(opened, plain, len);
            }
        }
        for (int i = 0; i < count; i++)
            free_context(aeads[i], contexts[i]);
    }
}

static void check_rekey(const struct ss_aead *aead)
{
    static const uint8_t nonce[SS_AEAD_NONCE_MAX];
    uint8_t first[SS_AEAD_KEY_MAX], second[SS_AEAD_KEY_MAX];
    const size_t len = 100;
    void *context = context_of(aead);

    memset(first, 1, sizeof first);
    memset(second, 2, sizeof second);
    memset(plain, 3, len);
    assert_int_equal(aead->set_key(context, first), SS_OK);
    assert_int_equal(aead->seal(context, nonce, plain, len, sealed), SS_OK);
    aead->forget(context);
    assert_int_equal(aead->set_key(context, second), SS_OK);
    assert_int_equal(aead->open(context, nonce, sealed, len + SS_AEAD_TAG_LEN, opened),
                     SS_ERR_AUTH);
    /* A refusal does no harm to the next message, nor does the other direction. */
    assert_int_equal(aead->seal(context, nonce, plain, len, other), SS_OK);
    assert_int_equal(aead->open(context, nonce, other, len + SS_AEAD_TAG_LEN, opened), SS_OK);
    assert_memory_equal(opened, plain, len);
    assert_int_equal(aead->set_key(context, first), SS_OK);
    assert_int_equal(aead->open(context, nonce, sealed, len + SS_AEAD_TAG_LEN, opened), SS_OK);
    assert_memory_equal(opened, plain, len);

    aead->clear(context);
    for (size_t i = 0; i < aead->context_size; i++)
        assert_int_equal(((uint8_t *)context)[i], 0);
    free(context);
}

static void a_context_takes_one_key_after_another(void **state)
{
    (void)state;
    for_each(check_rekey);
}

static void check_allocations(const struct ss_aead *aead)
{
    uint8_t key[SS_AEAD_KEY_MAX] = {0}, nonce[SS_AEAD_NONCE_MAX] = {0};
    void *context = context_of(aead);
    unsigned long before;
    int failed = 0;

    if (aead->provider == SS_AEAD_MBEDTLS && aead->algorithm <= SS_AEAD_AES_256_GCM) {
        free_context(aead, context); /* its GCM allocates for each key, as documented */
        return;
    }
    failed |= aead->set_key(context, key) != SS_OK;
    failed |= aead->seal(context, nonce, plain, 100, sealed) != SS_OK;
    before = allocations;
    for (int i = 0; i < 20; i++) {
        key[0]++;
        nonce[0]++;
        failed |= aead->set_key(context, key) != SS_OK;
        failed |= aead->seal(context, nonce, plain, 5000, sealed) != SS_OK;
        failed |= aead->open(context, nonce, sealed, 5016, opened) != SS_OK;
        sealed[0] ^= 1;
        failed |= aead->open(context, nonce, sealed, 5016, opened) != SS_ERR_AUTH;
        aead->forget(context);
    }
    before = allocations - before;
    assert_int_equal(failed, 0);
    assert_int_equal(before, 0);
    free_context(aead, context);
}

static void nothing_is_allocated_after_init(void **state)
{
    (void)state;
    if (!allocations_count())
        skip();
    assert_true(allocations > 0); /* the test runner's own: the counting works */
    for_each(check_allocations);
}

/* The two accelerators may change places, but come before the others. */
static void the_best_is_an_accelerator_where_there_is_one(void **state)
{
    (void)state;
    for (int i = 0; i < SS_AEAD_ALGORITHM_COUNT; i++) {
        enum ss_aead_algorithm algorithm = (enum ss_aead_algorithm)i;
        const struct ss_aead *best = ss_aead_best(algorithm);

        assert_non_null(best);
        assert_int_equal(best->algorithm, algorithm);
        assert_ptr_equal(ss_aead_find(algorithm, best->provider), best);
        if (best->provider >= SS_AEAD_SODIUM) {
            assert_null(ss_aead_find(algorithm, SS_AEAD_IPSECMB));
            assert_null(ss_aead_find(algorithm, SS_AEAD_OPENSSL));
        }
        if (best->provider == SS_AEAD_MBEDTLS)
            assert_null(ss_aead_find(algorithm, SS_AEAD_SODIUM));
    }
}

/* `len` bytes that end where the next page may not be touched. */
static uint8_t *guarded(size_t len)
{
    static uint8_t *pages;
    static size_t next;
    enum { PAGE = 4096, COUNT = 4 };

    if (pages == NULL) {
        pages = mmap(NULL, 2 * PAGE * COUNT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                     -1, 0);
        assert_true(pages != MAP_FAILED);
        for (size_t i = 0; i < COUNT; i++)
            assert_int_equal(mprotect(pages + (2 * i + 1) * PAGE, PAGE, PROT_NONE), 0);
    }
    next = (next + 1) % COUNT;
    return pages + (2 * next + 1) * PAGE - len;
}

static void check_ends(const struct ss_aead *aead)
{
    void *context = context_of(aead);

    for (size_t len = 0; len < 1500; len += len < 300 ? 1 : 61) {
        uint8_t *key = guarded(aead->key_len), *nonce = guarded(aead->nonce_len);
        uint8_t *from, *to;

        memset(key, (int)len, aead->key_len);
        memset(nonce, (int)len, aead->nonce_len);
        assert_int_equal(aead->set_key(context, key), SS_OK);
        from = guarded(len);
        to = guarded(len + SS_AEAD_TAG_LEN);
        memset(from, 7, len);
        assert_int_equal(aead->seal(context, nonce, from, len, to), SS_OK);
        assert_int_equal(aead->open(context, nonce, to, len + SS_AEAD_TAG_LEN, from), SS_OK);
        for (size_t i = 0; i < len; i++)
            assert_int_equal(from[i], 7);
    }
    free_context(aead, context);
}

/* Also code in assembly, which no sanitizer sees. */
static void nothing_beyond_the_ends_is_touched(void **state)
{
    (void)state;
    for_each(check_ends);
}

int aead_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contexts_fit_a_slot),
        cmocka_unit_test(known_answers_by_every_provider),
        cmocka_unit_test(a_flipped_bit_is_refused),
        cmocka_unit_test(providers_agree_at_any_length),
        cmocka_unit_test(a_context_takes_one_key_after_another),
        cmocka_unit_test(nothing_is_allocated_after_init),
        cmocka_unit_test(the_best_is_an_accelerator_where_there_is_one),
        cmocka_unit_test(nothing_beyond_the_ends_is_touched),
    };

    return cmocka_run_group_tests_name("crypto/aead", tests, NULL, NULL);
}
