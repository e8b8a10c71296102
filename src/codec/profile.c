/* A method with its key. */
#include "codec/profile.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "codec/codec_internal.h"
#include "crypto/kdf.h"
#include "crypto/random.h"
#include "crypto/secret.h"

/* The families, where they are built. */
static const struct {
    const struct ss_codec_ops *stream;
    const struct ss_packet_ops *packet;
} families[] = {
    [SS_METHODS_2017] = {&ss_codec_2017, &ss_packet_2017},
    [SS_METHODS_2022] = {&ss_codec_2022, &ss_packet_2022},
    [SS_METHODS_STREAM] = {&ss_codec_stream_cipher, &ss_packet_stream_cipher},
    [SS_METHODS_PLAIN] = {&ss_codec_stream_cipher, &ss_packet_stream_cipher},
};

#define FIRST_CHUNK_LEN (16 * 1024)
#define CHUNK_LEN_MAX   0xffff

static const struct ss_aead *packet_aead_of(const struct ss_method *method,
                                            const struct ss_aead *aead)
{
    const struct ss_aead *same;

    if (aead == NULL || method->packet_aead == method->aead)
        return aead;
    same = ss_aead_find(method->packet_aead, aead->provider);
    return same != NULL ? same : ss_aead_best(method->packet_aead);
}

/* What does the method here; an AEAD may have been chosen before. */
static enum ss_status choose_cipher(const struct ss_method *method, const struct ss_aead **aead,
                                    const struct ss_keystream **keystream)
{
    if (method->aead == SS_AEAD_ALGORITHM_COUNT) {
        *aead = NULL;
        *keystream = ss_keystream_find(method->keystream);
        return *keystream != NULL ? SS_OK : SS_ERR_UNSUPPORTED;
    }
    if (*aead == NULL)
        *aead = ss_aead_best(method->aead);
    if (*aead == NULL)
        return SS_ERR_UNSUPPORTED;
    return (*aead)->algorithm == method->aead ? SS_OK : SS_ERR_ARGUMENT;
}

/* The key of a password method, or the one that was given. */
static enum ss_status take_password(struct ss_profile *profile,
                                    const struct ss_profile_options *options)
{
    size_t key_len = profile->method->key_len;

    if (key_len == 0)
        return SS_OK; /* `none` */
    if (options->key.ptr != NULL) {
        if (options->key.len < key_len)
            return SS_ERR_KEY;
        memcpy(profile->key, options->key.ptr, key_len);
        return SS_OK;
    }
    if (options->password.len == 0)
        return SS_ERR_KEY;
    ss_kdf_password(profile->key, key_len, (const char *)options->password.ptr,
                    options->password.len);
    return SS_OK;
}

static enum ss_status set_identities(struct ss_profile *profile,
                                     uint8_t keys[SS_CHAIN_MAX][SS_KEY_MAX], size_t count)
{
    size_t key_len = profile->method->key_len;
    enum ss_status status = SS_OK;

    if (count == 1)
        return SS_OK;
    profile->identities = calloc(count - 1, sizeof profile->identities[0]);
    if (profile->identities == NULL)
        return SS_ERR_MEMORY;
    profile->identity_count = count - 1;
    for (size_t i = 0; i < count - 1 && status == SS_OK; i++) {
        struct ss_identity *identity = &profile->identities[i];

        memcpy(identity->key, keys[i], key_len);
        ss_kdf_identity(identity->next, (struct ss_view){keys[i + 1], key_len});
        status = ss_block_key_init(&identity->header, SS_BLOCK_ENCRYPT, keys[i], key_len);
    }
    return status;
}

static enum ss_status set_users(struct ss_profile *profile, struct ss_users *users)
{
    struct ss_users_slot *slot = calloc(1, sizeof *slot);

    if (slot == NULL)
        return SS_ERR_MEMORY;
    (void)pthread_mutex_init(&slot->lock, NULL); /* a plain mutex: can't fail on Linux */
    atomic_init(&slot->version, 1);
    ss_users_hold(users);
    slot->users = users;
    profile->users = slot;
    ss_random_bytes(profile->decoy, sizeof profile->decoy);
    return SS_OK;
}

