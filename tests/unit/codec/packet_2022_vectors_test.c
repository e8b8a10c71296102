/* UDP under the 2022 edition against datagrams that another implementation made. */
#include "codec/packet.h"

#include <stdlib.h>
#include <string.h>

#include "packet_2022.h"
#include "support.h"
#include "vectors/read.h"
#include "vectors_2022.h"

#define PACKET_MAX 4096

static uint8_t wire[PACKET_MAX], made[PACKET_MAX], room[PACKET_MAX];
static uint8_t payload[PACKET_MAX], plain[PACKET_MAX];

typedef void vector_check(const json_t *vector, const struct ss_method *method,
                          const struct ss_aead *aead);

static void for_each_vector(const json_t *vectors, size_t at_least, vector_check *check)
{
    const json_t *vector;
    size_t i;

    json_array_foreach(vectors, i, vector)
    {
        const struct ss_method *method = method_of_vector(vector);
        int found = 0;

        for (int provider = 0; provider < SS_AEAD_PROVIDER_COUNT; provider++) {
            const struct ss_aead *aead =
                ss_aead_find(method->aead, (enum ss_aead_provider)provider);

            if (aead != NULL) {
                check(vector, method, aead);
                found++;
            }
        }
        assert_true(found >= 1);
    }
    assert_true(i >= at_least);
}

static uint64_t packet_id_of(const json_t *vector)
{
    return strtoull(vector_text(vector, "packet_id"), NULL, 10);
}

static struct ss_view address_of(const json_t *vector)
{
    return packet_address(vector_text(vector, "host"), (uint16_t)vector_number(vector, "port"));
}

/* Where the vector has a nonce, that one is drawn next. */
static void draw_nonce(const json_t *vector)
{
    static uint8_t nonce[24];

    if (json_object_get(vector, "nonce") != NULL) {
        assert_int_equal(vector_bytes(vector, "nonce", nonce, sizeof nonce), sizeof nonce);
        draw_next(nonce, sizeof nonce);
    }
}

static void draw_id(const json_t *vector, const char *key)
{
    static uint8_t id[SS_SESSION_ID_LEN];

    assert_int_equal(vector_bytes(vector, key, id, sizeof id), sizeof id);
    draw_next(id, sizeof id);
}

/* Who seals a vector's datagram: a client, or a server that has just heard from one. */
struct sealer {
    struct ss_packet_sessions *sessions;
    struct ss_packet_codec *client, *server;
    struct ss_packet_link *asking, *answering;
};

static struct sealer client_sealer(const json_t *vector, const struct ss_profile *profile)
{
    struct sealer sealer = {.client = packet_codec(profile, SS_CODEC_CLIENT, NULL)};

    draw_id(vector, "client_session_id");
    sealer.asking = link_of(sealer.client, NULL);
    return sealer;
}

static struct sealer server_sealer(const json_t *vector, const struct ss_profile *profile)
{
    struct sealer sealer = client_sealer(vector, profile);
    struct ss_packet_opened opened;
    size_t len = seal_exactly(sealer.client, sealer.asking, packet_address("192.0.2.1", 9), payload,
                              0, VECTORS_NOW, made);

    sealer.sessions = ss_packet_sessions_new(1);
    sealer.server = packet_codec(profile, SS_CODEC_SERVER, sealer.sessions);
    draw_id(vector, "server_session_id");
    assert_int_equal(open_copy_2022(sealer.server, NULL, made, len, VECTORS_NOW, &opened, plain),
                     SS_OK);
    sealer.answering = link_of(sealer.server, opened.session);
    return sealer;
}

static void free_sealer(struct sealer *sealer)
{
    free_link(sealer->asking);
    free_packet_codec_2022(sealer->client);
    if (sealer->server == NULL)
        return;
    free_link(sealer->answering);
    free_packet_codec_2022(sealer->server);
    ss_packet_sessions_free(sealer->sessions);
}

/* Ours makes the same bytes, from buffer to buffer and in place, wherever address and payload lie.
 * A vector whose padding or packet ID is not for us to choose is only opened. */
