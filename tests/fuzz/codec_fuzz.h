/* What the fuzz targets of the codec share: a profile of each method, and draws that repeat. */
#ifndef SS_TESTS_FUZZ_CODEC_H
#define SS_TESTS_FUZZ_CODEC_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codec/profile.h"
#include "crypto/random.h"
#include "fuzz/fuzz.h"

/* Bytes that a few thousand grow by when they are sealed in one call, at most: everything that may
 * come first, and chunks. */
#define SEALED_MORE 4096

static uint32_t draw_state;

/* An input must do the same each time, so salts, cuts and flipped bits come from a number in it. */
static inline uint32_t draw(uint32_t bound)
{
    draw_state = draw_state * 1664525u + 1013904223u;
    return (draw_state >> 8) % bound;
}

static inline void draw_bytes(void *out, size_t len)
{
    for (size_t i = 0; i < len; i++)
        ((uint8_t *)out)[i] = (uint8_t)draw(256);
}

static inline void draw_from(uint32_t seed)
{
    draw_state = seed;
    ss_random_set_source(draw_bytes);
}

/* One of the methods of a family, made at its first use and kept. */
static inline const struct ss_profile *fuzz_profile_of(enum ss_family_of_methods family,
                                                       uint8_t number)
{
    static const uint8_t key[SS_KEY_MAX] = {'k', 'e', 'y'};
    static struct ss_profile *profiles[64];
    size_t count, found = 0;
    const struct ss_method *methods = ss_method_all(&count);
    size_t of_family[64];

    for (size_t i = 0; i < count; i++)
        if (methods[i].family == family)
            of_family[found++] = i;
    CHECK(count <= 64 && found != 0);

    size_t i = of_family[number % found];
    struct ss_profile_options options = {.method = &methods[i],
                                         .password = {(const uint8_t *)"foobar", 6}};

    if (family == SS_METHODS_2022)
        options.key = (struct ss_view){key, methods[i].key_len};
    if (profiles[i] == NULL)
        CHECK(ss_profile_new(&profiles[i], &options) == SS_OK);
    return profiles[i];
}

static inline const struct ss_profile *fuzz_profile(uint8_t number)
{
    return fuzz_profile_of(SS_METHODS_2017, number);
}

/* Zero memory, aligned as the codecs ask. */
static inline void *fuzz_slot(size_t size)
{
    void *slot = aligned_alloc(64, size);

    CHECK(slot != NULL);
    memset(slot, 0, size);
    return slot;
}

#endif
