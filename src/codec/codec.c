/* The stream codec: what all families of methods share, and the way to the session's family. */
#include "codec/codec.h"

#include <assert.h>
#include <string.h>

#include "codec/codec_internal.h"
#include "crypto/secret.h"

/* Payload up to this length is moved up to the payload before it: cheaper than one more piece to
 * hand to the kernel. */
#define MOVE_MAX 2048

/* A read aims so far behind a chunk's end: room for a small chunk among large ones, as some peers
 * end each of their batches with one. */
#define BEHIND 128
/* Only where a read brings so many chunks: it may get shorter by almost one. */
#define CHUNKS_A_READ_MIN 4

size_t ss_codec_size(const struct ss_profile *profile)
{
    return SS_CONTEXTS_OFFSET(sizeof(struct ss_codec)) +
           ss_contexts_size(profile->aead, profile->keystream);
}

size_t ss_codec_size_max(void)
{
    return SS_CONTEXTS_OFFSET(sizeof(struct ss_codec)) + 2 * SS_AEAD_CONTEXT_MAX;
}

enum ss_status ss_codec_begin(struct ss_codec *codec, const struct ss_profile *profile,
                              enum ss_codec_role role)
{
    uint8_t *contexts = (uint8_t *)codec + SS_CONTEXTS_OFFSET(sizeof *codec);
    enum ss_status status;

    assert(codec->profile == NULL);
    if (role == SS_CODEC_SERVER && profile->identity_count != 0)
        return SS_ERR_ARGUMENT; /* only a client has a chain */
    status = ss_contexts_begin(&codec->contexts, contexts, profile->aead, profile->keystream);
    if (status != SS_OK)
        return status;
    codec->profile = profile;
    codec->ops = profile->stream;
    codec->role = role;
    codec->chunk_len = profile->first_chunk_len;
    return SS_OK;
}

void ss_codec_end(struct ss_codec *codec)
{
    struct ss_contexts kept;

    if (codec->profile == NULL)
        return;
    ss_contexts_end(&codec->contexts);
    ss_user_release(codec->user);
    kept = codec->contexts;
    ss_wipe(codec, sizeof *codec);
    codec->contexts = kept;
}

void ss_codec_retire(struct ss_codec *codec)
{
    ss_user_release(codec->user);
    ss_contexts_retire(&codec->contexts);
    ss_wipe(codec, sizeof *codec);
}

void ss_codec_set_target(struct ss_codec *codec, const struct ss_target *target)
{
    assert(codec->role == SS_CODEC_CLIENT && !codec->target_is_out);
    codec->head.target = *target;
    codec->has_target = true;
}

enum ss_status ss_codec_seal(struct ss_codec *codec, struct ss_view *plain, struct ss_span *out,
                             int64_t now_s)
{
    enum ss_status status;

    if (codec->sealing.dead != SS_OK)
        return codec->sealing.dead;
    status = codec->ops->seal(codec, plain, out, now_s);
    if (status != SS_OK && status != SS_NEED_ROOM)
        codec->sealing.dead = status;
    return status;
}

enum ss_status ss_codec_open(struct ss_codec *codec, struct ss_span wire, int64_t now_s,
                             struct ss_opened *opened)
{
    enum ss_status status = codec->opening.dead;

    opened->count = 0;
    opened->payload_len = 0;
    opened->rest_len = 0;
    codec->opening.longest = 0;
    if (status == SS_OK)
        status = codec->ops->open(codec, wire, now_s, opened);
    if (status != SS_OK) {
        codec->opening.dead = status;
        opened->count = 0;
        opened->payload_len = 0;
        opened->rest_len = 0;
    }
    return status;
}

const struct ss_target *ss_codec_target(const struct ss_codec *codec)
{
    return codec->role == SS_CODEC_SERVER && codec->has_target ? &codec->head.target : NULL;
}

const struct ss_user *ss_codec_user(const struct ss_codec *codec)
{
    return codec->user;
}

int64_t ss_codec_clock_difference(const struct ss_codec *codec)
{
    return codec->clock_difference;
}

void ss_codec_write_was_short(struct ss_codec *codec)
{
    if (codec->profile != NULL)
        codec->chunk_len = codec->profile->first_chunk_len;
}

/* Only `none` has neither a cipher for chunks nor one for streams. */
static bool changes_nothing(const struct ss_codec *codec)
{
    return codec->profile->method->keystream == SS_KEYSTREAM_NONE &&
           codec->profile->stream == &ss_codec_stream_cipher;
}

