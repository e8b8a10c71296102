/*
 * ChaCha8-Poly1305 and XChaCha8-Poly1305: the construction of RFC 8439 with our own key stream and
 * libsodium's authenticator.
 */
#include "crypto/aead_internal.h"

#include <stdbool.h>
#include <string.h>

#include <sodium.h>

#include "base/bytes.h"
#include "crypto/chacha8.h"
#include "crypto/secret.h"

struct context {
    uint8_t key[32];
};

static enum ss_status init(void *context)
{
    (void)context;
    return SS_OK;
}

static void wipe(void *context)
{
    ss_wipe(context, sizeof(struct context));
}

static enum ss_status set_key(void *memory, const uint8_t *key)
{
    struct context *context = memory;

    memcpy(context->key, key, sizeof context->key);
    return SS_OK;
}

/* RFC 8439, 2.8, with no associated data: the text, zeroes up to a whole block, both lengths. The
 * authenticator's key is the first half of block 0. */
static void make_tag(uint8_t tag[SS_AEAD_TAG_LEN], const uint8_t key[32], const uint8_t nonce[12],
                     const uint8_t *sealed, size_t len)
{
    static const uint8_t zeroes[32];
    crypto_onetimeauth_state state;
    uint8_t once[32];
    uint8_t lengths[16];

    ss_chacha8_xor(once, zeroes, sizeof once, key, nonce, 0);
    ss_store_u64le(lengths, 0);
    ss_store_u64le(lengths + 8, len);
    crypto_onetimeauth_init(&state, once);
    crypto_onetimeauth_update(&state, sealed, len);
    crypto_onetimeauth_update(&state, zeroes, (16 - len % 16) % 16);
    crypto_onetimeauth_update(&state, lengths, sizeof lengths);
    crypto_onetimeauth_final(&state, tag);
    ss_wipe(once, sizeof once);
}

static void seal_with(const uint8_t key[32], const uint8_t nonce[12], const uint8_t *plain,
                      size_t len, uint8_t *out)
{
    ss_chacha8_xor(out, plain, len, key, nonce, 1);
    make_tag(out + len, key, nonce, out, len);
}

static enum ss_status open_with(const uint8_t key[32], const uint8_t nonce[12],
                                const uint8_t *sealed, size_t sealed_len, uint8_t *out)
{
    uint8_t tag[SS_AEAD_TAG_LEN];
    size_t len;

    if (sealed_len < SS_AEAD_TAG_LEN)
        return SS_ERR_AUTH;
    len = sealed_len - SS_AEAD_TAG_LEN;
    make_tag(tag, key, nonce, sealed, len);
    if (!ss_equal_constant_time(tag, sealed + len, sizeof tag))
        return SS_ERR_AUTH;
    ss_chacha8_xor(out, sealed, len, key, nonce, 1);
    return SS_OK;
}

static enum ss_status seal(void *memory, const uint8_t *nonce, const uint8_t *plain, size_t len,
                           uint8_t *out)
{
    const struct context *context = memory;

    seal_with(context->key, nonce, plain, len, out);
    return SS_OK;
}

static enum ss_status open_sealed(void *memory, const uint8_t *nonce, const uint8_t *sealed,
                                  size_t sealed_len, uint8_t *out)
{
    const struct context *context = memory;

    return open_with(context->key, nonce, sealed, sealed_len, out);
}

static void derive(uint8_t subkey[32], uint8_t nonce12[12], const struct context *context,
                   const uint8_t nonce24[24])
{
    ss_hchacha8(subkey, context->key, nonce24);
    memset(nonce12, 0, 4);
    memcpy(nonce12 + 4, nonce24 + 16, 8);
}

static enum ss_status xseal(void *memory, const uint8_t *nonce, const uint8_t *plain, size_t len,
                            uint8_t *out)
{
    uint8_t subkey[32];
    uint8_t nonce12[12];

    derive(subkey, nonce12, memory, nonce);
    seal_with(subkey, nonce12, plain, len, out);
    ss_wipe(subkey, sizeof subkey);
    return SS_OK;
}

static enum ss_status xopen(void *memory, const uint8_t *nonce, const uint8_t *sealed,
                            size_t sealed_len, uint8_t *out)
{
    uint8_t subkey[32];
    uint8_t nonce12[12];
    enum ss_status status;

    derive(subkey, nonce12, memory, nonce);
    status = open_with(subkey, nonce12, sealed, sealed_len, out);
    ss_wipe(subkey, sizeof subkey);
    return status;
}

static const struct ss_aead chacha8_poly1305 = {
    .provider_name = "own code",
    .algorithm = SS_AEAD_CHACHA8_POLY1305,
    .provider = SS_AEAD_OWN,
    .key_len = 32,
    .nonce_len = 12,
    .context_size = SS_AEAD_CONTEXT_SIZE(struct context),
    .init = init,
    .clear = wipe,
    .forget = wipe,
    .set_key = set_key,
    .seal = seal,
    .open = open_sealed,
};

static const struct ss_aead xchacha8_poly1305 = {
    .provider_name = "own code",
    .algorithm = SS_AEAD_XCHACHA8_POLY1305,
    .provider = SS_AEAD_OWN,
    .key_len = 32,
    .nonce_len = 24,
    .context_size = SS_AEAD_CONTEXT_SIZE(struct context),
    .init = init,
    .clear = wipe,
    .forget = wipe,
    .set_key = set_key,
    .seal = xseal,
    .open = xopen,
};

const struct ss_aead *ss_aead_own_find(enum ss_aead_algorithm algorithm)
{
    switch (algorithm) {
    case SS_AEAD_CHACHA8_POLY1305:
        return sodium_init() < 0 ? NULL : &chacha8_poly1305;
    case SS_AEAD_XCHACHA8_POLY1305:
        return sodium_init() < 0 ? NULL : &xchacha8_poly1305;
    default:
        return NULL;
    }
}
