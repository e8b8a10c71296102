/* Which library has a stream cipher, and the one that is none. */
#include "crypto/keystream.h"

#include <string.h>

#include "crypto/keystream_internal.h"

static enum ss_status start_none(void *context, enum ss_keystream_use use, const uint8_t *key,
                                 const uint8_t *iv)
{
    (void)context;
    (void)use;
    (void)key;
    (void)iv;
    return SS_OK;
}

static enum ss_status apply_none(void *context, const uint8_t *in, size_t len, uint8_t *out)
{
    (void)context;
    if (in != out && len != 0)
        memcpy(out, in, len);
    return SS_OK;
}

static void wipe_none(void *context)
{
    (void)context;
}

static const struct ss_keystream none = {
    .provider_name = "none",
    .algorithm = SS_KEYSTREAM_NONE,
    .start = start_none,
    .apply = apply_none,
    .wipe = wipe_none,
};

const struct ss_keystream *ss_keystream_find(enum ss_keystream_algorithm algorithm)
{
    if (algorithm == SS_KEYSTREAM_NONE)
        return &none;
#if SS_HAVE_STREAM
    if ((unsigned)algorithm < SS_KEYSTREAM_ALGORITHM_COUNT) {
        const struct ss_keystream *keystream = ss_keystream_mbedtls_find(algorithm);

        return keystream != NULL ? keystream : ss_keystream_sodium_find(algorithm);
    }
#endif
    return NULL;
}
