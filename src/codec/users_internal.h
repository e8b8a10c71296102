/* What the codec needs of a user and its callers do not. For this folder alone. */
#ifndef SS_CODEC_USERS_INTERNAL_H
#define SS_CODEC_USERS_INTERNAL_H

#include <stdatomic.h>

#include "codec/users.h"
#include "crypto/block.h"
#include "crypto/kdf.h"

struct ss_user_keys {
    struct ss_user user; /* first: a user leads to its keys */
    atomic_uint holders;
    void (*release_tag)(void *tag);
    uint8_t identity[SS_IDENTITY_LEN];
    uint8_t key[SS_KEY_MAX];
    struct ss_block_key *next_header; /* only with `next`: the next key over a separate header */
};

static inline const struct ss_user_keys *ss_user_keys_of(const struct ss_user *user)
{
    return (const struct ss_user_keys *)user;
}

/* The place of a user on a list; the count of users where it is not on it. */
size_t ss_users_place(const struct ss_users *users, const struct ss_user *user);

/* By what an identity header holds; NULL when there is none. As long however many users there
 * are. */
const struct ss_user *ss_users_find(const struct ss_users *users,
                                    const uint8_t identity[SS_IDENTITY_LEN]);

#endif
