/* The packet codec: known datagrams, in place and from buffer to buffer, refusals, replays. */
#include "codec/packet.h"

#include <stdlib.h>
#include <string.h>

#include "support.h"
#include "vectors/read.h"

#define PACKET_MAX 65536

static uint8_t wire[PACKET_MAX], other[PACKET_MAX], room[PACKET_MAX];

static struct ss_packet_codec *packet_codec_of(const struct ss_profile *profile,
                                               enum ss_codec_role role)
{
    size_t size = ss_packet_codec_size(profile);
    struct ss_packet_codec *codec = aligned_alloc(64, size);

    assert_non_null(codec);
    assert_int_equal(size % 64, 0);
    memset(codec, 0, size);
    assert_int_equal(ss_packet_codec_begin(codec, profile, role), SS_OK);
    return codec;
}

static void free_packet_codec(struct ss_packet_codec *codec)
{
    ss_packet_codec_end(codec);
    ss_packet_codec_end(codec); /* fine when idle */
    ss_packet_codec_retire(codec);
    free(codec);
}

/* The address as it is on the wire, in memory that stays until the next call. */
static struct ss_view address_of(const char *host, uint16_t port)
{
    static uint8_t bytes[SS_TARGET_MAX];
    struct ss_target target = target_of(host, port);
    struct ss_writer out = {bytes, sizeof bytes};

    assert_int_equal(ss_target_write(&out, &target), SS_OK);
    return (struct ss_view){bytes, sizeof bytes - out.len};
}

/* Opens a copy of exactly its length, so that a sanitizer sees a step beyond it, and compares. */
static enum ss_status open_copy(struct ss_packet_codec *codec, const uint8_t *bytes, size_t len,
                                struct ss_view address, const uint8_t *payload, size_t payload_len)
{
    uint8_t *copy = malloc(len != 0 ? len : 1);
    struct ss_packet_opened opened;
    enum ss_status status;

    assert_non_null(copy);
    memcpy(copy, bytes, len);
    status = ss_packet_open(codec, (struct ss_span){copy, len}, 0, &opened);
    if (status == SS_OK) {
        struct ss_reader in = {address.ptr, address.len};
        struct ss_target target;

        assert_int_equal(opened.address.len, address.len);
        assert_memory_equal(opened.address.ptr, address.ptr, address.len);
        assert_int_equal(ss_target_read(&in, &target), SS_OK);
        assert_int_equal(opened.target.atyp, target.atyp);
        assert_int_equal(opened.target.port, target.port);
        assert_string_equal(opened.target.name, target.name);
        assert_int_equal(opened.payload.len, payload_len);
        assert_memory_equal(opened.payload.ptr, payload, payload_len);
        assert_ptr_equal(opened.address.ptr + opened.address.len, opened.payload.ptr);
        assert_true(opened.address.ptr - copy >= 16);
        assert_true(opened.payload.ptr + opened.payload.len + SS_PACKET_TAIL == copy + len);
    }
    free(copy);
    return status;
}

/* Salts are drawn ahead, so only a codec that has just begun seals with one that is set. */
static void begin_with_salt(struct ss_packet_codec *codec, const struct ss_profile *profile,
                            const uint8_t *salt, size_t len)
{
    ss_packet_codec_end(codec);
    assert_int_equal(ss_packet_codec_begin(codec, profile, SS_CODEC_CLIENT), SS_OK);
    draw_next(salt, len);
}

