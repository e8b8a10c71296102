/* AEAD by libsodium: AES-256-GCM where the processor has AES, ChaCha20 and XChaCha20 everywhere. */
#include "crypto/aead_internal.h"

#include <stdbool.h>
#include <string.h>

#include <sodium.h>

#include "crypto/secret.h"

struct gcm_context {
    crypto_aead_aes256gcm_state state;
};

struct chacha_context {
    uint8_t key[32];
};

static enum ss_status init_nothing(void *context)
{
    (void)context;
    return SS_OK;
}

static void wipe_gcm(void *context)
{
    ss_wipe(context, sizeof(struct gcm_context));
}

static enum ss_status gcm_set_key(void *context, const uint8_t *key)
{
    struct gcm_context *gcm = context;

    return crypto_aead_aes256gcm_beforenm(&gcm->state, key) == 0 ? SS_OK : SS_ERR_UNSUPPORTED;
}

static enum ss_status gcm_seal(void *context, const uint8_t *nonce, const uint8_t *plain,
                               size_t len, uint8_t *out)
{
    const struct gcm_context *gcm = context;

    if (crypto_aead_aes256gcm_encrypt_afternm(out, NULL, plain, len, NULL, 0, NULL, nonce,
                                              &gcm->state) != 0)
        return SS_ERR_UNSUPPORTED;
    return SS_OK;
}

static enum ss_status gcm_open(void *context, const uint8_t *nonce, const uint8_t *sealed,
                               size_t sealed_len, uint8_t *out)
{
    const struct gcm_context *gcm = context;

    if (crypto_aead_aes256gcm_decrypt_afternm(out, NULL, NULL, sealed, sealed_len, NULL, 0, nonce,
                                              &gcm->state) != 0)
        return SS_ERR_AUTH;
    return SS_OK;
}

static void wipe_chacha(void *context)
{
    ss_wipe(context, sizeof(struct chacha_context));
}

static enum ss_status chacha_set_key(void *context, const uint8_t *key)
{
    struct chacha_context *chacha = context;

    memcpy(chacha->key, key, sizeof chacha->key);
    return SS_OK;
}

static enum ss_status chacha_seal(void *context, const uint8_t *nonce, const uint8_t *plain,
                                  size_t len, uint8_t *out)
{
    const struct chacha_context *chacha = context;

    if (crypto_aead_chacha20poly1305_ietf_encrypt(out, NULL, plain, len, NULL, 0, NULL, nonce,
                                                  chacha->key) != 0)
        return SS_ERR_UNSUPPORTED;
    return SS_OK;
}

static enum ss_status chacha_open(void *context, const uint8_t *nonce, const uint8_t *sealed,
                                  size_t sealed_len, uint8_t *out)
{
    const struct chacha_context *chacha = context;

    if (crypto_aead_chacha20poly1305_ietf_decrypt(out, NULL, NULL, sealed, sealed_len, NULL, 0,
                                                  nonce, chacha->key) != 0)
        return SS_ERR_AUTH;
    return SS_OK;
}

static enum ss_status xchacha_seal(void *context, const uint8_t *nonce, const uint8_t *plain,
                                   size_t len, uint8_t *out)
{
    const struct chacha_context *chacha = context;

    if (crypto_aead_xchacha20poly1305_ietf_encrypt(out, NULL, plain, len, NULL, 0, NULL, nonce,
                                                   chacha->key) != 0)
        return SS_ERR_UNSUPPORTED;
    return SS_OK;
}

static enum ss_status xchacha_open(void *context, const uint8_t *nonce, const uint8_t *sealed,
                                   size_t sealed_len, uint8_t *out)
{
    const struct chacha_context *chacha = context;

    if (crypto_aead_xchacha20poly1305_ietf_decrypt(out, NULL, NULL, sealed, sealed_len, NULL, 0,
                                                   nonce, chacha->key) != 0)
        return SS_ERR_AUTH;
    return SS_OK;
}

static const struct ss_aead aes_256_gcm = {
    .provider_name = "libsodium",
    .algorithm = SS_AEAD_AES_256_GCM,
    .provider = SS_AEAD_SODIUM,
    .key_len = 32,
    .nonce_len = 12,
    .context_size = SS_AEAD_CONTEXT_SIZE(struct gcm_context),
    .init = init_nothing,
    .clear = wipe_gcm,
    .forget = wipe_gcm,
    .set_key = gcm_set_key,
    .seal = gcm_seal,
    .open = gcm_open,
};

static const struct ss_aead chacha20_poly1305 = {
    .provider_name = "libsodium",
    .algorithm = SS_AEAD_CHACHA20_POLY1305,
    .provider = SS_AEAD_SODIUM,
    .key_len = 32,
    .nonce_len = 12,
    .context_size = SS_AEAD_CONTEXT_SIZE(struct chacha_context),
    .init = init_nothing,
    .clear = wipe_chacha,
    .forget = wipe_chacha,
    .set_key = chacha_set_key,
    .seal = chacha_seal,
    .open = chacha_open,
};

static const struct ss_aead xchacha20_poly1305 = {
    .provider_name = "libsodium",
    .algorithm = SS_AEAD_XCHACHA20_POLY1305,
    .provider = SS_AEAD_SODIUM,
    .key_len = 32,
    .nonce_len = 24,
    .context_size = SS_AEAD_CONTEXT_SIZE(struct chacha_context),
    .init = init_nothing,
    .clear = wipe_chacha,
    .forget = wipe_chacha,
    .set_key = chacha_set_key,
    .seal = xchacha_seal,
    .open = xchacha_open,
};

const struct ss_aead *ss_aead_sodium_find(enum ss_aead_algorithm algorithm)
{
    if (sodium_init() < 0)
        return NULL;
    switch (algorithm) {
    case SS_AEAD_AES_256_GCM:
        return crypto_aead_aes256gcm_is_available() ? &aes_256_gcm : NULL;
    case SS_AEAD_CHACHA20_POLY1305:
        return &chacha20_poly1305;
    case SS_AEAD_XCHACHA20_POLY1305:
        return &xchacha20_poly1305;
    default:
        return NULL;
    }
}

void ss_xchacha_derive(uint8_t subkey[32], uint8_t nonce12[12], const uint8_t key[32],
                       const uint8_t nonce24[24])
{
    crypto_core_hchacha20(subkey, nonce24, key, NULL);
    memset(nonce12, 0, 4);
    memcpy(nonce12 + 4, nonce24 + 16, 8);
}
