/* A method with its keys, as configured. Immutable once made but for its list of users, shared by
 * sessions and threads, and counted by those who hold it. */
#ifndef SS_CODEC_PROFILE_H
#define SS_CODEC_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "base/status.h"
#include "codec/keys.h"
#include "codec/method.h"
#include "codec/salt_memory.h"
#include "codec/salt_pool.h"
#include "codec/users.h"
#include "crypto/aead.h"

struct ss_profile;

struct ss_profile_options {
    const struct ss_method *method;
    /* One of the two; `none` takes neither. A key beats a password; a longer key is cut to the
     * method's length, but under the 2022 methods must have it exactly. */
    struct ss_view key; /* raw bytes; ptr NULL: none */
    /* Under the 2022 methods the text of a key in base64: of a client also a chain of them, of a
     * server with users its own. */
    struct ss_view password;
    /* Borrowed, shared by all profiles of a process; NULL: nothing is remembered (tests). */
    struct ss_salt_memory *salts;
    /* The same for datagrams; NULL: `salts` serves them too. With a memory of their own, many
     * datagrams can't push the salts of connections out. */
    struct ss_salt_memory *packet_salts;
    /* The same for connections of the 2022 methods, which remember exactly. */
    struct ss_salt_pool *salt_pool;
    /* NULL: the best one of this machine. Tests pass each. Where the datagrams of a method have
     * another algorithm, the same provider does it if it can. */
    const struct ss_aead *aead;
    /* 2022 methods, a server with users: requests must carry identity headers. Held. */
    struct ss_users *users;
    /* 2022 methods: the first read of a stream need not hold the whole first header. For use behind
     * plugins, which may cut the stream anew. */
    bool first_read_may_be_short;
    /* 2022 methods: payload bytes of the first chunks of a stream, which grow from there; 0: 16
     * KiB.
     */
    size_t first_chunk_len;
    /* 2022 methods: what was wrong with the key, after SS_ERR_KEY. May be NULL. */
    struct ss_key_fault *fault;
};

/* The caller holds it once. SS_ERR_KEY for a key that is too short, and for the other faults of
 * 2022 keys; SS_ERR_UNSUPPORTED when no provider has the algorithm. */
SS_CHECKED enum ss_status ss_profile_new(struct ss_profile **out,
                                         const struct ss_profile_options *options);

void ss_profile_hold(const struct ss_profile *profile);
/* The last one wipes the keys and frees it; no codec may use it any more. NULL is fine. Any thread.
 */
void ss_profile_release(const struct ss_profile *profile);

/* Whether both have the same method and keys, are made for the same use and remember salts in the
 * same places; users are not compared, but that both have a list or none. */
bool ss_profile_is_same(const struct ss_profile *one, const struct ss_profile *other);

const struct ss_method *ss_profile_method(const struct ss_profile *profile);

/* Under a stream method only its provider's name means anything. */
const struct ss_aead *ss_profile_aead(const struct ss_profile *profile);

/* Identity headers that a client with this profile sends; 0 for all that have none. */
size_t ss_profile_identity_count(const struct ss_profile *profile);

/*
 * A server with users: another list takes the place of the present one. Thread-safe. Sessions go on
 * with the user they began with; ss_users_same tells which of them should not. The list is held.
 */
void ss_profile_set_users(struct ss_profile *profile, struct ss_users *users);

/* Whether a user's key is the server's own, which all its users have, and so could not tell him
 * from any other: ss_profile_new refuses such a list. One that is passed on may have it. */
bool ss_profile_is_its_key(const struct ss_profile *profile, const struct ss_user *user);

/* The present list, held for the caller, who releases it; NULL where there are no users. */
struct ss_users *ss_profile_hold_users(const struct ss_profile *profile);

#endif
