/* Subkeys of salts by instructions that not every processor has. For this folder alone. */
#ifndef SS_CRYPTO_KDF_2017_INTERNAL_H
#define SS_CRYPTO_KDF_2017_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `count` is one or two. False, and nothing done, where the processor has no such instructions, or
 * the key more than 32 bytes. */
bool ss_kdf_subkeys_2017_x86(uint8_t *const *subkeys, const uint8_t *key,
                             const uint8_t *const *salts, size_t count, size_t key_len);

#endif
