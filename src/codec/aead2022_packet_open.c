/* UDP under the 2022 edition: datagrams are opened, and sessions are known by what they say. */
#include "codec/aead2022_packet_internal.h"

#include <string.h>

#include "base/bytes.h"
#include "codec/stamps.h"
#include "crypto/secret.h"

/* What a datagram says of itself before its body. */
struct ids {
    uint8_t session[SS_SESSION_ID_LEN];
    uint64_t packet;
};

static struct ids read_ids(const uint8_t in[IDS_LEN])
{
    struct ss_reader reader = {in + SS_SESSION_ID_LEN, 8};
    struct ids ids = {.packet = 0};

    memcpy(ids.session, in, SS_SESSION_ID_LEN);
    (void)ss_read_u64be(&reader, &ids.packet);
    return ids;
}

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

/*
 * Takes the identity header out and puts the next server's separate header in its place. The user's
 * headers can only have been made with our key, so the window is worth as much as elsewhere. What
 * comes after it may be stale, which only the last server can tell: so that nothing recorded makes
 * a session anew when it was forgotten, the IDs are remembered as long as there is room.
 */
static enum ss_status pass_on(struct ss_packet_codec *codec, struct ss_packet_session *session,
                              const struct ids *ids, const uint8_t plain_ids[IDS_LEN],
                              const struct ss_user *user, struct ss_span wire,
                              struct ss_packet_opened *opened)
{
    struct ss_salt_memory *memory = codec->profile->packet_salts;

    if (memory != NULL && !ss_salt_memory_store(memory, plain_ids, IDS_LEN))
        return SS_ERR_REPLAY;
    ss_block_apply(ss_user_keys_of(user)->next_header, plain_ids, wire.ptr + SS_IDENTITY_LEN);
    opened->address = (struct ss_view){wire.ptr + SS_IDENTITY_LEN, 0};
    opened->payload = (struct ss_span){wire.ptr + SS_IDENTITY_LEN, wire.len - SS_IDENTITY_LEN};
    opened->target = (struct ss_target){0};
    return accept_request(codec, session, ids, user, INT64_MAX, opened);
}

/* What is behind the separate header and the identity header, in place; *body is plain then. */
static enum ss_status aes_open_body(const struct ss_contexts *contexts,
                                    const uint8_t plain_ids[IDS_LEN], struct ss_span *body)
{
    enum ss_status status = contexts->aead->open(contexts->opening, plain_ids + AES_NONCE_START,
                                                 body->ptr, body->len, body->ptr);

    body->len -= SS_AEAD_TAG_LEN;
    return status;
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
    status = aes_open_body(contexts, plain_ids, &body);
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
    status = ss_packet_key_chacha(codec);
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
    status = aes_open_body(contexts, plain_ids, &body);
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

enum ss_status ss_packet_aes_open(struct ss_packet_codec *codec, struct ss_packet_link *link,
                                  struct ss_span wire, int64_t now_s,
                                  struct ss_packet_opened *opened)
{
    enum ss_status status = prepare(codec, link, now_s);

    if (status != SS_OK)
        return status;
    return codec->role == SS_CODEC_SERVER ? aes_open_request(codec, wire, now_s, opened)
                                          : aes_open_reply(codec, link, wire, now_s, opened);
}

enum ss_status ss_packet_chacha_open(struct ss_packet_codec *codec, struct ss_packet_link *link,
                                     struct ss_span wire, int64_t now_s,
                                     struct ss_packet_opened *opened)
{
    enum ss_status status = prepare(codec, link, now_s);

    if (status != SS_OK)
        return status;
    return codec->role == SS_CODEC_SERVER ? chacha_open_request(codec, wire, now_s, opened)
                                          : chacha_open_reply(codec, link, wire, now_s, opened);
}
