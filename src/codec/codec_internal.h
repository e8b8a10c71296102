/* What the families of methods share. For this folder alone. */
#ifndef SS_CODEC_CODEC_INTERNAL_H
#define SS_CODEC_CODEC_INTERNAL_H

#include "codec/codec.h"
#include "codec/contexts.h"
#include "codec/packet.h"
#include "codec/profile.h"

struct ss_profile {
    const struct ss_method *method;
    const struct ss_aead *aead;
    const struct ss_codec_ops *stream;
    const struct ss_packet_ops *packet;
    struct ss_salt_memory *salts, *packet_salts;
    uint8_t key[SS_KEY_MAX];
};

/* One family of methods. codec.c keeps the rules that all of them obey: what is dead stays dead,
 * and an opened set is empty when opening failed. */
struct ss_codec_ops {
    enum ss_status (*seal)(struct ss_codec *codec, struct ss_view *plain, struct ss_span *out,
                           int64_t now_s);
    enum ss_status (*open)(struct ss_codec *codec, struct ss_span wire, int64_t now_s,
                           struct ss_opened *opened);
    size_t (*sealed_max)(const struct ss_codec *codec, size_t len);
    bool (*may_end)(const struct ss_codec *codec, size_t rest_len);
    size_t rest_max;
};

extern const struct ss_codec_ops ss_codec_2017;

/* One direction; its key lies in its cipher context. */
struct ss_direction {
    void *context;       /* inside the slot */
    enum ss_status dead; /* SS_OK while it lives */
    bool keyed;
    uint16_t payload_len; /* opening: of the chunk whose length is known, or 0 */
    uint8_t nonce[SS_AEAD_NONCE_MAX];
};

struct ss_codec {
    const struct ss_profile *profile; /* NULL: idle */
    struct ss_contexts contexts;
    enum ss_codec_role role;
    bool authenticated;
    bool has_target;    /* client: it was set; server: it was opened */
    bool target_is_out; /* client: it was sealed */
    uint16_t gathered;  /* server: bytes in head.bytes */
    struct ss_direction sealing, opening;
    uint8_t peer_salt[SS_SALT_MAX]; /* until it is stored */
    union {
        struct ss_target target;
        uint8_t bytes[SS_TARGET_MAX]; /* server: the beginning of a target that is not whole yet */
    } head;
};

/* Adds a payload to the opened set, moved up to the one before it where that is worth while. */
void ss_opened_add(struct ss_opened *opened, uint8_t *payload, size_t len);

/*
 * Server: takes the target's bytes from the front of an opened payload. SS_OK also when the target
 * is not whole yet (then all of the payload was taken), SS_ERR_FORMAT when it is none.
 */
SS_CHECKED enum ss_status ss_codec_take_target(struct ss_codec *codec, uint8_t **payload,
                                               size_t *len);

/* A 2017 subkey for sealing under a fresh salt, which is remembered in `salts`; and for opening. */
SS_CHECKED enum ss_status ss_key_sealing_2017(struct ss_contexts *contexts,
                                              const struct ss_profile *profile,
                                              struct ss_salt_memory *salts, uint8_t *salt);
SS_CHECKED enum ss_status ss_key_opening_2017(struct ss_contexts *contexts,
                                              const struct ss_profile *profile,
                                              struct ss_salt_memory *salts, const uint8_t *salt);

/* The nonce is a little-endian number that counts the uses of a key. */
void ss_nonce_increment(uint8_t *nonce, size_t len);

/* The same for datagrams. Both calls get spans that hold what the header promises. */
struct ss_packet_ops {
    /* `out` has room for all, and does not overlap the payload unless the payload lies where it
     * belongs in it. */
    enum ss_status (*seal)(struct ss_packet_codec *codec, struct ss_view address,
                           const struct ss_packet_payload *payload, int64_t now_s, uint8_t *out);
    enum ss_status (*open)(struct ss_packet_codec *codec, struct ss_span wire, int64_t now_s,
                           struct ss_packet_opened *opened);
    /* Bytes in front of the payload when the address takes `address_len`. */
    size_t (*head_len)(const struct ss_packet_codec *codec, size_t address_len);
};

extern const struct ss_packet_ops ss_packet_2017;

struct ss_packet_codec {
    const struct ss_profile *profile; /* NULL: idle */
    struct ss_contexts contexts;
    enum ss_codec_role role;
};

#endif
