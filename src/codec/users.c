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
    atomic_size_t holders;
    void (*release_tag)(void *tag);
    size_t count, next_count;
    size_t key_len;
    struct ss_user_keys *keys;
    char *names;
    struct ss_endpoint *nexts;
    struct ss_block_key *headers;
    uint32_t *buckets; /* index + 1, 0: free; at most half of them are taken */
    size_t bucket_mask;
    uint8_t seed[16]; /* users know the server's key, and so could choose where they look */
};

static void free_users(struct ss_users *users)
{
    for (size_t i = 0; users->release_tag != NULL && i < users->count; i++)
        if (users->keys[i].user.tag != NULL)
            users->release_tag(users->keys[i].user.tag);
    if (users->keys != NULL)
        ss_wipe(users->keys, users->count * sizeof users->keys[0]);
    if (users->headers != NULL)
        ss_wipe(users->headers, users->next_count * sizeof users->headers[0]);
    free(users->keys);
    free(users->names);
    free(users->nexts);
    free(users->headers);
    free(users->buckets);
    free(users);
}

static size_t bucket_of(const struct ss_users *users, const uint8_t *identity)
{
    return (size_t)ss_fingerprint(users->seed, identity, SS_IDENTITY_LEN) & users->bucket_mask;
}

const struct ss_user *ss_users_find(const struct ss_users *users,
                                    const uint8_t identity[SS_IDENTITY_LEN])
{
    for (size_t at = bucket_of(users, identity); users->buckets[at] != 0;
         at = (at + 1) & users->bucket_mask) {
        const struct ss_user_keys *keys = &users->keys[users->buckets[at] - 1];

        if (ss_equal_constant_time(keys->identity, identity, SS_IDENTITY_LEN))
            return &keys->user;
    }
    return NULL;
}

/* False when another user has the key. */
static bool insert(struct ss_users *users, size_t index)
{
    const uint8_t *identity = users->keys[index].identity;
    size_t at = bucket_of(users, identity);

    if (ss_users_find(users, identity) != NULL)
        return false;
    while (users->buckets[at] != 0)
        at = (at + 1) & users->bucket_mask;
    users->buckets[at] = (uint32_t)index + 1;
    return true;
}

static enum ss_status reserve(struct ss_users *users, const struct ss_user_options *list,
                              size_t count)
{
    size_t buckets = 16, names_len = 1;

    for (size_t i = 0; i < count; i++) {
        names_len += strlen(list[i].name) + 1;
        users->next_count += list[i].next != NULL;
    }
    while (buckets < 2 * count)
        buckets *= 2;
    users->bucket_mask = buckets - 1;
    users->keys = calloc(count + 1, sizeof users->keys[0]);
    users->names = malloc(names_len);
    users->nexts = calloc(users->next_count + 1, sizeof users->nexts[0]);
    users->headers = calloc(users->next_count + 1, sizeof users->headers[0]);
    users->buckets = calloc(buckets, sizeof users->buckets[0]);
    if (users->keys == NULL || users->names == NULL || users->nexts == NULL ||
        users->headers == NULL || users->buckets == NULL)
        return SS_ERR_MEMORY;
    return SS_OK;
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

static enum ss_status fill(struct ss_users *users, const struct ss_method *method,
                           const struct ss_user_options *list, struct ss_key_fault *fault)
{
    char *name = users->names;
    struct ss_endpoint *next = users->nexts;
    struct ss_block_key *header = users->headers;

    for (size_t i = 0; i < users->count; i++) {
        struct ss_user_keys *keys = &users->keys[i];
        size_t name_size = strlen(list[i].name) + 1;
        enum ss_status status = read_key(keys, method, list[i].password, fault);

        if (status == SS_OK && !insert(users, i)) {
            *fault = (struct ss_key_fault){.kind = SS_KEY_IS_DOUBLE};
            status = SS_ERR_KEY;
        }
        if (status == SS_OK && list[i].next != NULL) {
            status = ss_block_key_init(header, SS_BLOCK_ENCRYPT, keys->key, method->key_len);
            keys->next_header = header++;
            *next = *list[i].next;
            keys->user.next = next++;
        }
        fault->user = i;
        if (status != SS_OK)
            return status;
        memcpy(name, list[i].name, name_size);
        keys->user.name = name;
        keys->user.tag = list[i].tag;
        keys->user.index = i;
        name += name_size;
    }
    return SS_OK;
}

enum ss_status ss_users_new(struct ss_users **out, const struct ss_method *method,
                            const struct ss_user_options *list, size_t count,
                            struct ss_key_fault *fault)
{
    struct ss_users *users;
    enum ss_status status;

    *out = NULL;
    *fault = (struct ss_key_fault){0};
    if (!method->has_identities) {
        fault->kind = SS_KEY_HAS_NO_CHAINS;
        return SS_ERR_KEY;
    }
    if (count > UINT32_MAX / 4)
        return SS_ERR_ARGUMENT;
    users = calloc(1, sizeof *users);
    if (users == NULL)
        return SS_ERR_MEMORY;
    atomic_init(&users->holders, 1);
    users->count = count;
    users->key_len = method->key_len;
    ss_random_bytes(users->seed, sizeof users->seed);
    status = reserve(users, list, count);
    if (status == SS_OK)
        status = fill(users, method, list, fault);
    if (status != SS_OK) {
        free_users(users);
        return status;
    }
    *fault = (struct ss_key_fault){0};
    *out = users;
    return SS_OK;
}

void ss_users_set_tag_release(struct ss_users *users, void (*release)(void *tag))
{
    users->release_tag = release;
}

void ss_users_hold(struct ss_users *users)
{
    atomic_fetch_add_explicit(&users->holders, 1, memory_order_relaxed);
}

void ss_users_release(struct ss_users *users)
{
    if (users != NULL && atomic_fetch_sub_explicit(&users->holders, 1, memory_order_acq_rel) == 1)
        free_users(users);
}

size_t ss_users_count(const struct ss_users *users)
{
    return users->count;
}

const struct ss_user *ss_users_get(const struct ss_users *users, size_t index)
{
    return index < users->count ? &users->keys[index].user : NULL;
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