static void check_sealed(const json_t *vector, const struct ss_profile *profile,
                         struct sealer (*make)(const json_t *, const struct ss_profile *),
                         size_t payload_len, size_t wire_len)
{
    if (strlen(vector_text(vector, "padding")) != 0 || packet_id_of(vector) > 100)
        return;
    for (int how = 0; how < 4; how++) {
        struct sealer sealer = make(vector, profile);
        struct ss_packet_codec *codec = sealer.server != NULL ? sealer.server : sealer.client;
        struct ss_packet_link *link = sealer.server != NULL ? sealer.answering : sealer.asking;
        struct ss_view address = address_of(vector);
        size_t head_len = ss_packet_head_len(codec, address.len);
        struct ss_packet_payload from = {{room + 500, payload_len}, 0, SS_PACKET_TAIL, link};
        struct ss_view sealed = {made, 0};

        for (uint64_t id = packet_id_of(vector); id != 0; id--) /* those below the vector's */
            (void)seal_exactly(codec, link, address, payload, 0, 0, made);
        memset(room, 0xee, sizeof room);
        if (payload_len != 0)
            memcpy(room + 500, payload, payload_len);
        draw_nonce(vector);
        if (how < 2) {
            from.head = how == 0 ? 0 : head_len;
            assert_int_equal(ss_packet_seal(codec, address, &from, VECTORS_NOW,
                                            (struct ss_span){made, wire_len}, &sealed.len),
                             SS_OK);
        } else {
            if (how == 3) {
                memcpy(room + 500 - address.len, address.ptr, address.len);
                address.ptr = room + 500 - address.len;
            }
            from.head = head_len;
            assert_int_equal(ss_packet_seal_in_place(codec, address, &from, VECTORS_NOW, &sealed),
                             SS_OK);
            assert_ptr_equal(sealed.ptr, room + 500 - head_len);
            assert_int_equal(room[500 - head_len - 1], 0xee);
        }
        assert_int_equal(sealed.len, wire_len);
        assert_memory_equal(sealed.ptr, wire, wire_len);
        free_sealer(&sealer);
    }
}

static void check_opened(const json_t *vector, const struct ss_packet_opened *opened,
                         size_t payload_len)
{
    struct ss_target target =
        target_of(vector_text(vector, "host"), (uint16_t)vector_number(vector, "port"));

    assert_int_equal(opened->target.atyp, target.atyp);
    assert_int_equal(opened->target.port, target.port);
    assert_memory_equal(opened->target.ip, target.ip, sizeof target.ip);
    assert_string_equal(opened->target.name, target.name);
    assert_int_equal(opened->payload.len, payload_len);
    assert_memory_equal(plain, payload, payload_len);
}

static void check_request(const json_t *vector, const struct ss_method *method,
                          const struct ss_aead *aead)
{
    const json_t *chain = json_object_get(vector, "ipsks");
    size_t wire_len = vector_bytes(vector, "wire", wire, sizeof wire);
    size_t payload_len = vector_bytes(vector, "payload", payload, sizeof payload);
    struct ss_packet_sessions *sessions = ss_packet_sessions_new(4);
    struct ss_profile *profile = client_of(method, aead, vector_text(vector, "password"));
    struct ss_packet_codec *codec;
    struct ss_packet_opened opened;

    assert_int_equal(wire_len, vector_number(vector, "wire_len"));
    check_sealed(vector, profile, client_sealer, payload_len, wire_len);
    ss_profile_release(profile);

    profile = server_of_vector(method, aead, vector);
    codec = packet_codec(profile, SS_CODEC_SERVER, sessions);
    if (json_array_size(chain) == 2) { /* a relay makes it a datagram with one header */
        assert_int_equal(open_copy_2022(codec, NULL, wire, wire_len, VECTORS_NOW, &opened, made),
                         SS_OK);
        assert_string_equal(opened.user->next->host, "next.example");
        wire_len = opened.payload.len;
        memcpy(wire, made, wire_len);
        free_packet_codec_2022(codec);
        ss_profile_release(profile);
        profile = server_of(method, aead, json_string_value(json_array_get(chain, 1)),
                            vector_text(vector, "psk"), NULL);
        codec = packet_codec(profile, SS_CODEC_SERVER, sessions);
    }
    assert_int_equal(open_copy_2022(codec, NULL, wire, wire_len, VECTORS_NOW, &opened, plain),
                     SS_OK);
    check_opened(vector, &opened, payload_len);
    assert_true((opened.user != NULL) == (json_array_size(chain) != 0));
    if (opened.user != NULL)
        assert_string_equal(opened.user->name, "somebody");
    assert_int_equal(open_copy_2022(codec, NULL, wire, wire_len, VECTORS_NOW, &opened, plain),
                     SS_ERR_REPLAY);
    free_packet_codec_2022(codec);
    ss_profile_release(profile);
    ss_packet_sessions_free(sessions);
}

