/* The stream codec: cuts, refusals, room, reuse, replays. */
#include "codec/codec.h"

#include <stdlib.h>
#include <string.h>

#include "codec/codec_internal.h"
#include "crypto/random.h"
#include "support.h"
#include "vectors/read.h"

#define PLAIN_MAX (1024 * 1024)
#define WIRE_MAX  (PLAIN_MAX + 300000)

static uint8_t plain[PLAIN_MAX], wire[WIRE_MAX];

static struct reader reader_of(const struct ss_profile *profile, enum ss_codec_role role)
{
    struct reader reader = {
        .codec = codec_of(profile, role), .plain = malloc(PLAIN_MAX), .plain_cap = PLAIN_MAX};

    assert_non_null(reader.plain);
    return reader;
}

/* A request: the target, and chunks of these sizes. Returns its length; edges[i] is where the i-th
 * sealed part ends (salt, length, payload, length, payload, ...). */
static size_t make_request(const struct ss_profile *profile, const size_t *sizes, size_t count,
                           size_t *edges, size_t *edge_count)
{
    struct ss_codec *sender = codec_of(profile, SS_CODEC_CLIENT);
    struct ss_target target = target_of("host.example", 443);
    size_t len = 0, at = 0, n = 0;

    fill_pattern(plain, PLAIN_MAX);
    ss_codec_set_target(sender, &target);
    for (size_t i = 0; i < count; i++) {
        size_t before = len;

        len += seal_all(sender, plain + at, sizes[i], wire + len, sizeof wire - len);
        at += sizes[i];
        if (edges == NULL)
            continue;
        if (i == 0)
            edges[n++] = before += ss_profile_method(profile)->salt_len;
        edges[n++] = before + 18;
        edges[n++] = len;
    }
    if (edge_count != NULL)
        *edge_count = n;
    free_codec(sender);
    return len;
}

static void check_opened(const struct reader *reader, size_t plain_len)
{
    const struct ss_target *target = ss_codec_target(reader->codec);

    assert_non_null(target);
    assert_string_equal(target->name, "host.example");
    assert_int_equal(target->port, 443);
    assert_int_equal(reader->plain_len, plain_len);
    assert_memory_equal(reader->plain, plain, plain_len);
    assert_int_equal(reader->rest_len, 0);
    assert_true(ss_codec_may_end(reader->codec, 0));
}

static const size_t sizes[] = {0, 1, 700, 5000, 2, 16383};
#define SIZE_COUNT (sizeof sizes / sizeof sizes[0])
#define SIZE_SUM   (0 + 1 + 700 + 5000 + 2 + 16383)

static void check_byte_by_byte(const struct ss_method *method, const struct ss_aead *aead)
{
    struct ss_profile *profile = profile_of(method, aead, NULL);
    struct reader reader = reader_of(profile, SS_CODEC_SERVER);
    size_t len = make_request(profile, sizes, SIZE_COUNT, NULL, NULL);

    for (size_t i = 0; i < len; i++)
        assert_int_equal(feed(&reader, wire + i, 1), SS_OK);
    check_opened(&reader, SIZE_SUM);
    free_reader(&reader);
    ss_profile_release(profile);
}

static void a_stream_opens_byte_by_byte(void **state)
{
    (void)state;
    for_each_provider(check_byte_by_byte);
}

static void check_every_edge(const struct ss_method *method, const struct ss_aead *aead)
{
    struct ss_profile *profile = profile_of(method, aead, NULL);
    size_t edges[2 * SIZE_COUNT + 1], edge_count;
    size_t len = make_request(profile, sizes, SIZE_COUNT, edges, &edge_count);

    assert_int_equal(edge_count, 2 * SIZE_COUNT + 1);
    assert_int_equal(edges[edge_count - 1], len);
    for (size_t i = 0; i < edge_count; i++)
        for (int shift = -1; shift <= 1; shift++) {
            struct reader reader = reader_of(profile, SS_CODEC_SERVER);
            size_t cut = edges[i] + (size_t)shift;

            if (cut > len)
                cut = len;
            assert_int_equal(feed(&reader, wire, cut), SS_OK);
            /* Only at the end of a payload, or of the salt, may a stream end. */
            assert_int_equal(ss_codec_may_end(reader.codec, reader.rest_len),
                             shift == 0 && (i % 2 == 0) ? 1 : cut == len);
            assert_int_equal(feed(&reader, wire + cut, len - cut), SS_OK);
            check_opened(&reader, SIZE_SUM);
            free_reader(&reader);
        }
    ss_profile_release(profile);
}

