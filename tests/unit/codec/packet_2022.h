/* What the tests of 2022 datagrams share: codecs, links and tables in memory of their own. */
#ifndef SS_TESTS_CODEC_PACKET_2022_H
#define SS_TESTS_CODEC_PACKET_2022_H

#include "codec/packet.h"

struct ss_packet_codec *packet_codec(const struct ss_profile *profile, enum ss_codec_role role,
                                     struct ss_packet_sessions *sessions);
void free_packet_codec_2022(struct ss_packet_codec *codec);

struct ss_packet_link *link_of(struct ss_packet_codec *codec, struct ss_packet_session *session);
void free_link(struct ss_packet_link *link);

/* The address as it is on the wire, in memory that stays until the next call. */
struct ss_view packet_address(const char *host, uint16_t port);

/* Seals into exactly the room that there must be, so without padding. */
size_t seal_exactly(struct ss_packet_codec *codec, struct ss_packet_link *link,
                    struct ss_view address, const uint8_t *payload, size_t len, int64_t now_s,
                    uint8_t *out);

/*
 * Opens a copy of exactly its length, so that a sanitizer sees a step beyond it, and checks what
 * must hold of what it opened. The payload goes to `plain`, and *opened tells the rest but for
 * pointers into the copy.
 */
enum ss_status open_copy_2022(struct ss_packet_codec *codec, struct ss_packet_link *link,
                              const uint8_t *bytes, size_t len, int64_t now_s,
                              struct ss_packet_opened *opened, uint8_t *plain);

#endif
