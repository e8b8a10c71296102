/*
 * Random bytes: a ChaCha20 generator in each thread, seeded by the system.
 *
 * A salt is drawn for every connection and every datagram; asking the system each time would cost
 * as much as deriving the key. A block of key stream is made at a time, its first 32 bytes become
 * the next key at once, and bytes that were handed out are wiped: what a thread holds tells nothing
 * about what it gave out. The system is asked again after RESEED_BLOCKS blocks and in a forked
 * child.
 */
#include "crypto/random.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <sodium.h>

#include "crypto/secret.h"

#define KEY_LEN       crypto_stream_chacha20_KEYBYTES
#define BLOCK_LEN     768
#define RESEED_BLOCKS 64

static _Thread_local struct {
    uint8_t block[BLOCK_LEN];
    size_t left;     /* unused bytes at the end of `block` */
    unsigned blocks; /* that may still be made before the system is asked */
    unsigned forks;  /* value of fork_count when it was asked last */
    uint8_t key[KEY_LEN];
} generator;

static atomic_uint fork_count;
static ss_random_source_fn *test_source;

static void on_fork_in_child(void)
{
    atomic_fetch_add_explicit(&fork_count, 1, memory_order_relaxed);
}

enum ss_status ss_random_start(void)
{
    static bool watching_forks;

    if (sodium_init() < 0)
        return SS_ERR_RANDOM;
    if (!watching_forks) {
        if (pthread_atfork(NULL, NULL, on_fork_in_child) != 0)
            return SS_ERR_MEMORY;
        watching_forks = true;
    }
    return SS_OK;
}

static void refill(void)
{
    static const uint8_t nonce[crypto_stream_chacha20_NONCEBYTES];
    unsigned forks = atomic_load_explicit(&fork_count, memory_order_relaxed);

    if (generator.blocks == 0 || generator.forks != forks) {
        uint8_t fresh[KEY_LEN];

        randombytes_buf(fresh, sizeof fresh);
        for (size_t i = 0; i < KEY_LEN; i++)
            generator.key[i] ^= fresh[i];
        ss_wipe(fresh, sizeof fresh);
        generator.blocks = RESEED_BLOCKS;
        generator.forks = forks;
    }
    generator.blocks--;
    crypto_stream_chacha20(generator.block, BLOCK_LEN, nonce, generator.key);
    memcpy(generator.key, generator.block, KEY_LEN);
    ss_wipe(generator.block, KEY_LEN);
    generator.left = BLOCK_LEN - KEY_LEN;
}

void ss_random_bytes(void *out, size_t len)
{
    uint8_t *to = out;

    if (test_source != NULL) {
        test_source(out, len);
        return;
    }
    if (generator.forks != atomic_load_explicit(&fork_count, memory_order_relaxed))
        generator.left = 0; /* the parent has the same bytes */
    while (len != 0) {
        if (generator.left == 0)
            refill();

        size_t take = len < generator.left ? len : generator.left;
        uint8_t *from = generator.block + BLOCK_LEN - generator.left;

        memcpy(to, from, take);
        ss_wipe(from, take);
        generator.left -= take;
        to += take;
        len -= take;
    }
}

uint32_t ss_random_below(uint32_t bound)
{
    /* Numbers below 2^32 mod bound would make the small results likelier. */
    uint32_t skip = (uint32_t)(-bound) % bound;
    uint32_t number;

    do
        ss_random_bytes(&number, sizeof number);
    while (number < skip);
    return number % bound;
}

void ss_random_set_source(ss_random_source_fn *source)
{
    test_source = source;
}