static void a_stream_opens_when_cut_at_any_edge(void **state)
{
    (void)state;
    for_each_provider(check_every_edge);
}

static void check_random_cuts(const struct ss_method *method, const struct ss_aead *aead)
{
    struct ss_profile *profile = profile_of(method, aead, NULL);

    for (int round = 0; round < 5; round++) {
        struct reader reader = reader_of(profile, SS_CODEC_SERVER);
        size_t chunks[200], sum = 0, len;

        for (size_t i = 0; i < 200; i++)
            sum += chunks[i] = ss_random_below(i % 10 == 0 ? 40000 : 300);
        len = make_request(profile, chunks, 200, NULL, NULL);
        for (size_t at = 0; at < len;) {
            size_t take = 1 + ss_random_below(60000);

            if (take > len - at)
                take = len - at;
            assert_int_equal(feed(&reader, wire + at, take), SS_OK);
            at += take;
        }
        check_opened(&reader, sum);
        free_reader(&reader);
    }
    ss_profile_release(profile);
}

static void a_stream_opens_with_any_chunks_in_any_cuts(void **state)
{
    (void)state;
    for_each_provider(check_random_cuts);
}

static void check_flipped_bits(const struct ss_method *method, const struct ss_aead *aead)
{
    static const size_t short_sizes[] = {5, 20};
    struct ss_profile *profile = profile_of(method, aead, NULL);
    size_t len = make_request(profile, short_sizes, 2, NULL, NULL);
    uint8_t *flipped = malloc(len);

    assert_non_null(flipped);
    for (size_t bit = 0; bit < len * 8; bit++) {
        struct reader reader = reader_of(profile, SS_CODEC_SERVER);

        memcpy(flipped, wire, len);
        flipped[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(feed(&reader, flipped, len), SS_ERR_AUTH);
        assert_int_equal(feed(&reader, wire, len), SS_ERR_AUTH);
        assert_int_equal(reader.plain_len, 0);
        free_reader(&reader);
    }
    free(flipped);
    ss_profile_release(profile);
}

static void a_flipped_bit_is_refused(void **state)
{
    (void)state;
    for_each_provider(check_flipped_bits);
}

static const struct ss_method *any_method(void)
{
    return ss_method_find("aes-256-gcm");
}

/* A sealed stream of one's own making, to send what the codec itself never would. */
static size_t seal_raw_chunk(struct ss_codec *codec, const uint8_t *bytes, size_t len, size_t at)
{
    return at + seal_all(codec, bytes, len, wire + at, sizeof wire - at);
}

/* A server codec writes no target, so its chunks can carry any part of one. */
static void a_target_may_be_spread_over_chunks(void **state)
{
    struct ss_profile *profile = profile_of(any_method(), NULL, NULL);
    uint8_t message[SS_TARGET_MAX + 10];
    struct ss_target target;
    struct ss_writer out = {message, sizeof message};
    char name[SS_HOST_MAX + 1];
    size_t target_len;

    (void)state;
    memset(name, 'x', SS_HOST_MAX);
    for (size_t i = 60; i < SS_HOST_MAX; i += 60)
        name[i] = '.';
    name[SS_HOST_MAX] = '\0';
    target = target_of(name, 8080);
    assert_int_equal(ss_target_write(&out, &target), SS_OK);
    target_len = sizeof message - out.len;
    assert_int_equal(target_len, SS_TARGET_MAX);
    memcpy(out.ptr, "0123456789", 10);

    for (size_t step = 1; step < sizeof message; step += step < 5 ? 1 : 37) {
        struct ss_codec *sender = codec_of(profile, SS_CODEC_SERVER);
        struct reader whole = reader_of(profile, SS_CODEC_SERVER);
        struct reader pieces = reader_of(profile, SS_CODEC_SERVER);
        size_t len = 0;

        for (size_t at = 0; at < sizeof message; at += step)
            len = seal_raw_chunk(sender, message + at,
                                 sizeof message - at < step ? sizeof message - at : step, len);
        assert_int_equal(feed(&whole, wire, len), SS_OK);
        for (size_t at = 0; at < len; at += 50)
            assert_int_equal(feed(&pieces, wire + at, len - at < 50 ? len - at : 50), SS_OK);
        for (int i = 0; i < 2; i++) {
            struct reader *reader = i == 0 ? &whole : &pieces;

            assert_non_null(ss_codec_target(reader->codec));
            assert_string_equal(ss_codec_target(reader->codec)->name, name);
            assert_int_equal(reader->plain_len, 10);
            assert_memory_equal(reader->plain, "0123456789", 10);
            free_reader(reader);
        }
        free_codec(sender);
    }
    ss_profile_release(profile);
}

static void a_bad_target_is_refused_at_its_first_wrong_byte(void **state)
{
    static const struct {
        uint8_t bytes[8];
        size_t len;
    } bad[] = {
        {{0}, 1},
        {{2}, 1},
        {{5}, 1},
        {{0x11}, 1},
        {{0xff, 1, 2}, 3},
        {{3, 0, 0, 80}, 4},
        {{3, 1, 0, 0, 80}, 5},
    };
    struct ss_profile *profile = profile_of(any_method(), NULL, NULL);

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct ss_codec *sender = codec_of(profile, SS_CODEC_SERVER);
        struct reader reader = reader_of(profile, SS_CODEC_SERVER);
        size_t len = seal_raw_chunk(sender, bad[i].bytes, bad[i].len, 0);

        assert_int_equal(feed(&reader, wire, len), SS_ERR_FORMAT);
        assert_null(ss_codec_target(reader.codec));
        free_reader(&reader);
        free_codec(sender);
    }
    ss_profile_release(profile);
}

