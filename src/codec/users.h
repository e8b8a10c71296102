/*
 * The users of a server whose requests carry identity headers (SIP023): found by what such a header
 * says of their keys.
 *
 * A list is immutable once made and counted by those who hold it, so that it can be replaced. Each
 * user is counted too, by the lists that it is on and by its sessions, so a session keeps its user
 * and not the list. All calls are thread-safe.
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

/* As sessions and datagrams name one; valid as long as it is held, or a list that it is on. */
struct ss_user {
    const char *name;
    /* NULL: its traffic is opened here. Else it is passed on to this server, sealed as it is but
     * for the first identity header (SIP023, relays). */
    const struct ss_endpoint *next;
    void *tag; /* the caller's own: where its traffic is counted, for instance */
};

struct ss_user_options {
    const char *name;
    struct ss_view password;        /* base64 of the key; with `next`, of the next key */
    const struct ss_endpoint *next; /* copied; may be NULL */
    void *tag;
    /* Called with the tag by whatever thread lets go of the user as the last one. May be NULL. */
    void (*release)(void *tag);
};

/*
 * Copies all of the list; tags are the caller's still unless it is SS_OK. SS_ERR_KEY and *fault for
 * a bad key, with the user's place in the list; a method without identity headers has no users. The
 * caller holds the list once.
 */
SS_CHECKED enum ss_status ss_users_new(struct ss_users **out, const struct ss_method *method,
                                       const struct ss_user_options *list, size_t count,
                                       struct ss_key_fault *fault);

/*
 * Another list with the users of this one, in their order, but for the one of a name: `put` takes
 * its place, or comes behind the last; or without `put`, `drop` is not on it. One of the two is
 * given. As above; the fault's user is that of the new list.
 */
SS_CHECKED enum ss_status ss_users_change(struct ss_users **out, const struct ss_users *users,
                                          const struct ss_method *method,
                                          const struct ss_user_options *put, const char *drop,
                                          struct ss_key_fault *fault);

void ss_user_hold(const struct ss_user *user);
/* The last one wipes and frees it. NULL is fine. */
void ss_user_release(const struct ss_user *user);

void ss_users_hold(struct ss_users *users);
/* The last one frees it, and lets its users go. NULL is fine. */
void ss_users_release(struct ss_users *users);

size_t ss_users_count(const struct ss_users *users);
const struct ss_user *ss_users_get(const struct ss_users *users, size_t index);

/*
 * The user of this list with the same key as `user` of another one, or NULL: whose sessions may go
 * on when a list takes the place of another.
 */
const struct ss_user *ss_users_same(const struct ss_users *users, const struct ss_user *user);

#endif
