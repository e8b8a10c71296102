/* What the stream codec's families share. For this folder alone. */
#ifndef SS_CODEC_CODEC_INTERNAL_H
#define SS_CODEC_CODEC_INTERNAL_H

#include "codec/codec.h"
#include "codec/profile.h"

struct ss_profile {
    const struct ss_method *method;
    const struct ss_aead *aead;
    const struct ss_codec_ops *stream;
    struct ss_salt_memory *salts;
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

/* One direction: the key lies in the cipher context. */
struct ss_direction {
    void *context;       /* inside the slot */
    enum ss_status dead; /* SS_OK while it lives */
    bool keyed;
    uint16_t payload_len; /* opening: of the chunk whose length is known, or 0 */
    uint8_t nonce[SS_AEAD_NONCE_MAX];
};

struct ss_codec {
    const struct ss_profile *profile; /* NULL: idle */
    const struct ss_aead *aead;       /* whose contexts are in the slot; NULL: none are */
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

/* Draws the sealing direction's salt into `salt`, and keys the direction. */
SS_CHECKED enum ss_status ss_direction_draw(struct ss_codec *codec, uint8_t *salt);

/* Adds a payload to the opened set, moved up to the one before it where that is worth while. */
void ss_opened_add(struct ss_opened *opened, uint8_t *payload, size_t len);

/*
 * Server: takes the target's bytes from the front of an opened payload. SS_OK also when the target
 * is not whole yet (then all of the payload was taken), SS_ERR_FORMAT when it is none.
 */
SS_CHECKED enum ss_status ss_codec_take_target(struct ss_codec *codec, uint8_t **payload,
                                               size_t *len);

/* The nonce is a little-endian number that counts the uses of a key. */
void ss_nonce_increment(uint8_t *nonce, size_t len);

#endif
