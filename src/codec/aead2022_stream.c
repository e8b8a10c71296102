/*
 * TCP under the 2022 edition (SIP022, 3.1; SIP023): a salt, identity headers of a client, a fixed
 * header, a header or first payload of the length that it names, then chunks as in 2017.
 *
 * What comes first must come in one read as a whole: a server that waited for the rest of it would
 * tell a prober how long it is.
 */
#include "codec/codec_internal.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "crypto/kdf.h"
#include "crypto/random.h"
#include "crypto/secret.h"

#define PAYLOAD_MAX 0xffff
#define PADDING_MAX 900

enum { TYPE_REQUEST = 0, TYPE_RESPONSE = 1 };

/* Plain bytes: type, time stamp, length; a response has the request's salt before the length. */
#define REQUEST_LEN  (1 + 8 + 2)
#define RESPONSE_MAX (REQUEST_LEN + SS_SALT_MAX)

static size_t salt_len_of(const struct ss_codec *codec)
{
    return codec->profile->method->salt_len;
}

static size_t response_len(const struct ss_codec *codec)
{
    return REQUEST_LEN + salt_len_of(codec);
}

static struct ss_view salt_at(const struct ss_codec *codec, const uint8_t *salt)
{
    return (struct ss_view){salt, salt_len_of(codec)};
}

/* The key of a session: the profile's, or on a server that of the user. */
static struct ss_view key_of(const struct ss_codec *codec)
{
    const uint8_t *key =
        codec->user != NULL ? ss_user_keys_of(codec->user)->key : codec->profile->key;

    return (struct ss_view){key, codec->profile->method->key_len};
}

/* -- sealing -- */

static enum ss_status write_identities(const struct ss_profile *profile, const uint8_t *salt,
                                       uint8_t *out)
{
    size_t key_len = profile->method->key_len;
    enum ss_status status = SS_OK;

    for (size_t i = 0; i < profile->identity_count && status == SS_OK; i++) {
        const struct ss_identity *identity = &profile->identities[i];
        struct ss_block_key block = {0};
        uint8_t subkey[SS_KEY_MAX];

        ss_kdf_identity_subkey(subkey, (struct ss_view){identity->key, key_len},
                               (struct ss_view){salt, profile->method->salt_len});
        status = ss_block_key_init(&block, SS_BLOCK_ENCRYPT, subkey, key_len);
        if (status == SS_OK)
            ss_block_apply(&block, identity->next, out + i * SS_IDENTITY_LEN);
        ss_block_key_clear(&block);
        ss_wipe(subkey, sizeof subkey);
    }
    return status;
}

/* Seals the fixed header at `fixed`, whose last two bytes are still to be written, and behind it
 * the `len` bytes that its length names, which may lie where they belong already. */
static enum ss_status seal_headers(struct ss_codec *codec, uint8_t *fixed, size_t fixed_len,
                                   const uint8_t *bytes, size_t len)
{
    enum ss_status status;

    ss_store_u16be(fixed + fixed_len - 2, (uint16_t)len);
    status = ss_seal_next(codec, fixed, fixed_len, fixed);
    if (status == SS_OK)
        status = ss_seal_next(codec, bytes, len, fixed + fixed_len + SS_AEAD_TAG_LEN);
    return status;
}

static void write_stamp(struct ss_writer *out, uint8_t type, int64_t now_s)
{
    (void)ss_write_u8(out, type);
    (void)ss_write_u64be(out, (uint64_t)now_s);
}

/* The target, and payload or, where there is none, padding: 1 to 900 bytes. */
static enum ss_status write_variable(struct ss_codec *codec, struct ss_view *plain,
                                     struct ss_writer *out)
{
    static const uint8_t zeroes[PADDING_MAX];
    size_t take;

    if (ss_target_write(out, &codec->head.target) != SS_OK || out->len < 2 + 1)
        return SS_NEED_ROOM;
    if (plain->len == 0) {
        uint32_t most = out->len - 2 < PADDING_MAX ? (uint32_t)(out->len - 2) : PADDING_MAX;
        uint16_t padding = (uint16_t)(1 + ss_random_below(most));

        (void)ss_write_u16be(out, padding);
        (void)ss_write_bytes(out, zeroes, padding);
        return SS_OK;
    }
    (void)ss_write_u16be(out, 0);
    take = plain->len < out->len ? plain->len : out->len;
    (void)ss_write_bytes(out, plain->ptr, take);
    plain->ptr += take;
    plain->len -= take;
    return SS_OK;
}

