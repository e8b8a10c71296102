/*
 * A stream of any chunks opens to what was sealed, however it is cut; with a bit flipped it does
 * not.
 *
 * The input: method, options, two bytes for draws, then chunks, each a byte for the length and the
 * beginning of its plain bytes, which a pattern fills up.
 */
#include "fuzz/codec_fuzz.h"

#include "codec/codec.h"

#define PLAIN_MAX 40000
#define WIRE_MAX  (2 * PLAIN_MAX)

#define OPTION_SERVER 1 /* the receiver expects a target in front */
#define OPTION_FLIP   2 /* a bit of the wire is flipped */
#define OPTION_RAW    4 /* the input is no plain text but the wire itself */

static uint8_t plain[PLAIN_MAX], wire[WIRE_MAX];

struct outcome {
    enum ss_status status;
    uint8_t payload[PLAIN_MAX];
    size_t payload_len;
    bool has_target;
    struct ss_target target;
};

/* Seals what the input says; returns the bytes of wire. */
static size_t seal_chunks(const struct ss_profile *profile, struct ss_reader in, size_t *plain_len)
{
    struct ss_codec *sender = fuzz_slot(ss_codec_size(profile));
    struct ss_span out = {wire, sizeof wire};
    uint8_t short_len;

    /* A server seals no target, so the first bytes are the input's as well. */
    CHECK(ss_codec_begin(sender, profile, SS_CODEC_SERVER) == SS_OK);
    *plain_len = 0;
    while (ss_read_u8(&in, &short_len)) {
        size_t len = short_len < 200 ? 1u + short_len : (short_len - 199u) * 350u;
        size_t given = len < in.len ? len : in.len;
        struct ss_view chunk = {plain + *plain_len, len};

        if (len > sizeof plain - *plain_len || out.len < len + SEALED_MORE)
            break;
        CHECK(ss_read_bytes(&in, plain + *plain_len, given));
        for (size_t i = given; i < len; i++)
            plain[*plain_len + i] = (uint8_t)(i * 5);
        CHECK(ss_codec_seal(sender, &chunk, &out, 0) == SS_OK && chunk.len == 0);
        *plain_len += len;
    }
    ss_codec_retire(sender);
    free(sender);
    return sizeof wire - out.len;
}

/* Opens the wire in pieces of at most `piece_max` bytes, each in memory of exactly its size. */
static void open_pieces(const struct ss_profile *profile, enum ss_codec_role role, size_t len,
                        size_t piece_max, struct outcome *outcome)
{
    struct ss_codec *receiver = fuzz_slot(ss_codec_size(profile));
    size_t at = 0, rest_len = 0;

    outcome->status = SS_OK;
    outcome->payload_len = 0;
    CHECK(ss_codec_begin(receiver, profile, role) == SS_OK);
    while (at < len) {
        size_t piece = piece_max >= len ? len : 1 + draw((uint32_t)piece_max);
        size_t have;
        uint8_t *bytes;
        struct ss_opened opened;

        if (piece > len - at)
            piece = len - at;
        have = rest_len + piece;
        bytes = malloc(have);
        CHECK(bytes != NULL);
        memcpy(bytes, wire + at - rest_len, have);
        at += piece;
        outcome->status = ss_codec_open(receiver, (struct ss_span){bytes, have}, 0, &opened);
        CHECK(opened.count <= SS_OPENED_MAX && opened.rest_len <= have);
        CHECK(opened.rest_len <= SS_REST_MAX);
        for (size_t i = 0; i < opened.count; i++) {
            CHECK(opened.payload[i].len != 0);
            CHECK(outcome->payload_len + opened.payload[i].len <= sizeof outcome->payload);
            memcpy(outcome->payload + outcome->payload_len, opened.payload[i].ptr,
                   opened.payload[i].len);
            outcome->payload_len += opened.payload[i].len;
        }
        /* What is kept is as it came. */
        CHECK(memcmp(bytes + have - opened.rest_len, wire + at - opened.rest_len,
                     opened.rest_len) == 0);
        rest_len = opened.rest_len;
        if (outcome->status != SS_OK) {
            CHECK(opened.count == 0 && opened.rest_len == 0);
            CHECK(ss_codec_open(receiver, (struct ss_span){bytes, have}, 0, &opened) ==
                  outcome->status);
            CHECK(!ss_codec_may_end(receiver, 0));
            free(bytes);
            break;
        }
        free(bytes);
    }
    outcome->has_target = ss_codec_target(receiver) != NULL;
    if (outcome->has_target)
        outcome->target = *ss_codec_target(receiver);
    ss_codec_retire(receiver);
    free(receiver);
}

