/*
 * Seal and open UDP datagrams, one a call, in place or from one buffer to another.
 *
 * A packet codec does no I/O, reads no clock and allocates nothing once it has begun, so it can
 * work on the buffers of a whole batch one after the other. Under the methods of 2017 datagrams
 * have nothing in common but the key: one codec serves a whole event loop. Wire format: SIP004; the
 * address in front of a payload is the target's in a request, the origin's in a reply.
 */
#ifndef SS_CODEC_PACKET_H
#define SS_CODEC_PACKET_H

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "base/status.h"
#include "codec/codec.h"
#include "codec/profile.h"
#include "proto/target.h"

struct ss_packet_codec;

/* Bytes of a packet codec, a multiple of 64. The memory is aligned to 64, and zero before the first
 * use. */
size_t ss_packet_codec_size(const struct ss_profile *profile);

/* Binds an idle packet codec to a profile, which is borrowed. Only the first use with a provider
 * may allocate. */
SS_CHECKED enum ss_status ss_packet_codec_begin(struct ss_packet_codec *codec,
                                                const struct ss_profile *profile,
                                                enum ss_codec_role role);

/* Wipes its keys; it is idle again. Fine on an idle or zero codec. */
void ss_packet_codec_end(struct ss_packet_codec *codec);

/* Gives back what the providers took, and zeroes: before its memory goes. */
void ss_packet_codec_retire(struct ss_packet_codec *codec);

/*
 * A payload and how many bytes around it the codec may write to. Datagrams that lie one behind the
 * other in one buffer and are sealed in that order each have the ones before as `head`.
 */
struct ss_packet_payload {
    struct ss_span bytes;
    size_t head, tail;
};

#define SS_PACKET_TAIL SS_AEAD_TAG_LEN

/* Bytes in front of the payload in a sealed datagram whose address takes `address_len`; with
 * SS_TARGET_MAX the most there can be. Behind the payload there are SS_PACKET_TAIL. */
size_t ss_packet_head_len(const struct ss_packet_codec *codec, size_t address_len);

/*
 * Seals a payload, which may be empty, with an address in front: ATYP, address and port as
 * ss_target_write writes them. The address may lie right in front of the payload already. `now_s`
 * is Unix time in seconds, for the 2022 header.
 *
 * In place: *sealed is made around the payload. SS_NEED_ROOM when head or tail are too small;
 * nothing was written then.
 */
SS_CHECKED enum ss_status ss_packet_seal_in_place(struct ss_packet_codec *codec,
                                                  struct ss_view address,
                                                  const struct ss_packet_payload *payload,
                                                  int64_t now_s, struct ss_view *sealed);

/*
 * The same to the front of `out`, which does not overlap the payload; *sealed_len bytes of it are
 * written, or none with SS_NEED_ROOM. With enough `head` the payload is not copied first, and then
 * what was in front of it is overwritten.
 */
SS_CHECKED enum ss_status ss_packet_seal(struct ss_packet_codec *codec, struct ss_view address,
                                         const struct ss_packet_payload *payload, int64_t now_s,
                                         struct ss_span out, size_t *sealed_len);

struct ss_packet_opened {
    struct ss_target target; /* the address in front: where to, or where from */
    struct ss_view address;  /* the same as it lies on the wire, right in front of the payload */
    struct ss_span payload;  /* inside the wire bytes; may be empty. In front of the address there
                                are at least 16 bytes of the datagram that may be overwritten */
};

/*
 * Opens a datagram in place. SS_ERR_AUTH, SS_ERR_FORMAT (too short, or no address in front) and
 * SS_ERR_REPLAY concern this datagram alone, which is to be dropped in silence; its bytes are
 * unusable then.
 */
SS_CHECKED enum ss_status ss_packet_open(struct ss_packet_codec *codec, struct ss_span wire,
                                         int64_t now_s, struct ss_packet_opened *opened);

#endif
