/*
 * UDP under the 2022 edition (SIP022, 3.2; SIP023). With AES a datagram is a separate header of
 * session and packet ID under one block of AES, identity headers of a client, and a body under the
 * session's subkey. With ChaCha all of it is one message under the key itself, and a random nonce.
 */
#include "codec/codec_internal.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "codec/stamps.h"
#include "crypto/random.h"
#include "crypto/secret.h"

/* Session ID and packet ID. */
#define IDS_LEN         16
#define CHACHA_NONCE    24
#define AES_NONCE_START 4 /* in the IDs */

enum { TYPE_REQUEST = 0, TYPE_REPLY = 1 };

/* Of the body in front of padding and address: type, time stamp, length of the padding; a reply has
 * the client's session ID before that. */
#define REQUEST_LEN (1 + 8 + 2)
#define REPLY_LEN   (REQUEST_LEN + SS_SESSION_ID_LEN)

/* The shortest address that is looked for, as in 2017. */
#define ADDRESS_MIN 7

/* A datagram of name look-ups is padded to no more than what any path takes (IPv6's 1,280 bytes
 * less its headers). */
#define PADDING_MAX 900
#define PADDED_MAX  1232
#define DNS_PORT    53

/* What a datagram says of itself before its body. */
struct ids {
    uint8_t session[SS_SESSION_ID_LEN];
    uint64_t packet;
};

static void write_ids(uint8_t out[IDS_LEN], const uint8_t *session, uint64_t packet)
{
    struct ss_writer writer = {out + SS_SESSION_ID_LEN, 8};

    memcpy(out, session, SS_SESSION_ID_LEN);
    (void)ss_write_u64be(&writer, packet);
}

static struct ids read_ids(const uint8_t in[IDS_LEN])
{
    struct ss_reader reader = {in + SS_SESSION_ID_LEN, 8};
    struct ids ids = {.packet = 0};

    memcpy(ids.session, in, SS_SESSION_ID_LEN);
    (void)ss_read_u64be(&reader, &ids.packet);
    return ids;
}

static size_t body_len(enum ss_codec_role sender)
{
    return sender == SS_CODEC_CLIENT ? REQUEST_LEN : REPLY_LEN;
}

/* -- sealing -- */

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

/* The key of all datagrams is set once for each way. */
static enum ss_status key_chacha(struct ss_packet_codec *codec)
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
        status = key_chacha(codec);
    if (status != SS_OK)
        return status;
    plain = put_body(codec, address, payload, padding_len, now_s, IDS_LEN, sealed, &len);
    memcpy(plain, ids, sizeof ids);
    ss_random_bytes(out, CHACHA_NONCE);
    return codec->contexts.aead->seal(codec->contexts.sealing, out, plain, len, sealed);
}

/* -- opening -- */

/* Reads an opened body: its head, then padding, address and payload. `in` stands at its type. */
static enum ss_status read_body(struct ss_packet_codec *codec, struct ss_span body, int64_t now_s,
                                const uint8_t *client_id, int64_t *stamp_s,
                                struct ss_packet_opened *opened)
{
    struct ss_reader in = {body.ptr, body.len};
    uint8_t id[SS_SESSION_ID_LEN];
    uint64_t stamp;
    uint16_t padding_len;
    uint8_t type;
    enum ss_status status;

    if (!ss_read_u8(&in, &type) || type != (client_id != NULL ? TYPE_REPLY : TYPE_REQUEST) ||
        !ss_read_u64be(&in, &stamp))
        return SS_ERR_FORMAT;
    status = ss_check_stamp(stamp, now_s, &codec->clock_difference);
    if (status != SS_OK)
        return status;
    *stamp_s = (int64_t)stamp;
    if (client_id != NULL &&
        (!ss_read_bytes(&in, id, sizeof id) || !ss_equal_constant_time(id, client_id, sizeof id)))
        return SS_ERR_REPLAY; /* a reply to another session */
    if (!ss_read_u16be(&in, &padding_len) || !ss_read_skip(&in, padding_len))
        return SS_ERR_FORMAT;
    opened->address.ptr = in.ptr;
    if (ss_target_read(&in, &opened->target) != SS_OK)
        return SS_ERR_FORMAT;
    opened->address.len = (size_t)(in.ptr - opened->address.ptr);
    opened->payload = (struct ss_span){body.ptr + (body.len - in.len), in.len};
    return SS_OK;
}

/* -- of a server -- */

