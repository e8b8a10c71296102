/* What the codec's tests share. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "crypto/random.h"
#include "vectors/allocations.h"
#include "vectors/read.h"

unsigned long allocation_count(void)
{
    return allocations;
}

bool allocations_are_counted(void)
{
    return allocations_count();
}

struct ss_profile *profile_of(const struct ss_method *method, const struct ss_aead *aead,
                              struct ss_salt_memory *salts)
{
    static const uint8_t key[SS_KEY_MAX] = {'k', 'e', 'y'};
    struct ss_profile_options options = {
        .method = method,
        .aead = aead,
        .salts = salts,
        .password = {(const uint8_t *)"foobar", 6},
    };
    struct ss_profile *profile;

    if (method->family == SS_METHODS_2022)
        options.key = (struct ss_view){key, method->key_len};

    assert_int_equal(ss_profile_new(&profile, &options), SS_OK);
    return profile;
}

struct ss_codec *codec_of(const struct ss_profile *profile, enum ss_codec_role role)
{
    size_t size = ss_codec_size(profile);
    struct ss_codec *codec = aligned_alloc(64, size);

    assert_non_null(codec);
    assert_int_equal(size % 64, 0);
    memset(codec, 0, size);
    assert_int_equal(ss_codec_begin(codec, profile, role), SS_OK);
    return codec;
}

void free_codec(struct ss_codec *codec)
{
    ss_codec_end(codec);
    ss_codec_retire(codec);
    free(codec);
}

struct ss_target target_of(const char *host, uint16_t port)
{
    struct ss_target target;

    assert_int_equal(ss_target_from_host(&target, host, port), SS_OK);
    return target;
}

void for_each_provider_of(enum ss_family_of_methods family, provider_check *check)
{
    size_t count;
    const struct ss_method *methods = ss_method_all(&count);

    for (size_t i = 0; i < count; i++) {
        int found = 0;

        if (methods[i].family != family)
            continue;
        for (int provider = 0; provider < SS_AEAD_PROVIDER_COUNT; provider++) {
            const struct ss_aead *aead =
                ss_aead_find(methods[i].aead, (enum ss_aead_provider)provider);

            if (aead != NULL) {
                check(&methods[i], aead);
                found++;
            }
        }
        assert_true(found >= 1);
    }
}

void for_each_provider(provider_check *check)
{
    for_each_provider_of(SS_METHODS_2017, check);
}

static const uint8_t *drawn;
static size_t drawn_len;

static void draw(void *out, size_t len)
{
    assert_true(len <= drawn_len);
    memcpy(out, drawn, len);
    drawn += len;
    drawn_len -= len;
    if (drawn_len == 0)
        ss_random_set_source(NULL);
}

void draw_next(const uint8_t *bytes, size_t len)
{
    drawn = bytes;
    drawn_len = len;
    ss_random_set_source(draw);
}

void fill_pattern(uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 251);
}

size_t seal_all(struct ss_codec *codec, const uint8_t *plain, size_t len, uint8_t *out, size_t cap)
{
    return seal_all_at(codec, plain, len, out, cap, 0);
}

size_t seal_all_at(struct ss_codec *codec, const uint8_t *plain, size_t len, uint8_t *out,
                   size_t cap, int64_t now_s)
{
    struct ss_view from = {plain, len};
    struct ss_span to = {out, cap};

    assert_int_equal(ss_codec_seal(codec, &from, &to, now_s), SS_OK);
    assert_int_equal(from.len, 0);
    return (size_t)(to.ptr - out);
}

enum ss_status feed(struct reader *reader, const uint8_t *wire, size_t len)
{
    return feed_at(reader, wire, len, 0);
}

enum ss_status feed_at(struct reader *reader, const uint8_t *wire, size_t len, int64_t now_s)
{
    size_t have = reader->rest_len + len;
    uint8_t *bytes = malloc(have != 0 ? have : 1);
    struct ss_opened opened;
    enum ss_status status;

    assert_non_null(bytes);
    if (reader->rest_len != 0)
        memcpy(bytes, reader->rest, reader->rest_len);
    if (len != 0)
        memcpy(bytes + reader->rest_len, wire, len);
    free(reader->rest);
    reader->rest = NULL;
    reader->rest_len = 0;

    status = ss_codec_open(reader->codec, (struct ss_span){bytes, have}, now_s, &opened);
    assert_true(opened.count <= SS_OPENED_MAX && opened.rest_len <= have);
    if (status != SS_OK)
        assert_true(opened.count == 0 && opened.payload_len == 0 && opened.rest_len == 0);

    size_t sum = 0;

    for (size_t i = 0; i < opened.count; i++) {
        const struct ss_span *payload = &opened.payload[i];

        assert_true(payload->len != 0);
        assert_true(payload->ptr >= bytes && payload->ptr + payload->len <= bytes + have);
        assert_true(reader->plain_len + payload->len <= reader->plain_cap);
        memcpy(reader->plain + reader->plain_len, payload->ptr, payload->len);
        reader->plain_len += payload->len;
        sum += payload->len;
    }
    assert_int_equal(sum, opened.payload_len);
    assert_true(opened.rest_len <= SS_REST_MAX);
    if (opened.rest_len != 0) {
        reader->rest = malloc(opened.rest_len);
        assert_non_null(reader->rest);
        memcpy(reader->rest, bytes + have - opened.rest_len, opened.rest_len);
        reader->rest_len = opened.rest_len;
    }
    free(bytes);
    return status;
}

void free_reader(struct reader *reader)
{
    free(reader->rest);
    free(reader->plain);
    free_codec(reader->codec);
}

size_t spoilt_step(size_t len)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return len <= 300 ? 7 : 83;
#else
    return len <= 1400 ? 1 : 41;
#endif
}
