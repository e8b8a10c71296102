/*
 * A datagram opens to what was sealed, in place or not; with a bit flipped or cut it does not.
 *
 * The input: method, options, two bytes for draws, then the plain bytes, which need not begin with
 * an address.
 */
#include "fuzz/codec_fuzz.h"

#include "codec/packet.h"

#define PACKET_MAX 70000

#define OPTION_IN_PLACE 1
#define OPTION_HEAD     2 /* from buffer to buffer: there is room in front of the payload */
#define OPTION_FLIP     4
#define OPTION_CUT      8
#define OPTION_RAW      16 /* the input is the wire itself */
#define OPTION_FORESEE  32 /* and what else comes in its batch */

static uint8_t room[PACKET_MAX], wire[PACKET_MAX];

static size_t seal_plain(struct ss_packet_codec *codec, const uint8_t *plain, size_t len,
                         size_t address_len, uint8_t options)
{
    size_t head = ss_packet_head_len(codec, address_len);
    struct ss_view address = {plain, address_len};
    struct ss_packet_payload payload = {{room + head, len - address_len}, 0, SS_PACKET_TAIL, NULL};
    struct ss_view sealed;
    size_t sealed_len;

    if (len != address_len)
        memcpy(room + head, plain + address_len, len - address_len);
    if ((options & OPTION_IN_PLACE) != 0) {
        payload.head = head;
        CHECK(ss_packet_seal_in_place(codec, address, &payload, 0, &sealed) == SS_OK);
        CHECK(sealed.ptr == room);
        memcpy(wire, sealed.ptr, sealed.len);
        return sealed.len;
    }
    if ((options & OPTION_HEAD) != 0)
        payload.head = head;
    sealed_len = head + payload.bytes.len + SS_PACKET_TAIL;
    CHECK(ss_packet_seal(codec, address, &payload, 0, (struct ss_span){wire, sealed_len - 1},
                         &sealed_len) == SS_NEED_ROOM);
    sealed_len = head + payload.bytes.len + SS_PACKET_TAIL;
    CHECK(ss_packet_seal(codec, address, &payload, 0, (struct ss_span){wire, sealed_len},
                         &sealed_len) == SS_OK);
    return sealed_len;
}

static void check_opened(struct ss_packet_codec *codec, const uint8_t *plain, size_t len,
                         size_t wire_len, bool damaged)
{
    struct ss_reader in = {plain, len};
    struct ss_target target;
    struct ss_packet_opened opened;
    uint8_t *copy = malloc(wire_len != 0 ? wire_len : 1);
    enum ss_status wanted = ss_target_read(&in, &target) == SS_OK ? SS_OK : SS_ERR_FORMAT;
    enum ss_status status;

    CHECK(copy != NULL);
    memcpy(copy, wire, wire_len);
    status = ss_packet_open(codec, (struct ss_span){copy, wire_len}, 0, &opened);
    if (damaged) {
        CHECK(status == SS_ERR_AUTH || status == SS_ERR_FORMAT);
    } else if (len < 7) {
        CHECK(status == SS_ERR_FORMAT);
    } else {
        CHECK(status == wanted);
    }
    if (status == SS_OK) {
        CHECK(opened.target.atyp == target.atyp && opened.target.port == target.port);
        CHECK(strcmp(opened.target.name, target.name) == 0);
        CHECK(opened.address.len == len - in.len && opened.payload.len == in.len);
        CHECK(opened.address.ptr + opened.address.len == opened.payload.ptr);
        CHECK(memcmp(opened.address.ptr, plain, len) == 0);
        CHECK(opened.payload.ptr + opened.payload.len + SS_PACKET_TAIL == copy + wire_len);
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct ss_reader in = {bytes, len};
    const struct ss_profile *profile;
    struct ss_packet_foreseen *foreseen = NULL;
    struct ss_packet_codec *codec;
    uint8_t method, options;
    uint16_t seed;
    size_t wire_len, address_len;
    bool damaged = false;

    if (!ss_read_u8(&in, &method) || !ss_read_u8(&in, &options) || !ss_read_u16be(&in, &seed) ||
        in.len > PACKET_MAX - 1000)
        return 0;
    draw_from(seed);
    profile = fuzz_profile(method);
    codec = fuzz_slot(ss_packet_codec_size(profile));
    CHECK(ss_packet_codec_begin(codec, profile, SS_CODEC_SERVER) == SS_OK);
    if ((options & OPTION_RAW) != 0) {
        wire_len = in.len;
        memcpy(wire, in.ptr, in.len);
        damaged = true;
    } else {
        /* Where the address ends is the sealer's to say; the receiver finds out by itself. */
        address_len = in.len < SS_TARGET_MAX ? in.len : 1 + draw(SS_TARGET_MAX);
        wire_len = seal_plain(codec, in.ptr, in.len, address_len, options);
        if ((options & OPTION_FLIP) != 0) {
            wire[draw((uint32_t)wire_len)] ^= (uint8_t)(1u << draw(8));
            damaged = true;
        }
        if ((options & OPTION_CUT) != 0) {
            wire_len = draw((uint32_t)wire_len);
            damaged = true;
        }
    }
    if ((options & OPTION_FORESEE) != 0) {
        const struct ss_view batch[] = {{in.ptr, in.len}, {wire, wire_len}, {wire, wire_len}};

        foreseen = ss_packet_foreseen_new();
        CHECK(foreseen != NULL);
        ss_packet_foresee(codec, foreseen, batch + draw(2), 1 + draw(2));
    }
    check_opened(codec, in.ptr, in.len, wire_len, damaged);
    ss_packet_codec_retire(codec);
    free(codec);
    ss_packet_foreseen_free(foreseen);
    return 0;
}
