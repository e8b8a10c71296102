/* The packet codec: what all families of methods share, and the way to the profile's family. */
#include "codec/packet.h"

#include <assert.h>

#include "codec/codec_internal.h"
#include "crypto/secret.h"

size_t ss_packet_codec_size(const struct ss_profile *profile)
{
    return SS_CONTEXTS_OFFSET(sizeof(struct ss_packet_codec)) + 2 * profile->aead->context_size;
}

enum ss_status ss_packet_codec_begin(struct ss_packet_codec *codec,
                                     const struct ss_profile *profile, enum ss_codec_role role)
{
    uint8_t *contexts = (uint8_t *)codec + SS_CONTEXTS_OFFSET(sizeof *codec);
    enum ss_status status;

    assert(codec->profile == NULL);
    if (profile->packet == NULL)
        return SS_ERR_UNSUPPORTED;
    status = ss_contexts_begin(&codec->contexts, contexts, profile->aead);
    if (status != SS_OK)
        return status;
    codec->profile = profile;
    codec->role = role;
    return SS_OK;
}

void ss_packet_codec_end(struct ss_packet_codec *codec)
{
    struct ss_contexts kept;

    if (codec->profile == NULL)
        return;
    ss_contexts_end(&codec->contexts);
    kept = codec->contexts;
    ss_wipe(codec, sizeof *codec);
    codec->contexts = kept;
}

void ss_packet_codec_retire(struct ss_packet_codec *codec)
{
    ss_contexts_retire(&codec->contexts);
    ss_wipe(codec, sizeof *codec);
}

size_t ss_packet_head_len(const struct ss_packet_codec *codec, size_t address_len)
{
    return codec->profile->packet->head_len(codec, address_len);
}

enum ss_status ss_packet_seal_in_place(struct ss_packet_codec *codec, struct ss_view address,
                                       const struct ss_packet_payload *payload, int64_t now_s,
                                       struct ss_view *sealed)
{
    size_t head_len = ss_packet_head_len(codec, address.len);
    uint8_t *out;
    enum ss_status status;

    if (payload->head < head_len || payload->tail < SS_PACKET_TAIL)
        return SS_NEED_ROOM;
    out = payload->bytes.ptr - head_len;
    status = codec->profile->packet->seal(codec, address, payload, now_s, out);
    if (status == SS_OK)
        *sealed = (struct ss_view){out, head_len + payload->bytes.len + SS_PACKET_TAIL};
    return status;
}

enum ss_status ss_packet_seal(struct ss_packet_codec *codec, struct ss_view address,
                              const struct ss_packet_payload *payload, int64_t now_s,
                              struct ss_span out, size_t *sealed_len)
{
    size_t around = ss_packet_head_len(codec, address.len) + SS_PACKET_TAIL;
    enum ss_status status;

    *sealed_len = 0;
    if (out.len < around || out.len - around < payload->bytes.len)
        return SS_NEED_ROOM;
    status = codec->profile->packet->seal(codec, address, payload, now_s, out.ptr);
    if (status == SS_OK)
        *sealed_len = around + payload->bytes.len;
    return status;
}

enum ss_status ss_packet_open(struct ss_packet_codec *codec, struct ss_span wire, int64_t now_s,
                              struct ss_packet_opened *opened)
{
    return codec->profile->packet->open(codec, wire, now_s, opened);
}
