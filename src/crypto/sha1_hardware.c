/* SHA-1 by the SHA instructions of x86-64 processors. Elsewhere there is none. */
#include "crypto/sha1.h"

#if defined(__x86_64__)

#include <stddef.h>

#include <cpuid.h>
#include <immintrin.h>

/*
 * Four rounds. `group` counts from 0 to 19; `w` holds the last sixteen words of the schedule in
 * four registers, `before` the state of four rounds ago, whose first word is the fifth word of now.
 */
#define ROUNDS(group)                                                                            \
    do {                                                                                         \
        if ((group) >= 4)                                                                        \
            w[(group) % 4] = _mm_sha1msg2_epu32(                                                 \
                _mm_xor_si128(_mm_sha1msg1_epu32(w[(group) % 4], w[((group) + 1) % 4]),          \
                              w[((group) + 2) % 4]),                                             \
                w[((group) + 3) % 4]);                                                           \
        e = (group) == 0 ? _mm_add_epi32(e, w[0]) : _mm_sha1nexte_epu32(before, w[(group) % 4]); \
        before = abcd;                                                                           \
        abcd = _mm_sha1rnds4_epu32(abcd, e, (group) / 5);                                        \
    } while (0)

__attribute__((target("sha,sse4.1"))) static void compress(uint32_t state[5],
                                                           const uint8_t block[SS_SHA1_BLOCK])
{
    const __m128i reversed = _mm_set_epi64x(0x0001020304050607, 0x08090a0b0c0d0e0f);
    __m128i abcd = _mm_shuffle_epi32(_mm_loadu_si128((const void *)state), 0x1b);
    __m128i e = _mm_set_epi32((int)state[4], 0, 0, 0);
    const __m128i abcd_start = abcd, e_start = e;
    __m128i before = abcd;
    __m128i w[4];

    for (int i = 0; i < 4; i++)
        w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const void *)(block + 16 * i)), reversed);
    ROUNDS(0);
    ROUNDS(1);
    ROUNDS(2);
    ROUNDS(3);
    ROUNDS(4);
    ROUNDS(5);
    ROUNDS(6);
    ROUNDS(7);
    ROUNDS(8);
    ROUNDS(9);
    ROUNDS(10);
    ROUNDS(11);
    ROUNDS(12);
    ROUNDS(13);
    ROUNDS(14);
    ROUNDS(15);
    ROUNDS(16);
    ROUNDS(17);
    ROUNDS(18);
    ROUNDS(19);
    e = _mm_sha1nexte_epu32(before, e_start);
    abcd = _mm_add_epi32(abcd, abcd_start);
    _mm_storeu_si128((void *)state, _mm_shuffle_epi32(abcd, 0x1b));
    state[4] = (uint32_t)_mm_extract_epi32(e, 3);
}

ss_sha1_compress_fn *ss_sha1_hardware(void)
{
    const unsigned sse41 = 1u << 19, ssse3 = 1u << 9; /* leaf 1, ecx */
    const unsigned sha = 1u << 29;                    /* leaf 7, ebx */
    unsigned a, b, c, d;

    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & sse41) == 0 || (c & ssse3) == 0)
        return NULL;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & sha) == 0)
        return NULL;
    return compress;
}

#else

ss_sha1_compress_fn *ss_sha1_hardware(void)
{
    return NULL;
}

#endif
