/*
 * The stream methods of old, and `none`, whose cipher does nothing: TCP is an IV and then
 * everything under the cipher; each datagram is an IV, and address and payload under the cipher.
 * Nothing tells whether it was changed on its way; a target in its form is all there is to go by.
 */
#include "codec/codec_internal.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "crypto/random.h"

/* The shortest address that is looked for in a datagram, as with the other methods. */
#define ADDRESS_MIN 7

static enum ss_status apply(const struct ss_contexts *contexts, void *context, const uint8_t *in,
                            size_t len, uint8_t *out)
{
    return len != 0 ? contexts->keystream->apply(context, in, len, out) : SS_OK;
}

/* A fresh IV for what is sealed, remembered so that nobody can send it back to us. */
static enum ss_status start_sealing(struct ss_contexts *contexts, const struct ss_profile *profile,
                                    struct ss_salt_memory *salts, uint8_t *iv)
{
    size_t iv_len = profile->method->salt_len;

    if (iv_len != 0) {
        ss_random_bytes(iv, iv_len);
        if (salts != NULL)
            (void)ss_salt_memory_store(salts, iv, iv_len);
    }
    return ss_contexts_start_sealing(contexts, profile->key, iv);
}

static enum ss_status start_opening(struct ss_contexts *contexts, const struct ss_profile *profile,
                                    struct ss_salt_memory *salts, const uint8_t *iv)
{
    size_t iv_len = profile->method->salt_len;

    if (iv_len != 0 && salts != NULL && ss_salt_memory_contains(salts, iv, iv_len))
        return SS_ERR_REPLAY;
    return ss_contexts_start_opening(contexts, profile->key, iv);
}

/* Only what made sense gets its IV remembered. */
static enum ss_status store_iv(const struct ss_profile *profile, struct ss_salt_memory *salts,
                               const uint8_t *iv)
{
    size_t iv_len = profile->method->salt_len;

    return iv_len == 0 || salts == NULL || ss_salt_memory_store(salts, iv, iv_len) ? SS_OK
                                                                                   : SS_ERR_REPLAY;
}

/* -- streams -- */

/* The IV and, from a client, the target. */
static enum ss_status seal_first(struct ss_codec *codec, size_t plain_len, struct ss_span *out)
{
    size_t iv_len = codec->profile->method->salt_len;
    struct ss_writer writer;
    size_t target_len;
    enum ss_status status;

    if (codec->role == SS_CODEC_SERVER && plain_len == 0)
        return SS_OK;
    if (out->len <= iv_len)
        return SS_NEED_ROOM;
    writer = (struct ss_writer){out->ptr + iv_len, out->len - iv_len};
    if (codec->role == SS_CODEC_CLIENT) {
        assert(codec->has_target);
        if (ss_target_write(&writer, &codec->head.target) != SS_OK)
            return SS_NEED_ROOM;
    }
    target_len = (size_t)(writer.ptr - (out->ptr + iv_len));
    status = start_sealing(&codec->contexts, codec->profile, codec->profile->salts, out->ptr);
    if (status == SS_OK)
        status = apply(&codec->contexts, codec->contexts.sealing, out->ptr + iv_len, target_len,
                       out->ptr + iv_len);
    if (status != SS_OK)
        return status;
    codec->target_is_out = true;
    *out = (struct ss_span){writer.ptr, writer.len};
    return SS_OK;
}

static enum ss_status seal(struct ss_codec *codec, struct ss_view *plain, struct ss_span *out,
                           int64_t now_s)
{
    size_t take;
    enum ss_status status;

    (void)now_s;
    if (!codec->contexts.sealing_keyed) {
        status = seal_first(codec, plain->len, out);
        if (status != SS_OK)
            return status;
    }
    take = plain->len < out->len ? plain->len : out->len;
    if (take != 0) {
        status = apply(&codec->contexts, codec->contexts.sealing, plain->ptr, take, out->ptr);
        if (status != SS_OK)
            return status;
        plain->ptr += take;
        plain->len -= take;
        out->ptr += take;
        out->len -= take;
    }
    return plain->len == 0 ? SS_OK : SS_NEED_ROOM;
}

/* The peer's first bytes made sense. A client's peer is the server that it asked. */
static enum ss_status authenticate(struct ss_codec *codec)
{
    enum ss_status status = store_iv(codec->profile, codec->profile->salts, codec->salt);

