/* 32-bit words as they lie in memory under BLAKE3 and ChaCha. For this folder alone. */
#ifndef SS_CRYPTO_WORDS_INTERNAL_H
#define SS_CRYPTO_WORDS_INTERNAL_H

#include <stdint.h>

static inline uint32_t ss_load_u32le(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline void ss_store_u32le(uint8_t *p, uint32_t value)
{
    p[0] = (uint8_t)value;
    p[1] = (uint8_t)(value >> 8);
    p[2] = (uint8_t)(value >> 16);
    p[3] = (uint8_t)(value >> 24);
}

#endif
