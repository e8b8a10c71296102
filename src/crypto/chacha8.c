/* ChaCha with 8 rounds. */
#include "crypto/chacha8.h"

#include <string.h>

#include "crypto/secret.h"
#include "crypto/words_internal.h"

#define ROUNDS    8
#define BLOCK_LEN 64

/* Four blocks are made side by side, one in each lane of a vector. */
#define LANES 4
typedef uint32_t lanes __attribute__((vector_size(4 * LANES)));

static const uint32_t constants[4] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};

static void load(uint32_t state[16], const uint8_t key[32], const uint8_t last[16])
{
    memcpy(state, constants, sizeof constants);
    for (size_t i = 0; i < 8; i++)
        state[4 + i] = ss_load_u32le(key + 4 * i);
    for (size_t i = 0; i < 4; i++)
        state[12 + i] = ss_load_u32le(last + 4 * i);
}

static inline lanes rotate(lanes x, int by)
{
    return x << by | x >> (32 - by);
}

static inline void quarter(lanes x[16], int a, int b, int c, int d)
{
    x[a] += x[b];
    x[d] = rotate(x[d] ^ x[a], 16);
    x[c] += x[d];
    x[b] = rotate(x[b] ^ x[c], 12);
    x[a] += x[b];
    x[d] = rotate(x[d] ^ x[a], 8);
    x[c] += x[d];
    x[b] = rotate(x[b] ^ x[c], 7);
}

static inline void rounds(lanes x[16])
{
    for (int i = 0; i < ROUNDS; i += 2) {
        quarter(x, 0, 4, 8, 12);
        quarter(x, 1, 5, 9, 13);
        quarter(x, 2, 6, 10, 14);
        quarter(x, 3, 7, 11, 15);
        quarter(x, 0, 5, 10, 15);
        quarter(x, 1, 6, 11, 12);
        quarter(x, 2, 7, 8, 13);
        quarter(x, 3, 4, 9, 14);
    }
}

static inline lanes in_all_lanes(uint32_t word)
{
    return (lanes){word, word, word, word};
}

/* The key stream of the next LANES blocks: words[i][lane] is word i of block `lane`. */
static void make_blocks(uint32_t words[16][LANES], const uint32_t state[16])
{
    static const lanes count = {0, 1, 2, 3};
    lanes x[16], start[16];

    for (int i = 0; i < 16; i++)
        start[i] = in_all_lanes(state[i]);
    start[12] += count;
    memcpy(x, start, sizeof x);
    rounds(x);
    for (int i = 0; i < 16; i++)
        x[i] += start[i];
    memcpy(words, x, sizeof x);
}

static void xor_block(uint8_t *out, const uint8_t *in, const uint32_t words[16][LANES], size_t lane)
{
    for (size_t i = 0; i < 16; i++)
        ss_store_u32le(out + 4 * i, ss_load_u32le(in + 4 * i) ^ words[i][lane]);
}

void ss_chacha8_xor(uint8_t *out, const uint8_t *in, size_t len, const uint8_t key[32],
                    const uint8_t nonce[12], uint32_t counter)
{
    uint32_t words[16][LANES];
    uint32_t state[16];
    uint8_t last[BLOCK_LEN];

    ss_store_u32le(last, counter);
    memcpy(last + 4, nonce, 12);
    load(state, key, last);
    while (len != 0) {
        make_blocks(words, state);
        for (size_t lane = 0; lane < LANES && len != 0; lane++) {
            size_t take = len < BLOCK_LEN ? len : BLOCK_LEN;

            if (take == BLOCK_LEN) {
                xor_block(out, in, words, lane);
            } else {
                memset(last, 0, sizeof last);
                memcpy(last, in, take);
                xor_block(last, last, words, lane);
                memcpy(out, last, take);
            }
            out += take;
            in += take;
            len -= take;
        }
        state[12] += LANES;
    }
    ss_wipe(words, sizeof words);
    ss_wipe(state, sizeof state);
    ss_wipe(last, sizeof last);
}

void ss_hchacha8(uint8_t subkey[32], const uint8_t key[32], const uint8_t nonce[16])
{
    uint32_t state[16];
    lanes x[16];

    load(state, key, nonce);
    for (int i = 0; i < 16; i++)
        x[i] = in_all_lanes(state[i]);
    rounds(x);
    for (size_t i = 0; i < 4; i++) {
        ss_store_u32le(subkey + 4 * i, x[i][0]);
        ss_store_u32le(subkey + 16 + 4 * i, x[12 + i][0]);
    }
    ss_wipe(x, sizeof x);
    ss_wipe(state, sizeof state);
}