/* What came out is what went in, behind the target if there is to be one. */
static void check_plain(const struct outcome *outcome, size_t plain_len, bool is_server,
                        bool flipped)
{
    struct ss_reader in = {plain, plain_len};
    struct ss_target target;
    enum ss_status status = is_server ? ss_target_read(&in, &target) : SS_OK;

    CHECK(is_server || !outcome->has_target);
    CHECK(outcome->payload_len <= in.len);
    CHECK(memcmp(outcome->payload, in.ptr, outcome->payload_len) == 0);
    if (outcome->has_target) {
        CHECK(status == SS_OK && outcome->target.atyp == target.atyp);
        CHECK(outcome->target.port == target.port);
        CHECK(strcmp(outcome->target.name, target.name) == 0);
    }
    if (flipped) {
        CHECK(outcome->status == SS_ERR_AUTH ||
              (outcome->status == SS_ERR_FORMAT && status == SS_ERR_FORMAT));
        return;
    }
    CHECK(outcome->status == (status == SS_ERR_FORMAT ? SS_ERR_FORMAT : SS_OK));
    if (status == SS_OK)
        CHECK(outcome->payload_len == in.len && outcome->has_target == is_server);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static struct outcome whole, pieces;
    struct ss_reader in = {bytes, len};
    const struct ss_profile *profile;
    uint8_t method, options;
    uint16_t seed;
    size_t plain_len = 0, wire_len;
    bool is_server, flipped;

    if (!ss_read_u8(&in, &method) || !ss_read_u8(&in, &options) || !ss_read_u16be(&in, &seed))
        return 0;
    draw_from(seed);
    profile = fuzz_profile(method);
    is_server = (options & OPTION_SERVER) != 0;
    if ((options & OPTION_RAW) != 0) {
        wire_len = in.len < sizeof wire ? in.len : sizeof wire;
        CHECK(ss_read_bytes(&in, wire, wire_len));
        flipped = false;
    } else {
        wire_len = seal_chunks(profile, in, &plain_len);
        flipped = (options & OPTION_FLIP) != 0 && wire_len != 0;
        if (flipped)
            wire[draw((uint32_t)wire_len)] ^= (uint8_t)(1u << draw(8));
    }

    open_pieces(profile, is_server ? SS_CODEC_SERVER : SS_CODEC_CLIENT, wire_len, wire_len, &whole);
    open_pieces(profile, is_server ? SS_CODEC_SERVER : SS_CODEC_CLIENT, wire_len,
                1 + (options >> 3) * 50u, &pieces);
    CHECK(whole.status == pieces.status);
    if ((options & OPTION_RAW) != 0) {
        CHECK(whole.payload_len == 0 && pieces.payload_len == 0);
        CHECK((whole.status == SS_ERR_AUTH) ==
              (wire_len >= ss_profile_method(profile)->salt_len + 2 + SS_AEAD_TAG_LEN));
        return 0;
    }
    check_plain(&whole, plain_len, is_server, flipped);
    check_plain(&pieces, plain_len, is_server, flipped);
    if (whole.status != SS_OK)
        CHECK(whole.payload_len == 0);
    return 0;
}