static enum ss_status seal_request(struct ss_codec *codec, struct ss_view *plain,
                                   struct ss_span *out, int64_t now_s)
{
    const struct ss_profile *profile = codec->profile;
    size_t identities_len = profile->identity_count * SS_IDENTITY_LEN;
    size_t before = salt_len_of(codec) + identities_len + REQUEST_LEN + SS_AEAD_TAG_LEN;
    uint8_t *fixed = out->ptr + salt_len_of(codec) + identities_len;
    uint8_t *variable = out->ptr + before;
    struct ss_writer writer = {.ptr = variable};
    struct ss_view taken = *plain;
    size_t len;
    enum ss_status status;

    assert(codec->has_target);
    if (out->len < before + SS_AEAD_TAG_LEN)
        return SS_NEED_ROOM;
    writer.len = out->len - before - SS_AEAD_TAG_LEN;
    if (writer.len > codec->chunk_len + SS_TARGET_MAX + 2)
        writer.len = codec->chunk_len + SS_TARGET_MAX + 2;
    if (writer.len > PAYLOAD_MAX)
        writer.len = PAYLOAD_MAX;
    ss_random_bytes(codec->salt, salt_len_of(codec));
    status = write_variable(codec, &taken, &writer);
    if (status != SS_OK)
        return status;
    len = (size_t)(writer.ptr - variable);

    memcpy(out->ptr, codec->salt, salt_len_of(codec));
    status = write_identities(profile, codec->salt, out->ptr + salt_len_of(codec));
    if (status == SS_OK)
        status = ss_key_sealing_2022(&codec->contexts, key_of(codec), salt_at(codec, codec->salt));
    if (status != SS_OK)
        return status;
    writer = (struct ss_writer){fixed, REQUEST_LEN};
    write_stamp(&writer, TYPE_REQUEST, now_s);
    status = seal_headers(codec, fixed, REQUEST_LEN, variable, len);
    if (status != SS_OK)
        return status;
    *plain = taken;
    codec->target_is_out = true;
    out->ptr += before + len + SS_AEAD_TAG_LEN;
    out->len -= before + len + SS_AEAD_TAG_LEN;
    return SS_OK;
}

/* The header doubles as the first length chunk, so there is none without payload. */
static enum ss_status seal_response(struct ss_codec *codec, struct ss_view *plain,
                                    struct ss_span *out, int64_t now_s)
{
    size_t fixed_len = response_len(codec);
    size_t before = salt_len_of(codec) + fixed_len + SS_AEAD_TAG_LEN;
    uint8_t *salt = out->ptr;
    uint8_t *fixed = out->ptr + salt_len_of(codec);
    struct ss_writer writer;
    size_t len = plain->len < codec->chunk_len ? plain->len : codec->chunk_len;
    enum ss_status status;

    if (len == 0)
        return SS_OK;
    if (!codec->authenticated)
        return SS_ERR_ARGUMENT; /* there is nothing to answer, and no key to do it with */
    if (out->len <= before + SS_AEAD_TAG_LEN)
        return SS_NEED_ROOM;
    if (len > out->len - before - SS_AEAD_TAG_LEN)
        len = out->len - before - SS_AEAD_TAG_LEN;

    ss_random_bytes(salt, salt_len_of(codec));
    status = ss_key_sealing_2022(&codec->contexts, key_of(codec), salt_at(codec, salt));
    if (status != SS_OK)
        return status;
    writer = (struct ss_writer){fixed, fixed_len};
    write_stamp(&writer, TYPE_RESPONSE, now_s);
    (void)ss_write_bytes(&writer, codec->salt, salt_len_of(codec));
    status = seal_headers(codec, fixed, fixed_len, plain->ptr, len);
    if (status != SS_OK)
        return status;
    plain->ptr += len;
    plain->len -= len;
    out->ptr += before + len + SS_AEAD_TAG_LEN;
    out->len -= before + len + SS_AEAD_TAG_LEN;
    return SS_OK;
}

