/*
 * UDP under the 2022 edition (SIP022, 3.2; SIP023). With AES a datagram is a separate header of
 * session and packet ID under one block of AES, identity headers of a client, and a body under the
 * session's subkey. With ChaCha all of it is one message under the key itself, and a random nonce.
 * Here they are sealed.
 */
#include "codec/aead2022_packet_internal.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "crypto/random.h"

/* A datagram of name look-ups is padded to no more than what any path takes (IPv6's 1,280 bytes
 * less its headers). */
#define PADDING_MAX 900
#define PADDED_MAX  1232
#define DNS_PORT    53

static void write_ids(uint8_t out[IDS_LEN], const uint8_t *session, uint64_t packet)
{
    struct ss_writer writer = {out + SS_SESSION_ID_LEN, 8};

    memcpy(out, session, SS_SESSION_ID_LEN);
    (void)ss_write_u64be(&writer, packet);
}

static size_t body_len(enum ss_codec_role sender)
{
    return sender == SS_CODEC_CLIENT ? REQUEST_LEN : REPLY_LEN;
}

static size_t padding(struct ss_view address, size_t len, size_t room)
{
    if (address.len < 2 || ss_load_u16be(address.ptr + address.len - 2) != DNS_PORT ||
        len >= PADDED_MAX || room == 0)
        return 0;
    if (room > PADDED_MAX - len)
        room = PADDED_MAX - len;
    return ss_random_below((room < PADDING_MAX ? (uint32_t)room : PADDING_MAX) + 1);
}

/*
 * Puts the body together, with `before` bytes to spare in front of it: around the payload where it
 * lies, if there is room, else at `sealed`. Returns its beginning and, in *len, its length.
 */
static uint8_t *put_body(const struct ss_packet_codec *codec, struct ss_view address,
                         const struct ss_packet_payload *payload, size_t padding_len, int64_t now_s,
                         size_t before, uint8_t *sealed, size_t *len)
{
    size_t head = before + body_len(codec->role) + padding_len + address.len;
    bool is_request = codec->role == SS_CODEC_CLIENT;
    struct ss_writer out;
    uint8_t *plain;

    if (payload->head >= head) {
        plain = payload->bytes.ptr - head;
    } else {
        plain = sealed;
        if (payload->bytes.len != 0)
            memcpy(plain + head, payload->bytes.ptr, payload->bytes.len);
    }
    /* First, because it may lie where something else goes. */
    memmove(plain + head - address.len, address.ptr, address.len);
    out = (struct ss_writer){plain + before, head - before - address.len};
    (void)ss_write_u8(&out, is_request ? TYPE_REQUEST : TYPE_REPLY);
    (void)ss_write_u64be(&out, (uint64_t)now_s);
    if (!is_request)
        (void)ss_write_bytes(&out, payload->link->session->id, SS_SESSION_ID_LEN);
    (void)ss_write_u16be(&out, (uint16_t)padding_len);
    assert(out.len == padding_len);
    memset(out.ptr, 0, padding_len);
    *len = head + payload->bytes.len;
    return plain;
}

/* The IDs of the next packet of a link. */
static enum ss_status next_ids(const struct ss_packet_codec *codec, struct ss_packet_link *link,
                               uint8_t ids[IDS_LEN])
{
    struct ss_packet_session *session;

    if (link == NULL || link->codec != codec)
        return SS_ERR_ARGUMENT;
    session = link->session;
    if (session != NULL && session->user == &ss_packet_nobody.user)
        return SS_ERR_NOT_FOUND;
    if ((session != NULL ? session->sent : link->sent) == UINT64_MAX)
        return SS_ERR_LIMIT;
    if (session != NULL)
        write_ids(ids, session->own_id, session->sent++);
    else
        write_ids(ids, link->id, link->sent++);
    return SS_OK;
}

static size_t aes_before(const struct ss_packet_codec *codec)
{
    return IDS_LEN + codec->profile->identity_count * SS_IDENTITY_LEN;
}