static void requests_are_those_of_the_vectors(void **state)
{
    json_t *file = vectors_load("aead2022-udp.json");

    (void)state;
    for_each_vector(json_object_get(file, "client_to_server"), 40, check_request);
    json_decref(file);
}

static void check_reply(const json_t *vector, const struct ss_method *method,
                        const struct ss_aead *aead)
{
    size_t wire_len = vector_bytes(vector, "wire", wire, sizeof wire);
    size_t payload_len = vector_bytes(vector, "payload", payload, sizeof payload);
    struct ss_profile *profile = server_of(method, aead, vector_text(vector, "psk"), NULL, NULL);
    struct sealer client;
    struct ss_packet_opened opened;

    check_sealed(vector, profile, server_sealer, payload_len, wire_len);
    client = client_sealer(vector, profile);
    for (int i = 0; i < 2; i++)
        assert_int_equal(open_copy_2022(client.client, client.asking, wire, wire_len, VECTORS_NOW,
                                        &opened, plain),
                         i == 0 ? SS_OK : SS_ERR_REPLAY);
    check_opened(vector, &opened, payload_len);
    free_sealer(&client);
    ss_profile_release(profile);
}

static void replies_are_those_of_the_vectors(void **state)
{
    json_t *file = vectors_load("aead2022-udp.json");

    (void)state;
    for_each_vector(json_object_get(file, "server_to_client"), 12, check_reply);
    json_decref(file);
}

static void check_relay(const json_t *vector, const struct ss_method *method,
                        const struct ss_aead *aead)
{
    static const struct ss_endpoint next = {.host = "next.example", .port = 8388};
    size_t wire_len = vector_bytes(vector, "in", wire, sizeof wire);
    size_t out_len = vector_bytes(vector, "out", made, sizeof made);
    struct ss_packet_sessions *sessions = ss_packet_sessions_new(4);
    struct ss_profile *profile = server_of(method, aead, vector_text(vector, "relay_ipsk"),
                                           vector_text(vector, "next_psk"), &next);
    struct ss_packet_codec *codec = packet_codec(profile, SS_CODEC_SERVER, sessions);
    struct ss_packet_opened opened;
    uint8_t id[SS_SESSION_ID_LEN];

    assert_int_equal(open_copy_2022(codec, NULL, wire, wire_len, 0, &opened, plain), SS_OK);
    assert_int_equal(opened.user->next->port, next.port);
    assert_int_equal(opened.payload.len, out_len);
    assert_memory_equal(plain, made, out_len);
    assert_int_equal(vector_bytes(vector, "session_id", id, sizeof id), sizeof id);
    assert_memory_equal(opened.session->id, id, sizeof id);
    /* Passed on once: else a copy could call the replies to another address. */
    assert_int_equal(open_copy_2022(codec, NULL, wire, wire_len, 0, &opened, plain), SS_ERR_REPLAY);
    free_packet_codec_2022(codec);
    ss_profile_release(profile);
    ss_packet_sessions_free(sessions);
}

static void a_relay_takes_the_first_identity_header_out(void **state)
{
    json_t *file = vectors_load("aead2022-udp.json");

    (void)state;
    for_each_vector(json_object_get(file, "relay"), 2, check_relay);
    json_decref(file);
}

static const struct {
    const char *end_of_id;
    enum ss_status status;
} verdicts[] = {
    {"/type-1", SS_ERR_FORMAT},      {"/type-0", SS_ERR_FORMAT},
    {"/stale-31", SS_ERR_STALE},     {"/future-31", SS_ERR_STALE},
    {"/cut-address", SS_ERR_FORMAT}, {"/atyp-9", SS_ERR_FORMAT},
    {"/tag", SS_ERR_AUTH},           {"/wrong-client-session", SS_ERR_REPLAY},
};

