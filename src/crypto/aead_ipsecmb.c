/*
 * AEAD by Intel IPsec-MB: its direct calls, one message each.
 *
 * The library is told where it writes a tag and compares none: that is done here, in constant time.
 * It does not wipe the text when the tag is wrong.
 */
#include "crypto/aead_internal.h"

#include <stdbool.h>
#include <string.h>

#include <intel-ipsec-mb.h>

#include "crypto/secret.h"

/* The library's table of functions and its tables of constants: one a process, made on first use
 * and kept, as every key context needs it. */
static IMB_MGR *manager;
static bool manager_failed;

static bool manager_start(void)
{
    if (manager != NULL)
        return true;
    if (manager_failed)
        return false;

    manager_failed = true; /* until all is well; tried only once */
    IMB_MGR *made = alloc_mb_mgr(0);

    if (made == NULL)
        return false;
    init_mb_mgr_auto(made, NULL);
    if (imb_get_errno(made) != 0 || ((made->features & IMB_FEATURE_SELF_TEST) != 0 &&
                                     (made->features & IMB_FEATURE_SELF_TEST_PASS) == 0)) {
        free_mb_mgr(made);
        return false;
    }
    manager = made;
    manager_failed = false;
    return true;
}

static enum ss_status init_nothing(void *context)
{
    (void)context;
    return SS_OK;
}

/* AES-GCM: the expanded key and the powers of the hash key. */

static void gcm_wipe(void *context)
{
    ss_wipe(context, sizeof(struct gcm_key_data));
}

#define GCM_FUNCTIONS(bits)                                                                        \
    static enum ss_status gcm##bits##_set_key(void *context, const uint8_t *key)                   \
    {                                                                                              \
        IMB_AES##bits##_GCM_PRE(manager, key, (struct gcm_key_data *)context);                     \
        return SS_OK;                                                                              \
    }                                                                                              \
                                                                                                   \
    static enum ss_status gcm##bits##_seal(void *context, const uint8_t *nonce,                    \
                                           const uint8_t *plain, size_t len, uint8_t *out)         \
    {                                                                                              \
        struct gcm_context_data message;                                                           \
                                                                                                   \
        IMB_AES##bits##_GCM_ENC(manager, (struct gcm_key_data *)context, &message, out, plain,     \
                                len, nonce, NULL, 0, out + len, SS_AEAD_TAG_LEN);                  \
        return SS_OK;                                                                              \
    }                                                                                              \
                                                                                                   \
    static enum ss_status gcm##bits##_open(void *context, const uint8_t *nonce,                    \
                                           const uint8_t *sealed, size_t sealed_len, uint8_t *out) \
    {                                                                                              \
        struct gcm_context_data message;                                                           \
        uint8_t tag[SS_AEAD_TAG_LEN];                                                              \
        size_t len;                                                                                \
                                                                                                   \
        if (sealed_len < SS_AEAD_TAG_LEN)                                                          \
            return SS_ERR_AUTH;                                                                    \
        len = sealed_len - SS_AEAD_TAG_LEN;                                                        \
        IMB_AES##bits##_GCM_DEC(manager, (struct gcm_key_data *)context, &message, out, sealed,    \
                                len, nonce, NULL, 0, tag, SS_AEAD_TAG_LEN);                        \
        return ss_equal_constant_time(tag, sealed + len, sizeof tag) ? SS_OK : SS_ERR_AUTH;        \
    }

GCM_FUNCTIONS(128)
GCM_FUNCTIONS(192)
GCM_FUNCTIONS(256)

/* ChaCha20-Poly1305. The state of a message lies in the context, not on the stack, because it holds
 * key stream that must be wiped at some time. */
struct chacha_context {
    uint8_t key[32];
    struct chacha20_poly1305_context_data message;
};

static void chacha_wipe(void *context)
{
    ss_wipe(context, sizeof(struct chacha_context));
}

static enum ss_status chacha_set_key(void *context, const uint8_t *key)
{
    struct chacha_context *chacha = context;

    memcpy(chacha->key, key, sizeof chacha->key);
    return SS_OK;
}

static void seal_with(struct chacha_context *chacha, const uint8_t *key, const uint8_t *nonce,
                      const uint8_t *plain, size_t len, uint8_t *out)
{
    IMB_CHACHA20_POLY1305_INIT(manager, key, &chacha->message, nonce, NULL, 0);
    IMB_CHACHA20_POLY1305_ENC_UPDATE(manager, key, &chacha->message, out, plain, len);
    IMB_CHACHA20_POLY1305_ENC_FINALIZE(manager, &chacha->message, out + len, SS_AEAD_TAG_LEN);
}