/* Small chunks are moved together, so any megabyte fits into the pieces of one call. */
static void a_megabyte_of_any_chunks_opens_in_one_call(void **state)
{
    static const size_t chunk_sizes[] = {1, 100, 1400, 2048, 2049, 4096, 8000, 16383};
    struct ss_profile *profile = profile_of(any_method(), NULL, NULL);

    (void)state;
    fill_pattern(plain, PLAIN_MAX);
    for (size_t i = 0; i < sizeof chunk_sizes / sizeof chunk_sizes[0]; i++) {
        struct ss_codec *sender = codec_of(profile, SS_CODEC_SERVER);
        struct reader reader = reader_of(profile, SS_CODEC_CLIENT);
        size_t len = 0, at = 0;

        while (len + chunk_sizes[i] + 34 + 32 <= PLAIN_MAX) {
            struct ss_view from = {plain + at, chunk_sizes[i]};
            struct ss_span to = {wire + len, sizeof wire - len};

            assert_int_equal(ss_codec_seal(sender, &from, &to, 0), SS_OK);
            at += chunk_sizes[i];
            len = (size_t)(to.ptr - wire);
        }
        assert_int_equal(feed(&reader, wire, len), SS_OK);
        assert_int_equal(reader.plain_len, at);
        assert_memory_equal(reader.plain, plain, at);
        free_reader(&reader);
        free_codec(sender);
    }
    ss_profile_release(profile);
}

/* Whatever the room, what is written is whole chunks, and nothing is lost or sent twice. */
static void sealing_fits_any_room(void **state)
{
    struct ss_profile *profile = profile_of(any_method(), NULL, NULL);

    (void)state;
    fill_pattern(plain, PLAIN_MAX);
    for (size_t room = 0; room < 40000; room += room < 200 ? 1 : 1973)
        for (int role = 0; role < 2; role++) {
            bool is_client = role == 0;
            struct ss_codec *sender =
                codec_of(profile, is_client ? SS_CODEC_CLIENT : SS_CODEC_SERVER);
            struct reader reader =
                reader_of(profile, is_client ? SS_CODEC_SERVER : SS_CODEC_CLIENT);
            const size_t plain_len = 20000;
            struct ss_view from = {plain, plain_len};
            /* salt, two tags, a length, and the target or a byte of payload */
            size_t least = 32 + 34 + (is_client ? 4 + 12 : 1);
            struct ss_target target = target_of("host.example", 443);
            struct ss_span to = {wire, room};

            if (is_client)
                ss_codec_set_target(sender, &target);
            if (room < least) {
                assert_int_equal(ss_codec_seal(sender, &from, &to, 0), SS_NEED_ROOM);
                assert_ptr_equal(to.ptr, wire);
                assert_int_equal(from.len, plain_len);
            } else {
                enum ss_status status = SS_NEED_ROOM;
                int calls = 0;

                while (status == SS_NEED_ROOM && calls < 100) {
                    to = (struct ss_span){wire, room};
                    status = ss_codec_seal(sender, &from, &to, 0);
                    assert_true(to.ptr > wire); /* each call gets on */
                    assert_int_equal((size_t)(to.ptr - wire) + to.len, room);
                    assert_int_equal(feed(&reader, wire, (size_t)(to.ptr - wire)), SS_OK);
                    assert_int_equal(reader.rest_len, 0);
                    calls++;
                }
                if (status == SS_OK) {
                    assert_int_equal(reader.plain_len, plain_len);
                }
                assert_int_equal(reader.plain_len, plain_len - from.len);
                assert_memory_equal(reader.plain, plain, reader.plain_len);
            }
            free_reader(&reader);
            free_codec(sender);
        }
    ss_profile_release(profile);
}