/* The server's key is known to all its users, so with it none of them could be told from another. A
 * next server may well have the same key as this one. */
static enum ss_status check_users(const struct ss_users *users, struct ss_view key,
                                  struct ss_key_fault *fault)
{
    uint8_t identity[SS_IDENTITY_LEN];
    const struct ss_user *user;

    ss_kdf_identity(identity, key);
    user = ss_users_find(users, identity);
    if (user == NULL || user->next != NULL)
        return SS_OK;
    *fault =
        (struct ss_key_fault){.kind = SS_KEY_IS_THE_SERVERS, .user = ss_users_place(users, user)};
    return SS_ERR_KEY;
}

/* Reads the key or the chain, and says what is wrong with it. */
static enum ss_status read_keys(uint8_t keys[SS_CHAIN_MAX][SS_KEY_MAX], size_t *count,
                                const struct ss_profile_options *options,
                                struct ss_key_fault *fault)
{
    const struct ss_method *method = options->method;
    enum ss_status status = SS_OK;

    *fault = (struct ss_key_fault){0};
    if (options->key.ptr == NULL) {
        status = ss_keys_parse(keys, count, method, options->password, fault);
    } else if (options->key.len == method->key_len) {
        memcpy(keys[0], options->key.ptr, method->key_len);
        *count = 1;
    } else {
        *fault = (struct ss_key_fault){
            .kind = SS_KEY_HAS_OTHER_LENGTH, .needed = method->key_len, .given = options->key.len};
        status = SS_ERR_KEY;
    }
    if (status != SS_OK || options->users == NULL)
        return status;
    if (!method->has_identities)
        fault->kind = SS_KEY_HAS_NO_CHAINS;
    else if (*count != 1)
        *fault =
            (struct ss_key_fault){.kind = SS_KEY_OF_SERVER_IS_CHAIN, .needed = 1, .given = *count};
    else
        return check_users(options->users, (struct ss_view){keys[0], method->key_len}, fault);
    return SS_ERR_KEY;
}

static enum ss_status take_keys_2022(struct ss_profile *profile,
                                     const struct ss_profile_options *options)
{
    size_t key_len = profile->method->key_len;
    uint8_t keys[SS_CHAIN_MAX][SS_KEY_MAX];
    struct ss_key_fault fault;
    size_t count = 0;
    enum ss_status status = read_keys(keys, &count, options, &fault);

    if (options->fault != NULL)
        *options->fault = fault;
    if (status != SS_OK)
        goto done;
    memcpy(profile->key, keys[count - 1], key_len);
    status = set_identities(profile, keys, count);
    if (status == SS_OK && options->users != NULL)
        status = set_users(profile, options->users);
    if (status == SS_OK && profile->method->has_identities) {
        status = ss_block_key_init(&profile->header_encrypt, SS_BLOCK_ENCRYPT, keys[0], key_len);
        if (status == SS_OK)
            status = ss_block_key_init(&profile->header_decrypt, SS_BLOCK_DECRYPT, profile->key,
                                       key_len);
    }
done:
    ss_wipe(keys, sizeof keys);
    return status;
}

static void free_profile(struct ss_profile *profile)
{
    if (profile->users != NULL) {
        ss_users_release(profile->users->users);
        (void)pthread_mutex_destroy(&profile->users->lock);
        free(profile->users);
    }
    if (profile->identities != NULL)
        ss_wipe(profile->identities, profile->identity_count * sizeof profile->identities[0]);
    free(profile->identities);
    ss_wipe(profile, sizeof *profile);
    free(profile);
}

enum ss_status ss_profile_new(struct ss_profile **out, const struct ss_profile_options *options)
{
    const struct ss_method *method = options->method;
    const struct ss_aead *aead = options->aead;
    const struct ss_keystream *keystream = NULL;
    struct ss_profile *profile;
    enum ss_status status;

    *out = NULL;
    if (method == NULL)
        return SS_ERR_ARGUMENT;
    status = choose_cipher(method, &aead, &keystream);
    if (status != SS_OK)
        return status;

