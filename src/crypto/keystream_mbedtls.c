/*
 * Stream ciphers by Mbed TLS, 2.28 and 3.x: what a library was built without, or no longer has
 * (Blowfish and RC4 in 3.x), is left out.
 */
#include "crypto/keystream_internal.h"

#include <stdbool.h>
#include <string.h>

#include <mbedtls/aes.h>
#ifdef MBEDTLS_CAMELLIA_C
#include <mbedtls/camellia.h>
#endif
#ifdef MBEDTLS_BLOWFISH_C
#include <mbedtls/blowfish.h>
#endif
#ifdef MBEDTLS_ARC4_C
#include <mbedtls/arc4.h>
#include <mbedtls/md5.h>
#endif

#include "crypto/secret.h"

/* A call of the library that got what it must have got; it fails only for arguments. */
static enum ss_status status_of(int result)
{
    return result == 0 ? SS_OK : SS_ERR_ARGUMENT;
}

#if defined(MBEDTLS_CIPHER_MODE_CFB) || defined(MBEDTLS_CIPHER_MODE_CTR)
struct aes {
    mbedtls_aes_context cipher;
    size_t offset; /* in the block */
    uint8_t iv[16];
    uint8_t block[16];
    int mode;
};

static void aes_wipe(void *context)
{
    ss_wipe(context, sizeof(struct aes));
}

static enum ss_status aes_start(struct aes *aes, enum ss_keystream_use use, const uint8_t *key,
                                unsigned bits, const uint8_t *iv)
{
    mbedtls_aes_init(&aes->cipher);
    aes->offset = 0;
    aes->mode = use == SS_KEYSTREAM_ENCRYPT ? MBEDTLS_AES_ENCRYPT : MBEDTLS_AES_DECRYPT;
    memcpy(aes->iv, iv, sizeof aes->iv);
    /* Feedback and counters are encrypted in both directions. */
    return status_of(mbedtls_aes_setkey_enc(&aes->cipher, key, bits));
}

#define AES_START(bits)                                                               \
    static enum ss_status aes##bits##_start(void *context, enum ss_keystream_use use, \
                                            const uint8_t *key, const uint8_t *iv)    \
    {                                                                                 \
        return aes_start(context, use, key, bits, iv);                                \
    }

AES_START(128)
AES_START(192)
AES_START(256)

#define AES(which, bits, how)                                  \
    [SS_KEYSTREAM_AES_##bits##_##which] = {                    \
        .provider_name = "mbedtls",                            \
        .algorithm = SS_KEYSTREAM_AES_##bits##_##which,        \
        .key_len = bits / 8,                                   \
        .iv_len = 16,                                          \
        .context_size = SS_KEYSTREAM_CONTEXT_SIZE(struct aes), \
        .start = aes##bits##_start,                            \
        .apply = how,                                          \
        .wipe = aes_wipe,                                      \
    }
#endif

#ifdef MBEDTLS_CIPHER_MODE_CFB
static enum ss_status aes_cfb(void *context, const uint8_t *in, size_t len, uint8_t *out)
{
    struct aes *aes = context;

    return status_of(
        mbedtls_aes_crypt_cfb128(&aes->cipher, aes->mode, len, &aes->offset, aes->iv, in, out));
}
#endif

#ifdef MBEDTLS_CIPHER_MODE_CTR
static enum ss_status aes_ctr(void *context, const uint8_t *in, size_t len, uint8_t *out)
{
    struct aes *aes = context;

    return status_of(
        mbedtls_aes_crypt_ctr(&aes->cipher, len, &aes->offset, aes->iv, aes->block, in, out));
}
#endif

#if defined(MBEDTLS_CAMELLIA_C) && defined(MBEDTLS_CIPHER_MODE_CFB)
#define HAVE_CAMELLIA 1

struct camellia {
    mbedtls_camellia_context cipher;
    size_t offset;
    uint8_t iv[16];
    int mode;
};

static void camellia_wipe(void *context)
{
    ss_wipe(context, sizeof(struct camellia));
}

static enum ss_status camellia_start(struct camellia *camellia, enum ss_keystream_use use,
                                     const uint8_t *key, unsigned bits, const uint8_t *iv)
{
    mbedtls_camellia_init(&camellia->cipher);
    camellia->offset = 0;
    camellia->mode =
        use == SS_KEYSTREAM_ENCRYPT ? MBEDTLS_CAMELLIA_ENCRYPT : MBEDTLS_CAMELLIA_DECRYPT;
    memcpy(camellia->iv, iv, sizeof camellia->iv);
    return status_of(mbedtls_camellia_setkey_enc(&camellia->cipher, key, bits));
}

static enum ss_status camellia_cfb(void *context, const uint8_t *in, size_t len, uint8_t *out)
{
    struct camellia *camellia = context;

    return status_of(mbedtls_camellia_crypt_cfb128(&camellia->cipher, camellia->mode, len,
                                                   &camellia->offset, camellia->iv, in, out));
}

#define CAMELLIA_START(bits)                                                               \
    static enum ss_status camellia##bits##_start(void *context, enum ss_keystream_use use, \
                                                 const uint8_t *key, const uint8_t *iv)    \
    {                                                                                      \
        return camellia_start(context, use, key, bits, iv);                                \
    }