static enum ss_status open_with(struct chacha_context *chacha, const uint8_t *key,
                                const uint8_t *nonce, const uint8_t *sealed, size_t sealed_len,
                                uint8_t *out)
{
    uint8_t tag[SS_AEAD_TAG_LEN];
    size_t len;

    if (sealed_len < SS_AEAD_TAG_LEN)
        return SS_ERR_AUTH;
    len = sealed_len - SS_AEAD_TAG_LEN;
    IMB_CHACHA20_POLY1305_INIT(manager, key, &chacha->message, nonce, NULL, 0);
    IMB_CHACHA20_POLY1305_DEC_UPDATE(manager, key, &chacha->message, out, sealed, len);
    IMB_CHACHA20_POLY1305_DEC_FINALIZE(manager, &chacha->message, tag, sizeof tag);
    return ss_equal_constant_time(tag, sealed + len, sizeof tag) ? SS_OK : SS_ERR_AUTH;
}

static enum ss_status chacha_seal(void *context, const uint8_t *nonce, const uint8_t *plain,
                                  size_t len, uint8_t *out)
{
    struct chacha_context *chacha = context;

    seal_with(chacha, chacha->key, nonce, plain, len, out);
    return SS_OK;
}

static enum ss_status chacha_open(void *context, const uint8_t *nonce, const uint8_t *sealed,
                                  size_t sealed_len, uint8_t *out)
{
    struct chacha_context *chacha = context;

    return open_with(chacha, chacha->key, nonce, sealed, sealed_len, out);
}

static enum ss_status xchacha_seal(void *context, const uint8_t *nonce, const uint8_t *plain,
                                   size_t len, uint8_t *out)
{
    struct chacha_context *chacha = context;
    uint8_t subkey[32];
    uint8_t nonce12[12];

    ss_xchacha_derive(subkey, nonce12, chacha->key, nonce);
    seal_with(chacha, subkey, nonce12, plain, len, out);
    ss_wipe(subkey, sizeof subkey);
    return SS_OK;
}

static enum ss_status xchacha_open(void *context, const uint8_t *nonce, const uint8_t *sealed,
                                   size_t sealed_len, uint8_t *out)
{
    struct chacha_context *chacha = context;
    uint8_t subkey[32];
    uint8_t nonce12[12];
    enum ss_status status;

    ss_xchacha_derive(subkey, nonce12, chacha->key, nonce);
    status = open_with(chacha, subkey, nonce12, sealed, sealed_len, out);
    ss_wipe(subkey, sizeof subkey);
    return status;
}

#define GCM_AEAD(bits)                                                                   \
    {                                                                                    \
        .provider_name = "ipsec-mb", .algorithm = SS_AEAD_AES_##bits##_GCM,              \
        .provider = SS_AEAD_IPSECMB, .key_len = bits / 8, .nonce_len = 12,               \
        .context_size = SS_AEAD_CONTEXT_SIZE(struct gcm_key_data), .init = init_nothing, \
        .clear = gcm_wipe, .forget = gcm_wipe, .set_key = gcm##bits##_set_key,           \
        .seal = gcm##bits##_seal, .open = gcm##bits##_open,                              \
    }

#define CHACHA_AEAD(which, function, nonce)                                                \
    {                                                                                      \
        .provider_name = "ipsec-mb", .algorithm = SS_AEAD_##which##_POLY1305,              \
        .provider = SS_AEAD_IPSECMB, .key_len = 32, .nonce_len = nonce,                    \
        .context_size = SS_AEAD_CONTEXT_SIZE(struct chacha_context), .init = init_nothing, \
        .clear = chacha_wipe, .forget = chacha_wipe, .set_key = chacha_set_key,            \
        .seal = function##_seal, .open = function##_open,                                  \
    }

static const struct ss_aead aeads[SS_AEAD_ALGORITHM_COUNT] = {
    [SS_AEAD_AES_128_GCM] = GCM_AEAD(128),
    [SS_AEAD_AES_192_GCM] = GCM_AEAD(192),
    [SS_AEAD_AES_256_GCM] = GCM_AEAD(256),
    [SS_AEAD_CHACHA20_POLY1305] = CHACHA_AEAD(CHACHA20, chacha, 12),
    [SS_AEAD_XCHACHA20_POLY1305] = CHACHA_AEAD(XCHACHA20, xchacha, 24),
};

_Static_assert(SS_AEAD_CONTEXT_SIZE(struct gcm_key_data) <= SS_AEAD_CONTEXT_MAX,
               "a slot has room for the context");

const struct ss_aead *ss_aead_ipsecmb_find(enum ss_aead_algorithm algorithm)
{
    /* Without these the library falls back to code that the others beat. */
    static const uint64_t needed_by_gcm = IMB_FEATURE_AESNI | IMB_FEATURE_PCLMULQDQ;
    static const uint64_t needed_by_chacha = IMB_FEATURE_AVX2;
    bool is_gcm = algorithm <= SS_AEAD_AES_256_GCM;
    uint64_t needed = is_gcm ? needed_by_gcm : needed_by_chacha;

    if (aeads[algorithm].seal == NULL || !manager_start() || (manager->features & needed) != needed)
        return NULL;
    return &aeads[algorithm];
}

bool ss_aead_ipsecmb_has_wide_chacha(void)
{
    return manager_start() &&
           (manager->features & IMB_FEATURE_AVX512_SKX) == IMB_FEATURE_AVX512_SKX;
}