static void check_vector(const json_t *vector, const struct ss_method *method,
                         const struct ss_aead *aead)
{
    struct ss_profile *profile = profile_of(method, aead, NULL);
    struct ss_packet_codec *codec = packet_codec_of(profile, SS_CODEC_CLIENT);
    struct ss_view address =
        address_of(vector_text(vector, "host"), (uint16_t)vector_number(vector, "port"));
    uint8_t salt[SS_SALT_MAX], payload[4096];
    size_t payload_len = vector_bytes(vector, "payload", payload, sizeof payload);
    size_t wire_len = vector_bytes(vector, "wire", wire, sizeof wire);
    size_t head_len = ss_packet_head_len(codec, address.len);
    struct ss_packet_payload from = {{payload, payload_len}, 0, 0, NULL};
    struct ss_view sealed;
    size_t len;

    assert_int_equal(vector_number(vector, "wire_len"), wire_len);
    assert_int_equal(vector_bytes(vector, "salt", salt, sizeof salt), method->salt_len);
    assert_int_equal(open_copy(codec, wire, wire_len, address, payload, payload_len), SS_OK);

    /* From buffer to buffer, without and with room in front, into exactly the room there must be.
     */
    begin_with_salt(codec, profile, salt, method->salt_len);
    assert_int_equal(
        ss_packet_seal(codec, address, &from, 0, (struct ss_span){other, wire_len}, &len), SS_OK);
    assert_int_equal(len, wire_len);
    assert_memory_equal(other, wire, wire_len);

    memcpy(room + 300, payload, payload_len);
    from = (struct ss_packet_payload){{room + 300, payload_len}, address.len, 0, NULL};
    begin_with_salt(codec, profile, salt, method->salt_len);
    assert_int_equal(
        ss_packet_seal(codec, address, &from, 0, (struct ss_span){other, wire_len}, &len), SS_OK);
    assert_int_equal(len, wire_len);
    assert_memory_equal(other, wire, wire_len);
    assert_memory_equal(room + 300, payload, payload_len);
    assert_int_equal(
        ss_packet_seal(codec, address, &from, 0, (struct ss_span){other, wire_len - 1}, &len),
        SS_NEED_ROOM);
    assert_int_equal(len, 0);

    /* In place, with the address elsewhere and with the address where it belongs. */
    for (int there = 0; there <= 1; there++) {
        memset(room, 0xee, 300);
        memcpy(room + 300, payload, payload_len);
        from =
            (struct ss_packet_payload){{room + 300, payload_len}, head_len, SS_PACKET_TAIL, NULL};
        if (there) {
            memcpy(room + 300 - address.len, address.ptr, address.len);
            address.ptr = room + 300 - address.len;
        }
        from.head--;
        assert_int_equal(ss_packet_seal_in_place(codec, address, &from, 0, &sealed), SS_NEED_ROOM);
        from.head++;
        from.tail--;
        assert_int_equal(ss_packet_seal_in_place(codec, address, &from, 0, &sealed), SS_NEED_ROOM);
        from.tail++;
        begin_with_salt(codec, profile, salt, method->salt_len);
        assert_int_equal(ss_packet_seal_in_place(codec, address, &from, 0, &sealed), SS_OK);
        assert_ptr_equal(sealed.ptr, room + 300 - head_len);
        assert_int_equal(sealed.len, wire_len);
        assert_memory_equal(sealed.ptr, wire, wire_len);
        assert_int_equal(room[300 - head_len - 1], 0xee);
    }
    free_packet_codec(codec);
    ss_profile_release(profile);
}