    codec->authenticated = status == SS_OK;
    return status;
}

static enum ss_status open_wire(struct ss_codec *codec, struct ss_span wire, int64_t now_s,
                                struct ss_opened *opened)
{
    const struct ss_profile *profile = codec->profile;
    size_t iv_len = profile->method->salt_len;
    enum ss_status status;

    (void)now_s;
    if (!codec->contexts.opening_keyed) {
        if (wire.len < iv_len || wire.len == 0) {
            opened->rest_len = wire.len;
            return SS_OK;
        }
        status = start_opening(&codec->contexts, profile, profile->salts, wire.ptr);
        if (status != SS_OK)
            return status;
        memcpy(codec->salt, wire.ptr, iv_len);
        wire.ptr += iv_len;
        wire.len -= iv_len;
    }
    if (wire.len == 0)
        return SS_OK;
    status = apply(&codec->contexts, codec->contexts.opening, wire.ptr, wire.len, wire.ptr);
    if (status == SS_OK && codec->role == SS_CODEC_SERVER && !codec->has_target) {
        status = ss_codec_take_target(codec, &wire.ptr, &wire.len);
        if (status == SS_OK && codec->has_target)
            status = authenticate(codec);
    } else if (status == SS_OK && !codec->authenticated) {
        status = authenticate(codec);
    }
    if (status != SS_OK)
        return status;
    ss_opened_add(opened, wire.ptr, wire.len);
    return SS_OK;
}

static bool may_end(const struct ss_codec *codec, size_t rest_len)
{
    (void)codec;
    return rest_len == 0;
}

const struct ss_codec_ops ss_codec_stream_cipher = {
    .seal = seal,
    .open = open_wire,
    .may_end = may_end,
};

/* -- datagrams -- */

static size_t packet_head_len(const struct ss_packet_codec *codec, size_t address_len)
{
    return codec->profile->method->salt_len + address_len;
}

static enum ss_status packet_seal(struct ss_packet_codec *codec, struct ss_view address,
                                  const struct ss_packet_payload *payload, size_t padding,
                                  int64_t now_s, uint8_t *out)
{
    const struct ss_profile *profile = codec->profile;
    uint8_t iv[SS_SALT_MAX];
    uint8_t *sealed = out + profile->method->salt_len;
    uint8_t *plain;
    size_t len = payload->bytes.len;
    enum ss_status status;

    (void)padding;
    (void)now_s;
    if (payload->head >= address.len) {
        plain = payload->bytes.ptr - address.len;
    } else {
        plain = sealed;
        if (len != 0)
            memcpy(plain + address.len, payload->bytes.ptr, len);
    }
    memmove(plain, address.ptr, address.len); /* it may be there already */
    status = start_sealing(&codec->contexts, profile, profile->packet_salts, iv);
    if (status != SS_OK)
        return status;
    /* In place, the address may have lain where it goes. */
    memcpy(out, iv, profile->method->salt_len);
    return apply(&codec->contexts, codec->contexts.sealing, plain, address.len + len, sealed);
}

static enum ss_status packet_open(struct ss_packet_codec *codec, struct ss_packet_link *link,
                                  struct ss_span wire, int64_t now_s,
                                  struct ss_packet_opened *opened)
{
    const struct ss_profile *profile = codec->profile;
    size_t iv_len = profile->method->salt_len;
    uint8_t *plain = wire.ptr + iv_len;
    struct ss_reader in;
    enum ss_status status;

    (void)link;
    (void)now_s;
    if (wire.len < iv_len + ADDRESS_MIN)
        return SS_ERR_FORMAT;
    status = start_opening(&codec->contexts, profile, profile->packet_salts, wire.ptr);
    if (status == SS_OK)
        status = apply(&codec->contexts, codec->contexts.opening, plain, wire.len - iv_len, plain);
    if (status != SS_OK)
        return status;
    in = (struct ss_reader){plain, wire.len - iv_len};
    if (ss_target_read(&in, &opened->target) != SS_OK)
        return SS_ERR_FORMAT;
    opened->address = (struct ss_view){plain, (size_t)(in.ptr - plain)};
    opened->payload = (struct ss_span){plain + opened->address.len, in.len};
    return store_iv(profile, profile->packet_salts, wire.ptr);
}

const struct ss_packet_ops ss_packet_stream_cipher = {
    .seal = packet_seal,
    .open = packet_open,
    .head_len = packet_head_len,
};
