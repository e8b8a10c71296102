/*
 * Seal and open UDP datagrams, one a call, in place or from one buffer to another.
 *
 * A packet codec does no I/O, reads no clock and allocates nothing once it has begun, so it can
 * work on the buffers of a whole batch one after the other. One codec serves a port, on one event
 * loop. Wire formats: SIP004; SIP022 section 3.2 and SIP023. The address in front of a payload is
 * the target's in a request, the origin's in a reply.
 *
 * Under the methods of 2017 and the stream methods datagrams have nothing in common but the key.
 * Under those of 2022 each belongs to a session, which an association keeps a link to. For these
 * ss_packet_link_size is above zero, and the calls are:
 *
 *   A client, for each association:
 *       ss_packet_link_begin(link, codec, NULL)         a session with an ID of its own
 *       ss_packet_seal...(codec, ..., {.link = link})   its datagrams
 *       ss_packet_open_reply(codec, link, ...)          what comes to its socket
 *       ss_packet_link_end(link)
 *
 *   A server, once for a port: ss_packet_codec_set_sessions. Then, for each datagram:
 *       ss_packet_open(codec, ...)                      SS_OK: opened.session is its session
 *       if opened.session->owner is NULL: a new association, with
 *           ss_packet_link_begin(link, codec, opened.session)
 *           opened.session->owner = association
 *       the association's client = the sender           it may have moved, replies go there
 *       if opened.user and opened.user->next are there: opened.payload goes to `next` as it is, and
 *           what comes back to the client as it is; nothing is sealed
 *       else opened.payload goes to opened.target, and replies are sealed with {.link = link}
 *       when the association ends: ss_packet_link_end(link), which also clears the owner
 *
 * A link lies in the slot of its association and keeps its cipher contexts for the next one.
 */
#ifndef SS_CODEC_PACKET_H
#define SS_CODEC_PACKET_H

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "base/status.h"
#include "codec/codec.h"
#include "codec/packet_sessions.h"
#include "codec/profile.h"
#include "codec/users.h"
#include "proto/target.h"

struct ss_packet_codec;
struct ss_packet_link;

/* Bytes of a packet codec, a multiple of 64. The memory is aligned to 64, and zero before the first
 * use. */
size_t ss_packet_codec_size(const struct ss_profile *profile);

/* Binds an idle packet codec to a profile, which is borrowed. Only the first use with a provider
 * may allocate. */
SS_CHECKED enum ss_status ss_packet_codec_begin(struct ss_packet_codec *codec,
                                                const struct ss_profile *profile,
                                                enum ss_codec_role role);

/* A server's table of sessions, under the 2022 methods: right after it has begun. Borrowed. */
void ss_packet_codec_set_sessions(struct ss_packet_codec *codec,
                                  struct ss_packet_sessions *sessions);

/* Wipes its keys and removes its sessions from the table; it is idle again. Its links have ended
 * before. Fine on an idle or zero codec. */
void ss_packet_codec_end(struct ss_packet_codec *codec);

/* Gives back what the providers took, and zeroes: before its memory goes. */
void ss_packet_codec_retire(struct ss_packet_codec *codec);

/* Bytes of a link for associations with this profile, a multiple of 64; 0 where datagrams are not
 * of sessions. Memory as that of a codec: aligned to 64, zero before the first use. */
size_t ss_packet_link_size(const struct ss_profile *profile);

/* Enough for every method that may come later. */
size_t ss_packet_link_size_max(void);

/*
 * Binds an idle link to a codec that has begun, and on a server to a session that has none. Only
 * the first use with a provider may allocate.
 */
SS_CHECKED enum ss_status ss_packet_link_begin(struct ss_packet_link *link,
                                               struct ss_packet_codec *codec,
                                               struct ss_packet_session *session);

/* Wipes its keys; it is idle again, and the session goes on without owner. Fine on an idle or zero
 * link. */
void ss_packet_link_end(struct ss_packet_link *link);

