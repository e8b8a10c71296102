/*
 * UDP under the 2022 edition. Datagrams of a session open once, to what was sealed, in any order;
 * damaged ones never do and leave no trace. And whatever somebody who has the key puts into a body
 * is taken exactly when it is in its form.
 *
 * The input: method, options, two bytes for draws; of a forged one a type, the stamp's distance and
 * the rest of the body; else a byte for each datagram.
 */
#include "fuzz/codec_fuzz.h"

#include "codec/packet.h"
#include "crypto/block.h"
#include "crypto/kdf.h"

#define OPTION_FORGED 1
#define OPTION_REPLY  2 /* forged: by a server */
#define OPTION_LINKED 4 /* the server has an association for the session */

#define NOW        1700000000
#define PACKET_MAX 66000
#define COUNT_MAX  48

static uint8_t wire[PACKET_MAX], room[PACKET_MAX];

/* What somebody who has the key makes of a body; returns the length of the datagram. */
static size_t forge(const struct ss_profile *profile, const uint8_t key[SS_KEY_MAX],
                    const uint8_t ids[16], size_t body_len)
{
    const struct ss_method *method = ss_profile_method(profile);
    bool is_aes = method->has_identities;
    const struct ss_aead *aead = ss_aead_best(method->packet_aead);
    void *context = fuzz_slot(aead->context_size);
    uint8_t subkey[SS_KEY_MAX];
    struct ss_block_key block;
    size_t len;

    CHECK(aead->init(context) == SS_OK);
    if (is_aes) {
        ss_kdf_session_subkey(subkey, (struct ss_view){key, method->key_len},
                              (struct ss_view){ids, 8});
        CHECK(aead->set_key(context, subkey) == SS_OK);
        CHECK(aead->seal(context, ids + 4, room, body_len, wire + 16) == SS_OK);
        CHECK(ss_block_key_init(&block, SS_BLOCK_ENCRYPT, key, method->key_len) == SS_OK);
        ss_block_apply(&block, ids, wire);
        len = 16 + body_len + 16;
    } else {
        CHECK(aead->set_key(context, key) == SS_OK);
        draw_bytes(wire, 24);
        memmove(room + 16, room, body_len);
        memcpy(room, ids, 16);
        CHECK(aead->seal(context, wire, room, 16 + body_len, wire + 24) == SS_OK);
        len = 24 + 16 + body_len + 16;
    }
    aead->clear(context);
    free(context);
    return len;
}

/* What a body comes to. */
static enum ss_status judge(struct ss_reader body, bool is_reply, uint8_t type, int8_t distance,
                            bool is_ours, size_t *payload_len)
{
    struct ss_target target;
    uint16_t padding;

    if (type != (is_reply ? 1 : 0))
        return SS_ERR_FORMAT;
    if (distance < -30 || distance > 30)
        return SS_ERR_STALE;
    if (!is_ours)
        return SS_ERR_REPLAY;
    if (!ss_read_u16be(&body, &padding) || !ss_read_skip(&body, padding) ||
        ss_target_read(&body, &target) != SS_OK)
        return SS_ERR_FORMAT;
    *payload_len = body.len;
    return SS_OK;
}

struct pair {
    struct ss_packet_sessions *sessions;
    struct ss_packet_codec *client, *server;
    struct ss_packet_link *asking, *answering;
};

static struct pair pair_of(const struct ss_profile *profile)
{
    struct pair pair = {.sessions = ss_packet_sessions_new(4),
                        .client = fuzz_slot(ss_packet_codec_size(profile)),
                        .server = fuzz_slot(ss_packet_codec_size(profile)),
                        .asking = fuzz_slot(ss_packet_link_size(profile)),
                        .answering = fuzz_slot(ss_packet_link_size(profile))};

    CHECK(pair.sessions != NULL);
    CHECK(ss_packet_codec_begin(pair.client, profile, SS_CODEC_CLIENT) == SS_OK);
    CHECK(ss_packet_codec_begin(pair.server, profile, SS_CODEC_SERVER) == SS_OK);
    ss_packet_codec_set_sessions(pair.server, pair.sessions);
    CHECK(ss_packet_link_begin(pair.asking, pair.client, NULL) == SS_OK);
    return pair;
}

static void free_pair(struct pair *pair)
{
    ss_packet_link_retire(pair->asking);
    ss_packet_link_retire(pair->answering);
    ss_packet_codec_retire(pair->client);
    ss_packet_codec_retire(pair->server);
    ss_packet_sessions_free(pair->sessions);
    free(pair->asking);
    free(pair->answering);
    free(pair->client);
    free(pair->server);
}

static size_t seal(const struct pair *pair, size_t len, uint8_t *out, size_t cap)
{
    static const uint8_t address[] = {1, 192, 0, 2, 1, 0, 53};
    const struct ss_packet_payload from = {{room, len}, 0, 0, pair->asking};
    size_t sealed_len;

    for (size_t i = 0; i < len; i++)
        room[i] = (uint8_t)(i + len);
    CHECK(ss_packet_seal(pair->client, (struct ss_view){address, sizeof address}, &from, NOW,
                         (struct ss_span){out, cap}, &sealed_len) == SS_OK);
    return sealed_len;
}

static enum ss_status open_copy(struct ss_packet_codec *codec, struct ss_packet_link *link,
                                const uint8_t *bytes, size_t len, struct ss_packet_opened *opened)
{
    uint8_t *copy = malloc(len != 0 ? len : 1);
    enum ss_status status;

    CHECK(copy != NULL);
    if (len != 0)
        memcpy(copy, bytes, len);
    status = ss_packet_open_reply(codec, link, (struct ss_span){copy, len}, NOW, opened);
    if (status == SS_OK) {
        CHECK(opened->address.ptr - copy >= 16);
        CHECK(opened->address.ptr + opened->address.len == opened->payload.ptr);
        CHECK(opened->payload.ptr + opened->payload.len + SS_PACKET_TAIL == copy + len);
    }
    free(copy);
    return status;
}