/* Another list of users: each session goes on with the same user of the new one, or with nobody. */
static void refresh_users(struct ss_packet_codec *codec)
{
    struct ss_users_slot *slot = codec->profile->users;
    unsigned version = atomic_load_explicit(&slot->version, memory_order_acquire);
    struct ss_packet_session *session;
    struct ss_users *before = codec->users;

    if (version == codec->users_version)
        return;
    codec->users = ss_profile_hold_users(codec->profile);
    codec->users_version = version;
    for (session = ss_packet_sessions_oldest(codec->sessions); session != NULL;
         session = session->newer) {
        const struct ss_user *same;

        if (session->codec != codec || session->user == &ss_packet_nobody.user)
            continue;
        same = ss_users_same(codec->users, session->user);
        /* What was opened here and is to be passed on now, or the other way round, is no longer
         * the same session either. */
        if (same == NULL || (same->next == NULL) != (session->user->next == NULL))
            same = &ss_packet_nobody.user;
        session->user = same;
    }
    ss_users_release(before);
}

/* Whose datagram it is; a session that there is keeps its user. */
static enum ss_status read_identity(const struct ss_packet_codec *codec,
                                    const struct ss_packet_session *session,
                                    const uint8_t ids[IDS_LEN], const uint8_t *header,
                                    const struct ss_user **user)
{
    uint8_t identity[SS_IDENTITY_LEN];

    ss_block_apply(&codec->profile->header_decrypt, header, identity);
    for (size_t i = 0; i < sizeof identity; i++)
        identity[i] ^= ids[i];
    if (session == NULL) {
        *user = ss_users_find(codec->users, identity);
        return *user != NULL ? SS_OK : SS_ERR_AUTH;
    }
    *user = session->user;
    if (*user == &ss_packet_nobody.user ||
        !ss_equal_constant_time(identity, ss_user_keys_of(*user)->identity, sizeof identity))
        return SS_ERR_AUTH;
    return SS_OK;
}

/* The datagram is valid: only now does it leave a trace. */
static enum ss_status accept_request(struct ss_packet_codec *codec,
                                     struct ss_packet_session *session, const struct ids *ids,
                                     const struct ss_user *user, int64_t stamp_s,
                                     struct ss_packet_opened *opened)
{
    if (session == NULL) {
        if (!ss_packet_sessions_is_fresh(codec->sessions, stamp_s))
            return SS_ERR_CLOCK;
        session = ss_packet_sessions_add(codec->sessions, codec, ids->session);
        if (session == NULL)
            return SS_ERR_LIMIT;
        session->user = user;
    }
    ss_replay_window_mark(&session->window, ids->packet);
    ss_packet_sessions_touch(codec->sessions, session);
    opened->session = session;
    opened->user = user;
    return SS_OK;
}

/* Takes the identity header out and puts the next server's separate header in its place. The user's
 * headers can only have been made with our key, so the window is worth as much as elsewhere. */
static enum ss_status pass_on(struct ss_packet_codec *codec, struct ss_packet_session *session,
                              const struct ids *ids, const uint8_t plain_ids[IDS_LEN],
                              const struct ss_user *user, struct ss_span wire,
                              struct ss_packet_opened *opened)
{
    ss_block_apply(ss_user_keys_of(user)->next_header, plain_ids, wire.ptr + SS_IDENTITY_LEN);
    opened->address = (struct ss_view){wire.ptr + SS_IDENTITY_LEN, 0};
    opened->payload = (struct ss_span){wire.ptr + SS_IDENTITY_LEN, wire.len - SS_IDENTITY_LEN};
    opened->target = (struct ss_target){0};
    /* Only the last server can read its time stamp. */
    return accept_request(codec, session, ids, user, INT64_MAX, opened);
}

static enum ss_status aes_open_request(struct ss_packet_codec *codec, struct ss_span wire,
                                       int64_t now_s, struct ss_packet_opened *opened)
{
    const struct ss_profile *profile = codec->profile;
    size_t before = IDS_LEN + (profile->users != NULL ? SS_IDENTITY_LEN : 0);
    const struct ss_user *user = NULL;
    struct ss_contexts *contexts = &codec->contexts;
    struct ss_packet_session *session;
    uint8_t plain_ids[IDS_LEN];
    struct ss_span body;
    struct ids ids;
    int64_t stamp_s;
    enum ss_status status;

    if (wire.len < before + REQUEST_LEN + ADDRESS_MIN + SS_AEAD_TAG_LEN)
        return SS_ERR_FORMAT;
    ss_block_apply(&profile->header_decrypt, wire.ptr, plain_ids);
    ids = read_ids(plain_ids);
    session = ss_packet_sessions_find(codec->sessions, codec, ids.session);
    if (session != NULL && !ss_replay_window_accepts(&session->window, ids.packet))
        return SS_ERR_REPLAY;
    if (profile->users != NULL) {
        status = read_identity(codec, session, plain_ids, wire.ptr + IDS_LEN, &user);
        if (status != SS_OK)
            return status;
        if (user->next != NULL)
            return pass_on(codec, session, &ids, plain_ids, user, wire, opened);
    }

    if (session != NULL && session->link != NULL && session->link->contexts.opening_keyed) {
        contexts = &session->link->contexts;
    } else {
        status = ss_key_opening_2022(contexts, ss_packet_key(codec, user),
                                     (struct ss_view){ids.session, SS_SESSION_ID_LEN});
        if (status != SS_OK)
            return status;
    }
    body = (struct ss_span){wire.ptr + before, wire.len - before};
    status = contexts->aead->open(contexts->opening, plain_ids + AES_NONCE_START, body.ptr,
                                  body.len, body.ptr);
    body.len -= SS_AEAD_TAG_LEN;
    if (status == SS_OK)
        status = read_body(codec, body, now_s, NULL, &stamp_s, opened);
    if (status == SS_OK)
        status = accept_request(codec, session, &ids, user, stamp_s, opened);
    return status;
}

