/* The users of a server, in a hash table over their identities. */
#include "codec/users.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "codec/users_internal.h"
#include "crypto/random.h"
#include "crypto/secret.h"

struct ss_users {
    atomic_uint holders;
    size_t count;
    size_t key_len;
    struct ss_user_keys **list; /* held */
    uint32_t *buckets;          /* place + 1, 0: free; at most half of them are taken */
    size_t bucket_mask;
    uint8_t seed[16]; /* users know the server's key, and so could choose where they look */
};

/* -- one user -- */

/* What is not the same for all lies behind it, in one block. */
struct with_next {
    struct ss_user_keys keys;
    struct ss_endpoint next;
    struct ss_block_key header;
};

static void free_user(struct ss_user_keys *keys)
{
    size_t size = keys->user.next != NULL ? sizeof(struct with_next) : sizeof *keys;

    ss_wipe(keys, size);
    free(keys);
}

static struct ss_user_keys *keys_of(const struct ss_user *user)
{
    return (struct ss_user_keys *)(uintptr_t)user;
}

void ss_user_hold(const struct ss_user *user)
{
    atomic_fetch_add_explicit(&keys_of(user)->holders, 1, memory_order_relaxed);
}

void ss_user_release(const struct ss_user *user)
{
    struct ss_user_keys *keys;

    if (user == NULL)
        return;
    keys = keys_of(user);
    if (atomic_fetch_sub_explicit(&keys->holders, 1, memory_order_acq_rel) != 1)
        return;
    if (keys->release_tag != NULL && keys->user.tag != NULL)
        keys->release_tag(keys->user.tag);
    free_user(keys);
}

static enum ss_status read_key(struct ss_user_keys *keys, const struct ss_method *method,
                               struct ss_view password, struct ss_key_fault *fault)
{
    uint8_t parsed[SS_CHAIN_MAX][SS_KEY_MAX];
    size_t count;
    enum ss_status status = ss_keys_parse(parsed, &count, method, password, fault);

    if (status == SS_OK && count != 1) {
        *fault =
            (struct ss_key_fault){.kind = SS_KEY_OF_SERVER_IS_CHAIN, .needed = 1, .given = count};
        status = SS_ERR_KEY;
    }
    if (status == SS_OK) {
        memcpy(keys->key, parsed[0], method->key_len);
        ss_kdf_identity(keys->identity, (struct ss_view){keys->key, method->key_len});
    }
    ss_wipe(parsed, sizeof parsed);
    return status;
}

static enum ss_status set_next(struct ss_user_keys *keys, const struct ss_method *method,
                               const struct ss_endpoint *next)
{
    struct with_next *with = (struct with_next *)(void *)keys;

    with->next = *next;
    keys->user.next = &with->next;
    keys->next_header = &with->header;
    return ss_block_key_init(&with->header, SS_BLOCK_ENCRYPT, keys->key, method->key_len);
}

/* It has neither tag nor release yet: that comes when nothing can fail any more. */
static enum ss_status make_user(struct ss_user_keys **out, const struct ss_method *method,
                                const struct ss_user_options *options, struct ss_key_fault *fault)
{
    size_t size = options->next != NULL ? sizeof(struct with_next) : sizeof(struct ss_user_keys);
    size_t name_size = strlen(options->name) + 1;
    struct ss_user_keys *keys = malloc(size + name_size);
    enum ss_status status;

    *out = NULL;
    if (keys == NULL)
        return SS_ERR_MEMORY;
    memset(keys, 0, size);
    atomic_init(&keys->holders, 1);
    keys->user.name = memcpy((char *)keys + size, options->name, name_size);
    status = read_key(keys, method, options->password, fault);
    if (status == SS_OK && options->next != NULL)
        status = set_next(keys, method, options->next);
    if (status == SS_OK)
        *out = keys;
    else
        free_user(keys);
    return status;
}

static void give_tag(struct ss_user_keys *keys, const struct ss_user_options *options)
{
    keys->user.tag = options->tag;
    keys->release_tag = options->release;
}

/* -- the table -- */

static size_t bucket_of(const struct ss_users *users, const uint8_t *identity)
{
    return (size_t)ss_fingerprint(users->seed, identity, SS_IDENTITY_LEN) & users->bucket_mask;
}

const struct ss_user *ss_users_find(const struct ss_users *users,
                                    const uint8_t identity[SS_IDENTITY_LEN])
{
    for (size_t at = bucket_of(users, identity); users->buckets[at] != 0;
         at = (at + 1) & users->bucket_mask) {
        const struct ss_user_keys *keys = users->list[users->buckets[at] - 1];

        if (ss_equal_constant_time(keys->identity, identity, SS_IDENTITY_LEN))
            return &keys->user;
    }
    return NULL;
}

/* Behind the others; false when another user has the key. Takes the caller's hold. */
static bool append(struct ss_users *users, struct ss_user_keys *keys)
{
    size_t at = bucket_of(users, keys->identity);

    if (ss_users_find(users, keys->identity) != NULL)
        return false;
    while (users->buckets[at] != 0)
        at = (at + 1) & users->bucket_mask;
    users->list[users->count++] = keys;
    users->buckets[at] = (uint32_t)users->count;
    return true;
}