static void check_spoilt(const json_t *vector, const struct ss_method *method,
                         const struct ss_aead *aead)
{
    struct ss_profile *profile = profile_of(method, aead, NULL);
    struct ss_packet_codec *codec = packet_codec_of(profile, SS_CODEC_SERVER);
    struct ss_view address =
        address_of(vector_text(vector, "host"), (uint16_t)vector_number(vector, "port"));
    size_t len = vector_bytes(vector, "wire", wire, sizeof wire);

    for (size_t cut = 0; cut < len; cut += spoilt_step(len))
        assert_int_not_equal(open_copy(codec, wire, cut, address, NULL, 0), SS_OK);
    for (size_t bit = 0; bit < len * 8; bit += spoilt_step(len)) {
        wire[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(open_copy(codec, wire, len, address, NULL, 0), SS_ERR_AUTH);
        wire[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free_packet_codec(codec);
    ss_profile_release(profile);
}

static void for_vectors(void (*check)(const json_t *vector, const struct ss_method *method,
                                      const struct ss_aead *aead))
{
    json_t *file = vectors_load("aead-udp.json");
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
    assert_true(checked >= 20);
    json_decref(file);
}

static void datagrams_are_those_of_the_vectors(void **state)
{
    (void)state;
    for_vectors(check_vector);
}

static void any_cut_or_flipped_bit_of_a_vector_is_refused(void **state)
{
    (void)state;
    for_vectors(check_spoilt);
}

static void check_refusals(const struct ss_method *method, const struct ss_aead *aead)
{
    struct ss_profile *profile = profile_of(method, aead, NULL);
    struct ss_packet_codec *sender = packet_codec_of(profile, SS_CODEC_CLIENT);
    struct ss_packet_codec *receiver = packet_codec_of(profile, SS_CODEC_SERVER);
    uint8_t payload[] = "twenty bytes of text";
    struct ss_packet_payload from = {{payload, sizeof payload}, 0, 0, NULL};
    struct ss_view address = address_of("192.0.2.9", 53);
    size_t least = method->salt_len + 7 + SS_PACKET_TAIL;
    size_t len;

    assert_int_equal(
        ss_packet_seal(sender, address, &from, 0, (struct ss_span){wire, sizeof wire}, &len),
        SS_OK);
    for (size_t bit = 0; bit < len * 8; bit++) {
        memcpy(other, wire, len);
        other[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(open_copy(receiver, other, len, address, payload, sizeof payload),
                         SS_ERR_AUTH);
    }
    for (size_t cut = 0; cut < len; cut++)
        assert_int_equal(open_copy(receiver, wire, cut, address, payload, sizeof payload),
                         cut < least ? SS_ERR_FORMAT : SS_ERR_AUTH);
    assert_int_equal(open_copy(receiver, wire, len, address, payload, sizeof payload), SS_OK);
    free_packet_codec(sender);
    free_packet_codec(receiver);
    ss_profile_release(profile);
}

static void a_flipped_bit_or_a_cut_is_refused(void **state)
{
    (void)state;
    for_each_provider(check_refusals);
}

static const struct ss_method *any_method(void)
{
    return ss_method_find("aes-128-gcm");
}

static void a_bad_address_is_refused(void **state)
{
    static const struct {
        uint8_t bytes[12];
        size_t len;
    } bad[] = {
        {{0, 1, 2, 3, 4, 0, 53}, 7},          {{2, 1, 2, 3, 4, 0, 53}, 7},
        {{0x11, 1, 2, 3, 4, 0, 53}, 7},       {{3, 0, 0, 53, 1, 1, 1}, 7},
        {{3, 9, 'a', 'b', 'c', 0, 53}, 7},    {{4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 53}, 12},
        {{3, 4, 'a', 0, 'b', 'c', 0, 53}, 8},
    };
    struct ss_profile *profile = profile_of(any_method(), NULL, NULL);
    struct ss_packet_codec *codec = packet_codec_of(profile, SS_CODEC_SERVER);

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        static const struct ss_packet_payload nothing;
        struct ss_view address = {bad[i].bytes, bad[i].len};
        size_t len;

        /* What goes in front is not looked at when it is sealed. */
        assert_int_equal(
            ss_packet_seal(codec, address, &nothing, 0, (struct ss_span){wire, sizeof wire}, &len),
            SS_OK);
        assert_int_equal(open_copy(codec, wire, len, address, NULL, 0), SS_ERR_FORMAT);
    }
    free_packet_codec(codec);
    ss_profile_release(profile);
}

/* As a batch comes with GRO and leaves with GSO: payloads one behind the other without a gap, each
 * the head room of the next, sealed one behind the other. */
static void a_batch_is_sealed_from_one_buffer_into_another(void **state)
{
    enum { COUNT = 20, LEN = 1400 };
    struct ss_profile *profile = profile_of(any_method(), NULL, NULL);
    struct ss_packet_codec *sender = packet_codec_of(profile, SS_CODEC_SERVER);
    struct ss_packet_codec *receiver = packet_codec_of(profile, SS_CODEC_CLIENT);
    struct ss_view address = address_of("2001:db8::7", 443);
    uint8_t *payloads = malloc((size_t)COUNT * LEN);
    size_t at = 0;

    (void)state;
    assert_non_null(payloads);
    fill_pattern(payloads, (size_t)COUNT * LEN);
    memcpy(room + 64, payloads, (size_t)COUNT * LEN);
    for (size_t i = 0; i < COUNT; i++) {
        struct ss_packet_payload from = {{room + 64 + i * LEN, LEN}, 64 + i * LEN, 0, NULL};
        size_t len;

        assert_int_equal(ss_packet_seal(sender, address, &from, 0,
                                        (struct ss_span){wire + at, sizeof wire - at}, &len),
                         SS_OK);
        at += len;
    }
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(open_copy(receiver, wire + i * (at / COUNT), at / COUNT, address,
                                   payloads + i * LEN, LEN),
                         SS_OK);
    free(payloads);
    free_packet_codec(sender);
    free_packet_codec(receiver);
    ss_profile_release(profile);
}

static void a_datagram_is_taken_once(void **state)
{
    struct ss_salt_memory *client_salts = ss_salt_memory_new(SS_SALT_MEMORY_CLIENT);
    struct ss_salt_memory *streams = ss_salt_memory_new(100);
    struct ss_salt_memory *packets = ss_salt_memory_new(SS_SALT_MEMORY_SERVER);
    struct ss_profile *client = profile_of(any_method(), NULL, client_salts);
    const struct ss_profile_options options = {.method = any_method(),
                                               .salts = streams,
                                               .packet_salts = packets,
                                               .password = {(const uint8_t *)"foobar", 6}};
    struct ss_profile *server;
    struct ss_packet_codec *sender = packet_codec_of(client, SS_CODEC_CLIENT), *receiver;
    struct ss_view address = address_of("example.test", 53);
    uint8_t payload[] = "query";
    struct ss_packet_payload from = {{payload, sizeof payload}, 0, 0, NULL};
    struct ss_span out = {wire, sizeof wire};
    size_t len;

    (void)state;
    assert_int_equal(ss_profile_new(&server, &options), SS_OK);
    receiver = packet_codec_of(server, SS_CODEC_SERVER);
    assert_int_equal(ss_packet_seal(sender, address, &from, 0, out, &len), SS_OK);
    /* What does not open leaves no salt behind. */
    wire[len - 1] ^= 1;
    assert_int_equal(open_copy(receiver, wire, len, address, payload, sizeof payload), SS_ERR_AUTH);
    wire[len - 1] ^= 1;
    assert_int_equal(open_copy(receiver, wire, len, address, payload, sizeof payload), SS_OK);
    assert_int_equal(open_copy(receiver, wire, len, address, payload, sizeof payload),
                     SS_ERR_REPLAY);
    assert_true(ss_salt_memory_contains(packets, wire, 16));
    assert_false(ss_salt_memory_contains(streams, wire, 16));
    /* What we sent ourselves is not taken back. */
    assert_int_equal(open_copy(sender, wire, len, address, payload, sizeof payload), SS_ERR_REPLAY);
    assert_int_equal(ss_packet_seal(receiver, address, &from, 0, out, &len), SS_OK);
    assert_int_equal(open_copy(receiver, wire, len, address, payload, sizeof payload),
                     SS_ERR_REPLAY);
    assert_int_equal(open_copy(sender, wire, len, address, payload, sizeof payload), SS_OK);

    free_packet_codec(sender);
    free_packet_codec(receiver);
    ss_profile_release(client);
    ss_profile_release(server);
    ss_salt_memory_free(client_salts);
    ss_salt_memory_free(streams);
    ss_salt_memory_free(packets);
}

static void check_allocations(const struct ss_method *method, const struct ss_aead *aead)
{
    struct ss_salt_memory *salts = ss_salt_memory_new(SS_SALT_MEMORY_CLIENT);
    struct ss_salt_memory *others = ss_salt_memory_new(SS_SALT_MEMORY_CLIENT);
    struct ss_profile *client = profile_of(method, aead, salts);
    struct ss_profile *server = profile_of(method, aead, others);
    struct ss_packet_codec *sender = packet_codec_of(client, SS_CODEC_CLIENT);
    struct ss_packet_codec *receiver = packet_codec_of(server, SS_CODEC_SERVER);
    struct ss_view address = address_of("example.test", 53);
    struct ss_packet_payload from = {{room + 300, 1400}, 300, 16, NULL};
    struct ss_packet_opened opened;
    unsigned long before = 0;
    int failed = 0;

    fill_pattern(room, sizeof room);
    for (int i = 0; i < 100; i++) {
        size_t len;

        if (i == 1)
            before = allocation_count();
        failed |= ss_packet_seal(sender, address, &from, 0, (struct ss_span){wire, sizeof wire},
                                 &len) != SS_OK;
        failed |= ss_packet_open(receiver, (struct ss_span){wire, len}, 0, &opened) != SS_OK;
        failed |= opened.payload.len != 1400;
        ss_packet_codec_end(receiver);
        failed |= ss_packet_codec_begin(receiver, server, SS_CODEC_SERVER) != SS_OK;
    }
    before = allocation_count() - before;
    assert_int_equal(failed, 0);
    if (aead->provider != SS_AEAD_MBEDTLS || aead->algorithm > SS_AEAD_AES_256_GCM)
        assert_int_equal(before, 0);
    free_packet_codec(sender);
    free_packet_codec(receiver);
    ss_profile_release(client);
    ss_profile_release(server);
    ss_salt_memory_free(salts);
    ss_salt_memory_free(others);
}

static void datagrams_are_not_allocated_for(void **state)
{
    (void)state;
    for_each_provider(check_allocations);
}

int packet_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(datagrams_are_those_of_the_vectors),
        cmocka_unit_test(any_cut_or_flipped_bit_of_a_vector_is_refused),
        cmocka_unit_test(a_flipped_bit_or_a_cut_is_refused),
        cmocka_unit_test(a_bad_address_is_refused),
        cmocka_unit_test(a_batch_is_sealed_from_one_buffer_into_another),
        cmocka_unit_test(a_datagram_is_taken_once),
        cmocka_unit_test(datagrams_are_not_allocated_for),
    };

    return cmocka_run_group_tests_name("codec/packet", tests, NULL, NULL);
}
