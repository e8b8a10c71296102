/* Sessions that are ended from outside. */
#include "relay/ending.h"

#include <stdlib.h>

#include "codec/users.h"
#include "relay/engine_internal.h"
#include "relay/session.h"

/* One for each worker, who frees it. */
struct ss_ending {
    struct ss_ending *next;
    struct ss_listener *listener;     /* held; NULL: any */
    const struct ss_profile *profile; /* held; NULL: any */
    /* Held, so that the tag stays what it is; with `strangers` those who are not on it are meant.
     */
    struct ss_users *users;
    const void *user; /* NULL: any */
    bool strangers;
};

static void free_ending(struct ss_ending *ending)
{
    if (ending->listener != NULL)
        ss_listener_release(ending->listener);
    ss_profile_release(ending->profile);
    ss_users_release(ending->users);
    free(ending);
}

static void free_list(struct ss_ending *list)
{
    while (list != NULL) {
        struct ss_ending *ending = list;

        list = ending->next;
        free_ending(ending);
    }
}

/* Whose traffic would be counted elsewhere is another user, whatever the key. */
static bool is_stranger(const struct ss_ending *ending, const struct ss_user *user)
{
    const struct ss_user *same;

    if (user == NULL)
        return false;
    same = ss_users_same(ending->users, user);
    return same == NULL || same->tag != user->tag;
}

static bool is_meant(const struct ss_ending *ending, struct ss_session *session)
{
    if ((ending->listener != NULL && session->listener != ending->listener) ||
        (ending->profile != NULL && session->role->options.profile != ending->profile) ||
        (ending->user != NULL && session->user != ending->user))
        return false;
    return !ending->strangers || is_stranger(ending, ss_codec_user(ss_session_codec(session)));
}

static void end_all(struct ss_worker *worker, const struct ss_ending *ending)
{
    struct ss_session *session = worker->open;

    while (session != NULL) {
        struct ss_session *next = session->next;

        if (is_meant(ending, session))
            ss_session_stop(session);
        session = next;
    }
}

static bool association_is_meant(struct ss_association *association, const void *owner)
{
    const struct ss_ending *ending = owner;

    if (ending->profile != NULL && association->port->role->options.profile != ending->profile)
        return false;
    if (ending->user != NULL && association->user != ending->user)
        return false;
    return !ending->strangers ||
           (association->session != NULL && is_stranger(ending, association->session->user));
}

void ss_worker_end_sessions(struct ss_worker *worker)
{
    struct ss_ending *list;

    uv_mutex_lock(&worker->handoff_lock);
    list = worker->endings;
    worker->endings = NULL;
    uv_mutex_unlock(&worker->handoff_lock);
    for (const struct ss_ending *ending = list; ending != NULL; ending = ending->next)
        end_all(worker, ending);
    free_list(list);
}

void ss_endings_clear(struct ss_worker *worker)
{
    free_list(worker->endings);
    worker->endings = NULL;
}

/* One for each worker, or NULL. */
static struct ss_ending *make(const struct ss_engine *engine, const struct ss_ending *like)
{
    struct ss_ending *list = NULL;

    for (unsigned i = 0; i < engine->options.workers; i++) {
        struct ss_ending *ending = malloc(sizeof *ending);

        if (ending == NULL) {
            free_list(list);
            return NULL;
        }
        *ending = *like;
        ending->next = list;
        list = ending;
        if (like->listener != NULL)
            ss_listener_hold(like->listener);
        if (like->profile != NULL)
            ss_profile_hold(like->profile);
        if (like->users != NULL)
            ss_users_hold(like->users);
    }
    return list;
}

/* Loop 0 does its part at once, datagrams among it: nothing of the ended may come after this. */
static void send_out(struct ss_engine *engine, struct ss_ending *list)
{
    struct ss_ending *own = list;

    list = list->next;
    for (unsigned i = 1; list != NULL; i++) {
        struct ss_worker *worker = &engine->workers[i];
        struct ss_ending *ending = list;

        list = ending->next;
        uv_mutex_lock(&worker->handoff_lock);
        ending->next = worker->endings;
        worker->endings = ending;
        uv_mutex_unlock(&worker->handoff_lock);
        uv_async_send(&worker->wake);
    }
    end_all(&engine->workers[0], own);
    if (engine->udp != NULL && own->listener == NULL)
        ss_associations_close_if(&engine->udp->associations, association_is_meant, own);
    free_ending(own);
}

enum ss_status ss_engine_end_sessions(struct ss_engine *engine, const struct ss_sessions_of *which)
{
    const struct ss_ending like = {
        .listener = which->listener,
        .profile = which->profile,
        .users = which->profile != NULL ? ss_profile_hold_users(which->profile) : NULL,
        .user = which->user};
    struct ss_ending *list = engine->stopping ? NULL : make(engine, &like);

    ss_users_release(like.users);
    if (list == NULL)
        return engine->stopping ? SS_OK : SS_ERR_MEMORY;
    send_out(engine, list);
    return SS_OK;
}

enum ss_status ss_engine_set_users(struct ss_engine *engine, struct ss_profile *profile,
                                   struct ss_users *users)
{
    const struct ss_ending like = {.profile = profile, .users = users, .strangers = true};
    struct ss_ending *list = engine->stopping ? NULL : make(engine, &like);

    if (list == NULL && !engine->stopping)
        return SS_ERR_MEMORY;
    ss_profile_set_users(profile, users);
    if (list != NULL)
        send_out(engine, list);
    return SS_OK;
}
