/* What sealing and opening of datagrams under the 2022 edition share. For this folder alone. */
#ifndef SS_CODEC_AEAD2022_PACKET_INTERNAL_H
#define SS_CODEC_AEAD2022_PACKET_INTERNAL_H

#include "codec/codec_internal.h"

/* Session ID and packet ID. */
#define IDS_LEN         16
#define CHACHA_NONCE    24
#define AES_NONCE_START 4 /* in the IDs */

enum { TYPE_REQUEST = 0, TYPE_REPLY = 1 };

/* Of the body in front of padding and address: type, time stamp, length of the padding; a reply has
 * the client's session ID before that. */
#define REQUEST_LEN (1 + 8 + 2)
#define REPLY_LEN   (REQUEST_LEN + SS_SESSION_ID_LEN)

/* The shortest address that is looked for, as in 2017. */
#define ADDRESS_MIN 7

/* The key of all datagrams under the ChaCha methods; it is set once for each way. */
SS_CHECKED enum ss_status ss_packet_key_chacha(struct ss_packet_codec *codec);

SS_CHECKED enum ss_status ss_packet_aes_open(struct ss_packet_codec *codec,
                                             struct ss_packet_link *link, struct ss_span wire,
                                             int64_t now_s, struct ss_packet_opened *opened);
SS_CHECKED enum ss_status ss_packet_chacha_open(struct ss_packet_codec *codec,
                                                struct ss_packet_link *link, struct ss_span wire,
                                                int64_t now_s, struct ss_packet_opened *opened);

#endif