static size_t aes_head_len(const struct ss_packet_codec *codec, size_t address_len)
{
    return aes_before(codec) + body_len(codec->role) + address_len;
}

static void write_identities(const struct ss_profile *profile, const uint8_t ids[IDS_LEN],
                             uint8_t *out)
{
    for (size_t i = 0; i < profile->identity_count; i++) {
        const struct ss_identity *identity = &profile->identities[i];
        uint8_t block[SS_BLOCK_LEN];

        for (size_t k = 0; k < sizeof block; k++)
            block[k] = identity->next[k] ^ ids[k];
        ss_block_apply(&identity->header, block, out + i * SS_IDENTITY_LEN);
    }
}

static enum ss_status aes_seal(struct ss_packet_codec *codec, struct ss_view address,
                               const struct ss_packet_payload *payload, size_t padding_len,
                               int64_t now_s, uint8_t *out)
{
    struct ss_packet_link *link = payload->link;
    uint8_t *sealed = out + aes_before(codec);
    uint8_t ids[IDS_LEN];
    uint8_t *plain;
    size_t len;
    enum ss_status status = next_ids(codec, link, ids);

    if (status != SS_OK)
        return status;
    if (!link->contexts.sealing_keyed)
        return SS_ERR_ARGUMENT; /* of a user whose traffic is passed on */
    plain = put_body(codec, address, payload, padding_len, now_s, 0, sealed, &len);
    status = link->contexts.aead->seal(link->contexts.sealing, ids + AES_NONCE_START, plain, len,
                                       sealed);
    if (status != SS_OK)
        return status;
    /* The address may have lain here. */
    ss_block_apply(link->has_header ? &link->header : &codec->profile->header_encrypt, ids, out);
    write_identities(codec->profile, ids, out + IDS_LEN);
    return SS_OK;
}

static size_t chacha_head_len(const struct ss_packet_codec *codec, size_t address_len)
{
    return CHACHA_NONCE + IDS_LEN + body_len(codec->role) + address_len;
}

enum ss_status ss_packet_key_chacha(struct ss_packet_codec *codec)
{
    enum ss_status status = SS_OK;

    if (!codec->contexts.sealing_keyed)
        status = ss_contexts_key_sealing(&codec->contexts, codec->profile->key);
    if (status == SS_OK && !codec->contexts.opening_keyed)
        status = ss_contexts_key_opening(&codec->contexts, codec->profile->key);
    return status;
}

static enum ss_status chacha_seal(struct ss_packet_codec *codec, struct ss_view address,
                                  const struct ss_packet_payload *payload, size_t padding_len,
                                  int64_t now_s, uint8_t *out)
{
    uint8_t *sealed = out + CHACHA_NONCE;
    uint8_t ids[IDS_LEN];
    uint8_t *plain;
    size_t len;
    enum ss_status status = next_ids(codec, payload->link, ids);

    if (status == SS_OK)
        status = ss_packet_key_chacha(codec);
    if (status != SS_OK)
        return status;
    plain = put_body(codec, address, payload, padding_len, now_s, IDS_LEN, sealed, &len);
    memcpy(plain, ids, sizeof ids);
    ss_random_bytes(out, CHACHA_NONCE);
    return codec->contexts.aead->seal(codec->contexts.sealing, out, plain, len, sealed);
}

const struct ss_packet_ops ss_packet_2022 = {
    .seal = aes_seal,
    .open = ss_packet_aes_open,
    .head_len = aes_head_len,
    .tail_len = SS_PACKET_TAIL,
    .padding = padding,
    .has_sessions = true,
};

const struct ss_packet_ops ss_packet_2022_chacha = {
    .seal = chacha_seal,
    .open = ss_packet_chacha_open,
    .head_len = chacha_head_len,
    .tail_len = SS_PACKET_TAIL,
    .padding = padding,
    .has_sessions = true,
};
