/* TCP under the 2022 edition against streams that another implementation made. */
#include "codec/codec.h"

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "codec/codec_internal.h"
#include "support.h"
#include "vectors/read.h"
#include "vectors_2022.h"

#define WIRE_MAX (256 * 1024)

static uint8_t plain[WIRE_MAX], wire[WIRE_MAX], wanted[WIRE_MAX];

/* The whole text, or its hash and ends where it is long. */
static void check_wire(const json_t *vector, size_t len)
{
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

static struct reader reader_of(const struct ss_profile *profile, enum ss_codec_role role)
{
    struct reader reader = {
        .codec = codec_of(profile, role), .plain = malloc(WIRE_MAX), .plain_cap = WIRE_MAX};

    assert_non_null(reader.plain);
    return reader;
}

static size_t chunk_bytes(const json_t *chunk, uint8_t *out, size_t cap)
{
    const json_t *pattern = json_object_get(chunk, "pattern");
    size_t len, start;

    if (pattern == NULL)
        return vector_bytes(chunk, "hex", out, cap);
    len = vector_number(pattern, "len");
    start = vector_number(pattern, "start");
    assert_true(len <= cap);
    for (size_t i = 0; i < len; i++)
        out[i] = (uint8_t)((start + i) % 251);
    return len;
}

/* Behind the first write the vector's chunks; returns all that went out. */
static size_t seal_rest(const json_t *vector, struct ss_codec *sender, size_t len,
                        size_t *plain_len)
{
    const json_t *chunk;
    size_t i;

    assert_int_equal(len, vector_number(vector, "head_len"));
    json_array_foreach(json_object_get(vector, "chunks"), i, chunk)
    {
        size_t chunk_len = chunk_bytes(chunk, plain + *plain_len, sizeof plain - *plain_len);

        assert_int_equal(chunk_len, vector_number(chunk, "len"));
        len += seal_all_at(sender, plain + *plain_len, chunk_len, wire + len, sizeof wire - len,
                           VECTORS_NOW);
        *plain_len += chunk_len;
    }
    return len;
}

/* Our client makes the same bytes, where the padding is one that it would choose. */
static bool seal_request(const json_t *vector, const struct ss_method *method,
                         const struct ss_aead *aead, size_t *plain_len)
{
    uint8_t draws[SS_SALT_MAX + 4], padding[1024];
    size_t padding_len = vector_bytes(vector, "padding", padding, sizeof padding);
    uint32_t number = (uint32_t)(900 + padding_len - 1);
    struct ss_profile *profile;
    struct ss_codec *sender;
    struct ss_target target;
    size_t len;

    *plain_len = vector_plain(vector, "initial_payload", plain, sizeof plain);
    for (size_t i = 0; i < padding_len; i++)
        if (padding[i] != 0)
            return false;
    if (padding_len != 0 && *plain_len != 0)
        return false;

    profile = client_of(method, aead, vector_text(vector, "password"));
    sender = codec_of(profile, SS_CODEC_CLIENT);
    target = target_of(vector_text(vector, "host"), (uint16_t)vector_number(vector, "port"));
    assert_int_equal(vector_bytes(vector, "salt", draws, sizeof draws), method->salt_len);
    memcpy(draws + method->salt_len, &number, sizeof number);
    draw_next(draws, method->salt_len + (padding_len != 0 ? sizeof number : 0));
    ss_codec_set_target(sender, &target);
    len = seal_all_at(sender, plain, *plain_len, wire, sizeof wire, VECTORS_NOW);
    len = seal_rest(vector, sender, len, plain_len);
    check_wire(vector, len);
    free_codec(sender);
    ss_profile_release(profile);
    return true;
}

static void check_opened(const json_t *vector, const struct reader *reader)
{
    struct ss_target target =
        target_of(vector_text(vector, "host"), (uint16_t)vector_number(vector, "port"));
    const struct ss_target *opened = ss_codec_target(reader->codec);
    size_t len = vector_plain(vector, "initial_payload", wanted, sizeof wanted);

    assert_non_null(opened);
    assert_int_equal(opened->atyp, target.atyp);
    assert_int_equal(opened->port, target.port);
    assert_memory_equal(opened->ip, target.ip, sizeof target.ip);
    assert_string_equal(opened->name, target.name);
    assert_true(reader->plain_len >= len);
    assert_memory_equal(reader->plain, wanted, len);
    assert_int_equal(reader->rest_len, 0);
    assert_true(ss_codec_may_end(reader->codec, 0));
    assert_true(reader->codec->authenticated);
}

/* What a relay makes of a request with two headers, ready for the next server. */
static size_t relay(const struct ss_profile *profile, size_t len)
{
    struct reader reader = reader_of(profile, SS_CODEC_SERVER);
    const struct ss_user *user;

    assert_int_equal(feed_at(&reader, wire, len, VECTORS_NOW), SS_OK);
    user = ss_codec_user(reader.codec);
    assert_non_null(user);
    assert_non_null(user->next);
    assert_string_equal(user->next->host, "next.example");
    assert_int_equal(user->next->port, 8388);
    assert_null(ss_codec_target(reader.codec));
    assert_true(reader.codec->authenticated);
    assert_int_equal(reader.plain_len, len - 16);
    memcpy(wire, reader.plain, reader.plain_len);
    free_reader(&reader);
    return len - 16;
}

static void open_request(const json_t *vector, const struct ss_method *method,
                         const struct ss_aead *aead, size_t len, size_t plain_len)
{
    const json_t *chain = json_object_get(vector, "ipsks");
    struct ss_profile *profile = server_of_vector(method, aead, vector);
    struct reader reader;

    if (json_array_size(chain) == 2) {
        len = relay(profile, len);
        ss_profile_release(profile);
        profile = server_of(method, aead, json_string_value(json_array_get(chain, 1)),
                            vector_text(vector, "psk"), NULL);
    }
    reader = reader_of(profile, SS_CODEC_SERVER);
    assert_int_equal(feed_at(&reader, wire, len, VECTORS_NOW), SS_OK);
    check_opened(vector, &reader);
    if (plain_len != 0) {
        assert_int_equal(reader.plain_len, plain_len);
        assert_memory_equal(reader.plain, plain, plain_len);
    }
    if (json_array_size(chain) != 0)
        assert_string_equal(ss_codec_user(reader.codec)->name, "somebody");
    else
        assert_null(ss_codec_user(reader.codec));
    free_reader(&reader);
    ss_profile_release(profile);
}

/* Calls for each provider of a vector's method. */
static size_t for_providers(const json_t *vector,
                            void (*check)(const json_t *, const struct ss_method *,
                                          const struct ss_aead *))
{
    const struct ss_method *method = method_of_vector(vector);
    size_t checked = 0;

    for (int provider = 0; provider < SS_AEAD_PROVIDER_COUNT; provider++) {
        const struct ss_aead *aead = ss_aead_find(method->aead, (enum ss_aead_provider)provider);

        if (aead != NULL) {
            check(vector, method, aead);
            checked++;
        }
    }
    assert_true(checked >= 1);
    return checked;
}

static size_t requests_sealed;

static void check_request(const json_t *vector, const struct ss_method *method,
                          const struct ss_aead *aead)
{
    size_t plain_len;
    size_t len = vector_number(vector, "wire_len");

    if (seal_request(vector, method, aead, &plain_len)) {
        requests_sealed++;
    } else {
        assert_int_equal(vector_bytes(vector, "wire", wire, sizeof wire), len);
        plain_len = 0;
    }
    open_request(vector, method, aead, len, plain_len);
}

static void requests_are_those_of_the_vectors(void **state)
{
    json_t *file = vectors_load("aead2022-tcp.json");
    const json_t *vector;
    size_t i, checked = 0;

    (void)state;
    requests_sealed = 0;
    json_array_foreach(json_object_get(file, "request"), i, vector) checked +=
        for_providers(vector, check_request);
    assert_true(i >= 44 && requests_sealed * 2 > checked);
    json_decref(file);
}

/* A session whose request had this salt, on both sides. */
static void exchange_request(const json_t *vector, struct ss_codec *client, struct reader *server)
{
    static uint8_t request[4096];
    struct ss_target target = target_of("192.0.2.1", 80);
    uint8_t salt[SS_SALT_MAX];
    size_t salt_len = vector_bytes(vector, "request_salt", salt, sizeof salt);
    size_t len;

    draw_next(salt, salt_len);
    ss_codec_set_target(client, &target);
    len = seal_all_at(client, (const uint8_t *)"x", 1, request, sizeof request, VECTORS_NOW);
    if (server != NULL)
        assert_int_equal(feed_at(server, request, len, VECTORS_NOW), SS_OK);
}

static void check_response(const json_t *vector, const struct ss_method *method,
                           const struct ss_aead *aead)
{
    struct ss_profile *client = client_of(method, aead, vector_text(vector, "psk_base64"));
    struct ss_profile *server = server_of(method, aead, vector_text(vector, "psk"), NULL, NULL);
    struct reader asker = reader_of(client, SS_CODEC_CLIENT);
    struct reader answerer = reader_of(server, SS_CODEC_SERVER);
    uint8_t salt[SS_SALT_MAX];
    size_t plain_len = vector_plain(vector, "first_payload", plain, sizeof plain);
    size_t len;

    exchange_request(vector, asker.codec, &answerer);
    assert_int_equal(vector_bytes(vector, "salt", salt, sizeof salt), method->salt_len);
    draw_next(salt, method->salt_len);
    len = seal_all_at(answerer.codec, plain, plain_len, wire, sizeof wire, VECTORS_NOW);
    len = seal_rest(vector, answerer.codec, len, &plain_len);
    check_wire(vector, len);

    assert_int_equal(feed_at(&asker, wire, len, VECTORS_NOW), SS_OK);
    assert_int_equal(asker.plain_len, plain_len);
    assert_memory_equal(asker.plain, plain, plain_len);
    assert_true(ss_codec_may_end(asker.codec, 0) && asker.codec->authenticated);
    free_reader(&asker);
    free_reader(&answerer);
    ss_profile_release(client);
    ss_profile_release(server);
}

static void responses_are_those_of_the_vectors(void **state)
{
    json_t *file = vectors_load("aead2022-tcp.json");
    const json_t *vector;
    size_t i;

    (void)state;
    json_array_foreach(json_object_get(file, "response"), i, vector)
        for_providers(vector, check_response);
    assert_true(i >= 12);
    json_decref(file);
}

static void check_relay(const json_t *vector, const struct ss_method *method,
                        const struct ss_aead *aead)
{
    static const struct ss_endpoint next = {.host = "next.example", .port = 8388};
    struct ss_profile *profile = server_of(method, aead, vector_text(vector, "relay_ipsk"),
                                           vector_text(vector, "next_psk"), &next);
    size_t len = relay(profile, vector_bytes(vector, "in", wire, sizeof wire));

    assert_int_equal(vector_bytes(vector, "out", wanted, sizeof wanted), len);
    assert_memory_equal(wire, wanted, len);
    ss_profile_release(profile);
}

static void a_relay_takes_the_first_identity_header_out(void **state)
{
    json_t *file = vectors_load("aead2022-tcp.json");
    const json_t *vector;
    size_t i;

    (void)state;
    json_array_foreach(json_object_get(file, "relay"), i, vector)
        for_providers(vector, check_relay);
    assert_int_equal(i, 2);
    json_decref(file);
}

static const struct {
    const char *end_of_id;
    enum ss_status status;
} verdicts[] = {
    {"/type-1", SS_ERR_FORMAT},
    {"/type-0", SS_ERR_FORMAT},
    {"/stale-31", SS_ERR_STALE},
    {"/future-31", SS_ERR_STALE},
    {"/timestamp-huge", SS_ERR_STALE},
    {"/no-padding-no-payload", SS_ERR_FORMAT},
    {"/padding-too-long", SS_ERR_FORMAT},
    {"/cut-padding-length", SS_ERR_FORMAT},
    {"/cut-address", SS_ERR_FORMAT},
    {"/atyp-9", SS_ERR_FORMAT},
    {"/domain-0", SS_ERR_FORMAT},
    {"/var-len-0", SS_ERR_FORMAT},
    {"/tag-fixed", SS_ERR_AUTH},
    {"/tag-variable", SS_ERR_AUTH},
    {"/salt-altered", SS_ERR_AUTH},
    {"/identity-altered", SS_ERR_AUTH},
    {"/short", SS_ERR_AUTH},
    {"/wrong-request-salt", SS_ERR_REPLAY},
    {"/zero-length", SS_ERR_FORMAT},
    {"/tag", SS_ERR_AUTH},
};

static enum ss_status verdict_of(const json_t *vector)
{
    const char *end = strrchr(vector_text(vector, "id"), '/');

    for (size_t i = 0; i < sizeof verdicts / sizeof verdicts[0]; i++)
        if (strcmp(end, verdicts[i].end_of_id) == 0)
            return verdicts[i].status;
    fail_msg("no verdict for %s", vector_text(vector, "id"));
    return SS_OK;
}

/* What the receiver of a vector is before it comes: of a request with two headers, the relay. */
static struct reader vector_reader(const json_t *vector, const struct ss_profile *profile)
{
    struct reader reader;

    if (json_object_get(vector, "request_salt") == NULL)
        return reader_of(profile, SS_CODEC_SERVER);
    reader = reader_of(profile, SS_CODEC_CLIENT);
    exchange_request(vector, reader.codec, NULL);
    return reader;
}

/* A cut inside what must come in one read is refused, a later one waits for more; any flipped bit
 * is refused, but for those that a relay can't see. */
static void check_spoilt(const json_t *vector, const struct ss_method *method,
                         const struct ss_aead *aead)
{
    bool is_request = json_object_get(vector, "request_salt") == NULL;
    size_t headers = json_array_size(json_object_get(vector, "ipsks"));
    size_t first = method->salt_len + 11 + SS_AEAD_TAG_LEN;
    size_t len, step, seen;
    struct ss_profile *profile;

    if (json_object_get(vector, "wire") == NULL) /* of a large one there is the hash alone */
        return;
    profile = is_request ? server_of_vector(method, aead, vector)
                         : server_of(method, aead, vector_text(vector, "psk"), NULL, NULL);
    len = vector_bytes(vector, "wire", wire, sizeof wire);
    step = spoilt_step(len);
    seen = headers == 2 ? method->salt_len + SS_IDENTITY_LEN : len;
    first += is_request ? (headers != 0 ? SS_IDENTITY_LEN : 0) : method->salt_len;
    for (size_t cut = 1; cut < len; cut += step) {
        struct reader reader = vector_reader(vector, profile);

        if (cut < first) {
            assert_int_equal(feed_at(&reader, wire, cut, VECTORS_NOW), SS_ERR_AUTH);
            assert_int_equal(reader.plain_len, 0);
        } else {
            assert_int_equal(feed_at(&reader, wire, cut, VECTORS_NOW), SS_OK);
            if (headers < 2 && cut + SS_AEAD_TAG_LEN + 1 >= len) /* inside the last chunk */
                assert_false(ss_codec_may_end(reader.codec, reader.rest_len));
            assert_int_equal(feed_at(&reader, wire + cut, len - cut, VECTORS_NOW), SS_OK);
        }
        free_reader(&reader);
    }
    for (size_t bit = 0; bit < seen * 8; bit += step) {
        struct reader reader = vector_reader(vector, profile);

        wire[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(feed_at(&reader, wire, len, VECTORS_NOW), SS_ERR_AUTH);
        assert_int_equal(reader.plain_len, 0);
        wire[bit / 8] ^= (uint8_t)(1u << bit % 8);
        free_reader(&reader);
    }
    ss_profile_release(profile);
}

static void any_cut_or_flipped_bit_is_refused(void **state)
{
    json_t *file = vectors_load("aead2022-tcp.json");
    const json_t *vector;
    size_t i, checked = 0;

    (void)state;
    json_array_foreach(json_object_get(file, "request"), i, vector) checked +=
        for_providers(vector, check_spoilt);
    json_array_foreach(json_object_get(file, "response"), i, vector) checked +=
        for_providers(vector, check_spoilt);
    assert_true(checked >= 56);
    json_decref(file);
}

/* `now_s` is when the vector says; a stale one says by how much. */
static void check_refused(struct reader *reader, const json_t *vector, size_t len)
{
    enum ss_status verdict = verdict_of(vector);
    int64_t now_s = (int64_t)vector_number(vector, "now");

    assert_int_equal(feed_at(reader, wire, len, now_s), verdict);
    if (verdict == SS_ERR_STALE) {
        int64_t difference = ss_codec_clock_difference(reader->codec);

        assert_true(difference == 31 || difference == -31 || difference == INT64_MAX);
    }
    /* Dead for good, whatever comes. */
    assert_int_equal(feed_at(reader, wire, len, now_s), verdict);
    assert_int_equal(feed_at(reader, NULL, 0, now_s), verdict);
    assert_false(ss_codec_may_end(reader->codec, 0));
    assert_int_equal(reader->plain_len, 0);
    assert_null(ss_codec_target(reader->codec));
}

static void check_invalid(const json_t *vector, const struct ss_method *method,
                          const struct ss_aead *aead)
{
    size_t len = vector_bytes(vector, "wire", wire, sizeof wire);
    struct ss_profile *profile;
    struct reader reader;

    if (strcmp(vector_text(vector, "side"), "server") == 0) {
        profile = server_of_vector(method, aead, vector);
        reader = reader_of(profile, SS_CODEC_SERVER);
    } else {
        profile = server_of(method, aead, vector_text(vector, "psk"), NULL, NULL);
        reader = reader_of(profile, SS_CODEC_CLIENT);
        exchange_request(vector, reader.codec, NULL);
    }
    check_refused(&reader, vector, len);
    free_reader(&reader);
    ss_profile_release(profile);
}

static void invalid_streams_are_refused(void **state)
{
    json_t *file = vectors_load("aead2022-tcp-invalid.json");
    const json_t *vector;
    size_t i;

    (void)state;
    json_array_foreach(file, i, vector) for_providers(vector, check_invalid);
    assert_true(i >= 112);
    json_decref(file);
}

static void check_edge(const json_t *vector, const struct ss_method *method,
                       const struct ss_aead *aead)
{
    struct ss_profile *profile = server_of_vector(method, aead, vector);
    struct reader reader = reader_of(profile, SS_CODEC_SERVER);
    size_t len = vector_bytes(vector, "wire", wire, sizeof wire);

    assert_true(json_is_true(json_object_get(vector, "accept")));
    assert_int_equal(feed_at(&reader, wire, len, (int64_t)vector_number(vector, "now")), SS_OK);
    assert_non_null(ss_codec_target(reader.codec));
    free_reader(&reader);
    ss_profile_release(profile);
}

static void thirty_seconds_are_accepted(void **state)
{
    json_t *file = vectors_load("aead2022-tcp-edge.json");
    const json_t *vector;
    size_t i;

    (void)state;
    json_array_foreach(file, i, vector) for_providers(vector, check_edge);
    assert_true(i >= 8);
    json_decref(file);
}

int aead2022_vectors_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_those_of_the_vectors),
        cmocka_unit_test(responses_are_those_of_the_vectors),
        cmocka_unit_test(a_relay_takes_the_first_identity_header_out),
        cmocka_unit_test(any_cut_or_flipped_bit_is_refused),
        cmocka_unit_test(invalid_streams_are_refused),
        cmocka_unit_test(thirty_seconds_are_accepted),
    };

    return cmocka_run_group_tests_name("codec/2022 vectors", tests, NULL, NULL);
}