/* Opens the whole message, which begins with the IDs; *body is what follows them. */
static enum ss_status chacha_open_message(struct ss_packet_codec *codec, struct ss_span wire,
                                          struct ids *ids, struct ss_span *body)
{
    uint8_t *plain = wire.ptr + CHACHA_NONCE;
    size_t sealed_len;
    enum ss_status status;

    if (wire.len < CHACHA_NONCE + IDS_LEN + REQUEST_LEN + ADDRESS_MIN + SS_AEAD_TAG_LEN)
        return SS_ERR_FORMAT;
    sealed_len = wire.len - CHACHA_NONCE;
    status = key_chacha(codec);
    if (status == SS_OK)
        status =
            codec->contexts.aead->open(codec->contexts.opening, wire.ptr, plain, sealed_len, plain);
    if (status != SS_OK)
        return status;
    *ids = read_ids(plain);
    *body = (struct ss_span){plain + IDS_LEN, sealed_len - SS_AEAD_TAG_LEN - IDS_LEN};
    return SS_OK;
}

static enum ss_status chacha_open_request(struct ss_packet_codec *codec, struct ss_span wire,
                                          int64_t now_s, struct ss_packet_opened *opened)
{
    struct ss_packet_session *session;
    struct ss_span body;
    struct ids ids;
    int64_t stamp_s;
    enum ss_status status = chacha_open_message(codec, wire, &ids, &body);

    if (status != SS_OK)
        return status;
    session = ss_packet_sessions_find(codec->sessions, codec, ids.session);
    if (session != NULL && !ss_replay_window_accepts(&session->window, ids.packet))
        return SS_ERR_REPLAY;
    status = read_body(codec, body, now_s, NULL, &stamp_s, opened);
    if (status == SS_OK)
        status = accept_request(codec, session, &ids, NULL, stamp_s, opened);
    return status;
}

/* -- of a client -- */

/* Which session of the server it is, NULL for one that is new. SS_ERR_REPLAY when the packet was
 * there before, or one server session follows another too fast: the one before is remembered as
 * long as its packets could be sent again, and there is room for no third. */
static enum ss_status find_server(struct ss_packet_link *link, const struct ids *ids, int64_t now_s,
                                  struct ss_server_session **server)
{
    struct ss_server_session *known[] = {&link->present, &link->before};

    *server = NULL;
    for (size_t i = 0; i < 2; i++)
        if (known[i]->is_known && memcmp(known[i]->id, ids->session, SS_SESSION_ID_LEN) == 0)
            *server = known[i];
    if (*server != NULL)
        return ss_replay_window_accepts(&(*server)->window, ids->packet) ? SS_OK : SS_ERR_REPLAY;
    if (link->before.is_known && !ss_may_forget(link->before.seen_s, now_s))
        return SS_ERR_REPLAY;
    return SS_OK;
}

/* A valid reply: a new server session takes the place of the present one. */
static enum ss_status accept_reply(struct ss_packet_codec *codec, struct ss_packet_link *link,
                                   struct ss_server_session *server, const struct ids *ids,
                                   int64_t stamp_s, int64_t now_s)
{
    enum ss_status status = SS_OK;

    if (server == NULL) {
        if (link->before.is_known)
            ss_note_forgotten(&link->fresh_s, link->before.seen_s);
        if (stamp_s < link->fresh_s)
            return SS_ERR_CLOCK;
        server = &link->present;
        link->before = *server;
        *server = (struct ss_server_session){.is_known = true};
        memcpy(server->id, ids->session, SS_SESSION_ID_LEN);
        if (codec->profile->packet == &ss_packet_2022)
            status = ss_key_opening_2022(&link->contexts, ss_packet_key(codec, NULL),
                                         (struct ss_view){server->id, SS_SESSION_ID_LEN});
    }
    ss_replay_window_mark(&server->window, ids->packet);
    if (server->seen_s < now_s)
        server->seen_s = now_s;
    return status;
}