bool ss_codec_seals_as_is(const struct ss_codec *codec)
{
    return codec->contexts.sealing_keyed && codec->sealing.dead == SS_OK && changes_nothing(codec);
}

bool ss_codec_opens_as_is(const struct ss_codec *codec)
{
    return codec->authenticated && codec->opening.dead == SS_OK && changes_nothing(codec);
}

size_t ss_codec_open_room(const struct ss_codec *codec, size_t rest_len, size_t room)
{
    const struct ss_direction *opening = &codec->opening;
    size_t chunk = opening->longest + SS_LENGTH_CHUNK_LEN;
    size_t first =
        opening->payload_len != 0 ? (size_t)opening->payload_len + SS_AEAD_TAG_LEN : chunk;
    size_t missing = first > rest_len ? first - rest_len : 0;

    if (opening->longest == 0 || room < missing + BEHIND || room < CHUNKS_A_READ_MIN * chunk)
        return room;
    return missing + (room - missing - BEHIND) / chunk * chunk + BEHIND;
}

bool ss_codec_may_end(const struct ss_codec *codec, size_t rest_len)
{
    return codec->opening.dead == SS_OK && codec->ops->may_end(codec, rest_len);
}

void ss_opened_add(struct ss_opened *opened, uint8_t *payload, size_t len)
{
    if (len == 0)
        return;
    if (opened->count != 0 && (len <= MOVE_MAX || opened->count == SS_OPENED_MAX)) {
        struct ss_span *last = &opened->payload[opened->count - 1];

        memmove(last->ptr + last->len, payload, len);
        last->len += len;
    } else {
        opened->payload[opened->count++] = (struct ss_span){payload, len};
    }
    opened->payload_len += len;
}

enum ss_status ss_codec_take_target(struct ss_codec *codec, uint8_t **payload, size_t *len)
{
    size_t before = codec->gathered;
    size_t room = sizeof codec->head.bytes - before;
    size_t take = *len < room ? *len : room;
    struct ss_reader in = {codec->head.bytes, before + take};
    struct ss_target target;
    enum ss_status status;

    memcpy(codec->head.bytes + before, *payload, take);
    status = ss_target_read(&in, &target);
    if (status == SS_NEED_INPUT && before + take < sizeof codec->head.bytes) {
        codec->gathered = (uint16_t)(before + take);
        *payload += take;
        *len -= take;
        return SS_OK;
    }
    if (status != SS_OK)
        return SS_ERR_FORMAT;

    take -= in.len;
    *payload += take;
    *len -= take;
    codec->head.target = target;
    codec->has_target = true;
    return SS_OK;
}

enum ss_status ss_seal_next(struct ss_codec *codec, const uint8_t *plain, size_t len, uint8_t *out)
{
    struct ss_direction *sealing = &codec->sealing;
    const struct ss_aead *aead = codec->contexts.aead;
    enum ss_status status = aead->seal(codec->contexts.sealing, sealing->nonce, plain, len, out);

    ss_nonce_increment(sealing->nonce, aead->nonce_len);
    return status;
}

enum ss_status ss_open_next(struct ss_codec *codec, uint8_t *sealed, size_t sealed_len)
{
    struct ss_direction *opening = &codec->opening;
    const struct ss_aead *aead = codec->contexts.aead;
    enum ss_status status =
        aead->open(codec->contexts.opening, opening->nonce, sealed, sealed_len, sealed);

    ss_nonce_increment(opening->nonce, aead->nonce_len);
    if (sealed_len > opening->longest)
        opening->longest = (uint32_t)sealed_len;
    return status;
}

enum ss_status ss_seal_chunk(struct ss_codec *codec, const uint8_t *plain, size_t len,
                             struct ss_span *out)
{
    uint8_t length[2];
    enum ss_status status;

    ss_store_u16be(length, (uint16_t)len);
    status = ss_seal_next(codec, length, sizeof length, out->ptr);
    if (status == SS_OK)
        status = ss_seal_next(codec, plain, len, out->ptr + SS_LENGTH_CHUNK_LEN);
    if (status != SS_OK)
        return status;
    out->ptr += SS_CHUNK_OVERHEAD + len;
    out->len -= SS_CHUNK_OVERHEAD + len;
    return SS_OK;
}

void ss_nonce_increment(uint8_t *nonce, size_t len)
{
    for (size_t i = 0; i < len && ++nonce[i] == 0; i++)
        ;
}
