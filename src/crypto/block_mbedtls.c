/* One block of AES by Mbed TLS, 2.28 and 3.x; it uses the processor's AES instructions where there
 * are any. */
#include "crypto/block.h"

#include <mbedtls/aes.h>

#include "crypto/secret.h"

_Static_assert(sizeof(mbedtls_aes_context) <= sizeof((struct ss_block_key){0}.memory),
               "the key has room for the library's");
_Static_assert(_Alignof(mbedtls_aes_context) <= _Alignof(struct ss_block_key),
               "and lies as the library's must");

/* The library does not change a key that is set, but its calls do not say so. */
static mbedtls_aes_context *aes_of(const struct ss_block_key *block)
{
    return (mbedtls_aes_context *)(uintptr_t)block->memory;
}

enum ss_status ss_block_key_init(struct ss_block_key *block, enum ss_block_use use,
                                 const uint8_t *key, size_t key_len)
{
    mbedtls_aes_context *aes = aes_of(block);
    unsigned bits = (unsigned)key_len * 8;
    int result;

    mbedtls_aes_init(aes);
    block->use = use;
    result = use == SS_BLOCK_ENCRYPT ? mbedtls_aes_setkey_enc(aes, key, bits)
                                     : mbedtls_aes_setkey_dec(aes, key, bits);
    return result == 0 ? SS_OK : SS_ERR_ARGUMENT;
}

void ss_block_apply(const struct ss_block_key *block, const uint8_t in[SS_BLOCK_LEN],
                    uint8_t out[SS_BLOCK_LEN])
{
    int mode = block->use == SS_BLOCK_ENCRYPT ? MBEDTLS_AES_ENCRYPT : MBEDTLS_AES_DECRYPT;

    (void)mbedtls_aes_crypt_ecb(aes_of(block), mode, in, out); /* fails only for another mode */
}

void ss_block_key_clear(struct ss_block_key *block)
{
    ss_wipe(block, sizeof *block); /* the library's context holds no memory of its own */
}
