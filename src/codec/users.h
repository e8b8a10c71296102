/*
 * The users of a server whose requests carry identity headers (SIP023): found by what such a header
 * says of their keys.
 *
 * A list is immutable once made and counted by those who hold it, so that it can be replaced while
 * sessions go on with the one they began with. All calls are thread-safe.
 */
#ifndef SS_CODEC_USERS_H
#define SS_CODEC_USERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/span.h"
#include "base/status.h"
#include "codec/keys.h"
#include "codec/method.h"

struct ss_users;

/* As sessions and datagrams name one; valid as long as its list is held. */
struct ss_user {
    const char *name;
    /* NULL: its traffic is opened here. Else it is passed on to this server, sealed as it is but
     * for the first identity header (SIP023, relays). */
    const struct ss_endpoint *next;
    void *tag;    /* the caller's own: where its traffic is counted, for instance */
    size_t index; /* in the list that it was given in */
};

struct ss_user_options {
    const char *name;
    struct ss_view password;        /* base64 of the key; with `next`, of the next key */
    const struct ss_endpoint *next; /* copied; may be NULL */
    void *tag;
};

/*
 * Copies all of the list. SS_ERR_KEY and *fault for a bad key, with the user's place in the list; a
 * method without identity headers has no users. The caller holds the list once.
 */
SS_CHECKED enum ss_status ss_users_new(struct ss_users **out, const struct ss_method *method,
                                       const struct ss_user_options *list, size_t count,
                                       struct ss_key_fault *fault);

/* `release` is called with each tag, but NULL, when the list is freed; by any thread. Before the
 * list is shared. */
void ss_users_set_tag_release(struct ss_users *users, void (*release)(void *tag));

void ss_users_hold(struct ss_users *users);
/* The last one frees it and wipes the keys. NULL is fine. */
void ss_users_release(struct ss_users *users);

size_t ss_users_count(const struct ss_users *users);
const struct ss_user *ss_users_get(const struct ss_users *users, size_t index);

/*
 * The user of this list with the same key as `user` of another one, or NULL: whose sessions may go
 * on when a list takes the place of another.
 */
const struct ss_user *ss_users_same(const struct ss_users *users, const struct ss_user *user);

#endif
