/* The packet codec: what all families of methods share, and the way to the profile's family. */
#include "codec/packet.h"

#include <assert.h>

#include "codec/codec_internal.h"
#include "crypto/secret.h"

size_t ss_packet_codec_size(const struct ss_profile *profile)
{
    return SS_CONTEXTS_OFFSET(sizeof(struct ss_packet_codec)) +
           ss_contexts_size(profile->packet_aead, profile->keystream);
}

enum ss_status ss_packet_codec_begin(struct ss_packet_codec *codec,
                                     const struct ss_profile *profile, enum ss_codec_role role)
{
    uint8_t *contexts = (uint8_t *)codec + SS_CONTEXTS_OFFSET(sizeof *codec);
    enum ss_status status;

    assert(codec->profile == NULL);
    if (role == SS_CODEC_SERVER && profile->identity_count != 0)
        return SS_ERR_ARGUMENT; /* only a client has a chain */
    status =
        ss_contexts_begin(&codec->contexts, contexts, profile->packet_aead, profile->keystream);
    if (status != SS_OK)
        return status;
    codec->profile = profile;
    codec->role = role;
    return SS_OK;
}

void ss_packet_codec_set_sessions(struct ss_packet_codec *codec,
                                  struct ss_packet_sessions *sessions)
{
    assert(codec->profile != NULL && codec->sessions == NULL);
    codec->sessions = sessions;
}

static void forget_sessions(struct ss_packet_codec *codec)
{
    struct ss_packet_session *session, *next;

    ss_users_release(codec->users);
    codec->users = NULL;
    if (codec->sessions == NULL)
        return;
    for (session = ss_packet_sessions_oldest(codec->sessions); session != NULL; session = next) {
        next = session->newer;
        if (session->codec == codec) {
            assert(session->link == NULL);
            ss_packet_sessions_remove(codec->sessions, session);
        }
    }
    codec->sessions = NULL;
}

void ss_packet_codec_end(struct ss_packet_codec *codec)
{
    struct ss_contexts kept;

    if (codec->profile == NULL)
        return;
    forget_sessions(codec);
    ss_packet_salts_end(&codec->salts);
    ss_contexts_end(&codec->contexts);
    kept = codec->contexts;
    ss_wipe(codec, sizeof *codec);
    codec->contexts = kept;
}

void ss_packet_codec_retire(struct ss_packet_codec *codec)
{
    forget_sessions(codec);
    ss_packet_salts_end(&codec->salts);
    ss_contexts_retire(&codec->contexts);
    ss_wipe(codec, sizeof *codec);
}

size_t ss_packet_head_len(const struct ss_packet_codec *codec, size_t address_len)
{
    return codec->profile->packet->head_len(codec, address_len);
}

static size_t padding_of(const struct ss_packet_codec *codec, struct ss_view address, size_t len,
                         size_t room)
{
    const struct ss_packet_ops *ops = codec->profile->packet;

    return ops->padding != NULL ? ops->padding(address, len, room) : 0;
}

enum ss_status ss_packet_seal_in_place(struct ss_packet_codec *codec, struct ss_view address,
                                       const struct ss_packet_payload *payload, int64_t now_s,
                                       struct ss_view *sealed)
{
    size_t head_len = ss_packet_head_len(codec, address.len);
    size_t around, padding;
    uint8_t *out;
    enum ss_status status;

    if (payload->head < head_len || payload->tail < codec->profile->packet->tail_len)
        return SS_NEED_ROOM;
    around = head_len + codec->profile->packet->tail_len;
    padding = padding_of(codec, address, around + payload->bytes.len, payload->head - head_len);
    out = payload->bytes.ptr - head_len - padding;
    status = codec->profile->packet->seal(codec, address, payload, padding, now_s, out);
    if (status == SS_OK)
        *sealed = (struct ss_view){out, around + padding + payload->bytes.len};
    return status;
}

enum ss_status ss_packet_seal(struct ss_packet_codec *codec, struct ss_view address,
                              const struct ss_packet_payload *payload, int64_t now_s,
                              struct ss_span out, size_t *sealed_len)
{
    size_t len = ss_packet_head_len(codec, address.len) + codec->profile->packet->tail_len;
    size_t padding;
    enum ss_status status;

    *sealed_len = 0;
    if (out.len < len || out.len - len < payload->bytes.len)
        return SS_NEED_ROOM;
    len += payload->bytes.len;
    padding = padding_of(codec, address, len, out.len - len);
    status = codec->profile->packet->seal(codec, address, payload, padding, now_s, out.ptr);
    if (status == SS_OK)
        *sealed_len = len + padding;
    return status;
}

void ss_packet_foresee(struct ss_packet_codec *codec, struct ss_packet_foreseen *foreseen,
                       const struct ss_view *wires, size_t count)
{
    if (codec->profile->packet->has_salts)
        ss_packet_salts_foresee(&codec->salts, foreseen, codec->profile, wires, count);
}

enum ss_status ss_packet_open(struct ss_packet_codec *codec, struct ss_span wire, int64_t now_s,
                              struct ss_packet_opened *opened)
{
    return ss_packet_open_reply(codec, NULL, wire, now_s, opened);
}

enum ss_status ss_packet_open_reply(struct ss_packet_codec *codec, struct ss_packet_link *link,
                                    struct ss_span wire, int64_t now_s,
                                    struct ss_packet_opened *opened)
{
    opened->session = NULL;
    opened->user = NULL;
    return codec->profile->packet->open(codec, link, wire, now_s, opened);
}

int64_t ss_packet_clock_difference(const struct ss_packet_codec *codec)
{
    return codec->clock_difference;
}