static void an_empty_first_write_is_the_clients_alone(void **state)
{
    struct ss_profile *profile = profile_of(any_method(), NULL, NULL);
    struct ss_codec *server = codec_of(profile, SS_CODEC_SERVER);
    struct ss_codec *client = codec_of(profile, SS_CODEC_CLIENT);
    struct reader reader = reader_of(profile, SS_CODEC_SERVER);
    struct ss_target target = target_of("192.0.2.1", 22);
    size_t len;

    (void)state;
    assert_int_equal(seal_all(server, plain, 0, wire, sizeof wire), 0);
    ss_codec_set_target(client, &target);
    len = seal_all(client, plain, 0, wire, sizeof wire);
    assert_int_equal(len, 32 + 34 + 7);
    assert_int_equal(seal_all(client, plain, 0, wire + len, sizeof wire - len), 0);
    assert_int_equal(feed(&reader, wire, len), SS_OK);
    assert_int_equal(reader.plain_len, 0);
    assert_int_equal(ss_codec_target(reader.codec)->port, 22);
    free_reader(&reader);
    free_codec(client);
    free_codec(server);
    ss_profile_release(profile);
}

static void a_replayed_stream_is_refused(void **state)
{
    static const size_t one[] = {10};
    struct ss_salt_memory *client_salts = ss_salt_memory_new(SS_SALT_MEMORY_CLIENT);
    struct ss_salt_memory *server_salts = ss_salt_memory_new(SS_SALT_MEMORY_SERVER);
    struct ss_profile *client = profile_of(any_method(), NULL, client_salts);
    struct ss_profile *server = profile_of(any_method(), NULL, server_salts);
    size_t len = make_request(client, one, 1, NULL, NULL);
    struct reader readers[4];

    (void)state;
    for (int i = 0; i < 4; i++)
        readers[i] = reader_of(server, SS_CODEC_SERVER);
    /* Two sessions get as far as the salt; whoever then proves the key first keeps it. */
    assert_int_equal(feed(&readers[0], wire, 40), SS_OK);
    assert_int_equal(feed(&readers[1], wire, 40), SS_OK);
    assert_false(readers[0].codec->authenticated);
    assert_int_equal(feed(&readers[1], wire + 40, len - 40), SS_OK);
    assert_true(readers[1].codec->authenticated);
    assert_int_equal(feed(&readers[0], wire + 40, len - 40), SS_ERR_REPLAY);
    assert_false(readers[0].codec->authenticated);
    /* Later ones are refused at the salt already, and for good. */
    assert_int_equal(feed(&readers[2], wire, 32), SS_ERR_REPLAY);
    assert_int_equal(feed(&readers[2], wire, len), SS_ERR_REPLAY);
    assert_int_equal(feed(&readers[3], wire, len), SS_ERR_REPLAY);
    assert_int_equal(readers[3].plain_len, 0);
    for (int i = 0; i < 4; i++)
        free_reader(&readers[i]);
    ss_profile_release(client);
    ss_profile_release(server);
    ss_salt_memory_free(client_salts);
    ss_salt_memory_free(server_salts);
}

