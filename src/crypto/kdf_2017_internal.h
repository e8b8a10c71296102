/* The subkey of a salt by instructions that not every processor has. For this folder alone. */
#ifndef SS_CRYPTO_KDF_2017_INTERNAL_H
#define SS_CRYPTO_KDF_2017_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False, and nothing done, where the processor has none, or the key more than 32 bytes. */
bool ss_kdf_subkey_2017_x86(uint8_t *subkey, const uint8_t *key, const uint8_t *salt,
                            size_t key_len);

#endif
