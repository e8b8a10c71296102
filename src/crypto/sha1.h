/*
 * SHA-1, for deriving subkeys. For this folder alone.
 *
 * A subkey takes ten blocks, and under the 2017 methods each datagram needs one. Through the
 * dependency's contexts that took longer than sealing the datagram; this takes a third of it.
 */
#ifndef SS_CRYPTO_SHA1_H
#define SS_CRYPTO_SHA1_H

#include <stddef.h>
#include <stdint.h>

#define SS_SHA1_LEN   20
#define SS_SHA1_BLOCK 64

/* May be copied at any time, to go on from there twice. */
struct ss_sha1 {
    uint32_t state[5];
    uint64_t len; /* bytes so far */
    uint8_t block[SS_SHA1_BLOCK];
};

void ss_sha1_init(struct ss_sha1 *hash);
void ss_sha1_update(struct ss_sha1 *hash, const uint8_t *bytes, size_t len);
/* The hash may not be used any more until it is initialised. */
void ss_sha1_finish(struct ss_sha1 *hash, uint8_t digest[SS_SHA1_LEN]);

typedef void ss_sha1_compress_fn(uint32_t state[5], const uint8_t block[SS_SHA1_BLOCK]);

/* By the processor's own instructions, or NULL where it has none. */
ss_sha1_compress_fn *ss_sha1_hardware(void);

/* From now on without them (true) or with: for tests. */
void ss_sha1_force_portable(int portable);

#endif
