/*
 * The ciphers of the old stream methods: bytes in, as many bytes out, in any cuts. None of them
 * tells whether what it decrypts was changed on its way.
 *
 * As with AEADs a context lies in memory that the caller gives; nothing allocates, ever.
 */
#ifndef SS_CRYPTO_KEYSTREAM_H
#define SS_CRYPTO_KEYSTREAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum ss_keystream_algorithm {
    SS_KEYSTREAM_NONE, /* no cipher at all: bytes come out as they went in */
    SS_KEYSTREAM_AES_128_CFB,
    SS_KEYSTREAM_AES_192_CFB,
    SS_KEYSTREAM_AES_256_CFB,
    SS_KEYSTREAM_AES_128_CTR,
    SS_KEYSTREAM_AES_192_CTR,
    SS_KEYSTREAM_AES_256_CTR,
    SS_KEYSTREAM_CAMELLIA_128_CFB,
    SS_KEYSTREAM_CAMELLIA_192_CFB,
    SS_KEYSTREAM_CAMELLIA_256_CFB,
    SS_KEYSTREAM_BF_CFB,
    SS_KEYSTREAM_RC4_MD5,
    SS_KEYSTREAM_CHACHA20, /* the original, with a nonce of 8 bytes */
    SS_KEYSTREAM_CHACHA20_IETF,
    SS_KEYSTREAM_SALSA20,
    SS_KEYSTREAM_ALGORITHM_COUNT
};

#define SS_KEYSTREAM_CONTEXT_ALIGN 64

enum ss_keystream_use { SS_KEYSTREAM_ENCRYPT, SS_KEYSTREAM_DECRYPT };

struct ss_keystream {
    const char *provider_name; /* "mbedtls", "libsodium", "none" */
    enum ss_keystream_algorithm algorithm;
    size_t key_len, iv_len;
    size_t context_size; /* a multiple of SS_KEYSTREAM_CONTEXT_ALIGN; 0 for no cipher */

    /* Begins a stream in a context, whatever it held. */
    enum ss_status (*start)(void *context, enum ss_keystream_use use, const uint8_t *key,
                            const uint8_t *iv);
    /* Goes on with it. `out` is `in` or does not overlap it. SS_ERR_LIMIT when the cipher has no
     * more key stream to give. */
    enum ss_status (*apply)(void *context, const uint8_t *in, size_t len, uint8_t *out);
    /* Wipes all of the context. */
    void (*wipe)(void *context);
};

/* NULL when the libraries here do not have it. The first call comes before threads exist. */
const struct ss_keystream *ss_keystream_find(enum ss_keystream_algorithm algorithm);

#endif
