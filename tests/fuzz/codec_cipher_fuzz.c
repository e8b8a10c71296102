/*
 * The stream methods: what was sealed opens to the same bytes in any cuts, TCP and UDP; and any
 * bytes at all are taken exactly when what they decrypt to begins with a target.
 *
 * The input: method, options, two bytes for draws, then the plain bytes.
 */
#include "fuzz/codec_fuzz.h"

#include "codec/codec.h"
#include "codec/packet.h"

#define OPTION_PACKET 1
#define OPTION_SERVER 2 /* the receiver: what is sealed begins with a target, or with anything */

#define PLAIN_MAX 70000

static uint8_t plain[PLAIN_MAX], wire[PLAIN_MAX + 100], payload[PLAIN_MAX];

static void check_stream(const struct ss_profile *profile, struct ss_reader in, bool is_server)
{
    struct ss_codec *sender = fuzz_slot(ss_codec_size(profile));
    struct ss_codec *receiver = fuzz_slot(ss_codec_size(profile));
    struct ss_reader body = in;
    struct ss_target target;
    enum ss_status status, wanted = SS_OK;
    struct ss_view from = {plain, in.len};
    struct ss_span out = {wire, sizeof wire};
    size_t len, at = 0, rest_len = 0, payload_len = 0;

    memcpy(plain, in.ptr, in.len);
    CHECK(ss_codec_begin(sender, profile, SS_CODEC_SERVER) == SS_OK);
    CHECK(ss_codec_begin(receiver, profile, is_server ? SS_CODEC_SERVER : SS_CODEC_CLIENT) ==
          SS_OK);
    while (from.len != 0) { /* a server seals no target: the first bytes are the input's as well */
        struct ss_view part = {from.ptr, 1 + draw((uint32_t)from.len)};

        from.ptr += part.len;
        from.len -= part.len;
        CHECK(ss_codec_seal(sender, &part, &out, 0) == SS_OK && part.len == 0);
    }
    len = sizeof wire - out.len;
    if (is_server)
        wanted = ss_target_read(&body, &target);
    status = SS_OK;
    while (at < len && status == SS_OK) {
        size_t piece = 1 + draw((uint32_t)(len - at));
        uint8_t *bytes = malloc(rest_len + piece);
        struct ss_opened opened;

        CHECK(bytes != NULL);
        memcpy(bytes, wire + at - rest_len, rest_len + piece);
        at += piece;
        status = ss_codec_open(receiver, (struct ss_span){bytes, rest_len + piece}, 0, &opened);
        rest_len = opened.rest_len;
        CHECK(rest_len <= SS_REST_MAX);
        for (size_t i = 0; i < opened.count; i++) {
            memcpy(payload + payload_len, opened.payload[i].ptr, opened.payload[i].len);
            payload_len += opened.payload[i].len;
        }
        free(bytes);
    }
    CHECK(status == (wanted == SS_NEED_INPUT ? SS_OK : wanted));
    CHECK((ss_codec_target(receiver) != NULL) == (is_server && wanted == SS_OK));
    if (wanted == SS_OK)
        CHECK(payload_len == body.len && memcmp(payload, body.ptr, body.len) == 0);
    else
        CHECK(payload_len == 0);
    ss_codec_retire(sender);
    ss_codec_retire(receiver);
    free(sender);
    free(receiver);
}

static void check_packet(const struct ss_profile *profile, struct ss_reader in)
{
    struct ss_packet_codec *codec = fuzz_slot(ss_packet_codec_size(profile));
    struct ss_view address = {in.ptr, in.len < 20 ? in.len : 20};
    const struct ss_packet_payload from = {
        {plain + address.len, in.len - address.len}, address.len, 0, NULL};
    struct ss_packet_opened opened;
    struct ss_reader body = in;
    struct ss_target target;
    uint8_t *copy;
    size_t len;
    enum ss_status wanted = ss_target_read(&body, &target) == SS_OK ? SS_OK : SS_ERR_FORMAT;

    memcpy(plain, in.ptr, in.len);
    CHECK(ss_packet_codec_begin(codec, profile, SS_CODEC_SERVER) == SS_OK);
    CHECK(ss_packet_seal(codec, address, &from, 0, (struct ss_span){wire, sizeof wire}, &len) ==
          SS_OK);
    CHECK(len == ss_profile_method(profile)->salt_len + in.len);
    copy = malloc(len != 0 ? len : 1);
    CHECK(copy != NULL);
    memcpy(copy, wire, len);
    if (in.len < 7)
        wanted = SS_ERR_FORMAT;
    CHECK(ss_packet_open(codec, (struct ss_span){copy, len}, 0, &opened) == wanted);
    if (wanted == SS_OK) {
        CHECK(opened.target.port == target.port && strcmp(opened.target.name, target.name) == 0);
        CHECK(opened.payload.len == body.len);
        CHECK(memcmp(opened.payload.ptr, body.ptr, body.len) == 0);
    }
    free(copy);
    ss_packet_codec_retire(codec);
    free(codec);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct ss_reader in = {bytes, len};
    const struct ss_profile *profile;
    uint8_t method, options;
    uint16_t seed;

    if (!ss_read_u8(&in, &method) || !ss_read_u8(&in, &options) || !ss_read_u16be(&in, &seed) ||
        in.len > PLAIN_MAX)
        return 0;
    draw_from(seed);
    profile = fuzz_profile_of(method % 16 == 15 ? SS_METHODS_PLAIN : SS_METHODS_STREAM, method);
    if ((options & OPTION_PACKET) != 0)
        check_packet(profile, in);
    else
        check_stream(profile, in, (options & OPTION_SERVER) != 0);
    return 0;
}
