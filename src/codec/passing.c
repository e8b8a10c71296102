/* Bytes as they are, in both directions: a relay of SIP023 between a client and the next server. */
#include "codec/codec_internal.h"

#include <string.h>

static enum ss_status seal(struct ss_codec *codec, struct ss_view *plain, struct ss_span *out,
                           int64_t now_s)
{
    size_t take = plain->len < out->len ? plain->len : out->len;

    (void)codec;
    (void)now_s;
    if (take != 0)
        memcpy(out->ptr, plain->ptr, take);
    plain->ptr += take;
    plain->len -= take;
    out->ptr += take;
    out->len -= take;
    return plain->len == 0 ? SS_OK : SS_NEED_ROOM;
}

static enum ss_status open_wire(struct ss_codec *codec, struct ss_span wire, int64_t now_s,
                                struct ss_opened *opened)
{
    (void)codec;
    (void)now_s;
    ss_opened_add(opened, wire.ptr, wire.len);
    return SS_OK;
}

static bool may_end(const struct ss_codec *codec, size_t rest_len)
{
    (void)codec;
    return rest_len == 0;
}

const struct ss_codec_ops ss_codec_passing = {
    .seal = seal,
    .open = open_wire,
    .may_end = may_end,
};
