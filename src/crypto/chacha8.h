/* ChaCha with 8 rounds, which no packaged library has: the key stream of RFC 8439 and the key
 * derivation of XChaCha, both with fewer rounds. Portable C. */
#ifndef SS_CRYPTO_CHACHA8_H
#define SS_CRYPTO_CHACHA8_H

#include <stddef.h>
#include <stdint.h>

/* XORs the key stream from block `counter` on. `out` is `in` or does not overlap it. */
void ss_chacha8_xor(uint8_t *out, const uint8_t *in, size_t len, const uint8_t key[32],
                    const uint8_t nonce[12], uint32_t counter);

void ss_hchacha8(uint8_t subkey[32], const uint8_t key[32], const uint8_t nonce[16]);

#endif
