/* A method with its key. */
#include "codec/profile.h"

#include <stdlib.h>
#include <string.h>

#include "codec/codec_internal.h"
#include "crypto/kdf.h"
#include "crypto/secret.h"

/* The families that are built. */
static const struct ss_codec_ops *const streams[] = {
    [SS_METHODS_2017] = &ss_codec_2017,
    [SS_METHODS_2022] = NULL,
    [SS_METHODS_STREAM] = NULL,
    [SS_METHODS_PLAIN] = NULL,
};

enum ss_status ss_profile_new(struct ss_profile **out, const struct ss_profile_options *options)
{
    const struct ss_method *method = options->method;
    const struct ss_aead *aead = options->aead;
    struct ss_profile *profile;

    *out = NULL;
    if (method == NULL)
        return SS_ERR_ARGUMENT;
    if (aead == NULL)
        aead = ss_aead_best(method->aead);
    if (aead == NULL || streams[method->family] == NULL)
        return SS_ERR_UNSUPPORTED;
    if (aead->algorithm != method->aead)
        return SS_ERR_ARGUMENT;

    if (options->key.ptr != NULL ? options->key.len < method->key_len : options->password.len == 0)
        return SS_ERR_KEY;

    profile = calloc(1, sizeof *profile);
    if (profile == NULL)
        return SS_ERR_MEMORY;
    profile->method = method;
    profile->aead = aead;
    profile->stream = streams[method->family];
    profile->salts = options->salts;
    if (options->key.ptr != NULL)
        memcpy(profile->key, options->key.ptr, method->key_len);
    else
        ss_kdf_password(profile->key, method->key_len, (const char *)options->password.ptr,
                        options->password.len);
    *out = profile;
    return SS_OK;
}

void ss_profile_free(struct ss_profile *profile)
{
    if (profile == NULL)
        return;
    ss_wipe(profile, sizeof *profile);
    free(profile);
}

const struct ss_method *ss_profile_method(const struct ss_profile *profile)
{
    return profile->method;
}

const struct ss_aead *ss_profile_aead(const struct ss_profile *profile)
{
    return profile->aead;
}
