/* The stream methods, TCP and UDP, against bytes that another implementation made; and `none`. */
#include "codec/codec.h"

#include <stdlib.h>
#include <string.h>

#include "codec/packet.h"
#include "codec/codec_internal.h"
#include "crypto/random.h"
#include "packet_2022.h"
#include "support.h"
#include "vectors/read.h"

#define WIRE_MAX (128 * 1024)

static uint8_t plain[WIRE_MAX], wire[WIRE_MAX], wanted[WIRE_MAX], room[WIRE_MAX];

static struct reader reader_of(const struct ss_profile *profile, enum ss_codec_role role)
{
    struct reader reader = {
        .codec = codec_of(profile, role), .plain = malloc(WIRE_MAX), .plain_cap = WIRE_MAX};

    assert_non_null(reader.plain);
    return reader;
}

/* Calls for each stream method that is here, and for `none`. */
static void for_each(void (*check)(const struct ss_method *method))
{
    size_t count, found = 0;
    const struct ss_method *methods = ss_method_all(&count);

    for (size_t i = 0; i < count; i++)
        if (methods[i].family == SS_METHODS_STREAM || methods[i].family == SS_METHODS_PLAIN) {
            check(&methods[i]);
            found++;
        }
    assert_true(found >= 10);
}

/* -- streams -- */

static size_t seal_writes(const json_t *vector, struct ss_codec *sender, bool is_request,
                          struct ss_target *target, size_t *plain_len)
{
    const json_t *write;
    size_t i, len = 0;

    *plain_len = 0;
    json_array_foreach(json_object_get(vector, "writes"), i, write)
    {
        uint8_t *from = plain + *plain_len;
        size_t write_len = vector_plain(write, "plain", from, sizeof plain - *plain_len);
        size_t sealed;

        if (i == 0 && is_request) {
            struct ss_reader in = {from, write_len};

            assert_int_equal(ss_target_read(&in, target), SS_OK);
            ss_codec_set_target(sender, target);
            memmove(from, in.ptr, in.len);
            write_len = in.len;
        }
        sealed = seal_all(sender, from, write_len, wire + len, sizeof wire - len);
        assert_int_equal(sealed, vector_number(write, "wire_len"));
        len += sealed;
        *plain_len += write_len;
    }
    return len;
}

/* Whole, and in pieces of every size that is about a block. */
static void check_opens(const struct ss_profile *profile, bool is_request, size_t len,
                        const struct ss_target *target, size_t plain_len)
{
    for (size_t piece = 1; piece <= 70; piece++) {
        struct reader reader = reader_of(profile, is_request ? SS_CODEC_SERVER : SS_CODEC_CLIENT);
        size_t step = piece == 70 ? len : piece;

        for (size_t at = 0; at < len; at += step)
            assert_int_equal(feed(&reader, wire + at, len - at < step ? len - at : step), SS_OK);
        assert_int_equal(reader.plain_len, plain_len);
        assert_memory_equal(reader.plain, plain, plain_len);
        assert_true(ss_codec_may_end(reader.codec, reader.rest_len));
        assert_true(reader.codec->authenticated);
        assert_int_equal(ss_codec_opens_as_is(reader.codec),
                         ss_profile_method(profile)->family == SS_METHODS_PLAIN);
        if (is_request) {
            const struct ss_target *opened = ss_codec_target(reader.codec);

            assert_non_null(opened);
            assert_int_equal(opened->port, target->port);
            assert_memory_equal(opened->ip, target->ip, sizeof target->ip);
            assert_string_equal(opened->name, target->name);
        }
        free_reader(&reader);
    }
}