    profile = calloc(1, sizeof *profile);
    if (profile == NULL)
        return SS_ERR_MEMORY;
    atomic_init(&profile->holders, 1);
    profile->method = method;
    profile->aead = aead;
    profile->packet_aead = packet_aead_of(method, aead);
    profile->keystream = keystream;
    if (keystream != NULL)
        profile->named.provider_name = keystream->provider_name;
    profile->stream = families[method->family].stream;
    profile->packet = families[method->family].packet;
    if (method->family == SS_METHODS_2022 && !method->has_identities)
        profile->packet = &ss_packet_2022_chacha;
    profile->salts = options->salts;
    profile->packet_salts = options->packet_salts != NULL ? options->packet_salts : options->salts;
    profile->salt_pool = options->salt_pool;
    profile->first_read_may_be_short = options->first_read_may_be_short;
    profile->first_chunk_len =
        options->first_chunk_len != 0 && options->first_chunk_len <= CHUNK_LEN_MAX
            ? options->first_chunk_len
            : FIRST_CHUNK_LEN;
    status = method->family == SS_METHODS_2022 ? take_keys_2022(profile, options)
                                               : take_password(profile, options);
    if (status != SS_OK) {
        free_profile(profile);
        return status;
    }
    *out = profile;
    return SS_OK;
}

/* Holding does not change what a profile says. */
static atomic_uint *holders_of(const struct ss_profile *profile)
{
    return &((struct ss_profile *)(uintptr_t)profile)->holders;
}

void ss_profile_hold(const struct ss_profile *profile)
{
    atomic_fetch_add_explicit(holders_of(profile), 1, memory_order_relaxed);
}

void ss_profile_release(const struct ss_profile *profile)
{
    if (profile != NULL &&
        atomic_fetch_sub_explicit(holders_of(profile), 1, memory_order_acq_rel) == 1)
        free_profile((struct ss_profile *)(uintptr_t)profile);
}

static bool identities_are_same(const struct ss_profile *one, const struct ss_profile *other)
{
    if (one->identity_count != other->identity_count)
        return false;
    for (size_t i = 0; i < one->identity_count; i++)
        if (!ss_equal_constant_time(one->identities[i].key, other->identities[i].key,
                                    one->method->key_len))
            return false;
    return true;
}

bool ss_profile_is_same(const struct ss_profile *one, const struct ss_profile *other)
{
    return one->method == other->method && one->aead == other->aead &&
           one->packet_aead == other->packet_aead && one->keystream == other->keystream &&
           one->salts == other->salts && one->packet_salts == other->packet_salts &&
           one->salt_pool == other->salt_pool &&
           one->first_read_may_be_short == other->first_read_may_be_short &&
           one->first_chunk_len == other->first_chunk_len &&
           (one->users == NULL) == (other->users == NULL) &&
           ss_equal_constant_time(one->key, other->key, sizeof one->key) &&
           identities_are_same(one, other);
}

const struct ss_method *ss_profile_method(const struct ss_profile *profile)
{
    return profile->method;
}

const struct ss_aead *ss_profile_aead(const struct ss_profile *profile)
{
    return profile->aead != NULL ? profile->aead : &profile->named;
}

size_t ss_profile_identity_count(const struct ss_profile *profile)
{
    return profile->identity_count;
}

bool ss_profile_is_its_key(const struct ss_profile *profile, const struct ss_user *user)
{
    return user->next == NULL && ss_equal_constant_time(ss_user_keys_of(user)->key, profile->key,
                                                        profile->method->key_len);
}

void ss_profile_set_users(struct ss_profile *profile, struct ss_users *users)
{
    struct ss_users_slot *slot = profile->users;
    struct ss_users *before;

    assert(slot != NULL);
    ss_users_hold(users);
    (void)pthread_mutex_lock(&slot->lock);
    before = slot->users;
    slot->users = users;
    (void)pthread_mutex_unlock(&slot->lock);
    atomic_fetch_add_explicit(&slot->version, 1, memory_order_release);
    ss_users_release(before);
}

struct ss_users *ss_profile_hold_users(const struct ss_profile *profile)
{
    struct ss_users_slot *slot = profile->users;
    struct ss_users *users;

    if (slot == NULL)
        return NULL;
    (void)pthread_mutex_lock(&slot->lock);
    users = slot->users;
    ss_users_hold(users);
    (void)pthread_mutex_unlock(&slot->lock);
    return users;
}
