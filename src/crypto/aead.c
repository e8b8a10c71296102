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
    [SS_AEAD_SODIUM] = ss_aead_sodium_find,   [SS_AEAD_MBEDTLS] = ss_aead_mbedtls_find,
    [SS_AEAD_OWN] = ss_aead_own_find,
};

const struct ss_aead *ss_aead_find(enum ss_aead_algorithm algorithm, enum ss_aead_provider provider)
{
    if ((unsigned)algorithm >= SS_AEAD_ALGORITHM_COUNT ||
        (unsigned)provider >= SS_AEAD_PROVIDER_COUNT || providers[provider] == NULL)
        return NULL;
    return providers[provider](algorithm);
}

/*
 * IPsec-MB is ahead in everything where it has AVX-512. With AVX2 alone it is level with OpenSSL in
 * AES-GCM, but in long messages of ChaCha20 OpenSSL is a third faster.
 */
static const enum ss_aead_provider *order_of(enum ss_aead_algorithm algorithm)
{
    static const enum ss_aead_provider usual[SS_AEAD_PROVIDER_COUNT] = {
        SS_AEAD_IPSECMB, SS_AEAD_OPENSSL, SS_AEAD_SODIUM, SS_AEAD_MBEDTLS, SS_AEAD_OWN};
#if SS_HAVE_IPSECMB
    static const enum ss_aead_provider narrow_chacha[SS_AEAD_PROVIDER_COUNT] = {
        SS_AEAD_OPENSSL, SS_AEAD_IPSECMB, SS_AEAD_SODIUM, SS_AEAD_MBEDTLS, SS_AEAD_OWN};

    if ((algorithm == SS_AEAD_CHACHA20_POLY1305 || algorithm == SS_AEAD_XCHACHA20_POLY1305) &&
        !ss_aead_ipsecmb_has_wide_chacha())
        return narrow_chacha;
#else
    (void)algorithm;
#endif
    return usual;
}

const struct ss_aead *ss_aead_best(enum ss_aead_algorithm algorithm)
{
    const enum ss_aead_provider *order = order_of(algorithm);

    /* One after the other, so that those behind the first that can serve are never initialised. */
    for (size_t i = 0; i < SS_AEAD_PROVIDER_COUNT; i++) {
        const struct ss_aead *aead = ss_aead_find(algorithm, order[i]);

        if (aead != NULL)
            return aead;
    }
    return NULL;
}
