/*
 * TCP under the AEAD methods of 2017 (SIP004): a salt, then pairs of a sealed length and a sealed
 * payload, each under the next nonce.
 */
#include "codec/codec_internal.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"

#define PAYLOAD_MAX      0x3fff /* the two top bits of a length are reserved */
#define LENGTH_CHUNK_LEN SS_LENGTH_CHUNK_LEN
#define OVERHEAD         SS_CHUNK_OVERHEAD

/* The salt and, from a client, a chunk of the target and as much payload as fits. */
static enum ss_status seal_first(struct ss_codec *codec, struct ss_view *plain, struct ss_span *out)
{
    size_t salt_len = codec->profile->method->salt_len;
    uint8_t *chunk = out->ptr + salt_len;
    struct ss_writer joined = {NULL, 0};
    struct ss_span rest;
    size_t take;
    enum ss_status status;

    if (codec->role == SS_CODEC_SERVER) {
        if (plain->len == 0)
            return SS_OK;
        if (out->len <= salt_len + OVERHEAD)
            return SS_NEED_ROOM;
    } else {
        assert(codec->has_target);
        if (out->len < salt_len + OVERHEAD)
            return SS_NEED_ROOM;
        joined.len = out->len - salt_len - OVERHEAD;
        if (joined.len > PAYLOAD_MAX)
            joined.len = PAYLOAD_MAX;
        joined.ptr = chunk + LENGTH_CHUNK_LEN;
        if (ss_target_write(&joined, &codec->head.target) != SS_OK)
            return SS_NEED_ROOM;
    }

    status = ss_key_sealing_2017(&codec->contexts, codec->profile, codec->profile->salts, out->ptr);
    if (status != SS_OK)
        return status;
    rest = (struct ss_span){chunk, out->len - salt_len};
    if (codec->role == SS_CODEC_CLIENT) {
        take = plain->len < joined.len ? plain->len : joined.len;
        (void)ss_write_bytes(&joined, plain->ptr, take);
        status = ss_seal_chunk(codec, chunk + LENGTH_CHUNK_LEN,
                               (size_t)(joined.ptr - (chunk + LENGTH_CHUNK_LEN)), &rest);
        if (status != SS_OK)
            return status;
        plain->ptr += take;
        plain->len -= take;
        codec->target_is_out = true;
    }
    *out = rest;
    return SS_OK;
}

static enum ss_status seal(struct ss_codec *codec, struct ss_view *plain, struct ss_span *out,
                           int64_t now_s)
{
    const uint8_t *start = out->ptr;
    enum ss_status status;

    (void)now_s;
    if (!codec->contexts.sealing_keyed) {
        status = seal_first(codec, plain, out);
        if (status != SS_OK)
            return status;
    }
    while (plain->len != 0) {
        size_t len = plain->len < PAYLOAD_MAX ? plain->len : PAYLOAD_MAX;

        if (out->len < OVERHEAD + len) {
            /* A chunk is made smaller only where otherwise nothing would be written at all. */
            bool anything = (size_t)(out->ptr - start) > codec->profile->method->salt_len;

            if (anything || out->len <= OVERHEAD)
                return SS_NEED_ROOM;
            len = out->len - OVERHEAD;
        }
        status = ss_seal_chunk(codec, plain->ptr, len, out);
        if (status != SS_OK)
            return status;
        plain->ptr += len;
        plain->len -= len;
    }
    return SS_OK;
}

/* Keys the direction with the salt at the front of *wire, unless it was seen before. */
static enum ss_status open_salt(struct ss_codec *codec, struct ss_span *wire)
{
    const struct ss_profile *profile = codec->profile;
    size_t salt_len = profile->method->salt_len;
    enum ss_status status =
        ss_key_opening_2017(&codec->contexts, profile, profile->salts, wire->ptr);

    if (status != SS_OK)
        return status;
    memcpy(codec->salt, wire->ptr, salt_len);
    wire->ptr += salt_len;
    wire->len -= salt_len;
    return SS_OK;
}

/* The peer has the key: its salt counts as used from now on, and not before, so that nobody else
 * can fill the memory. Two sessions with one salt may meet here; the later one loses. */
static enum ss_status store_salt(struct ss_codec *codec)
{
    const struct ss_profile *profile = codec->profile;

    if (profile->salts != NULL &&
        !ss_salt_memory_store(profile->salts, codec->salt, profile->method->salt_len))
        return SS_ERR_REPLAY;
    codec->authenticated = true;
    return SS_OK;
}

static enum ss_status open_length(struct ss_codec *codec, struct ss_span *wire)
{
    enum ss_status status = ss_open_next(codec, wire->ptr, LENGTH_CHUNK_LEN);
    uint16_t len;

    if (status != SS_OK)
        return status;
    if (!codec->authenticated) {
        status = store_salt(codec);
        if (status != SS_OK)
            return status;
    }
    len = ss_load_u16be(wire->ptr);
    if (len == 0 || len > PAYLOAD_MAX)
        return SS_ERR_FORMAT;
    codec->opening.payload_len = len;
    wire->ptr += LENGTH_CHUNK_LEN;
    wire->len -= LENGTH_CHUNK_LEN;
    return SS_OK;
}

static enum ss_status open_payload(struct ss_codec *codec, struct ss_span *wire,
                                   struct ss_opened *opened)
{
    size_t len = codec->opening.payload_len;
    uint8_t *payload = wire->ptr;
    enum ss_status status = ss_open_next(codec, payload, len + SS_AEAD_TAG_LEN);

    if (status != SS_OK)
        return status;
    wire->ptr += len + SS_AEAD_TAG_LEN;
    wire->len -= len + SS_AEAD_TAG_LEN;
    codec->opening.payload_len = 0;
    if (codec->role == SS_CODEC_SERVER && !codec->has_target) {
        status = ss_codec_take_target(codec, &payload, &len);
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
    struct ss_direction *opening = &codec->opening;
    enum ss_status status;

    (void)now_s;
    if (!codec->contexts.opening_keyed && wire.len >= codec->profile->method->salt_len) {
        status = open_salt(codec, &wire);
        if (status != SS_OK)
            return status;
    }
    while (codec->contexts.opening_keyed) {
        if (opening->payload_len == 0) {
            if (wire.len < LENGTH_CHUNK_LEN)
                break;
            status = open_length(codec, &wire);
            if (status != SS_OK)
                return status;
        }
        if (wire.len < (size_t)opening->payload_len + SS_AEAD_TAG_LEN)
            break;
        status = open_payload(codec, &wire, opened);
        if (status != SS_OK)
            return status;
    }
    opened->rest_len = wire.len;
    return SS_OK;
}

/* A salt alone is a clean end as well: some servers send theirs before there is anything to say. */
static bool may_end(const struct ss_codec *codec, size_t rest_len)
{
    return rest_len == 0 && codec->opening.payload_len == 0;
}

const struct ss_codec_ops ss_codec_2017 = {
    .seal = seal,
    .open = open_wire,
    .may_end = may_end,
};
