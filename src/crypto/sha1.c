/* SHA-1 (FIPS 180-4), portable, and the choice of the processor's own instructions. */
#include "crypto/sha1.h"

#include <stdatomic.h>
#include <string.h>

/* Chosen at the first use. Threads that meet here choose the same. */
static _Atomic(ss_sha1_compress_fn *) compress;

static uint32_t rotate(uint32_t value, int bits)
{
    return value << bits | value >> (32 - bits);
}

static uint32_t load_u32be(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store_u32be(uint8_t *p, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void compress_portable(uint32_t state[5], const uint8_t block[SS_SHA1_BLOCK])
{
    uint32_t w[16];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];

    for (int i = 0; i < 16; i++)
        w[i] = load_u32be(block + 4 * i);
    for (int t = 0; t < 80; t++) {
        uint32_t mixed, next;

        if (t >= 16)
            w[t & 15] = rotate(w[(t + 13) & 15] ^ w[(t + 8) & 15] ^ w[(t + 2) & 15] ^ w[t & 15], 1);
        if (t < 20)
            mixed = (d ^ (b & (c ^ d))) + 0x5a827999;
        else if (t < 40)
            mixed = (b ^ c ^ d) + 0x6ed9eba1;
        else if (t < 60)
            mixed = ((b & c) | (d & (b | c))) + 0x8f1bbcdc;
        else
            mixed = (b ^ c ^ d) + 0xca62c1d6;
        next = rotate(a, 5) + mixed + e + w[t & 15];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

static ss_sha1_compress_fn *choose(void)
{
    ss_sha1_compress_fn *chosen = ss_sha1_hardware();

    if (chosen == NULL)
        chosen = compress_portable;
    atomic_store_explicit(&compress, chosen, memory_order_relaxed);
    return chosen;
}

void ss_sha1_force_portable(int portable)
{
    atomic_store_explicit(&compress, portable ? compress_portable : NULL, memory_order_relaxed);
}

static void take_block(struct ss_sha1 *hash, const uint8_t *block)
{
    ss_sha1_compress_fn *chosen = atomic_load_explicit(&compress, memory_order_relaxed);

    if (chosen == NULL)
        chosen = choose();
    chosen(hash->state, block);
}

void ss_sha1_init(struct ss_sha1 *hash)
{
    static const uint32_t start[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};

    memcpy(hash->state, start, sizeof start);
    hash->len = 0;
}

void ss_sha1_update(struct ss_sha1 *hash, const uint8_t *bytes, size_t len)
{
    size_t have = hash->len % SS_SHA1_BLOCK;

    hash->len += len;
    while (len != 0) {
        size_t take = SS_SHA1_BLOCK - have < len ? SS_SHA1_BLOCK - have : len;

        if (take == SS_SHA1_BLOCK) {
            take_block(hash, bytes);
        } else {
            memcpy(hash->block + have, bytes, take);
            if (have + take == SS_SHA1_BLOCK)
                take_block(hash, hash->block);
        }
        have = (have + take) % SS_SHA1_BLOCK;
        bytes += take;
        len -= take;
    }
}

void ss_sha1_finish(struct ss_sha1 *hash, uint8_t digest[SS_SHA1_LEN])
{
    size_t have = hash->len % SS_SHA1_BLOCK;
    uint64_t bits = hash->len * 8;

    hash->block[have++] = 0x80;
    if (have > SS_SHA1_BLOCK - 8) {
        memset(hash->block + have, 0, SS_SHA1_BLOCK - have);
        take_block(hash, hash->block);
        have = 0;
    }
    memset(hash->block + have, 0, SS_SHA1_BLOCK - 8 - have);
    store_u32be(hash->block + SS_SHA1_BLOCK - 8, (uint32_t)(bits >> 32));
    store_u32be(hash->block + SS_SHA1_BLOCK - 4, (uint32_t)bits);
    take_block(hash, hash->block);
    for (int i = 0; i < 5; i++)
        store_u32be(digest + 4 * i, hash->state[i]);
}
