/*
 * UDP under the AEAD methods of 2017 (SIP004): each datagram is a salt, and the address and payload
 * sealed under the salt's subkey with a nonce of zero.
 */
#include "codec/codec_internal.h"

#include <string.h>

#include "base/bytes.h"
#include "crypto/secret.h"

/* The shortest address: ATYP, four bytes, a port. A name of one byte takes five, but is no target
 * that a datagram is worth while for; others ask for seven too. */
#define ADDRESS_MIN 7

static const uint8_t zero_nonce[SS_AEAD_NONCE_MAX];

static size_t head_len(const struct ss_packet_codec *codec, size_t address_len)
{
    return codec->profile->method->salt_len + address_len;
}

static enum ss_status seal(struct ss_packet_codec *codec, struct ss_view address,
                           const struct ss_packet_payload *payload, size_t padding, int64_t now_s,
                           uint8_t *out)
{
    const struct ss_profile *profile = codec->profile;
    uint8_t *sealed = out + profile->method->salt_len;
    uint8_t *plain;
    size_t len = payload->bytes.len;
    uint8_t subkey[SS_KEY_MAX];
    enum ss_status status;

    (void)now_s;
    (void)padding;
    if (payload->head >= address.len) {
        plain = payload->bytes.ptr - address.len;
    } else {
        plain = sealed;
        if (len != 0)
            memcpy(plain + address.len, payload->bytes.ptr, len);
    }
    memmove(plain, address.ptr, address.len); /* it may be there already */

    /* The salt comes last: in place, the address may have lain where it goes. */
    ss_packet_salts_draw(&codec->salts, profile, out, subkey);
    status = ss_contexts_key_sealing(&codec->contexts, subkey);
    ss_wipe(subkey, sizeof subkey);
    if (status != SS_OK)
        return status;
    return profile->aead->seal(codec->contexts.sealing, zero_nonce, plain, address.len + len,
                               sealed);
}

static enum ss_status open_wire(struct ss_packet_codec *codec, struct ss_packet_link *link,
                                struct ss_span wire, int64_t now_s, struct ss_packet_opened *opened)
{
    const struct ss_profile *profile = codec->profile;
    struct ss_salt_memory *salts = profile->packet_salts;
    size_t salt_len = profile->method->salt_len;
    struct ss_reader in;
    uint8_t subkey[SS_KEY_MAX];
    uint64_t print = 0;
    uint8_t *plain;
    enum ss_status status;

    (void)link;
    (void)now_s;
    if (wire.len < salt_len + ADDRESS_MIN + SS_AEAD_TAG_LEN)
        return SS_ERR_FORMAT;
    status = ss_packet_salts_subkey(&codec->salts, profile, wire.ptr, subkey, &print);
    if (status != SS_OK)
        return status;
    status = ss_contexts_key_opening(&codec->contexts, subkey);
    ss_wipe(subkey, sizeof subkey);
    if (status != SS_OK)
        return status;
    plain = wire.ptr + salt_len;
    status =
        profile->aead->open(codec->contexts.opening, zero_nonce, plain, wire.len - salt_len, plain);
    if (status != SS_OK)
        return status;
    /* Only a sender that has the key gets its salt remembered. */
    if (salts != NULL && !ss_salt_memory_store_print(salts, print))
        return SS_ERR_REPLAY;

    in = (struct ss_reader){plain, wire.len - salt_len - SS_AEAD_TAG_LEN};
    if (ss_target_read(&in, &opened->target) != SS_OK)
        return SS_ERR_FORMAT;
    opened->address = (struct ss_view){plain, (size_t)(in.ptr - plain)};
    opened->payload = (struct ss_span){plain + opened->address.len, in.len};
    return SS_OK;
}

const struct ss_packet_ops ss_packet_2017 = {
    .seal = seal,
    .open = open_wire,
    .head_len = head_len,
    .tail_len = SS_PACKET_TAIL,
    .has_salts = true,
};