static void streams_are_those_of_the_vectors(void **state)
{
    json_t *file = vectors_load("stream-tcp.json");
    const json_t *vector;
    size_t i, checked = 0;

    (void)state;
    json_array_foreach(file, i, vector)
    {
        const struct ss_method *method = ss_method_find(vector_text(vector, "method"));
        bool is_request = strstr(vector_text(vector, "id"), "/request-") != NULL;
        struct ss_profile *profile;
        struct ss_codec *sender;
        struct ss_target target;
        uint8_t iv[SS_SALT_MAX];
        size_t len, plain_len;

        if (method == NULL)
            continue; /* rc4, or one that the library lacks */
        profile = profile_of(method, NULL, NULL);
        sender = codec_of(profile, is_request ? SS_CODEC_CLIENT : SS_CODEC_SERVER);
        assert_int_equal(vector_bytes(vector, "iv", iv, sizeof iv), method->salt_len);
        draw_next(iv, method->salt_len);
        len = seal_writes(vector, sender, is_request, &target, &plain_len);
        assert_int_equal(len, vector_number(vector, "wire_len"));
        assert_int_equal(vector_bytes(vector, "wire", wanted, sizeof wanted), len);
        assert_memory_equal(wire, wanted, len);
        check_opens(profile, is_request, len, &target, plain_len);
        free_codec(sender);
        ss_profile_release(profile);
        checked++;
    }
    assert_true(checked >= 45);
    assert_null(ss_method_find("rc4"));
    json_decref(file);
}

static size_t make_request(const struct ss_profile *profile, size_t plain_len)
{
    struct ss_codec *sender = codec_of(profile, SS_CODEC_CLIENT);
    struct ss_target target = target_of("host.example", 443);
    size_t len;

    fill_pattern(plain, sizeof plain);
    ss_codec_set_target(sender, &target);
    len = seal_all(sender, plain, plain_len, wire, sizeof wire);
    free_codec(sender);
    return len;
}

/* A target can be cut anywhere; none is authenticated before it is whole. */
static void check_prefixes(const struct ss_method *method)
{
    struct ss_profile *profile = profile_of(method, NULL, NULL);
    size_t len = make_request(profile, 40);
    size_t head = method->salt_len + 4 + 12;

    for (size_t cut = 0; cut <= len; cut++) {
        struct reader reader = reader_of(profile, SS_CODEC_SERVER);

        assert_int_equal(feed(&reader, wire, cut), SS_OK);
        assert_int_equal(ss_codec_target(reader.codec) != NULL, cut >= head);
        assert_int_equal(reader.codec->authenticated, cut >= head);
        assert_int_equal(feed(&reader, wire + cut, len - cut), SS_OK);
        assert_int_equal(reader.plain_len, 40);
        assert_memory_equal(reader.plain, plain, 40);
        free_reader(&reader);
    }
    ss_profile_release(profile);
}

static void every_prefix_waits_for_more(void **state)
{
    (void)state;
    for_each(check_prefixes);
}

/* Bytes of chance: a target by chance, or refused, but never more than came. */
static void check_noise(const struct ss_method *method)
{
    struct ss_profile *profile = profile_of(method, NULL, NULL);
    unsigned refused = 0;

    for (int i = 0; i < 500; i++) {
        struct reader reader = reader_of(profile, SS_CODEC_SERVER);
        size_t len = ss_random_below(600);
        enum ss_status status;

        ss_random_bytes(wire, len);
        status = feed(&reader, wire, len);
        assert_true(status == SS_OK || status == SS_ERR_FORMAT);
        if (status != SS_OK) {
            refused++;
            assert_int_equal(feed(&reader, wire, len), SS_ERR_FORMAT);
            assert_false(reader.codec->authenticated);
        }
        free_reader(&reader);
    }
    assert_true(refused > 400);
    ss_profile_release(profile);
}

static void noise_is_mostly_refused(void **state)
{
    (void)state;
    for_each(check_noise);
}