/* What a server sent is not taken back as a request, and what failed leaves no salt behind. */
static void own_salts_are_refused_and_failed_ones_forgotten(void **state)
{
    static const size_t one[] = {10};
    struct ss_salt_memory *salts = ss_salt_memory_new(SS_SALT_MEMORY_SERVER);
    struct ss_profile *server = profile_of(any_method(), NULL, salts);
    struct ss_profile *client = profile_of(any_method(), NULL, NULL);
    struct ss_codec *sender = codec_of(server, SS_CODEC_SERVER);
    struct reader reflected = reader_of(server, SS_CODEC_SERVER);
    struct reader damaged = reader_of(server, SS_CODEC_SERVER);
    struct reader good = reader_of(server, SS_CODEC_SERVER);
    size_t len = seal_all(sender, (const uint8_t *)"\1\177\0\0\1\0\120", 7, wire, sizeof wire);

    (void)state;
    assert_int_equal(feed(&reflected, wire, len), SS_ERR_REPLAY);

    len = make_request(client, one, 1, NULL, NULL);
    wire[40] ^= 1;
    assert_int_equal(feed(&damaged, wire, len), SS_ERR_AUTH);
    wire[40] ^= 1;
    assert_int_equal(feed(&good, wire, len), SS_OK);
    check_opened(&good, 10);
    free_reader(&reflected);
    free_reader(&damaged);
    free_reader(&good);
    free_codec(sender);
    ss_profile_release(client);
    ss_profile_release(server);
    ss_salt_memory_free(salts);
}

/* Sessions one after the other in the same two slots. */
static unsigned long run_sessions(struct ss_codec *sender, struct ss_codec *receiver,
                                  const struct ss_profile *client, const struct ss_profile *server,
                                  int count)
{
    struct ss_target target = target_of("host.example", 443);
    struct ss_opened opened;
    unsigned long before = allocation_count();
    int failed = 0;

    for (int i = 0; i < count; i++) {
        struct ss_view from = {plain, 40000};
        struct ss_span to = {wire, sizeof wire};

        failed |= ss_codec_begin(sender, client, SS_CODEC_CLIENT) != SS_OK;
        failed |= ss_codec_begin(receiver, server, SS_CODEC_SERVER) != SS_OK;
        ss_codec_set_target(sender, &target);
        failed |= ss_codec_seal(sender, &from, &to, 0) != SS_OK;
        to = (struct ss_span){wire, (size_t)(to.ptr - wire)};
        failed |= ss_codec_open(receiver, to, 0, &opened) != SS_OK;
        failed |= opened.payload_len != 40000 || ss_codec_target(receiver)->port != 443;
        from = (struct ss_view){plain, 9};
        to = (struct ss_span){wire, sizeof wire};
        failed |= ss_codec_seal(receiver, &from, &to, 0) != SS_OK;
        to = (struct ss_span){wire, (size_t)(to.ptr - wire)};
        failed |= ss_codec_open(sender, to, 0, &opened) != SS_OK || opened.payload_len != 9;
        ss_codec_end(sender);
        ss_codec_end(receiver);
        failed |= receiver->authenticated || ss_codec_target(receiver) != NULL;
    }
    before = allocation_count() - before;
    assert_int_equal(failed, 0);
    return before;
}

static void check_reuse(const struct ss_method *method, const struct ss_aead *aead)
{
    struct ss_salt_memory *client_salts = ss_salt_memory_new(SS_SALT_MEMORY_CLIENT);
    struct ss_salt_memory *server_salts = ss_salt_memory_new(SS_SALT_MEMORY_SERVER);
    struct ss_profile *client = profile_of(method, aead, client_salts);
    struct ss_profile *server = profile_of(method, aead, server_salts);
    struct ss_codec *sender = codec_of(client, SS_CODEC_CLIENT);
    struct ss_codec *receiver = codec_of(server, SS_CODEC_SERVER);
    bool may_allocate = aead->provider == SS_AEAD_MBEDTLS && aead->algorithm <= SS_AEAD_AES_256_GCM;
    unsigned long allocated;

    ss_codec_end(sender);
    ss_codec_end(receiver);
    ss_codec_end(receiver); /* fine when idle */
    run_sessions(sender, receiver, client, server, 1);
    allocated = run_sessions(sender, receiver, client, server, 50);
    if (!may_allocate)
        assert_int_equal(allocated, 0);
    free_codec(sender);
    free_codec(receiver);
    ss_profile_release(client);
    ss_profile_release(server);
    ss_salt_memory_free(client_salts);
    ss_salt_memory_free(server_salts);
}

static void a_slot_serves_sessions_without_allocating(void **state)
{
    (void)state;
    if (allocations_are_counted())
        assert_true(allocation_count() > 0);
    for_each_provider(check_reuse);
    for_each_provider_of(SS_METHODS_2022, check_reuse);
}