/* Chunks of about one size: a last one of a few bytes would cost as much as any other. */
static size_t next_len(const struct ss_codec *codec, size_t left)
{
    size_t count = (left + codec->chunk_len - 1) / codec->chunk_len;

    return (left + count - 1) / count;
}

static enum ss_status seal_chunks(struct ss_codec *codec, struct ss_view *plain,
                                  struct ss_span *out, bool anything)
{
    while (plain->len != 0) {
        size_t len = next_len(codec, plain->len);
        enum ss_status status;

        if (out->len < SS_CHUNK_OVERHEAD + len) {
            /* A chunk is made smaller only where otherwise nothing would be written at all. */
            if (anything || out->len <= SS_CHUNK_OVERHEAD)
                return SS_NEED_ROOM;
            len = out->len - SS_CHUNK_OVERHEAD;
        }
        status = ss_seal_chunk(codec, plain->ptr, len, out);
        if (status != SS_OK)
            return status;
        plain->ptr += len;
        plain->len -= len;
        anything = true;
    }
    return SS_OK;
}

static enum ss_status seal(struct ss_codec *codec, struct ss_view *plain, struct ss_span *out,
                           int64_t now_s)
{
    bool is_first = !codec->contexts.sealing_keyed;
    size_t before = plain->len;
    enum ss_status status;

    if (is_first) {
        status = codec->role == SS_CODEC_CLIENT ? seal_request(codec, plain, out, now_s)
                                                : seal_response(codec, plain, out, now_s);
        if (status != SS_OK)
            return status;
    }
    status = seal_chunks(codec, plain, out, is_first);
    /* Where there was more than one chunk's worth, the next ones may be larger. */
    if (status == SS_OK && before > codec->chunk_len)
        codec->chunk_len = codec->chunk_len < PAYLOAD_MAX / 2 ? 2 * codec->chunk_len : PAYLOAD_MAX;
    return status;
}

/* -- opening -- */

static void step(struct ss_span *wire, size_t len)
{
    wire->ptr += len;
    wire->len -= len;
}

static void forget_user(struct ss_codec *codec)
{
    ss_user_release(codec->user);
    codec->user = NULL;
}

/* Which user an identity header names. A stranger gets a key that fits nothing, so that refusing
 * him takes the same way as refusing anybody else. */
static enum ss_status read_identity(struct ss_codec *codec, const uint8_t *salt,
                                    const uint8_t *header)
{
    const struct ss_profile *profile = codec->profile;
    struct ss_block_key block = {0};
    uint8_t subkey[SS_KEY_MAX];
    uint8_t identity[SS_IDENTITY_LEN];
    enum ss_status status;

    ss_kdf_identity_subkey(subkey, (struct ss_view){profile->key, profile->method->key_len},
                           salt_at(codec, salt));
    status = ss_block_key_init(&block, SS_BLOCK_DECRYPT, subkey, profile->method->key_len);
    if (status == SS_OK) {
        struct ss_users *users = ss_profile_hold_users(profile);

        ss_block_apply(&block, header, identity);
        forget_user(codec);
        codec->user = ss_users_find(users, identity);
        if (codec->user != NULL)
            ss_user_hold(codec->user);
        ss_users_release(users);
    }
    ss_block_key_clear(&block);
    ss_wipe(subkey, sizeof subkey);
    return status;
}

/*
 * What is left of a first read for the next server: the identity header is taken out. The header
 * fits its salt alone, and only the server's key makes one, so nobody else can fill the memory of
 * salts; what was recorded on its way goes no further than here. The time stamp is for the next
 * server, so the salt is kept for as long as there is room.
 */
static enum ss_status pass_on(struct ss_codec *codec, struct ss_span *wire,
                              struct ss_opened *opened)
{
    struct ss_salt_memory *salts = codec->profile->salts;