/* Gives back what the providers took, and zeroes: before its memory goes. */
void ss_packet_link_retire(struct ss_packet_link *link);

/*
 * A payload and how many bytes around it the codec may write to. Datagrams that lie one behind the
 * other in one buffer and are sealed in that order each have the ones before as `head`.
 */
struct ss_packet_payload {
    struct ss_span bytes;
    size_t head, tail;
    struct ss_packet_link *link; /* of its association; NULL where there are no sessions */
};

#define SS_PACKET_TAIL SS_AEAD_TAG_LEN

/*
 * Bytes in front of the payload in a sealed datagram whose address takes `address_len`; with
 * SS_TARGET_MAX the most that are needed. Behind the payload there are SS_PACKET_TAIL, or
 * none under the stream methods. The 2022
 * methods pad small datagrams to and from port 53 by a random length where there is room for it.
 */
size_t ss_packet_head_len(const struct ss_packet_codec *codec, size_t address_len);

/*
 * Seals a payload, which may be empty, with an address in front: ATYP, address and port as
 * ss_target_write writes them. The address may lie right in front of the payload already. `now_s`
 * is Unix time in seconds, for the 2022 header.
 *
 * In place: *sealed is made around the payload. SS_NEED_ROOM when head or tail are too small;
 * nothing was written then. SS_ERR_NOT_FOUND when the session's user is no longer on the list,
 * SS_ERR_ARGUMENT when there is no link where there must be one.
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

/* Datagrams that can be foreseen. */
#define SS_PACKET_BATCH 64

/* Room for a batch that is foreseen: one for all codecs of a thread, which end before it is freed.
 * NULL without memory. */
struct ss_packet_foreseen;
struct ss_packet_foreseen *ss_packet_foreseen_new(void);
void ss_packet_foreseen_free(struct ss_packet_foreseen *foreseen); /* NULL is fine */

/*
 * What will be opened next, in that order; no more than a hint, which saves time and changes
 * nothing: any of them may be left out, or come elsewhere. Up to SS_PACKET_BATCH are taken notice
 * of, and those before are forgotten.
 */
void ss_packet_foresee(struct ss_packet_codec *codec, struct ss_packet_foreseen *foreseen,
                       const struct ss_view *wires, size_t count);

struct ss_packet_opened {
    struct ss_packet_session *session; /* a server's, under the 2022 methods; else NULL */
    const struct ss_user *user;        /* the session's, where there are users */
    struct ss_target target;           /* the address in front: where to, or where from */
    struct ss_view address; /* the same as it lies on the wire, right in front of the payload */
    struct ss_span payload; /* inside the wire bytes; may be empty. In front of the address there
                               are at least 16 bytes of the datagram that may be overwritten */
};

/*
 * Opens a datagram in place: on a server, and under methods without sessions on a client too. The
 * statuses concern this datagram alone, which is to be dropped in silence; its bytes are unusable
 * then. SS_ERR_AUTH, SS_ERR_FORMAT (too short, or no address in front), SS_ERR_REPLAY; under the
 * 2022 methods also SS_ERR_STALE (see ss_packet_clock_difference), SS_ERR_CLOCK (our clock was set
 * back, and this may be a repeat) and SS_ERR_LIMIT: the table has no room for another session.
 *
 * When the user's traffic is passed on (`user->next`), `payload` is the datagram for that server
 * and there is no address.
 */
SS_CHECKED enum ss_status ss_packet_open(struct ss_packet_codec *codec, struct ss_span wire,
                                         int64_t now_s, struct ss_packet_opened *opened);

/* The same of what comes to a client's association; `link` is NULL where there are no sessions. */
SS_CHECKED enum ss_status ss_packet_open_reply(struct ss_packet_codec *codec,
                                               struct ss_packet_link *link, struct ss_span wire,
                                               int64_t now_s, struct ss_packet_opened *opened);

/* After SS_ERR_STALE: the peer's clock less ours, in seconds. */
int64_t ss_packet_clock_difference(const struct ss_packet_codec *codec);

#endif
