/* The stream codec against streams that another implementation made. */
#include "codec/codec.h"

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "codec/codec_internal.h"
#include "support.h"
#include "vectors/read.h"

#define WIRE_MAX (128 * 1024)

static uint8_t plain[WIRE_MAX], wire[WIRE_MAX];

static void check_wire(const json_t *vector, size_t len)
{
    static uint8_t wanted[WIRE_MAX];
    uint8_t hash[crypto_hash_sha256_BYTES];

    assert_int_equal(len, vector_number(vector, "wire_len"));
    if (json_object_get(vector, "wire") != NULL) {
        assert_int_equal(vector_bytes(vector, "wire", wanted, sizeof wanted), len);
        assert_memory_equal(wire, wanted, len);
        return;
    }
    vector_bytes(vector, "wire_first_128", wanted, sizeof wanted);
    assert_memory_equal(wire, wanted, 128);
    vector_bytes(vector, "wire_last_64", wanted, sizeof wanted);
    assert_memory_equal(wire + len - 64, wanted, 64);
    crypto_hash_sha256(hash, wire, len);
    vector_bytes(vector, "wire_sha256", wanted, sizeof wanted);
    assert_memory_equal(hash, wanted, sizeof hash);
}

/* Seals the vector's writes one by one; returns all that went out. What was sealed is in `plain`,
 * without the target. */
static size_t seal_writes(const json_t *vector, struct ss_codec *codec, bool is_request,
                          struct ss_target *target, size_t *plain_len)
{
    const json_t *writes = json_object_get(vector, "writes");
    const json_t *write;
    size_t i, len = 0;

    *plain_len = 0;
    json_array_foreach(writes, i, write)
    {
        uint8_t *from = plain + *plain_len;
        size_t write_len = vector_plain(write, "plain", from, sizeof plain - *plain_len);
        size_t sealed;

        if (i == 0 && is_request) {
            struct ss_reader in = {from, write_len};

            assert_int_equal(ss_target_read(&in, target), SS_OK);
            ss_codec_set_target(codec, target);
            memmove(from, in.ptr, in.len);
            write_len = in.len;
        }
        sealed = seal_all(codec, from, write_len, wire + len, sizeof wire - len);
        assert_int_equal(sealed, vector_number(write, "wire_len"));
        len += sealed;
        *plain_len += write_len;
    }
    return len;
}

static void check_stream(const json_t *vector, const struct ss_method *method,
                         const struct ss_aead *aead)
{
    bool is_request = strstr(vector_text(vector, "id"), "/request-") != NULL;
    struct ss_profile *profile = profile_of(method, aead, NULL);
    struct ss_codec *sender = codec_of(profile, is_request ? SS_CODEC_CLIENT : SS_CODEC_SERVER);
    struct reader reader = {
        .codec = codec_of(profile, is_request ? SS_CODEC_SERVER : SS_CODEC_CLIENT),
        .plain = malloc(WIRE_MAX),
        .plain_cap = WIRE_MAX,
    };
    struct ss_target target;
    uint8_t salt[SS_SALT_MAX];
    size_t len, plain_len;

    assert_int_equal(vector_bytes(vector, "salt", salt, sizeof salt), method->salt_len);
    draw_next(salt, method->salt_len);
    len = seal_writes(vector, sender, is_request, &target, &plain_len);
    check_wire(vector, len);

    assert_int_equal(feed(&reader, wire, len), SS_OK);
    assert_int_equal(reader.rest_len, 0);
    assert_true(ss_codec_may_end(reader.codec, 0));
    assert_true(reader.codec->authenticated);
    assert_int_equal(reader.plain_len, plain_len);
    assert_memory_equal(reader.plain, plain, plain_len);
    if (is_request) {
        const struct ss_target *opened = ss_codec_target(reader.codec);

        assert_non_null(opened);
        assert_int_equal(opened->atyp, target.atyp);
        assert_int_equal(opened->port, target.port);
        assert_memory_equal(opened->ip, target.ip, sizeof target.ip);
        assert_string_equal(opened->name, target.name);
    } else {
        assert_null(ss_codec_target(reader.codec));
    }
    free_reader(&reader);
    free_codec(sender);
    ss_profile_release(profile);
}

static struct reader vector_reader(const json_t *vector, const struct ss_profile *profile)
{
    bool is_request = strstr(vector_text(vector, "id"), "/request-") != NULL;

    return (struct reader){
        .codec = codec_of(profile, is_request ? SS_CODEC_SERVER : SS_CODEC_CLIENT),
        .plain = malloc(WIRE_MAX),
        .plain_cap = WIRE_MAX,
    };
}