/* A slot that is large enough for all profiles goes from one method and provider to the next. */
static void a_slot_changes_its_method(void **state)
{
    static _Alignas(64) uint8_t slots[2][16384];
    struct ss_codec *sender = (struct ss_codec *)(void *)slots[0];
    struct ss_codec *receiver = (struct ss_codec *)(void *)slots[1];
    size_t count;
    const struct ss_method *methods = ss_method_all(&count);

    (void)state;
    ss_codec_end(sender); /* fine on zero memory */
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < count; i++)
            for (int provider = 0; provider < SS_AEAD_PROVIDER_COUNT; provider++) {
                const struct ss_aead *aead =
                    ss_aead_find(methods[i].aead, (enum ss_aead_provider)provider);
                struct ss_profile *profile;

                if (aead == NULL && (methods[i].aead != SS_AEAD_ALGORITHM_COUNT || provider != 0))
                    continue;
                profile = profile_of(&methods[i], aead, NULL);
                assert_true(ss_codec_size(profile) <= sizeof slots[0]);
                run_sessions(sender, receiver, profile, profile, 2);
                ss_profile_release(profile);
            }
    ss_codec_retire(sender);
    ss_codec_retire(receiver);
    for (size_t i = 0; i < sizeof slots[0]; i++)
        assert_true(slots[0][i] == 0 && slots[1][i] == 0);
}

/* Large chunks with a small one now and then, as who reads 128 KiB at a time sends them: reads that
 * are as long as the codec says leave next to nothing over. */
static void reads_end_with_chunks(void **state)
{
    const size_t batch = 128 * 1024, room = 136 * 1024;
    struct ss_profile *profile = profile_of(ss_method_find("aes-256-gcm"), NULL, NULL);
    struct ss_codec *sender = codec_of(profile, SS_CODEC_CLIENT);
    struct reader reader = reader_of(profile, SS_CODEC_SERVER);
    struct ss_target target = target_of("host.example", 443);
    size_t len = 0, at = 0;

    (void)state;
    fill_pattern(plain, PLAIN_MAX);
    ss_codec_set_target(sender, &target);
    for (size_t i = 0; i < PLAIN_MAX; i += batch)
        len += seal_all(sender, plain + i, batch, wire + len, sizeof wire - len);
    assert_int_equal(ss_codec_open_room(reader.codec, 0, room), room); /* nothing is known */
    for (int reads = 0; at < len; reads++) {
        size_t most = room - reader.rest_len;
        size_t want = ss_codec_open_room(reader.codec, reader.rest_len, most);

        assert_in_range(want, most - (0x3fff + 34), most);
        if (want > len - at)
            want = len - at;
        assert_int_equal(feed(&reader, wire + at, want), SS_OK);
        at += want;
        if (reads > 0)
            assert_in_range(reader.rest_len, 0, 200);
    }
    assert_int_equal(reader.plain_len, PLAIN_MAX);
    assert_memory_equal(reader.plain, plain, PLAIN_MAX);
    /* A read of few chunks is not cut further. */
    assert_int_equal(ss_codec_open_room(reader.codec, 0, 40000), 40000);
    free_codec(sender);
    free_reader(&reader);
    ss_profile_release(profile);
}

int stream_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_opens_byte_by_byte),
        cmocka_unit_test(a_stream_opens_when_cut_at_any_edge),
        cmocka_unit_test(reads_end_with_chunks),
        cmocka_unit_test(a_stream_opens_with_any_chunks_in_any_cuts),
        cmocka_unit_test(a_flipped_bit_is_refused),
        cmocka_unit_test(a_target_may_be_spread_over_chunks),
        cmocka_unit_test(a_bad_target_is_refused_at_its_first_wrong_byte),
        cmocka_unit_test(a_megabyte_of_any_chunks_opens_in_one_call),
        cmocka_unit_test(sealing_fits_any_room),
        cmocka_unit_test(an_empty_first_write_is_the_clients_alone),
        cmocka_unit_test(a_replayed_stream_is_refused),
        cmocka_unit_test(own_salts_are_refused_and_failed_ones_forgotten),
        cmocka_unit_test(a_slot_serves_sessions_without_allocating),
        cmocka_unit_test(a_slot_changes_its_method),
    };

    return cmocka_run_group_tests_name("codec/stream", tests, NULL, NULL);
}
