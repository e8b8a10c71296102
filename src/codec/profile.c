/* A method with its key. */
#include "codec/profile.h"

#include <stdlib.h>
#include <string.h>

#include "codec/codec_internal.h"
#include "crypto/kdf.h"
#include "crypto/secret.h"

/* The families, where they are built. */
static const struct {
    const struct ss_codec_ops *stream;
    const struct ss_packet_ops *packet;
} families[] = {
    [SS_METHODS_2017] = {&ss_codec_2017, &ss_packet_2017},
    [SS_METHODS_2022] = {NULL, NULL},
    [SS_METHODS_STREAM] = {NULL, NULL},
    [SS_METHODS_PLAIN] = {NULL, NULL},
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
    if (aead == NULL || families[method->family].stream == NULL)
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
    profile->stream = families[method->family].stream;
    profile->packet = families[method->family].packet;
    profile->salts = options->salts;
    profile->packet_salts = options->packet_salts != NULL ? options->packet_salts : options->salts;
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
