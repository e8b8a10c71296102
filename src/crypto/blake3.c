/* BLAKE3: the compression function, and the tree of chunks above it. */
#include "crypto/blake3.h"

#include <string.h>

#include "crypto/secret.h"
#include "crypto/words_internal.h"

#define BLOCK_LEN 64
#define CHUNK_LEN 1024

enum {
    CHUNK_START = 1 << 0,
    CHUNK_END = 1 << 1,
    PARENT = 1 << 2,
    ROOT = 1 << 3,
    DERIVE_KEY_CONTEXT = 1 << 5,
    DERIVE_KEY_MATERIAL = 1 << 6
};

static const uint32_t initial[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

/* What one compression takes. */
struct node {
    uint32_t chain[8];
    uint32_t block[16];
    uint64_t counter;
    uint32_t block_len;
    uint32_t flags;
};

static inline uint32_t rotate(uint32_t x, int by)
{
    return x >> by | x << (32 - by);
}

static inline void mix(uint32_t v[16], int a, int b, int c, int d, uint32_t x, uint32_t y)
{
    v[a] += v[b] + x;
    v[d] = rotate(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = rotate(v[b] ^ v[c], 12);
    v[a] += v[b] + y;
    v[d] = rotate(v[d] ^ v[a], 8);
    v[c] += v[d];
    v[b] = rotate(v[b] ^ v[c], 7);
}

/* The words of the block in the order in which round after round takes them: each round permutes
 * those of the one before. Written out so that the compiler sees constants. */
#define ROUND(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15) \
    do {                                                                            \
        mix(v, 0, 4, 8, 12, m[m0], m[m1]);                                          \
        mix(v, 1, 5, 9, 13, m[m2], m[m3]);                                          \
        mix(v, 2, 6, 10, 14, m[m4], m[m5]);                                         \
        mix(v, 3, 7, 11, 15, m[m6], m[m7]);                                         \
        mix(v, 0, 5, 10, 15, m[m8], m[m9]);                                         \
        mix(v, 1, 6, 11, 12, m[m10], m[m11]);                                       \
        mix(v, 2, 7, 8, 13, m[m12], m[m13]);                                        \
        mix(v, 3, 4, 9, 14, m[m14], m[m15]);                                        \
    } while (0)

/* All sixteen words of output; a chaining value is the first eight. */
static void compress(uint32_t out[16], const struct node *node)
{
    const uint32_t *m = node->block;
    uint32_t v[16];

    memcpy(v, node->chain, sizeof node->chain);
    memcpy(v + 8, initial, 4 * sizeof v[0]);
    v[12] = (uint32_t)node->counter;
    v[13] = (uint32_t)(node->counter >> 32);
    v[14] = node->block_len;
    v[15] = node->flags;

    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    ROUND(2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8);
    ROUND(3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1);
    ROUND(10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6);
    ROUND(12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4);
    ROUND(9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7);
    ROUND(11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13);

    for (int i = 0; i < 8; i++) {
        out[i] = v[i] ^ v[i + 8];
        out[i + 8] = v[i + 8] ^ node->chain[i];
    }
}

static void set_block(struct node *node, const uint8_t *bytes, size_t len)
{
    uint8_t padded[BLOCK_LEN];

    if (len < BLOCK_LEN) {
        memset(padded, 0, sizeof padded);
        if (len != 0)
            memcpy(padded, bytes, len);
        bytes = padded;
    }
    for (size_t i = 0; i < 16; i++)
        node->block[i] = ss_load_u32le(bytes + 4 * i);
    node->block_len = (uint32_t)len;
    if (bytes == padded)
        ss_wipe(padded, sizeof padded);
}

/* The last compression of a chunk of at most CHUNK_LEN bytes, still to be done: only its caller
 * knows whether it is the root. */
static void chunk_node(struct node *node, const uint8_t *bytes, size_t len, uint64_t counter,
                       const uint32_t key[8], uint32_t flags)
{
    memcpy(node->chain, key, sizeof node->chain);
    node->counter = counter;
    node->flags = flags | CHUNK_START;
    while (len > BLOCK_LEN) {
        uint32_t out[16];

        set_block(node, bytes, BLOCK_LEN);
        compress(out, node);
        memcpy(node->chain, out, sizeof node->chain);
        node->flags = flags;
        bytes += BLOCK_LEN;
        len -= BLOCK_LEN;
    }
    set_block(node, bytes, len);
    node->flags |= CHUNK_END;
}

/* The same of any number of bytes: the left half of a tree is the largest that is full and leaves
 * something for the right one. As deep as the length has bits, less ten. */
static void tree_node(struct node *node, const uint8_t *bytes, size_t len, uint64_t counter,
                      const uint32_t key[8], uint32_t flags)
{
    uint32_t out[16];
    size_t left = CHUNK_LEN;

    if (len <= CHUNK_LEN) {
        chunk_node(node, bytes, len, counter, key, flags);
        return;
    }
    while (left < len - left)
        left *= 2;
    tree_node(node, bytes, left, counter, key, flags);
    compress(out, node);

    struct node right;

    tree_node(&right, bytes + left, len - left, counter + left / CHUNK_LEN, key, flags);
    memcpy(node->block, out, 32);
    compress(out, &right);
    memcpy(node->block + 8, out, 32);
    memcpy(node->chain, key, sizeof node->chain);
    node->counter = 0;
    node->block_len = BLOCK_LEN;
    node->flags = flags | PARENT;
}

static void hash(uint8_t *out, size_t out_len, const uint8_t *bytes, size_t len,
                 const uint32_t key[8], uint32_t flags)
{
    struct node node;
    uint32_t words[16];
    uint8_t block[BLOCK_LEN];

    tree_node(&node, bytes, len, 0, key, flags);
    node.flags |= ROOT;
    for (node.counter = 0; out_len != 0; node.counter++) {
        size_t take = out_len < sizeof block ? out_len : sizeof block;

        compress(words, &node);
        for (size_t i = 0; i < 16; i++)
            ss_store_u32le(block + 4 * i, words[i]);
        memcpy(out, block, take);
        out += take;
        out_len -= take;
    }
    /* What is hashed may be a key in either mode. */
    ss_wipe(&node, sizeof node);
    ss_wipe(words, sizeof words);
    ss_wipe(block, sizeof block);
}

void ss_blake3(uint8_t *out, size_t out_len, const void *bytes, size_t len)
{
    hash(out, out_len, bytes, len, initial, 0);
}

void ss_blake3_context_init(struct ss_blake3_context *context, const char *text)
{
    uint8_t key[SS_BLAKE3_LEN];

    hash(key, sizeof key, (const uint8_t *)text, strlen(text), initial, DERIVE_KEY_CONTEXT);
    for (size_t i = 0; i < 8; i++)
        context->key[i] = ss_load_u32le(key + 4 * i);
}

void ss_blake3_derive(uint8_t *out, size_t out_len, const struct ss_blake3_context *context,
                      const void *material, size_t len)
{
    hash(out, out_len, material, len, context->key, DERIVE_KEY_MATERIAL);
}

void ss_blake3_derive_key(uint8_t *out, size_t out_len, const char *context, const void *material,
                          size_t len)
{
    struct ss_blake3_context made;

    ss_blake3_context_init(&made, context);
    ss_blake3_derive(out, out_len, &made, material, len);
}
