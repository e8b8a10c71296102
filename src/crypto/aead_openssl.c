/*
 * AEAD by OpenSSL's libcrypto, 3 and newer.
 *
 * A cipher context allocates when it learns its algorithm (in init) and then never again: a new key
 * and a new nonce are set with the cipher argument NULL.
 */
#include "crypto/aead_internal.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "crypto/secret.h"

struct context {
    EVP_CIPHER_CTX *cipher;
    uint8_t key[32]; /* XChaCha only: the others leave it to the library */
};

/* Fetched once, so that making a context looks nothing up. */
static EVP_CIPHER *ciphers[SS_AEAD_ALGORITHM_COUNT];

static const char *const cipher_names[SS_AEAD_ALGORITHM_COUNT] = {
    [SS_AEAD_AES_128_GCM] = "AES-128-GCM",
    [SS_AEAD_AES_192_GCM] = "AES-192-GCM",
    [SS_AEAD_AES_256_GCM] = "AES-256-GCM",
    [SS_AEAD_CHACHA20_POLY1305] = "ChaCha20-Poly1305",
    [SS_AEAD_XCHACHA20_POLY1305] = "ChaCha20-Poly1305",
};

static enum ss_status init_with(struct context *context, enum ss_aead_algorithm algorithm)
{
    context->cipher = EVP_CIPHER_CTX_new();
    if (context->cipher == NULL)
        return SS_ERR_MEMORY;
    if (EVP_CipherInit_ex(context->cipher, ciphers[algorithm], NULL, NULL, NULL, 1) != 1) {
        EVP_CIPHER_CTX_free(context->cipher);
        context->cipher = NULL;
        return SS_ERR_MEMORY;
    }
    return SS_OK;
}

static void clear(void *memory)
{
    struct context *context = memory;

    EVP_CIPHER_CTX_free(context->cipher); /* wipes; NULL is fine */
    ss_wipe(context, sizeof *context);
}

static enum ss_status set_key(void *memory, const uint8_t *key)
{
    struct context *context = memory;

    return EVP_CipherInit_ex(context->cipher, NULL, NULL, key, NULL, 1) == 1 ? SS_OK
                                                                             : SS_ERR_MEMORY;
}

static void forget(void *memory)
{
    static const uint8_t zero[32];

    /* The library has no call that wipes a key and keeps the context; another key takes its place.
     */
    (void)set_key(memory, zero);
}

/* Seals under the nonce, and under the key where there is one. */
static enum ss_status seal_with(struct context *context, const uint8_t *key, const uint8_t *nonce,
                                const uint8_t *plain, size_t len, uint8_t *out)
{
    EVP_CIPHER_CTX *cipher = context->cipher;
    int written = 0;
    int last = 0;

    if (len > INT_MAX)
        return SS_ERR_ARGUMENT;
    if (EVP_CipherInit_ex(cipher, NULL, NULL, key, nonce, 1) != 1 ||
        EVP_EncryptUpdate(cipher, out, &written, plain, (int)len) != 1 ||
        EVP_EncryptFinal_ex(cipher, out + written, &last) != 1 ||
        EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, SS_AEAD_TAG_LEN, out + len) != 1)
        return SS_ERR_ARGUMENT;
    return SS_OK;
}

static enum ss_status open_with(struct context *context, const uint8_t *key, const uint8_t *nonce,
                                const uint8_t *sealed, size_t sealed_len, uint8_t *out)
{
    EVP_CIPHER_CTX *cipher = context->cipher;
    uint8_t tag[SS_AEAD_TAG_LEN];
    uint8_t nothing[16];
    int written = 0;
    int last = 0;
    size_t len;

    if (sealed_len < SS_AEAD_TAG_LEN)
        return SS_ERR_AUTH;
    len = sealed_len - SS_AEAD_TAG_LEN;
    if (len > INT_MAX)
        return SS_ERR_ARGUMENT;
    memcpy(tag, sealed + len, sizeof tag);
    if (EVP_CipherInit_ex(cipher, NULL, NULL, key, nonce, 0) != 1 ||
        EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, SS_AEAD_TAG_LEN, tag) != 1 ||
        EVP_DecryptUpdate(cipher, out, &written, sealed, (int)len) != 1 ||
        EVP_DecryptFinal_ex(cipher, nothing, &last) != 1)
        return SS_ERR_AUTH;
    return SS_OK;
}

