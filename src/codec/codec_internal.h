/* What the families of methods share. For this folder alone. */
#ifndef SS_CODEC_CODEC_INTERNAL_H
#define SS_CODEC_CODEC_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "codec/codec.h"
#include "codec/contexts.h"
#include "codec/packet.h"
#include "codec/packet_salts.h"
#include "codec/profile.h"
#include "codec/users_internal.h"
#include "crypto/block.h"

/* An identity header that a client sends: under which key, and what of the next one. */
struct ss_identity {
    uint8_t key[SS_KEY_MAX];
    uint8_t next[SS_IDENTITY_LEN];
    struct ss_block_key header; /* of datagrams */
};

/* The present users of a server. */
struct ss_users_slot {
    pthread_mutex_t lock;
    struct ss_users *users;
    atomic_uint version; /* of the list */
};

struct ss_profile {
    atomic_uint holders;
    const struct ss_method *method;
    const struct ss_aead *aead, *packet_aead; /* or: */
    const struct ss_keystream *keystream;
    struct ss_aead named; /* under a stream method: only the name of who does it */
    const struct ss_codec_ops *stream;
    const struct ss_packet_ops *packet;
    struct ss_salt_memory *salts, *packet_salts;
    struct ss_salt_pool *salt_pool;
    uint8_t key[SS_KEY_MAX]; /* of a chain, the last one */
    /* 2022: */
    bool first_read_may_be_short;
    size_t first_chunk_len;
    struct ss_identity *identities; /* a client's */
    size_t identity_count;
    struct ss_users_slot *users; /* a server's that has users, else NULL */
    uint8_t decoy[SS_KEY_MAX];   /* takes the place of a user that there is not */
    /* The key over a separate header: sealing, of a client the first of the chain. */
    struct ss_block_key header_encrypt, header_decrypt;
};

/* One family of methods. codec.c keeps the rules that all of them obey: what is dead stays dead,
 * and an opened set is empty when opening failed. */
struct ss_codec_ops {
    enum ss_status (*seal)(struct ss_codec *codec, struct ss_view *plain, struct ss_span *out,
                           int64_t now_s);
    enum ss_status (*open)(struct ss_codec *codec, struct ss_span wire, int64_t now_s,
                           struct ss_opened *opened);
    bool (*may_end)(const struct ss_codec *codec, size_t rest_len);
};

extern const struct ss_codec_ops ss_codec_2017;
extern const struct ss_codec_ops ss_codec_2022;

extern const struct ss_codec_ops ss_codec_stream_cipher; /* also for `none` */

/* Both directions as they are: the traffic of a user that is passed on to another server. */
extern const struct ss_codec_ops ss_codec_passing;

/* One direction; its key lies in its cipher context. */
struct ss_direction {
    enum ss_status dead;  /* SS_OK while it lives */
    uint16_t payload_len; /* opening: of the chunk whose length is known, or 0 */
    uint32_t longest;     /* opening: the longest sealed piece of the last call, with its tag */
    uint8_t nonce[SS_AEAD_NONCE_MAX];
};