static void check_room(const struct ss_method *method)
{
    struct ss_profile *profile = profile_of(method, NULL, NULL);

    for (size_t size = 0; size < 1500; size += size < 100 ? 1 : 97) {
        struct ss_codec *sender = codec_of(profile, SS_CODEC_CLIENT);
        struct reader reader = reader_of(profile, SS_CODEC_SERVER);
        struct ss_target target = target_of("host.example", 443);
        struct ss_view from = {plain, 1000};
        size_t least = method->salt_len + 4 + 12;
        enum ss_status status = SS_NEED_ROOM;

        ss_codec_set_target(sender, &target);
        if (size < least) {
            struct ss_span to = {wire, size};

            assert_int_equal(ss_codec_seal(sender, &from, &to, 0), SS_NEED_ROOM);
            assert_ptr_equal(to.ptr, wire);
            assert_int_equal(from.len, 1000);
        }
        while (size >= least && status == SS_NEED_ROOM) {
            struct ss_span to = {wire, size};

            status = ss_codec_seal(sender, &from, &to, 0);
            assert_true(to.ptr > wire && (size_t)(to.ptr - wire) + to.len == size);
            assert_int_equal(feed(&reader, wire, (size_t)(to.ptr - wire)), SS_OK);
            assert_int_equal(reader.plain_len, 1000 - from.len);
        }
        if (size >= least) {
            assert_int_equal(status, SS_OK);
            assert_memory_equal(reader.plain, plain, 1000);
        }
        free_reader(&reader);
        free_codec(sender);
    }
    ss_profile_release(profile);
}

static void sealing_fits_any_room(void **state)
{
    (void)state;
    fill_pattern(plain, sizeof plain);
    for_each(check_room);
}

static void an_iv_is_taken_once(void **state)
{
    struct ss_salt_memory *salts = ss_salt_memory_new(1000);
    const struct ss_method *method = ss_method_find("aes-256-ctr");
    struct ss_profile *client = profile_of(method, NULL, NULL);
    struct ss_profile *server = profile_of(method, NULL, salts);
    struct reader first = reader_of(server, SS_CODEC_SERVER);
    struct reader second = reader_of(server, SS_CODEC_SERVER);
    struct reader third = reader_of(server, SS_CODEC_SERVER);
    struct reader bad = reader_of(server, SS_CODEC_SERVER);
    struct reader reflected = reader_of(server, SS_CODEC_SERVER);
    struct ss_codec *answer = codec_of(server, SS_CODEC_SERVER);
    size_t len = make_request(client, 10);

    (void)state;
    /* What makes no sense leaves no IV. */
    wire[16] ^= 0x80;
    assert_int_equal(feed(&bad, wire, len), SS_ERR_FORMAT);
    wire[16] ^= 0x80;
    assert_int_equal(feed(&second, wire, 20), SS_OK);
    assert_int_equal(feed(&first, wire, len), SS_OK);
    assert_int_equal(feed(&second, wire + 20, len - 20), SS_ERR_REPLAY);
    assert_false(second.codec->authenticated);
    assert_int_equal(feed(&third, wire, len), SS_ERR_REPLAY);
    /* What the server sent itself is not taken back. */
    len = seal_all(answer, (const uint8_t *)"\1\177\0\0\1\0\120", 7, wire, sizeof wire);
    assert_int_equal(feed(&reflected, wire, len), SS_ERR_REPLAY);
    free_reader(&first);
    free_reader(&second);
    free_reader(&third);
    free_reader(&bad);
    free_reader(&reflected);
    free_codec(answer);
    ss_profile_release(client);
    ss_profile_release(server);
    ss_salt_memory_free(salts);
}

/* -- datagrams -- */