    if (salts != NULL && !ss_salt_memory_store(salts, wire->ptr, salt_len_of(codec)))
        return SS_ERR_REPLAY;
    memmove(wire->ptr + SS_IDENTITY_LEN, wire->ptr, salt_len_of(codec));
    step(wire, SS_IDENTITY_LEN);
    ss_opened_add(opened, wire->ptr, wire->len);
    step(wire, wire->len);
    codec->ops = &ss_codec_passing;
    codec->authenticated = true; /* he has the server's key */
    return SS_OK;
}

static enum ss_status open_request_header(struct ss_codec *codec, uint8_t *salt, uint8_t *fixed,
                                          int64_t now_s)
{
    const struct ss_profile *profile = codec->profile;
    struct ss_reader in = {fixed, REQUEST_LEN};
    struct ss_view key = key_of(codec);
    uint64_t stamp;
    uint16_t len;
    uint8_t type;
    enum ss_status status;

    if (profile->users != NULL && codec->user == NULL)
        key.ptr = profile->decoy;
    status = ss_key_opening_2022(&codec->contexts, key, salt_at(codec, salt));
    if (status == SS_OK)
        status = ss_open_next(codec, fixed, REQUEST_LEN + SS_AEAD_TAG_LEN);
    if (status == SS_OK && key.ptr == profile->decoy)
        status = SS_ERR_AUTH;
    if (status != SS_OK)
        return status;
    if (!ss_read_u8(&in, &type) || type != TYPE_REQUEST || !ss_read_u64be(&in, &stamp) ||
        !ss_read_u16be(&in, &len))
        return SS_ERR_FORMAT;
    status = ss_check_stamp(stamp, now_s, &codec->clock_difference);
    /* Only now: nobody else can fill the pool, and no stale request takes room in it. */
    if (status == SS_OK && profile->salt_pool != NULL)
        status =
            ss_salt_pool_store(profile->salt_pool, salt, salt_len_of(codec), (int64_t)stamp, now_s);
    if (status != SS_OK)
        return status;
    if (len == 0)
        return SS_ERR_FORMAT;
    memcpy(codec->salt, salt, salt_len_of(codec));
    codec->authenticated = true;
    codec->opening.payload_len = len;
    return SS_OK;
}

static enum ss_status open_request(struct ss_codec *codec, struct ss_span *wire, int64_t now_s,
                                   struct ss_opened *opened)
{
    size_t salt_len = salt_len_of(codec);
    size_t identity_len = codec->profile->users != NULL ? SS_IDENTITY_LEN : 0;
    size_t len = salt_len + identity_len + REQUEST_LEN + SS_AEAD_TAG_LEN;
    uint8_t *salt = wire->ptr;
    enum ss_status status = SS_OK;

    if (wire->len < len)
        return codec->profile->first_read_may_be_short ? SS_NEED_INPUT : SS_ERR_AUTH;
    codec->first_is_opened = true;
    if (identity_len != 0)
        status = read_identity(codec, salt, salt + salt_len);
    if (status != SS_OK)
        return status;
    if (codec->user != NULL && codec->user->next != NULL) {
        status = pass_on(codec, wire, opened);
    } else {
        status = open_request_header(codec, salt, salt + salt_len + identity_len, now_s);
        if (status == SS_OK)
            step(wire, len);
    }
    if (status != SS_OK)
        forget_user(codec);
    return status;
}

static enum ss_status open_response(struct ss_codec *codec, struct ss_span *wire, int64_t now_s)
{
    size_t salt_len = salt_len_of(codec);
    uint8_t *fixed = wire->ptr + salt_len;
    size_t fixed_len = response_len(codec);
    struct ss_reader in = {fixed, fixed_len};
    uint8_t request_salt[SS_SALT_MAX];
    uint64_t stamp;
    uint16_t len;
    uint8_t type;
    enum ss_status status;

