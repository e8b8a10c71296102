/* What the codec's tests share: profiles, codecs, and bytes of random draws that a test names. */
#ifndef SS_TESTS_CODEC_SUPPORT_H
#define SS_TESTS_CODEC_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/codec.h"

/* A profile with the password "foobar", or under a 2022 method with a key of its own; `aead` and
 * `salts` may be NULL. */
struct ss_profile *profile_of(const struct ss_method *method, const struct ss_aead *aead,
                              struct ss_salt_memory *salts);

/* A codec that has begun. `free_codec` ends and retires it. */
struct ss_codec *codec_of(const struct ss_profile *profile, enum ss_codec_role role);
void free_codec(struct ss_codec *codec);

struct ss_target target_of(const char *host, uint16_t port);

/* Calls for each method of a family with each of its providers. */
typedef void provider_check(const struct ss_method *method, const struct ss_aead *aead);
void for_each_provider_of(enum ss_family_of_methods family, provider_check *check);

/* The same for the methods of 2017. */
void for_each_provider(provider_check *check);

/* The next random bytes that are drawn, by one call or several; then random ones again. */
void draw_next(const uint8_t *bytes, size_t len);

/* Byte i is (i * 7 + i / 251) mod 256. */
void fill_pattern(uint8_t *bytes, size_t len);

/* Seals all of `plain` with room to spare, in one call; returns the bytes written. The time is 0,
 * or what is given. */
size_t seal_all(struct ss_codec *codec, const uint8_t *plain, size_t len, uint8_t *out, size_t cap);
size_t seal_all_at(struct ss_codec *codec, const uint8_t *plain, size_t len, uint8_t *out,
                   size_t cap, int64_t now_s);

/*
 * What a reader of a stream collects. Feed gives the codec the next `len` bytes behind the rest of
 * the call before, in memory of exactly that size, so that a sanitizer sees a step beyond it.
 */
struct reader {
    struct ss_codec *codec;
    uint8_t *plain;
    size_t plain_len, plain_cap;
    uint8_t *rest;
    size_t rest_len;
};
enum ss_status feed(struct reader *reader, const uint8_t *wire, size_t len);
enum ss_status feed_at(struct reader *reader, const uint8_t *wire, size_t len, int64_t now_s);
void free_reader(struct reader *reader);

/* Allocations by anything in the process so far, where they can be counted. */
unsigned long allocation_count(void);
bool allocations_are_counted(void);

/* From one cut or one flipped bit of a vector to the next: 1, and more in those of hundreds of
 * chunks and under a sanitizer, where it would take minutes. */
size_t spoilt_step(size_t len);

#endif