/* A prefix gives the beginning of what is in it and waits; a flipped bit ends it, at any place. */
static void check_spoilt(const json_t *vector, const struct ss_method *method,
                         const struct ss_aead *aead)
{
    struct ss_profile *profile;
    size_t len, step;
    struct reader whole;

    if (json_object_get(vector, "wire") == NULL) /* of a large one there is the hash alone */
        return;
    profile = profile_of(method, aead, NULL);
    len = vector_bytes(vector, "wire", wire, sizeof wire);
    step = spoilt_step(len);
    whole = vector_reader(vector, profile);
    assert_int_equal(feed(&whole, wire, len), SS_OK);
    for (size_t cut = 0; cut < len; cut += step) {
        struct reader reader = vector_reader(vector, profile);
        const struct ss_codec *codec = reader.codec;

        assert_int_equal(feed(&reader, wire, cut), SS_OK);
        assert_true(reader.plain_len <= whole.plain_len);
        assert_memory_equal(reader.plain, whole.plain, reader.plain_len);
        assert_true(ss_codec_target(codec) == NULL || codec->authenticated);
        if (cut + SS_AEAD_TAG_LEN + 1 >= len) /* inside the last chunk */
            assert_false(ss_codec_may_end(codec, reader.rest_len));
        assert_int_equal(feed(&reader, wire + cut, len - cut), SS_OK);
        assert_int_equal(reader.plain_len, whole.plain_len);
        free_reader(&reader);
    }
    for (size_t bit = 0; bit < len * 8; bit += step) {
        struct reader reader = vector_reader(vector, profile);

        wire[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(feed(&reader, wire, len), SS_ERR_AUTH);
        wire[bit / 8] ^= (uint8_t)(1u << bit % 8);
        free_reader(&reader);
    }
    free_reader(&whole);
    ss_profile_release(profile);
}

static const struct {
    const char *end_of_id;
    enum ss_status status; /* SS_OK: opens, but no target is ever whole */
} verdicts[] = {
    {"/len-reserved-bits", SS_ERR_FORMAT},
    {"/zero-chunk", SS_ERR_FORMAT},
    {"/bad-length-tag", SS_ERR_AUTH},
    {"/bad-payload-tag", SS_ERR_AUTH},
    {"/bad-first-length", SS_ERR_AUTH},
    {"/bad-atyp", SS_ERR_FORMAT},
    {"/short-addr", SS_OK},
};

static void check_invalid(const json_t *vector, const struct ss_method *method,
                          const struct ss_aead *aead)
{
    const char *id = vector_text(vector, "id");
    struct ss_profile *profile = profile_of(method, aead, NULL);
    size_t len = vector_bytes(vector, "wire", wire, sizeof wire);
    bool known = false;

    for (size_t i = 0; i < sizeof verdicts / sizeof verdicts[0]; i++) {
        struct reader reader;

        if (strcmp(strchr(id, '/'), verdicts[i].end_of_id) != 0)
            continue;
        known = true;
        reader = (struct reader){.codec = codec_of(profile, SS_CODEC_SERVER),
                                 .plain = malloc(WIRE_MAX),
                                 .plain_cap = WIRE_MAX};
        assert_int_equal(feed(&reader, wire, len), verdicts[i].status);
        if (verdicts[i].status != SS_OK) {
            /* Dead for good, whatever comes. */
            assert_int_equal(feed(&reader, wire, len), verdicts[i].status);
            assert_int_equal(feed(&reader, NULL, 0), verdicts[i].status);
            assert_false(ss_codec_may_end(reader.codec, 0));
        } else {
            assert_null(ss_codec_target(reader.codec));
        }
        assert_int_equal(reader.plain_len, 0);
        free_reader(&reader);
    }
    if (!known)
        fail_msg("no verdict for %s", id);
    ss_profile_release(profile);
}

/* Calls for each vector of a file on each provider of its method. */
static void for_vectors(const char *name, size_t at_least,
                        void (*check)(const json_t *vector, const struct ss_method *method,
                                      const struct ss_aead *aead))
{
    json_t *file = vectors_load(name);
    const json_t *vector;
    size_t i, checked = 0;

    json_array_foreach(file, i, vector)
    {
        const struct ss_method *method = ss_method_find(vector_text(vector, "method"));

        assert_non_null(method);
        for (int provider = 0; provider < SS_AEAD_PROVIDER_COUNT; provider++) {
            const struct ss_aead *aead =
                ss_aead_find(method->aead, (enum ss_aead_provider)provider);

            if (aead != NULL) {
                check(vector, method, aead);
                checked++;
            }
        }
    }
    assert_true(checked >= at_least);
    json_decref(file);
}

static void streams_are_those_of_the_vectors(void **state)
{
    (void)state;
    for_vectors("aead-tcp.json", 35, check_stream);
}

static void prefixes_wait_and_flipped_bits_are_refused(void **state)
{
    (void)state;
    for_vectors("aead-tcp.json", 35, check_spoilt);
}

static void invalid_streams_are_refused(void **state)
{
    (void)state;
    for_vectors("aead-tcp-invalid.json", 35, check_invalid);
}

int stream_vectors_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_those_of_the_vectors),
        cmocka_unit_test(prefixes_wait_and_flipped_bits_are_refused),
        cmocka_unit_test(invalid_streams_are_refused),
    };

    return cmocka_run_group_tests_name("codec/stream vectors", tests, NULL, NULL);
}