static void check_packet(const json_t *vector, const struct ss_method *method)
{
    struct ss_profile *profile = profile_of(method, NULL, NULL);
    struct ss_packet_codec *codec = packet_codec(profile, SS_CODEC_CLIENT, NULL);
    struct ss_view address =
        packet_address(vector_text(vector, "host"), (uint16_t)vector_number(vector, "port"));
    size_t len = vector_bytes(vector, "payload", plain, sizeof plain);
    size_t wire_len = vector_bytes(vector, "wire", wanted, sizeof wanted);
    uint8_t iv[SS_SALT_MAX];
    size_t head_len = ss_packet_head_len(codec, address.len);

    assert_int_equal(vector_bytes(vector, "iv", iv, sizeof iv), method->salt_len);
    for (int how = 0; how < 3; how++) {
        struct ss_packet_payload from = {{room + 300, len}, how == 0 ? 0 : head_len, 0, NULL};
        struct ss_view sealed = {wire, 0};

        memcpy(room + 300, plain, len);
        draw_next(iv, method->salt_len);
        if (how < 2)
            assert_int_equal(ss_packet_seal(codec, address, &from, 0,
                                            (struct ss_span){wire, wire_len}, &sealed.len),
                             SS_OK);
        else
            assert_int_equal(ss_packet_seal_in_place(codec, address, &from, 0, &sealed), SS_OK);
        assert_int_equal(sealed.len, wire_len);
        assert_memory_equal(sealed.ptr, wanted, wire_len);
    }
    for (size_t cut = 0; cut <= wire_len; cut++) {
        uint8_t *copy = malloc(cut != 0 ? cut : 1);
        struct ss_packet_opened opened;
        enum ss_status status;

        memcpy(copy, wanted, cut);
        status = ss_packet_open(codec, (struct ss_span){copy, cut}, 0, &opened);
        assert_int_equal(status,
                         cut >= head_len && cut >= method->salt_len + 7 ? SS_OK : SS_ERR_FORMAT);
        if (status == SS_OK) {
            assert_int_equal(opened.address.len, address.len);
            assert_memory_equal(opened.address.ptr, address.ptr, address.len);
            assert_int_equal(opened.payload.len, cut - head_len);
            assert_memory_equal(opened.payload.ptr, plain, cut - head_len);
            assert_null(opened.session);
        }
        free(copy);
    }
    free_packet_codec_2022(codec);
    ss_profile_release(profile);
}

static void datagrams_are_those_of_the_vectors(void **state)
{
    json_t *file = vectors_load("stream-udp.json");
    const json_t *vector;
    size_t i, checked = 0;

    (void)state;
    json_array_foreach(file, i, vector)
    {
        const struct ss_method *method = ss_method_find(vector_text(vector, "method"));

        if (method != NULL) {
            check_packet(vector, method);
            checked++;
        }
    }
    assert_true(checked >= 36);
    json_decref(file);
}

static void a_datagram_is_taken_once(void **state)
{
    struct ss_salt_memory *salts = ss_salt_memory_new(1000);
    const struct ss_method *method = ss_method_find("chacha20-ietf");
    struct ss_profile *client = profile_of(method, NULL, NULL);
    struct ss_profile *server = profile_of(method, NULL, salts);
    struct ss_packet_codec *sender = packet_codec(client, SS_CODEC_CLIENT, NULL);
    struct ss_packet_codec *receiver = packet_codec(server, SS_CODEC_SERVER, NULL);
    struct ss_packet_payload from = {{plain, 5}, 0, 0, NULL};
    struct ss_packet_opened opened;
    size_t len;

    (void)state;
    assert_int_equal(ss_packet_seal(sender, packet_address("192.0.2.1", 53), &from, 0,
                                    (struct ss_span){wire, sizeof wire}, &len),
                     SS_OK);
    for (int i = 0; i < 4; i++) {
        memcpy(room, wire, len);
        room[12] ^= i == 0 ? 0x80 : 0; /* the first makes no sense, and leaves no IV */
        assert_int_equal(ss_packet_open(receiver, (struct ss_span){room, len}, 0, &opened),
                         i == 0   ? SS_ERR_FORMAT
                         : i == 1 ? SS_OK
                                  : SS_ERR_REPLAY);
    }
    free_packet_codec_2022(sender);
    free_packet_codec_2022(receiver);
    ss_profile_release(client);
    ss_profile_release(server);
    ss_salt_memory_free(salts);
}

/* -- both -- */