static enum ss_status seal(void *memory, const uint8_t *nonce, const uint8_t *plain, size_t len,
                           uint8_t *out)
{
    return seal_with(memory, NULL, nonce, plain, len, out);
}

static enum ss_status open(void *memory, const uint8_t *nonce, const uint8_t *sealed,
                           size_t sealed_len, uint8_t *out)
{
    return open_with(memory, NULL, nonce, sealed, sealed_len, out);
}

/* XChaCha20-Poly1305: each message has a key of its own. */

static enum ss_status xchacha_set_key(void *memory, const uint8_t *key)
{
    struct context *context = memory;

    memcpy(context->key, key, sizeof context->key);
    return SS_OK;
}

static void xchacha_forget(void *memory)
{
    struct context *context = memory;

    ss_wipe(context->key, sizeof context->key);
    forget(memory);
}

static enum ss_status xchacha_seal(void *memory, const uint8_t *nonce, const uint8_t *plain,
                                   size_t len, uint8_t *out)
{
    struct context *context = memory;
    uint8_t subkey[32];
    uint8_t nonce12[12];
    enum ss_status status;

    ss_xchacha_derive(subkey, nonce12, context->key, nonce);
    status = seal_with(context, subkey, nonce12, plain, len, out);
    ss_wipe(subkey, sizeof subkey);
    return status;
}

static enum ss_status xchacha_open(void *memory, const uint8_t *nonce, const uint8_t *sealed,
                                   size_t sealed_len, uint8_t *out)
{
    struct context *context = memory;
    uint8_t subkey[32];
    uint8_t nonce12[12];
    enum ss_status status;

    ss_xchacha_derive(subkey, nonce12, context->key, nonce);
    status = open_with(context, subkey, nonce12, sealed, sealed_len, out);
    ss_wipe(subkey, sizeof subkey);
    return status;
}

#define INIT(name, which)                           \
    static enum ss_status name##_init(void *memory) \
    {                                               \
        return init_with(memory, which);            \
    }

INIT(gcm128, SS_AEAD_AES_128_GCM)
INIT(gcm192, SS_AEAD_AES_192_GCM)
INIT(gcm256, SS_AEAD_AES_256_GCM)
INIT(chacha, SS_AEAD_CHACHA20_POLY1305)

#define AEAD(which, init_function, key, nonce, prefix)        \
    [which] = {                                               \
        .provider_name = "openssl",                           \
        .algorithm = which,                                   \
        .provider = SS_AEAD_OPENSSL,                          \
        .key_len = key,                                       \
        .nonce_len = nonce,                                   \
        .context_size = SS_AEAD_CONTEXT_SIZE(struct context), \
        .init = init_function,                                \
        .clear = clear,                                       \
        .forget = prefix##forget,                             \
        .set_key = prefix##set_key,                           \
        .seal = prefix##seal,                                 \
        .open = prefix##open,                                 \
    }

static const struct ss_aead aeads[SS_AEAD_ALGORITHM_COUNT] = {
    AEAD(SS_AEAD_AES_128_GCM, gcm128_init, 16, 12, ),
    AEAD(SS_AEAD_AES_192_GCM, gcm192_init, 24, 12, ),
    AEAD(SS_AEAD_AES_256_GCM, gcm256_init, 32, 12, ),
    AEAD(SS_AEAD_CHACHA20_POLY1305, chacha_init, 32, 12, ),
    AEAD(SS_AEAD_XCHACHA20_POLY1305, chacha_init, 32, 24, xchacha_),
};

const struct ss_aead *ss_aead_openssl_find(enum ss_aead_algorithm algorithm)
{
    /* The system's configuration may name engines and providers to load: none of them is wanted
     * here, and reading it costs memory. */
    if (OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) != 1)
        return NULL;
    if (cipher_names[algorithm] == NULL)
        return NULL;
    if (ciphers[algorithm] == NULL)
        ciphers[algorithm] = EVP_CIPHER_fetch(NULL, cipher_names[algorithm], NULL);
    return ciphers[algorithm] != NULL ? &aeads[algorithm] : NULL;
}
