/* What each provider offers to the choice in aead.c. For this folder alone. */
#ifndef SS_CRYPTO_AEAD_INTERNAL_H
#define SS_CRYPTO_AEAD_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "crypto/aead.h"

/* Readies the provider at the first call. NULL where it can't serve the algorithm here. */
typedef const struct ss_aead *ss_aead_find_fn(enum ss_aead_algorithm algorithm);

ss_aead_find_fn ss_aead_ipsecmb_find;
ss_aead_find_fn ss_aead_openssl_find;
ss_aead_find_fn ss_aead_sodium_find;
ss_aead_find_fn ss_aead_mbedtls_find;
ss_aead_find_fn ss_aead_own_find;

/* Whether IPsec-MB has its widest code for ChaCha20 here, with AVX-512. */
bool ss_aead_ipsecmb_has_wide_chacha(void);

#define SS_AEAD_CONTEXT_SIZE(type) \
    ((sizeof(type) + SS_AEAD_CONTEXT_ALIGN - 1) / SS_AEAD_CONTEXT_ALIGN * SS_AEAD_CONTEXT_ALIGN)

/*
 * XChaCha20-Poly1305 is ChaCha20-Poly1305 under a key and a nonce that HChaCha20 derives for each
 * message. A provider without XChaCha of its own gets it from these.
 */
void ss_xchacha_derive(uint8_t subkey[32], uint8_t nonce12[12], const uint8_t key[32],
                       const uint8_t nonce24[24]);

#endif
