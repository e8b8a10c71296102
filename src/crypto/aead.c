/* Which provider serves an algorithm on this machine. */
#include "crypto/aead.h"

#include <stddef.h>

#include "crypto/aead_internal.h"

static ss_aead_find_fn *const providers[SS_AEAD_PROVIDER_COUNT] = {
#if SS_HAVE_IPSECMB
    [SS_AEAD_IPSECMB] = ss_aead_ipsecmb_find,
#endif
#if SS_HAVE_OPENSSL
    [SS_AEAD_OPENSSL] = ss_aead_openssl_find,
#endif
    [SS_AEAD_SODIUM] = ss_aead_sodium_find,
    [SS_AEAD_MBEDTLS] = ss_aead_mbedtls_find,
};

const struct ss_aead *ss_aead_find(enum ss_aead_algorithm algorithm, enum ss_aead_provider provider)
{
    if ((unsigned)algorithm >= SS_AEAD_ALGORITHM_COUNT ||
        (unsigned)provider >= SS_AEAD_PROVIDER_COUNT || providers[provider] == NULL)
        return NULL;
    return providers[provider](algorithm);
}

const struct ss_aead *ss_aead_best(enum ss_aead_algorithm algorithm)
{
    /* Providers are asked one after the other, so that those behind the first that can serve are
     * never initialised. */
    for (unsigned provider = 0; provider < SS_AEAD_PROVIDER_COUNT; provider++) {
        const struct ss_aead *aead = ss_aead_find(algorithm, (enum ss_aead_provider)provider);

        if (aead != NULL)
            return aead;
    }
    return NULL;
}