static void check_invalid(const json_t *vector, const struct ss_method *method,
                          const struct ss_aead *aead)
{
    size_t wire_len = vector_bytes(vector, "wire", wire, sizeof wire);
    int64_t now_s = (int64_t)vector_number(vector, "now");
    const char *end = strrchr(vector_text(vector, "id"), '/');
    struct ss_profile *profile = server_of(method, aead, vector_text(vector, "psk"), NULL, NULL);
    struct ss_packet_sessions *sessions = ss_packet_sessions_new(4);
    struct ss_packet_opened opened;
    enum ss_status status;
    bool is_known = false;

    if (strcmp(vector_text(vector, "side"), "server") == 0) {
        struct ss_packet_codec *codec = packet_codec(profile, SS_CODEC_SERVER, sessions);

        status = open_copy_2022(codec, NULL, wire, wire_len, now_s, &opened, plain);
        if (status == SS_ERR_STALE)
            assert_true(ss_packet_clock_difference(codec) == 31 ||
                        ss_packet_clock_difference(codec) == -31);
        assert_int_equal(ss_packet_sessions_count(sessions), 0);
        free_packet_codec_2022(codec);
    } else {
        struct sealer client = client_sealer(vector, profile);

        status =
            open_copy_2022(client.client, client.asking, wire, wire_len, now_s, &opened, plain);
        free_sealer(&client);
    }
    for (size_t i = 0; i < sizeof verdicts / sizeof verdicts[0]; i++)
        if (strcmp(end, verdicts[i].end_of_id) == 0) {
            assert_int_equal(status, verdicts[i].status);
            is_known = true;
        }
    if (!is_known)
        fail_msg("no verdict for %s", end);
    ss_profile_release(profile);
    ss_packet_sessions_free(sessions);
}

/* Any cut and any flipped bit of a valid one, but for those that a relay can't see. */
static void check_spoilt(const json_t *vector, const struct ss_method *method,
                         const struct ss_aead *aead)
{
    bool is_request = json_object_get(vector, "ipsks") != NULL;
    struct ss_profile *profile =
        is_request ? server_of_vector(method, aead, vector)
                   : server_of(method, aead, vector_text(vector, "psk"), NULL, NULL);
    struct ss_packet_sessions *sessions = ss_packet_sessions_new(4);
    struct ss_packet_codec *server = packet_codec(profile, SS_CODEC_SERVER, sessions);
    struct sealer client = {0};
    const bool is_relay = json_array_size(json_object_get(vector, "ipsks")) == 2;
    size_t len = vector_bytes(vector, "wire", wire, sizeof wire);
    size_t seen = is_relay ? 2 * 16 : len;
    struct ss_packet_opened opened;

    if (!is_request)
        client = client_sealer(vector, profile);
    for (size_t cut = 0; cut < seen; cut += spoilt_step(len))
        assert_int_not_equal(open_copy_2022(is_request ? server : client.client, client.asking,
                                            wire, cut, VECTORS_NOW, &opened, plain),
                             SS_OK);
    for (size_t bit = 0; bit < seen * 8; bit += spoilt_step(len)) {
        wire[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(open_copy_2022(is_request ? server : client.client, client.asking, wire,
                                        len, VECTORS_NOW, &opened, plain),
                         SS_ERR_AUTH);
        wire[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_int_equal(ss_packet_sessions_count(sessions), 0);
    if (!is_request)
        free_sealer(&client);
    free_packet_codec_2022(server);
    ss_profile_release(profile);
    ss_packet_sessions_free(sessions);
}

static void any_cut_or_flipped_bit_is_refused(void **state)
{
    json_t *file = vectors_load("aead2022-udp.json");

    (void)state;
    for_each_vector(json_object_get(file, "client_to_server"), 40, check_spoilt);
    for_each_vector(json_object_get(file, "server_to_client"), 12, check_spoilt);
    json_decref(file);
}

static void invalid_datagrams_are_refused(void **state)
{
    json_t *file = vectors_load("aead2022-udp-invalid.json");

    (void)state;
    for_each_vector(file, 36, check_invalid);
    json_decref(file);
}

int packet_2022_vectors_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_those_of_the_vectors),
        cmocka_unit_test(replies_are_those_of_the_vectors),
        cmocka_unit_test(a_relay_takes_the_first_identity_header_out),
        cmocka_unit_test(any_cut_or_flipped_bit_is_refused),
        cmocka_unit_test(invalid_datagrams_are_refused),
    };

    return cmocka_run_group_tests_name("codec/2022 datagram vectors", tests, NULL, NULL);
}