struct ss_codec {
    const struct ss_profile *profile; /* NULL: idle */
    const struct ss_codec_ops *ops;   /* the profile's, or ss_codec_passing */
    struct ss_contexts contexts;
    enum ss_codec_role role;
    bool authenticated;   /* the peer has shown that it has the key, and its salt is new */
    bool has_target;      /* client: it was set; server: it was opened */
    bool target_is_out;   /* client: it was sealed */
    bool first_is_opened; /* 2022: what must come in one read has come */
    uint16_t gathered;    /* server: bytes in head.bytes */
    struct ss_direction sealing, opening;
    uint8_t salt[SS_SALT_MAX]; /* 2017: the peer's, until it is stored; 2022: the request's */
    /* 2022: */
    size_t chunk_len;           /* payload bytes of a chunk at most, for now */
    int64_t clock_difference;   /* the peer's less ours, in seconds */
    const struct ss_user *user; /* held */
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

/* Seals or opens under the direction's next nonce. */
SS_CHECKED enum ss_status ss_seal_next(struct ss_codec *codec, const uint8_t *plain, size_t len,
                                       uint8_t *out);
SS_CHECKED enum ss_status ss_open_next(struct ss_codec *codec, uint8_t *sealed, size_t sealed_len);

#define SS_LENGTH_CHUNK_LEN (2 + SS_AEAD_TAG_LEN)
#define SS_CHUNK_OVERHEAD   (SS_LENGTH_CHUNK_LEN + SS_AEAD_TAG_LEN)

/* Writes a length chunk and a chunk of `len` bytes from `plain`, which may lie where it belongs, to
 * the front of *out, which has room. */
SS_CHECKED enum ss_status ss_seal_chunk(struct ss_codec *codec, const uint8_t *plain, size_t len,
                                        struct ss_span *out);

/* A 2017 subkey for sealing under a fresh salt, which is remembered in `salts`; and for opening. */
SS_CHECKED enum ss_status ss_key_sealing_2017(struct ss_contexts *contexts,
                                              const struct ss_profile *profile,
                                              struct ss_salt_memory *salts, uint8_t *salt);
SS_CHECKED enum ss_status ss_key_opening_2017(struct ss_contexts *contexts,
                                              const struct ss_profile *profile,
                                              struct ss_salt_memory *salts, const uint8_t *salt);

/* The nonce is a little-endian number that counts the uses of a key. */
void ss_nonce_increment(uint8_t *nonce, size_t len);

/* The 2022 subkey of `key` and `salt`, set for sealing or opening. */
SS_CHECKED enum ss_status ss_key_sealing_2022(struct ss_contexts *contexts, struct ss_view key,
                                              struct ss_view salt);
SS_CHECKED enum ss_status ss_key_opening_2022(struct ss_contexts *contexts, struct ss_view key,
                                              struct ss_view salt);

/* SS_ERR_STALE when a time stamp is more than 30 s away from `now_s`; by how much goes to
 * *difference, stamp less now, in either case. */
SS_CHECKED enum ss_status ss_check_stamp(uint64_t stamp, int64_t now_s, int64_t *difference);

/* The same for datagrams. Both calls get spans that hold what the header promises. */
struct ss_packet_ops {
    /* `out` has room for all, and does not overlap the payload unless the payload lies where it
     * belongs in it. `padding` is what the call below said. */
    enum ss_status (*seal)(struct ss_packet_codec *codec, struct ss_view address,
                           const struct ss_packet_payload *payload, size_t padding, int64_t now_s,
                           uint8_t *out);
    enum ss_status (*open)(struct ss_packet_codec *codec, struct ss_packet_link *link,
                           struct ss_span wire, int64_t now_s, struct ss_packet_opened *opened);
    /* Bytes in front of the payload when the address takes `address_len`, without padding. */
    size_t (*head_len)(const struct ss_packet_codec *codec, size_t address_len);
    /* Bytes of padding, when a datagram without it has `len` bytes and there is room for `room`
     * more. NULL: never any. */
    size_t (*padding)(struct ss_view address, size_t len, size_t room);
    size_t tail_len; /* bytes behind the payload */
    bool has_sessions;
    bool has_salts; /* those of a batch may be foreseen */
};

extern const struct ss_packet_ops ss_packet_2017;
extern const struct ss_packet_ops ss_packet_stream_cipher; /* also for `none` */
extern const struct ss_packet_ops ss_packet_2022;          /* AES: a separate header */
extern const struct ss_packet_ops ss_packet_2022_chacha;   /* all of it sealed under one key */

struct ss_packet_codec {
    const struct ss_profile *profile; /* NULL: idle */
    struct ss_contexts contexts;
    enum ss_codec_role role;
    /* 2017: */
    struct ss_packet_salts salts;
    /* 2022: */
    struct ss_packet_sessions *sessions;
    struct ss_users *users; /* held */
    unsigned users_version; /* of the profile's list, when they were taken */
    int64_t clock_difference;
};

/* A server's session as a client keeps it: the present one, and the one before. */
struct ss_server_session {
    bool is_known;
    uint8_t id[SS_SESSION_ID_LEN];
    int64_t seen_s; /* Unix time, the latest at which a valid packet came */
    struct ss_replay_window window;
};

struct ss_packet_link {
    struct ss_packet_codec *codec; /* NULL: idle */
    struct ss_contexts contexts;   /* opening: of the peer's present session */
    /* A server's: */
    struct ss_packet_session *session; /* NULL: a client's */
    struct ss_block_key header;        /* of a user, over the separate headers of replies */
    bool has_header;
    /* A client's: */
    uint8_t id[SS_SESSION_ID_LEN];
    uint64_t sent;
    struct ss_server_session present, before;
    int64_t fresh_s; /* see stamps.h; of sessions before these */
};

/* A session whose user is no longer on the list has this one, who may do nothing. */
extern const struct ss_user_keys ss_packet_nobody;

/* The key of a session: the profile's, or that of the user. */
struct ss_view ss_packet_key(const struct ss_packet_codec *codec, const struct ss_user *user);

#endif
