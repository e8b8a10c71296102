/*
 * AEAD by Mbed TLS, 2.28 and 3.x: what every machine has, but for what a library was built without.
 * Setting a GCM key allocates inside the library.
 */
#include "crypto/aead_internal.h"

#include <string.h>

#include <mbedtls/cipher.h>
#include <mbedtls/gcm.h>
#ifdef MBEDTLS_CHACHAPOLY_C
#include <mbedtls/chachapoly.h>
#endif

#include "crypto/secret.h"

static enum ss_status gcm_init(void *context)
{
    mbedtls_gcm_init(context);
    return SS_OK;
}

static void gcm_clear(void *context)
{
    mbedtls_gcm_free(context);
    ss_wipe(context, sizeof(mbedtls_gcm_context));
}

static void gcm_forget(void *context)
{
    gcm_clear(context);
    mbedtls_gcm_init(context);
}

static enum ss_status gcm_set_key(void *context, const uint8_t *key, unsigned bits)
{
    return mbedtls_gcm_setkey(context, MBEDTLS_CIPHER_ID_AES, key, bits) == 0 ? SS_OK
                                                                              : SS_ERR_MEMORY;
}

static enum ss_status gcm128_set_key(void *context, const uint8_t *key)
{
    return gcm_set_key(context, key, 128);
}

static enum ss_status gcm192_set_key(void *context, const uint8_t *key)
{
    return gcm_set_key(context, key, 192);
}

static enum ss_status gcm256_set_key(void *context, const uint8_t *key)
{
    return gcm_set_key(context, key, 256);
}

static enum ss_status gcm_seal(void *context, const uint8_t *nonce, const uint8_t *plain,
                               size_t len, uint8_t *out)
{
    if (mbedtls_gcm_crypt_and_tag(context, MBEDTLS_GCM_ENCRYPT, len, nonce, 12, NULL, 0, plain, out,
                                  SS_AEAD_TAG_LEN, out + len) != 0)
        return SS_ERR_ARGUMENT;
    return SS_OK;
}

static enum ss_status gcm_open(void *context, const uint8_t *nonce, const uint8_t *sealed,
                               size_t sealed_len, uint8_t *out)
{
    size_t len;

    if (sealed_len < SS_AEAD_TAG_LEN)
        return SS_ERR_AUTH;
    len = sealed_len - SS_AEAD_TAG_LEN;
    if (mbedtls_gcm_auth_decrypt(context, len, nonce, 12, NULL, 0, sealed + len, SS_AEAD_TAG_LEN,
                                 sealed, out) != 0)
        return SS_ERR_AUTH;
    return SS_OK;
}

#ifdef MBEDTLS_CHACHAPOLY_C
static enum ss_status chacha_init(void *context)
{
    mbedtls_chachapoly_init(context);
    return SS_OK;
}

static void chacha_clear(void *context)
{
    mbedtls_chachapoly_free(context);
    ss_wipe(context, sizeof(mbedtls_chachapoly_context));
}

static void chacha_forget(void *context)
{
    chacha_clear(context);
    mbedtls_chachapoly_init(context);
}

static enum ss_status chacha_set_key(void *context, const uint8_t *key)
{
    return mbedtls_chachapoly_setkey(context, key) == 0 ? SS_OK : SS_ERR_ARGUMENT;
}

static enum ss_status chacha_seal(void *context, const uint8_t *nonce, const uint8_t *plain,
                                  size_t len, uint8_t *out)
{
    if (mbedtls_chachapoly_encrypt_and_tag(context, len, nonce, NULL, 0, plain, out, out + len) !=
        0)
        return SS_ERR_ARGUMENT;
    return SS_OK;
}

static enum ss_status chacha_open(void *context, const uint8_t *nonce, const uint8_t *sealed,
                                  size_t sealed_len, uint8_t *out)
{
    size_t len;

    if (sealed_len < SS_AEAD_TAG_LEN)
        return SS_ERR_AUTH;
    len = sealed_len - SS_AEAD_TAG_LEN;
    if (mbedtls_chachapoly_auth_decrypt(context, len, nonce, NULL, 0, sealed + len, sealed, out) !=
        0)
        return SS_ERR_AUTH;
    return SS_OK;
}
#endif

#define GCM_AEAD(bits)                                                               \
    {                                                                                \
        .provider_name = "mbedtls", .algorithm = SS_AEAD_AES_##bits##_GCM,           \
        .provider = SS_AEAD_MBEDTLS, .key_len = bits / 8, .nonce_len = 12,           \
        .context_size = SS_AEAD_CONTEXT_SIZE(mbedtls_gcm_context), .init = gcm_init, \
        .clear = gcm_clear, .forget = gcm_forget, .set_key = gcm##bits##_set_key,    \
        .seal = gcm_seal, .open = gcm_open,                                          \
    }

static const struct ss_aead aeads[SS_AEAD_ALGORITHM_COUNT] = {
    [SS_AEAD_AES_128_GCM] = GCM_AEAD(128),
    [SS_AEAD_AES_192_GCM] = GCM_AEAD(192),
    [SS_AEAD_AES_256_GCM] = GCM_AEAD(256),
#ifdef MBEDTLS_CHACHAPOLY_C
    [SS_AEAD_CHACHA20_POLY1305] =
        {
            .provider_name = "mbedtls",
            .algorithm = SS_AEAD_CHACHA20_POLY1305,
            .provider = SS_AEAD_MBEDTLS,
            .key_len = 32,
            .nonce_len = 12,
            .context_size = SS_AEAD_CONTEXT_SIZE(mbedtls_chachapoly_context),
            .init = chacha_init,
            .clear = chacha_clear,
            .forget = chacha_forget,
            .set_key = chacha_set_key,
            .seal = chacha_seal,
            .open = chacha_open,
        },
#endif
};

_Static_assert(SS_AEAD_CONTEXT_SIZE(mbedtls_gcm_context) <= SS_AEAD_CONTEXT_MAX,
               "a slot has room for the context");

const struct ss_aead *ss_aead_mbedtls_find(enum ss_aead_algorithm algorithm)
{
    return aeads[algorithm].seal != NULL ? &aeads[algorithm] : NULL;
}
