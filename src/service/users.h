/*
 * Lists of users out of the configuration. What a user has used is counted in one place as long as
 * any list names it, so it goes on counting when a list takes the place of another. For this
 * folder.
 */
#ifndef SS_SERVICE_USERS_H
#define SS_SERVICE_USERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "codec/users.h"
#include "config/config.h"
#include "relay/limiter.h"

/*
 * The users in the order of the configuration; those whose names are in `before` (may be NULL) keep
 * their counters. As ss_users_new.
 */
SS_CHECKED enum ss_status ss_service_users_new(struct ss_users **out,
                                               const struct ss_method *method,
                                               const struct ss_config_identity *list, size_t count,
                                               struct ss_users *before, struct ss_key_fault *fault);

/*
 * The same list but for one user: `put` takes the place of the one with its name, with the counters
 * of that, or comes behind the others; without it the one named `drop` goes. As ss_users_change.
 */
SS_CHECKED enum ss_status ss_service_users_change(struct ss_users **out, struct ss_users *users,
                                                  const struct ss_method *method,
                                                  const struct ss_config_identity *put,
                                                  const char *drop, struct ss_key_fault *fault);

/* The user of a name, or NULL. */
const struct ss_user *ss_service_users_find(const struct ss_users *users, const char *name);

/* Gives a limiter these limits, and one that is new what was used before. */
void ss_service_set_limits(struct ss_limiter *limiter, const struct ss_config_limits *limits);

/* Limits as the relay knows them. */
struct ss_limits ss_service_limits(const struct ss_config_limits *limits);

void ss_service_user_set_limits(const struct ss_user *user, const struct ss_config_limits *limits);

/* Gives the users of a list the limits that the configuration, which it was made of, says. */
void ss_service_users_set_limits(const struct ss_users *users,
                                 const struct ss_config_identity *list);

/* How many have come and gone; either list may be NULL. One with another key or name is both. */
void ss_service_users_compare(const struct ss_users *before, const struct ss_users *now,
                              size_t *added, size_t *removed);

/* Whether the one is as good as the other: the same users in the same order, passed on to the same
 * servers. */
bool ss_service_users_alike(const struct ss_users *one, const struct ss_users *other);

#endif
