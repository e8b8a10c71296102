/*
 * HKDF-SHA1 (RFC 5869) with info "ss-subkey" by the SHA instructions of x86 processors.
 *
 * Every datagram of the 2017 methods needs two of these. Salt, key, and what is hashed of them each
 * fit into one block, so a subkey of 32 bytes is ten compressions, which a general hash surrounds
 * with buffers, byte orders and counters that take as long as they. Here the words of a block, the
 * digests among them, stay in registers. Of the ten, eight wait for one another, which leaves the
 * processor half idle: those of two salts side by side take two thirds of the time.
 */
#include "crypto/kdf_2017_internal.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <cpuid.h>
#include <immintrin.h>
#include <stdatomic.h>
#include <string.h>

#include "crypto/secret.h"

#define SHA1_INSTRUCTIONS __attribute__((target("sha,sse4.1")))
#define SHA1_STEP         SHA1_INSTRUCTIONS __attribute__((always_inline)) static inline

#define KEY_MAX  32
#define SHA1_LEN 20

/* Words lie with the first one on top, as the instructions take them; `e` has only that one. */
struct state {
    __m128i abcd, e;
};

struct block {
    __m128i w[4];
};

struct hmac {
    struct state inner, outer;
};

/* Four rounds with words that are there, and four with words that are made of the 16 before. */
#define ROUNDS(i, kind)                                                           \
    do {                                                                          \
        const __m128i before = s.abcd;                                            \
                                                                                  \
        e = (i) == 0 ? _mm_add_epi32(e, w[0]) : _mm_sha1nexte_epu32(e, w[(i)&3]); \
        s.abcd = _mm_sha1rnds4_epu32(s.abcd, e, kind);                            \
        e = before;                                                               \
    } while (0)

#define EXPAND(i)                                                                         \
    (w[(i)&3] = _mm_sha1msg2_epu32(                                                       \
         _mm_xor_si128(_mm_sha1msg1_epu32(w[(i)&3], w[((i) + 1) & 3]), w[((i) + 2) & 3]), \
         w[((i) + 3) & 3]))

#define EXPANDED_ROUNDS(i, kind) \
    do {                         \
        EXPAND(i);               \
        ROUNDS(i, kind);         \
    } while (0)

SHA1_STEP struct state compress(struct state from, struct block block)
{
    __m128i w[4] = {block.w[0], block.w[1], block.w[2], block.w[3]};
    struct state s = from;
    __m128i e = from.e;

    ROUNDS(0, 0);
    ROUNDS(1, 0);
    ROUNDS(2, 0);
    ROUNDS(3, 0);
    EXPANDED_ROUNDS(4, 0);
    EXPANDED_ROUNDS(5, 1);
    EXPANDED_ROUNDS(6, 1);
    EXPANDED_ROUNDS(7, 1);
    EXPANDED_ROUNDS(8, 1);
    EXPANDED_ROUNDS(9, 1);
    EXPANDED_ROUNDS(10, 2);
    EXPANDED_ROUNDS(11, 2);
    EXPANDED_ROUNDS(12, 2);
    EXPANDED_ROUNDS(13, 2);
    EXPANDED_ROUNDS(14, 2);
    EXPANDED_ROUNDS(15, 3);
    EXPANDED_ROUNDS(16, 3);
    EXPANDED_ROUNDS(17, 3);
    EXPANDED_ROUNDS(18, 3);
    EXPANDED_ROUNDS(19, 3);
    s.e = _mm_sha1nexte_epu32(e, from.e);
    s.abcd = _mm_add_epi32(s.abcd, from.abcd);
    return s;
}

SHA1_STEP __m128i words(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return _mm_set_epi32((int)a, (int)b, (int)c, (int)d);
}

