/* Lists of users, and their counters. */
#include "service/users.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "relay/engine.h"

/* The tag of a user. */
struct counted {
    struct ss_user_counters counters; /* first: the relay knows it as this */
    atomic_uint users;                /* objects that have it as their tag */
};

static struct counted *hold(struct counted *counted)
{
    atomic_fetch_add_explicit(&counted->users, 1, memory_order_relaxed);
    return counted;
}

static void release(void *tag)
{
    struct counted *counted = tag;

    if (atomic_fetch_sub_explicit(&counted->users, 1, memory_order_acq_rel) == 1)
        free(counted);
}

static struct counted *counted_new(void)
{
    struct counted *counted = calloc(1, sizeof *counted);

    if (counted != NULL)
        atomic_init(&counted->users, 1);
    return counted;
}

static int by_name(const void *one, const void *other)
{
    const struct ss_user *const *a = one, *const *b = other;

    return strcmp((*a)->name, (*b)->name);
}

static int name_of(const void *name, const void *other)
{
    const struct ss_user *const *user = other;

    return strcmp(name, (*user)->name);
}

/* Those of a list by name; NULL when memory is out, or there are none. */
static const struct ss_user **sort(const struct ss_users *users, size_t *count)
{
    const struct ss_user **sorted;

    *count = users != NULL ? ss_users_count(users) : 0;
    if (*count == 0)
        return NULL;
    sorted = malloc(*count * sizeof(struct ss_user *));
    for (size_t i = 0; sorted != NULL && i < *count; i++)
        sorted[i] = ss_users_get(users, i);
    if (sorted != NULL)
        qsort(sorted, *count, sizeof(struct ss_user *), by_name);
    return sorted;
}

static void release_tags(struct ss_user_options *options, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (options[i].tag != NULL)
            release(options[i].tag);
}

enum ss_status ss_service_users_new(struct ss_users **out, const struct ss_method *method,
                                    const struct ss_config_identity *list, size_t count,
                                    struct ss_users *before, struct ss_key_fault *fault)
{
    struct ss_user_options *options = calloc(count + 1, sizeof *options);
    size_t before_count;
    const struct ss_user **known = sort(before, &before_count);
    enum ss_status status = SS_ERR_MEMORY;

    *out = NULL;
    if (options == NULL || (known == NULL && before_count != 0))
        goto done;
    for (size_t i = 0; i < count; i++) {
        const struct ss_config_identity *identity = &list[i];
        const struct ss_user **same =
            known != NULL ? bsearch(identity->name, known, before_count, sizeof known[0], name_of)
                          : NULL;

        options[i] = (struct ss_user_options){
            .name = identity->name,
            .password = {(const uint8_t *)identity->password, strlen(identity->password)},
            .next = identity->next,
            .tag = same != NULL ? hold((*same)->tag) : counted_new(),
            .release = release};
        if (options[i].tag == NULL)
            goto done;
    }
    status = ss_users_new(out, method, options, count, fault);
    if (status != SS_OK)
        goto done;
    free(options);
    free(known);
    return SS_OK;

done:
    if (options != NULL)
        release_tags(options, count);
    free(options);
    free(known);
    return status;
}

const struct ss_user *ss_service_users_find(const struct ss_users *users, const char *name)
{
    for (size_t i = 0; i < ss_users_count(users); i++)
        if (strcmp(ss_users_get(users, i)->name, name) == 0)
            return ss_users_get(users, i);
    return NULL;
}

enum ss_status ss_service_users_change(struct ss_users **out, struct ss_users *users,
                                       const struct ss_method *method,
                                       const struct ss_config_identity *put, const char *drop,
                                       struct ss_key_fault *fault)
{
    struct ss_user_options options = {.release = release};
    const struct ss_user *before;
    enum ss_status status;

    *out = NULL;
    if (put == NULL)
        return ss_users_change(out, users, method, NULL, drop, fault);
    before = ss_service_users_find(users, put->name);
    options.name = put->name;
    options.password = (struct ss_view){(const uint8_t *)put->password, strlen(put->password)};
    options.next = put->next;
    options.tag = before != NULL ? hold(before->tag) : counted_new();
    if (options.tag == NULL)
        return SS_ERR_MEMORY;
    status = ss_users_change(out, users, method, &options, NULL, fault);
    if (status != SS_OK)
        release(options.tag);
    return status;
}

void ss_service_user_set_limits(const struct ss_user *user, const struct ss_config_limits *limits)
{
    struct ss_user_counters *counters = user->tag;

    ss_service_set_limits(&counters->limiter, limits);
}

void ss_service_set_limits(struct ss_limiter *limiter, const struct ss_config_limits *limits)
{
    const struct ss_limits now = ss_service_limits(limits);

    ss_limiter_set(limiter, &now, (int64_t)time(NULL));
    if (!limiter->begun && limits->quota_used != 0)
        ss_limiter_set_used(limiter, limits->quota_used, limits->quota_period_end);
    limiter->begun = true;
}

void ss_service_users_set_limits(const struct ss_users *users,
                                 const struct ss_config_identity *list)
{
    for (size_t i = 0; i < ss_users_count(users); i++)
        ss_service_user_set_limits(ss_users_get(users, i), &list[i].limits);
}

struct ss_limits ss_service_limits(const struct ss_config_limits *limits)
{
    return (struct ss_limits){.quota = limits->quota,
                              .quota_period_s = limits->quota_period_s,
                              .rate = limits->rate,
                              .max_connections = limits->max_connections,
                              .expires_s = limits->expires};
}

static size_t missing(const struct ss_users *of, const struct ss_users *in)
{
    size_t count = of != NULL ? ss_users_count(of) : 0, missing = 0;

    for (size_t i = 0; i < count; i++) {
        const struct ss_user *user = ss_users_get(of, i);
        const struct ss_user *same = in != NULL ? ss_users_same(in, user) : NULL;

        missing += same == NULL || same->tag != user->tag;
    }
    return missing;
}

void ss_service_users_compare(const struct ss_users *before, const struct ss_users *now,
                              size_t *added, size_t *removed)
{
    *added = missing(now, before);
    *removed = missing(before, now);
}

static bool same_next(const struct ss_endpoint *one, const struct ss_endpoint *other)
{
    if (one == NULL || other == NULL)
        return one == other;
    return one->port == other->port && strcmp(one->host, other->host) == 0;
}

bool ss_service_users_alike(const struct ss_users *one, const struct ss_users *other)
{
    if (ss_users_count(one) != ss_users_count(other))
        return false;
    for (size_t i = 0; i < ss_users_count(one); i++) {
        const struct ss_user *user = ss_users_get(one, i);
        const struct ss_user *same = ss_users_same(other, user);

        if (same == NULL || same->tag != user->tag || same != ss_users_get(other, i) ||
            !same_next(user->next, same->next))
            return false;
    }
    return true;
}