static void none_is_the_bytes_as_they_are(void **state)
{
    struct ss_profile *profile;
    const struct ss_profile_options options = {.method = ss_method_find("plain")};
    struct reader reader;
    struct ss_codec *sender;
    size_t len;

    (void)state;
    assert_ptr_equal(ss_method_find("none"), ss_method_find("plain"));
    assert_int_equal(ss_profile_new(&profile, &options), SS_OK); /* needs no password */
    assert_string_equal(ss_profile_aead(profile)->provider_name, "none");
    reader = reader_of(profile, SS_CODEC_SERVER);
    len = make_request(profile, 5);
    assert_int_equal(len, 4 + 12 + 5);
    assert_memory_equal(wire, "\3\14host.example\1\273", 16);
    assert_memory_equal(wire + 16, plain, 5);
    assert_int_equal(feed(&reader, wire, 15), SS_OK); /* a byte of the target is missing */
    assert_false(ss_codec_opens_as_is(reader.codec));
    assert_int_equal(feed(&reader, wire + 15, len - 15), SS_OK);
    assert_true(ss_codec_opens_as_is(reader.codec));
    assert_int_equal(reader.plain_len, 5);
    sender = codec_of(profile, SS_CODEC_SERVER);
    assert_int_equal(seal_all(sender, plain, 9, wire, sizeof wire), 9);
    assert_true(ss_codec_seals_as_is(sender));
    assert_memory_equal(wire, plain, 9);
    free_codec(sender);
    sender = codec_of(profile, SS_CODEC_CLIENT);
    assert_false(ss_codec_seals_as_is(sender)); /* the target is not out */
    free_codec(sender);
    free_reader(&reader);
    ss_profile_release(profile);
}

/* Sessions and datagrams one after the other in the same slots. */
static void check_allocations(const struct ss_method *method)
{
    struct ss_salt_memory *salts = ss_salt_memory_new(1000);
    struct ss_profile *client = profile_of(method, NULL, NULL);
    struct ss_profile *server = profile_of(method, NULL, salts);
    struct ss_codec *sender = codec_of(client, SS_CODEC_CLIENT);
    struct ss_codec *receiver = codec_of(server, SS_CODEC_SERVER);
    struct ss_packet_codec *packets = packet_codec(client, SS_CODEC_CLIENT, NULL);
    struct ss_target target = target_of("host.example", 443);
    struct ss_packet_payload from = {{room + 300, 100}, 300, 0, NULL};
    struct ss_view address = packet_address("192.0.2.1", 53);
    struct ss_view sealed;
    struct ss_opened opened;
    unsigned long before = allocation_count();
    int failed = 0;

    ss_codec_end(sender);
    ss_codec_end(receiver);
    for (int i = 0; i < 20; i++) {
        struct ss_view view = {plain, 4000};
        struct ss_span to = {wire, sizeof wire};

        failed |= ss_codec_begin(sender, client, SS_CODEC_CLIENT) != SS_OK;
        failed |= ss_codec_begin(receiver, server, SS_CODEC_SERVER) != SS_OK;
        ss_codec_set_target(sender, &target);
        failed |= ss_codec_seal(sender, &view, &to, 0) != SS_OK;
        failed |= ss_codec_open(receiver, (struct ss_span){wire, (size_t)(to.ptr - wire)}, 0,
                                &opened) != SS_OK;
        failed |= opened.payload_len != 4000;
        failed |= ss_packet_seal_in_place(packets, address, &from, 0, &sealed) != SS_OK;
        ss_codec_end(sender);
        ss_codec_end(receiver);
    }
    before = allocation_count() - before;
    assert_int_equal(failed, 0);
    assert_int_equal(before, 0);
    free_codec(sender);
    free_codec(receiver);
    free_packet_codec_2022(packets);
    ss_profile_release(client);
    ss_profile_release(server);
    ss_salt_memory_free(salts);
}

static void nothing_is_allocated(void **state)
{
    (void)state;
    for_each(check_allocations);
}

int stream_cipher_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_those_of_the_vectors),
        cmocka_unit_test(every_prefix_waits_for_more),
        cmocka_unit_test(noise_is_mostly_refused),
        cmocka_unit_test(sealing_fits_any_room),
        cmocka_unit_test(an_iv_is_taken_once),
        cmocka_unit_test(datagrams_are_those_of_the_vectors),
        cmocka_unit_test(a_datagram_is_taken_once),
        cmocka_unit_test(none_is_the_bytes_as_they_are),
        cmocka_unit_test(nothing_is_allocated),
    };

    return cmocka_run_group_tests_name("codec/stream ciphers", tests, NULL, NULL);
}
