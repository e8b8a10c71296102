/*
 * Seal a byte stream into Shadowsocks chunks, and open it again: both directions of one TCP
 * session.
 *
 * A codec does no I/O and reads no clock: bytes and time are handed in. It works on many chunks a
 * call. Wire formats: SIP004 (AEAD, 2017); SIP022 section 3.1 and SIP023 (2022 edition).
 */
#ifndef SS_CODEC_CODEC_H
#define SS_CODEC_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "base/status.h"
#include "codec/profile.h"
#include "codec/users.h"
#include "proto/target.h"

/* One session's salts, subkeys and nonces. */
struct ss_codec;

/* A client seals the request and opens the response; a server the other way round. */
enum ss_codec_role { SS_CODEC_CLIENT, SS_CODEC_SERVER };

/*
 * Bytes of a codec for sessions of this profile, a multiple of 64. The memory lies in the session's
 * slot, aligned to 64, and is zero before the first use; afterwards it keeps its cipher contexts
 * from one session to the next.
 */
size_t ss_codec_size(const struct ss_profile *profile);

/* Enough for every method that may come later, whoever provides it, but bf-cfb, whose tables take
 * three times as much. */
size_t ss_codec_size_max(void);

/*
 * Binds an idle codec to a new session. `profile` is borrowed and must outlive the session. Only
 * the first use with a provider may allocate. SS_ERR_ARGUMENT for a server with a chain of keys.
 */
SS_CHECKED enum ss_status ss_codec_begin(struct ss_codec *codec, const struct ss_profile *profile,
                                         enum ss_codec_role role);

/* Wipes the session's subkeys and nonces; the codec is idle again. Fine on an idle or zero codec.
 */
void ss_codec_end(struct ss_codec *codec);

/* Gives back what the providers took, and zeroes: before the slot's memory goes. */
void ss_codec_retire(struct ss_codec *codec);

/* Client: the target that the first seal sends. Copied. Once, before the first seal. */
void ss_codec_set_target(struct ss_codec *codec, const struct ss_target *target);

/*
 * Seals from the front of *plain into chunks as large as the method allows, writes them to the
 * front of *out while they fit, and steps both over what was read and written. The first call draws
 * the salt and puts it and (client) the target in front, so that they leave in one write; a client
 * may make it with an empty *plain. `now_s` is Unix time in seconds; only the 2022 header uses it.
 *
 * SS_OK when all of *plain was taken, SS_NEED_ROOM when *out was too small for all of it (what was
 * written is whole chunks). After any other status the session must end.
 */
SS_CHECKED enum ss_status ss_codec_seal(struct ss_codec *codec, struct ss_view *plain,
                                        struct ss_span *out, int64_t now_s);

/*
 * The last write of what was sealed was taken only in part: chunks become small again, so that a
 * slow peer need not wait long for one to be whole. They grow while nothing is said (2022 methods;
 * those of the others have one size).
 */
void ss_codec_write_was_short(struct ss_codec *codec);

#define SS_OPENED_MAX 64

/* Most bytes of an incomplete chunk: the longest one of all methods, less one byte. */
#define SS_REST_MAX (0xffff + 16 - 1)

/* Where the payload lies inside the wire bytes that were handed to ss_codec_open. */
struct ss_opened {
    struct ss_span payload[SS_OPENED_MAX]; /* in order; none is empty */
    size_t count;
    size_t payload_len; /* of all together */
    size_t rest_len;    /* this many bytes at the end of the wire bytes are an incomplete chunk:
                           they come again, in front of what is read next; SS_REST_MAX at most */
};

/*
 * Opens every whole chunk in *wire in place. Payload that is in many small pieces is moved together
 * inside `wire`, so that it always fits into `opened`. A server takes the target out of the first
 * bytes; see ss_codec_target.
 *
 * Under the 2022 methods the first call with any bytes gets what the first read brought, all of it
 * and nothing else; when that does not hold the whole first header, it is refused like any other.
 *
 * SS_OK: go on, with or without payload. Any other status is final, and `opened` is empty: how a
 * server ends the connection then is the relay's choice by method. SS_ERR_STALE: the peer has the
 * key but another time, see ss_codec_clock_difference. SS_ERR_CLOCK: our clock was set back, and
 * this may be a repeat. SS_ERR_LIMIT: the salt pool is full. All three are worth a line in the log;
 * the peer is to be refused as after any other status.
 *
 * Server: when there is a user afterwards whose `next` is set, nothing was opened: `opened` holds
 * what is to be sent there, and from now on the codec passes both directions on as they are. The
 * caller sends it to `next` and best stops calling the codec.
 */
SS_CHECKED enum ss_status ss_codec_open(struct ss_codec *codec, struct ss_span wire, int64_t now_s,
                                        struct ss_opened *opened);

/*
 * Of up to `room` bytes those that are best read next, behind `rest_len` kept ones: so many that a
 * peer who sends chunks of about one size has the last one whole, and nearly nothing is left over.
 */
size_t ss_codec_open_room(const struct ss_codec *codec, size_t rest_len, size_t room);

/* Server: the target, as soon as it has been opened as a whole; else NULL. Valid until the end. */
const struct ss_target *ss_codec_target(const struct ss_codec *codec);

/* Server with users: who has sent the request, once that is known; else NULL. Valid until the end.
 */
const struct ss_user *ss_codec_user(const struct ss_codec *codec);

/* After SS_ERR_STALE: the peer's clock less ours, in seconds. */
int64_t ss_codec_clock_difference(const struct ss_codec *codec);

/*
 * Whether, from now on, this direction's bytes are what they are on the wire (method `none` behind
 * what it puts in front): the caller best stops calling the codec for it.
 */
bool ss_codec_seals_as_is(const struct ss_codec *codec);
bool ss_codec_opens_as_is(const struct ss_codec *codec);

/*
 * Whether a stream that ends now, with `rest_len` bytes kept from the last open, ends cleanly: at a
 * chunk's edge, or before its first byte.
 */
bool ss_codec_may_end(const struct ss_codec *codec, size_t rest_len);

#endif
