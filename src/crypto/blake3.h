/*
 * BLAKE3 as its specification describes it: the hash, and keys derived under a context, of any
 * length. Portable C; nothing allocates, and copies of what is hashed are wiped from the stack.
 */
#ifndef SS_CRYPTO_BLAKE3_H
#define SS_CRYPTO_BLAKE3_H

#include <stddef.h>
#include <stdint.h>

#define SS_BLAKE3_LEN 32 /* bytes of the usual output */

void ss_blake3(uint8_t *out, size_t out_len, const void *bytes, size_t len);

/* The key derivation mode. */
void ss_blake3_derive_key(uint8_t *out, size_t out_len, const char *context, const void *material,
                          size_t len);

/* What a context comes to, for many keys under it. */
struct ss_blake3_context {
    uint32_t key[8];
};

void ss_blake3_context_init(struct ss_blake3_context *context, const char *text);
void ss_blake3_derive(uint8_t *out, size_t out_len, const struct ss_blake3_context *context,
                      const void *material, size_t len);

#endif