/* From and to the byte order of SHA-1, with the first word on top. */
SHA1_STEP __m128i turned(__m128i bytes)
{
    return _mm_shuffle_epi8(bytes,
                            _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}

SHA1_STEP __m128i load(const uint8_t *bytes)
{
    __m128i loaded;

    memcpy(&loaded, bytes, sizeof loaded);
    return turned(loaded);
}

SHA1_STEP void store(uint8_t *bytes, __m128i stored)
{
    stored = turned(stored);
    memcpy(bytes, &stored, sizeof stored);
}

/* A block that ends a message of one block and `len` bytes: `a` and `b` have these, and the bit
 * behind them. */
SHA1_STEP struct block last_block(__m128i a, __m128i b, __m128i c, uint32_t len)
{
    return (struct block){{a, b, c, words(0, 0, 0, (64 + len) * 8)}};
}

/* HMAC (RFC 2104) under a key of at most 32 bytes, filled up with zeroes. */
SHA1_STEP struct hmac hmac_of(__m128i a, __m128i b)
{
    const struct state start = {words(0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476),
                                words(0xc3d2e1f0, 0, 0, 0)};
    const __m128i inner = _mm_set1_epi8(0x36), outer = _mm_set1_epi8(0x5c);
    const struct block in = {{_mm_xor_si128(a, inner), _mm_xor_si128(b, inner), inner, inner}};
    const struct block out = {{_mm_xor_si128(a, outer), _mm_xor_si128(b, outer), outer, outer}};

    return (struct hmac){.inner = compress(start, in), .outer = compress(start, out)};
}

SHA1_STEP struct state code_of(const struct hmac *hmac, struct block text)
{
    const struct state digest = compress(hmac->inner, text);
    const __m128i rest = _mm_or_si128(digest.e, words(0, 0x80000000, 0, 0));

    return compress(hmac->outer, last_block(digest.abcd, rest, _mm_setzero_si128(), SHA1_LEN));
}

/* `count` is a constant wherever it is called. */
SHA1_STEP void subkeys_of(uint8_t *const *subkeys, const uint8_t *key, const uint8_t *const *salts,
                          size_t count, size_t key_len)
{
    const __m128i zero = _mm_setzero_si128();
    uint8_t bytes[KEY_MAX + 16] = {0}, out[2][KEY_MAX + 16];
    struct hmac hmac[2];
    struct state code[2];
    struct block text;

    for (size_t i = 0; i < count; i++) {
        memcpy(bytes, salts[i], key_len);
        hmac[i] = hmac_of(load(bytes), load(bytes + 16));
    }
    memcpy(bytes, key, key_len);
    bytes[key_len] = 0x80;
    text = last_block(load(bytes), load(bytes + 16), load(bytes + 32), (uint32_t)key_len);
    for (size_t i = 0; i < count; i++)
        code[i] = code_of(&hmac[i], text);

    /* "ss-subkey", the number of the round, and the bit behind; the second has the code of the
     * first in front. */
    text = last_block(words(0x73732d73, 0x75626b65, 0x79018000, 0), zero, zero, 10);
    for (size_t i = 0; i < count; i++)
        hmac[i] = hmac_of(code[i].abcd, code[i].e);
    for (size_t i = 0; i < count; i++) {
        code[i] = code_of(&hmac[i], text);
        store(out[i], code[i].abcd);
        store(out[i] + 16, code[i].e);
    }
    for (size_t i = 0; key_len > SHA1_LEN && i < count; i++) {
        const __m128i rest = _mm_or_si128(code[i].e, words(0, 0x73732d73, 0x75626b65, 0x79028000));

        code[i] = code_of(&hmac[i], last_block(code[i].abcd, rest, zero, SHA1_LEN + 10));
        store(out[i] + SHA1_LEN, code[i].abcd);
    }
    for (size_t i = 0; i < count; i++)
        memcpy(subkeys[i], out[i], key_len);
    ss_wipe(bytes, sizeof bytes);
    ss_wipe(out, sizeof out);
}

SHA1_INSTRUCTIONS static void one_subkey(uint8_t *const *subkeys, const uint8_t *key,
                                         const uint8_t *const *salts, size_t key_len)
{
    subkeys_of(subkeys, key, salts, 1, key_len);
}

SHA1_INSTRUCTIONS static void two_subkeys(uint8_t *const *subkeys, const uint8_t *key,
                                          const uint8_t *const *salts, size_t key_len)
{
    subkeys_of(subkeys, key, salts, 2, key_len);
}

/* Asked once: where the system is a guest, the instruction that tells is slow. */
static bool has_instructions(void)
{
    enum { UNKNOWN, ABSENT, PRESENT };
    static atomic_int known = UNKNOWN;
    int is = atomic_load_explicit(&known, memory_order_relaxed);
    unsigned a, b, c, d;

    if (is == UNKNOWN) {
        is = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSSE3) && (c & bit_SSE4_1) &&
                     __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA)
                 ? PRESENT
                 : ABSENT;
        atomic_store_explicit(&known, is, memory_order_relaxed);
    }
    return is == PRESENT;
}

bool ss_kdf_subkeys_2017_x86(uint8_t *const *subkeys, const uint8_t *key,
                             const uint8_t *const *salts, size_t count, size_t key_len)
{
    if (key_len > KEY_MAX || !has_instructions())
        return false;
    if (count == 2)
        two_subkeys(subkeys, key, salts, key_len);
    else
        one_subkey(subkeys, key, salts, key_len);
    return true;
}

#else

bool ss_kdf_subkeys_2017_x86(uint8_t *const *subkeys, const uint8_t *key,
                             const uint8_t *const *salts, size_t count, size_t key_len)
{
    (void)subkeys;
    (void)key;
    (void)salts;
    (void)count;
    (void)key_len;
    return false;
}

#endif