static enum ss_status aes_open_reply(struct ss_packet_codec *codec, struct ss_packet_link *link,
                                     struct ss_span wire, int64_t now_s,
                                     struct ss_packet_opened *opened)
{
    struct ss_contexts *contexts = &link->contexts;
    struct ss_server_session *server;
    uint8_t plain_ids[IDS_LEN];
    struct ss_span body;
    struct ids ids;
    int64_t stamp_s;
    enum ss_status status;

    if (wire.len < IDS_LEN + REPLY_LEN + ADDRESS_MIN + SS_AEAD_TAG_LEN)
        return SS_ERR_FORMAT;
    ss_block_apply(&codec->profile->header_decrypt, wire.ptr, plain_ids);
    ids = read_ids(plain_ids);
    status = find_server(link, &ids, now_s, &server);
    if (status == SS_OK && (server == NULL || server == &link->before)) {
        contexts = &codec->contexts;
        status = ss_key_opening_2022(contexts, ss_packet_key(codec, NULL),
                                     (struct ss_view){ids.session, SS_SESSION_ID_LEN});
    }
    if (status != SS_OK)
        return status;
    body = (struct ss_span){wire.ptr + IDS_LEN, wire.len - IDS_LEN};
    status = contexts->aead->open(contexts->opening, plain_ids + AES_NONCE_START, body.ptr,
                                  body.len, body.ptr);
    body.len -= SS_AEAD_TAG_LEN;
    if (status == SS_OK)
        status = read_body(codec, body, now_s, link->id, &stamp_s, opened);
    if (status == SS_OK)
        status = accept_reply(codec, link, server, &ids, stamp_s, now_s);
    return status;
}

static enum ss_status chacha_open_reply(struct ss_packet_codec *codec, struct ss_packet_link *link,
                                        struct ss_span wire, int64_t now_s,
                                        struct ss_packet_opened *opened)
{
    struct ss_server_session *server;
    struct ss_span body;
    struct ids ids;
    int64_t stamp_s;
    enum ss_status status = chacha_open_message(codec, wire, &ids, &body);

    if (status == SS_OK)
        status = find_server(link, &ids, now_s, &server);
    if (status == SS_OK)
        status = read_body(codec, body, now_s, link->id, &stamp_s, opened);
    if (status == SS_OK)
        status = accept_reply(codec, link, server, &ids, stamp_s, now_s);
    return status;
}

/* -- either -- */

/* What is needed for a datagram to be opened at all. */
static enum ss_status prepare(struct ss_packet_codec *codec, const struct ss_packet_link *link,
                              int64_t now_s)
{
    if (codec->role == SS_CODEC_CLIENT)
        return link != NULL && link->codec == codec ? SS_OK : SS_ERR_ARGUMENT;
    if (codec->sessions == NULL)
        return SS_ERR_ARGUMENT;
    ss_packet_sessions_set_time(codec->sessions, now_s);
    if (codec->profile->users != NULL)
        refresh_users(codec);
    return SS_OK;
}

static enum ss_status aes_open(struct ss_packet_codec *codec, struct ss_packet_link *link,
                               struct ss_span wire, int64_t now_s, struct ss_packet_opened *opened)
{
    enum ss_status status = prepare(codec, link, now_s);

    if (status != SS_OK)
        return status;
    return codec->role == SS_CODEC_SERVER ? aes_open_request(codec, wire, now_s, opened)
                                          : aes_open_reply(codec, link, wire, now_s, opened);
}

static enum ss_status chacha_open(struct ss_packet_codec *codec, struct ss_packet_link *link,
                                  struct ss_span wire, int64_t now_s,
                                  struct ss_packet_opened *opened)
{
    enum ss_status status = prepare(codec, link, now_s);

    if (status != SS_OK)
        return status;
    return codec->role == SS_CODEC_SERVER ? chacha_open_request(codec, wire, now_s, opened)
                                          : chacha_open_reply(codec, link, wire, now_s, opened);
}

const struct ss_packet_ops ss_packet_2022 = {
    .seal = aes_seal,
    .open = aes_open,
    .head_len = aes_head_len,
    .tail_len = SS_PACKET_TAIL,
    .padding = padding,
    .has_sessions = true,
};

const struct ss_packet_ops ss_packet_2022_chacha = {
    .seal = chacha_seal,
    .open = chacha_open,
    .head_len = chacha_head_len,
    .tail_len = SS_PACKET_TAIL,
    .padding = padding,
    .has_sessions = true,
};