/* The link's own ID shows in what it seals. */
static void learn_id(const struct pair *pair, uint8_t id[8])
{
    struct ss_packet_opened opened;
    size_t len = seal(pair, 0, wire, sizeof wire);

    CHECK(open_copy(pair->server, NULL, wire, len, &opened) == SS_OK);
    memcpy(id, opened.session->id, 8);
}

static void check_forged(const struct ss_profile *profile, const uint8_t *key, struct ss_reader in,
                         uint8_t options)
{
    struct pair pair = pair_of(profile);
    bool is_reply = (options & OPTION_REPLY) != 0;
    uint8_t ids[16], id[8], claimed[8] = {0};
    struct ss_writer out = {room, sizeof room - 100};
    struct ss_packet_opened opened;
    bool is_long = is_reply && ss_profile_method(profile)->has_identities;
    size_t payload_len = 0, len;
    uint8_t type, distance;
    enum ss_status status, wanted;

    if (!ss_read_u8(&in, &type) || !ss_read_u8(&in, &distance) || in.len > PACKET_MAX - 200) {
        free_pair(&pair);
        return;
    }
    learn_id(&pair, id);
    draw_bytes(ids, sizeof ids);
    memcpy(claimed, id, 8);
    if (is_reply && (distance & 1) != 0)
        claimed[draw(8)] ^= 1;
    CHECK(ss_write_u8(&out, type) && ss_write_u64be(&out, (uint64_t)(NOW + (int8_t)distance)));
    if (is_reply)
        CHECK(ss_write_bytes(&out, claimed, 8));
    CHECK(ss_write_bytes(&out, in.ptr, in.len));
    len = (size_t)(out.ptr - room);
    wanted = judge(in, is_reply, type, (int8_t)distance, memcmp(claimed, id, 8) == 0, &payload_len);
    if (len < (is_long ? 19u : 11u) + 7)
        wanted = SS_ERR_FORMAT;
    len = forge(profile, key, ids, len);
    status = open_copy(is_reply ? pair.client : pair.server, is_reply ? pair.asking : NULL, wire,
                       len, &opened);
    CHECK(status == wanted);
    if (status == SS_OK) {
        CHECK(opened.payload.len == payload_len);
        CHECK((opened.session != NULL) == !is_reply);
        status = open_copy(is_reply ? pair.client : pair.server, is_reply ? pair.asking : NULL,
                           wire, len, &opened);
        CHECK(status == SS_ERR_REPLAY);
    }
    CHECK(ss_packet_sessions_count(pair.sessions) == 1u + (wanted == SS_OK && !is_reply));
    free_pair(&pair);
}

static void check_sealed(const struct ss_profile *profile, struct ss_reader in, uint8_t options)
{
    static uint8_t packets[COUNT_MAX][1500];
    struct pair pair = pair_of(profile);
    size_t lens[COUNT_MAX], plain_lens[COUNT_MAX], count = 0;
    bool taken[COUNT_MAX] = {false};
    struct ss_packet_opened opened;
    uint8_t size;

    while (count < COUNT_MAX && ss_read_u8(&in, &size)) {
        plain_lens[count] = size * 4u;
        lens[count] = seal(&pair, plain_lens[count], packets[count], sizeof packets[count]);
        count++;
    }
    for (size_t i = 0; count != 0 && i < 3 * count; i++) {
        size_t which = draw((uint32_t)count);
        enum ss_status status;
        uint32_t how = draw(4);

        memcpy(wire, packets[which], lens[which]);
        if (how == 0) {
            wire[draw((uint32_t)lens[which])] ^= (uint8_t)(1u << draw(8));
            status = open_copy(pair.server, NULL, wire, lens[which], &opened);
            CHECK(status == SS_ERR_AUTH || status == SS_ERR_REPLAY);
        } else if (how == 1) {
            status = open_copy(pair.server, NULL, wire, draw((uint32_t)lens[which]), &opened);
            CHECK(status == SS_ERR_AUTH || status == SS_ERR_FORMAT || status == SS_ERR_REPLAY);
        } else {
            status = open_copy(pair.server, NULL, wire, lens[which], &opened);
            CHECK(status == (taken[which] ? SS_ERR_REPLAY : SS_OK));
            if (status != SS_OK)
                continue;
            taken[which] = true;
            CHECK(opened.payload.len == plain_lens[which]);
            CHECK(ss_packet_sessions_count(pair.sessions) == 1);
            if ((options & OPTION_LINKED) != 0 && opened.session->link == NULL)
                CHECK(ss_packet_link_begin(pair.answering, pair.server, opened.session) == SS_OK);
        }
    }
    free_pair(&pair);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const uint8_t key[SS_KEY_MAX] = {'k', 'e', 'y'};
    struct ss_reader in = {bytes, len};
    const struct ss_profile *profile;
    uint8_t method, options;
    uint16_t seed;

    if (!ss_read_u8(&in, &method) || !ss_read_u8(&in, &options) || !ss_read_u16be(&in, &seed))
        return 0;
    draw_from(seed);
    profile = fuzz_profile_of(SS_METHODS_2022, method);
    if ((options & OPTION_FORGED) != 0)
        check_forged(profile, key, in, options);
    else
        check_sealed(profile, in, options);
    return 0;
}
