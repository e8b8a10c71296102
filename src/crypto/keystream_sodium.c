/* ChaCha20 and Salsa20 by libsodium, which makes them from any block on: the place inside a block
 * is kept here. */
#include "crypto/keystream_internal.h"

#include <string.h>

#include <sodium.h>

#include "crypto/secret.h"

#define BLOCK_LEN 64

struct context {
    uint8_t key[32];
    uint8_t iv[12];
    uint64_t next;            /* block of the key stream */
    size_t left;              /* unused bytes at the end of `block` */
    uint8_t block[BLOCK_LEN]; /* of the key stream */
};

/* XORs with the key stream from a block on. */
typedef int xor_fn(uint8_t *out, const uint8_t *in, size_t len, const struct context *context,
                   uint64_t block);

static int xor_chacha20(uint8_t *out, const uint8_t *in, size_t len, const struct context *context,
                        uint64_t block)
{
    return crypto_stream_chacha20_xor_ic(out, in, len, context->iv, block, context->key);
}

static int xor_chacha20_ietf(uint8_t *out, const uint8_t *in, size_t len,
                             const struct context *context, uint64_t block)
{
    return crypto_stream_chacha20_ietf_xor_ic(out, in, len, context->iv, (uint32_t)block,
                                              context->key);
}

static int xor_salsa20(uint8_t *out, const uint8_t *in, size_t len, const struct context *context,
                       uint64_t block)
{
    return crypto_stream_salsa20_xor_ic(out, in, len, context->iv, block, context->key);
}

static void wipe(void *context)
{
    ss_wipe(context, sizeof(struct context));
}

static void start_with(struct context *context, const uint8_t *key, const uint8_t *iv,
                       size_t iv_len)
{
    memcpy(context->key, key, sizeof context->key);
    memcpy(context->iv, iv, iv_len);
    context->next = 0;
    context->left = 0;
}

static enum ss_status start8(void *context, enum ss_keystream_use use, const uint8_t *key,
                             const uint8_t *iv)
{
    (void)use;
    start_with(context, key, iv, 8);
    return SS_OK;
}

static enum ss_status start12(void *context, enum ss_keystream_use use, const uint8_t *key,
                              const uint8_t *iv)
{
    (void)use;
    start_with(context, key, iv, 12);
    return SS_OK;
}

/* `blocks_max`: of the key stream; the library ends the process beyond. */
static enum ss_status apply_with(struct context *context, const uint8_t *in, size_t len,
                                 uint8_t *out, xor_fn *apply, uint64_t blocks_max)
{
    static const uint8_t zeroes[BLOCK_LEN];
    size_t take = len < context->left ? len : context->left;
    const uint8_t *from = context->block + BLOCK_LEN - context->left;
    size_t whole;

    for (size_t i = 0; i < take; i++)
        out[i] = in[i] ^ from[i];
    context->left -= take;
    if (len == take)
        return SS_OK;
    in += take;
    out += take;
    len -= take;

    if (blocks_max - context->next < len / BLOCK_LEN + 1)
        return SS_ERR_LIMIT;
    whole = len / BLOCK_LEN * BLOCK_LEN;
    if (whole != 0 && apply(out, in, whole, context, context->next) != 0)
        return SS_ERR_ARGUMENT;
    context->next += whole / BLOCK_LEN;
    if (len == whole)
        return SS_OK;
    if (apply(context->block, zeroes, BLOCK_LEN, context, context->next) != 0)
        return SS_ERR_ARGUMENT;
    context->next++;
    take = len - whole;
    for (size_t i = 0; i < take; i++)
        out[whole + i] = in[whole + i] ^ context->block[i];
    context->left = BLOCK_LEN - take;
    return SS_OK;
}

static enum ss_status chacha20(void *context, const uint8_t *in, size_t len, uint8_t *out)
{
    return apply_with(context, in, len, out, xor_chacha20, UINT64_MAX);
}

static enum ss_status chacha20_ietf(void *context, const uint8_t *in, size_t len, uint8_t *out)
{
    return apply_with(context, in, len, out, xor_chacha20_ietf, UINT32_MAX);
}

static enum ss_status salsa20(void *context, const uint8_t *in, size_t len, uint8_t *out)
{
    return apply_with(context, in, len, out, xor_salsa20, UINT64_MAX);
}

#define KEYSTREAM(which, iv, function)                                                 \
    {                                                                                  \
        .provider_name = "libsodium", .algorithm = which, .key_len = 32, .iv_len = iv, \
        .context_size = SS_KEYSTREAM_CONTEXT_SIZE(struct context), .start = start##iv, \
        .apply = function, .wipe = wipe,                                               \
    }

const struct ss_keystream *ss_keystream_sodium_find(enum ss_keystream_algorithm algorithm)
{
    static const struct ss_keystream keystreams[] = {
        KEYSTREAM(SS_KEYSTREAM_CHACHA20, 8, chacha20),
        KEYSTREAM(SS_KEYSTREAM_CHACHA20_IETF, 12, chacha20_ietf),
        KEYSTREAM(SS_KEYSTREAM_SALSA20, 8, salsa20),
    };

    if (sodium_init() < 0)
        return NULL;
    for (size_t i = 0; i < sizeof keystreams / sizeof keystreams[0]; i++)
        if (keystreams[i].algorithm == algorithm)
            return &keystreams[i];
    return NULL;
}