CAMELLIA_START(128)
CAMELLIA_START(192)
CAMELLIA_START(256)

#define CAMELLIA(bits)                                              \
    [SS_KEYSTREAM_CAMELLIA_##bits##_CFB] = {                        \
        .provider_name = "mbedtls",                                 \
        .algorithm = SS_KEYSTREAM_CAMELLIA_##bits##_CFB,            \
        .key_len = bits / 8,                                        \
        .iv_len = 16,                                               \
        .context_size = SS_KEYSTREAM_CONTEXT_SIZE(struct camellia), \
        .start = camellia##bits##_start,                            \
        .apply = camellia_cfb,                                      \
        .wipe = camellia_wipe,                                      \
    }
#endif

#if defined(MBEDTLS_BLOWFISH_C) && defined(MBEDTLS_CIPHER_MODE_CFB)
#define HAVE_BLOWFISH 1

struct blowfish {
    mbedtls_blowfish_context cipher;
    size_t offset;
    uint8_t iv[8];
    int mode;
};

static void blowfish_wipe(void *context)
{
    ss_wipe(context, sizeof(struct blowfish));
}

static enum ss_status blowfish_start(void *context, enum ss_keystream_use use, const uint8_t *key,
                                     const uint8_t *iv)
{
    struct blowfish *blowfish = context;

    mbedtls_blowfish_init(&blowfish->cipher);
    blowfish->offset = 0;
    blowfish->mode =
        use == SS_KEYSTREAM_ENCRYPT ? MBEDTLS_BLOWFISH_ENCRYPT : MBEDTLS_BLOWFISH_DECRYPT;
    memcpy(blowfish->iv, iv, sizeof blowfish->iv);
    return status_of(mbedtls_blowfish_setkey(&blowfish->cipher, key, 128));
}

static enum ss_status blowfish_cfb(void *context, const uint8_t *in, size_t len, uint8_t *out)
{
    struct blowfish *blowfish = context;

    return status_of(mbedtls_blowfish_crypt_cfb64(&blowfish->cipher, blowfish->mode, len,
                                                  &blowfish->offset, blowfish->iv, in, out));
}
#endif

#if defined(MBEDTLS_ARC4_C) && defined(MBEDTLS_MD5_C)
#define HAVE_RC4 1

static void rc4_wipe(void *context)
{
    ss_wipe(context, sizeof(mbedtls_arc4_context));
}

/* Each stream has a key of its own: MD5 of the key and the IV. */
static enum ss_status rc4_md5_start(void *context, enum ss_keystream_use use, const uint8_t *key,
                                    const uint8_t *iv)
{
    uint8_t both[32], digest[16];
    enum ss_status status;

    (void)use;
    memcpy(both, key, 16);
    memcpy(both + 16, iv, 16);
    status = status_of(mbedtls_md5_ret(both, sizeof both, digest));
    mbedtls_arc4_init(context);
    mbedtls_arc4_setup(context, digest, sizeof digest);
    ss_wipe(both, sizeof both);
    ss_wipe(digest, sizeof digest);
    return status;
}

static enum ss_status rc4(void *context, const uint8_t *in, size_t len, uint8_t *out)
{
    return status_of(mbedtls_arc4_crypt(context, len, in, out));
}
#endif

static const struct ss_keystream keystreams[SS_KEYSTREAM_ALGORITHM_COUNT] = {
#ifdef MBEDTLS_CIPHER_MODE_CFB
    AES(CFB, 128, aes_cfb),
    AES(CFB, 192, aes_cfb),
    AES(CFB, 256, aes_cfb),
#endif
#ifdef MBEDTLS_CIPHER_MODE_CTR
    AES(CTR, 128, aes_ctr),
    AES(CTR, 192, aes_ctr),
    AES(CTR, 256, aes_ctr),
#endif
#ifdef HAVE_CAMELLIA
    CAMELLIA(128),
    CAMELLIA(192),
    CAMELLIA(256),
#endif
#ifdef HAVE_BLOWFISH
    [SS_KEYSTREAM_BF_CFB] =
        {
            .provider_name = "mbedtls",
            .algorithm = SS_KEYSTREAM_BF_CFB,
            .key_len = 16,
            .iv_len = 8,
            .context_size = SS_KEYSTREAM_CONTEXT_SIZE(struct blowfish),
            .start = blowfish_start,
            .apply = blowfish_cfb,
            .wipe = blowfish_wipe,
        },
#endif
#ifdef HAVE_RC4
    [SS_KEYSTREAM_RC4_MD5] =
        {
            .provider_name = "mbedtls",
            .algorithm = SS_KEYSTREAM_RC4_MD5,
            .key_len = 16,
            .iv_len = 16,
            .context_size = SS_KEYSTREAM_CONTEXT_SIZE(mbedtls_arc4_context),
            .start = rc4_md5_start,
            .apply = rc4,
            .wipe = rc4_wipe,
        },
#endif
};

const struct ss_keystream *ss_keystream_mbedtls_find(enum ss_keystream_algorithm algorithm)
{
    return keystreams[algorithm].apply != NULL ? &keystreams[algorithm] : NULL;
}