/* An empty list with room for `count`. */
static struct ss_users *new_list(const struct ss_method *method, size_t count)
{
    struct ss_users *users = calloc(1, sizeof *users);
    size_t buckets = 16;

    if (users == NULL)
        return NULL;
    while (buckets < 2 * count)
        buckets *= 2;
    atomic_init(&users->holders, 1);
    users->key_len = method->key_len;
    users->bucket_mask = buckets - 1;
    users->list = calloc(count + 1, sizeof(struct ss_user_keys *));
    users->buckets = calloc(buckets, sizeof users->buckets[0]);
    ss_random_bytes(users->seed, sizeof users->seed);
    if (users->list != NULL && users->buckets != NULL)
        return users;
    ss_users_release(users);
    return NULL;
}

static enum ss_status add(struct ss_users *users, const struct ss_method *method,
                          const struct ss_user_options *options, struct ss_key_fault *fault)
{
    struct ss_user_keys *keys;
    enum ss_status status = make_user(&keys, method, options, fault);

    if (status == SS_OK && !append(users, keys)) {
        free_user(keys);
        *fault = (struct ss_key_fault){.kind = SS_KEY_IS_DOUBLE};
        status = SS_ERR_KEY;
    }
    fault->user = users->count;
    return status;
}

static enum ss_status check_method(const struct ss_method *method, struct ss_key_fault *fault)
{
    *fault = (struct ss_key_fault){0};
    if (method->has_identities)
        return SS_OK;
    fault->kind = SS_KEY_HAS_NO_CHAINS;
    return SS_ERR_KEY;
}

enum ss_status ss_users_new(struct ss_users **out, const struct ss_method *method,
                            const struct ss_user_options *list, size_t count,
                            struct ss_key_fault *fault)
{
    struct ss_users *users;
    enum ss_status status = check_method(method, fault);

    *out = NULL;
    if (status != SS_OK)
        return status;
    if (count > UINT32_MAX / 4)
        return SS_ERR_ARGUMENT;
    users = new_list(method, count);
    if (users == NULL)
        return SS_ERR_MEMORY;
    for (size_t i = 0; i < count && status == SS_OK; i++)
        status = add(users, method, &list[i], fault);
    if (status != SS_OK) {
        ss_users_release(users);
        return status;
    }
    for (size_t i = 0; i < count; i++)
        give_tag(users->list[i], &list[i]);
    *fault = (struct ss_key_fault){0};
    *out = users;
    return SS_OK;
}

enum ss_status ss_users_change(struct ss_users **out, const struct ss_users *users,
                               const struct ss_method *method, const struct ss_user_options *put,
                               const char *drop, struct ss_key_fault *fault)
{
    const char *name = put != NULL ? put->name : drop;
    struct ss_users *changed;
    enum ss_status status = check_method(method, fault);
    size_t place = SIZE_MAX;

    *out = NULL;
    if (status != SS_OK)
        return status;
    changed = new_list(method, users->count + 1);
    if (changed == NULL)
        return SS_ERR_MEMORY;
    for (size_t i = 0; i < users->count && status == SS_OK; i++) {
        struct ss_user_keys *keys = users->list[i];

        if (strcmp(keys->user.name, name) != 0) {
            ss_user_hold(&keys->user);
            if (!append(changed, keys)) { /* it is behind the one that was put */
                ss_user_release(&keys->user);
                *fault = (struct ss_key_fault){.kind = SS_KEY_IS_DOUBLE, .user = place};
                status = SS_ERR_KEY;
            }
        } else if (put != NULL && place == SIZE_MAX) {
            place = changed->count;
            status = add(changed, method, put, fault);
        }
    }
    if (status == SS_OK && put != NULL && place == SIZE_MAX) {
        place = changed->count;
        status = add(changed, method, put, fault);
    }
    if (status != SS_OK) {
        ss_users_release(changed);
        return status;
    }
    if (put != NULL)
        give_tag(changed->list[place], put);
    *fault = (struct ss_key_fault){0};
    *out = changed;
    return SS_OK;
}

void ss_users_hold(struct ss_users *users)
{
    atomic_fetch_add_explicit(&users->holders, 1, memory_order_relaxed);
}

void ss_users_release(struct ss_users *users)
{
    if (users == NULL || atomic_fetch_sub_explicit(&users->holders, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < users->count; i++)
        ss_user_release(&users->list[i]->user);
    free(users->list);
    free(users->buckets);
    free(users);
}

size_t ss_users_count(const struct ss_users *users)
{
    return users->count;
}

const struct ss_user *ss_users_get(const struct ss_users *users, size_t index)
{
    return index < users->count ? &users->list[index]->user : NULL;
}

size_t ss_users_place(const struct ss_users *users, const struct ss_user *user)
{
    size_t i = 0;

    while (i < users->count && &users->list[i]->user != user)
        i++;
    return i;
}

const struct ss_user *ss_users_same(const struct ss_users *users, const struct ss_user *user)
{
    const struct ss_user_keys *keys = ss_user_keys_of(user);
    const struct ss_user *found = ss_users_find(users, keys->identity);

    /* Equal hashes of different keys are not expected, but cost nothing to exclude. */
    if (found == NULL ||
        !ss_equal_constant_time(ss_user_keys_of(found)->key, keys->key, users->key_len))
        return NULL;
    return found;
}