    if (wire->len < salt_len + fixed_len + SS_AEAD_TAG_LEN)
        return codec->profile->first_read_may_be_short ? SS_NEED_INPUT : SS_ERR_AUTH;
    codec->first_is_opened = true;
    if (!codec->target_is_out)
        return SS_ERR_FORMAT; /* an answer to what was not asked */
    status = ss_key_opening_2022(&codec->contexts, key_of(codec), salt_at(codec, wire->ptr));
    if (status == SS_OK)
        status = ss_open_next(codec, fixed, fixed_len + SS_AEAD_TAG_LEN);
    if (status != SS_OK)
        return status;
    if (!ss_read_u8(&in, &type) || type != TYPE_RESPONSE || !ss_read_u64be(&in, &stamp) ||
        !ss_read_bytes(&in, request_salt, salt_len) || !ss_read_u16be(&in, &len))
        return SS_ERR_FORMAT;
    status = ss_check_stamp(stamp, now_s, &codec->clock_difference);
    if (status != SS_OK)
        return status;
    if (!ss_equal_constant_time(request_salt, codec->salt, salt_len))
        return SS_ERR_REPLAY; /* the answer to another request */
    if (len == 0)
        return SS_ERR_FORMAT;
    codec->authenticated = true;
    codec->opening.payload_len = len;
    step(wire, salt_len + fixed_len + SS_AEAD_TAG_LEN);
    return SS_OK;
}

/* Takes the target and the padding from the front of a request's second header. All of it lies
 * there, and something follows the target: padding or payload. */
static enum ss_status read_variable(struct ss_codec *codec, uint8_t **payload, size_t *len)
{
    struct ss_reader in = {*payload, *len};
    struct ss_target target;
    uint16_t padding;

    if (ss_target_read(&in, &target) != SS_OK || !ss_read_u16be(&in, &padding) ||
        !ss_read_skip(&in, padding) || (padding == 0 && in.len == 0))
        return SS_ERR_FORMAT;
    *payload += *len - in.len;
    *len = in.len;
    codec->head.target = target;
    codec->has_target = true;
    return SS_OK;
}

static enum ss_status open_length(struct ss_codec *codec, struct ss_span *wire)
{
    enum ss_status status = ss_open_next(codec, wire->ptr, SS_LENGTH_CHUNK_LEN);

    if (status != SS_OK)
        return status;
    codec->opening.payload_len = ss_load_u16be(wire->ptr);
    step(wire, SS_LENGTH_CHUNK_LEN);
    return codec->opening.payload_len != 0 ? SS_OK : SS_ERR_FORMAT;
}

static enum ss_status open_payload(struct ss_codec *codec, struct ss_span *wire,
                                   struct ss_opened *opened)
{
    size_t len = codec->opening.payload_len;
    uint8_t *payload = wire->ptr;
    enum ss_status status = ss_open_next(codec, payload, len + SS_AEAD_TAG_LEN);

    if (status != SS_OK)
        return status;
    step(wire, len + SS_AEAD_TAG_LEN);
    codec->opening.payload_len = 0;
    if (codec->role == SS_CODEC_SERVER && !codec->has_target) {
        status = read_variable(codec, &payload, &len);
        if (status != SS_OK)
            return status;
    }
    ss_opened_add(opened, payload, len);
    return SS_OK;
}

/* `open` would be a system call's name. */
static enum ss_status open_wire(struct ss_codec *codec, struct ss_span wire, int64_t now_s,
                                struct ss_opened *opened)
{
    enum ss_status status = SS_OK;

    if (!codec->first_is_opened && wire.len != 0) {
        status = codec->role == SS_CODEC_SERVER ? open_request(codec, &wire, now_s, opened)
                                                : open_response(codec, &wire, now_s);
        if (status != SS_OK && status != SS_NEED_INPUT)
            return status;
    }
    while (codec->contexts.opening_keyed) {
        if (codec->opening.payload_len == 0) {
            if (wire.len < SS_LENGTH_CHUNK_LEN)
                break;
            status = open_length(codec, &wire);
            if (status != SS_OK)
                return status;
        }
        if (wire.len < (size_t)codec->opening.payload_len + SS_AEAD_TAG_LEN)
            break;
        status = open_payload(codec, &wire, opened);
        if (status != SS_OK)
            return status;
    }
    opened->rest_len = wire.len;
    return SS_OK;
}

static bool may_end(const struct ss_codec *codec, size_t rest_len)
{
    return rest_len == 0 && codec->opening.payload_len == 0;
}

const struct ss_codec_ops ss_codec_2022 = {
    .seal = seal,
    .open = open_wire,
    .may_end = may_end,
};
