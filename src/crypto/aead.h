/*
 * Authenticated encryption: one interface, four libraries, and our own code for what none of them
 * has.
 *
 * A provider keeps a key context in memory that the caller gives (part of a session's slot), so
 * that setting a new key allocates nothing. No associated data: Shadowsocks uses none. The nonce is
 * as long as the algorithm's, the tag is 16 bytes and follows the text.
 */
#ifndef SS_CRYPTO_AEAD_H
#define SS_CRYPTO_AEAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum ss_aead_algorithm {
    SS_AEAD_AES_128_GCM,
    SS_AEAD_AES_192_GCM,
    SS_AEAD_AES_256_GCM,
    SS_AEAD_CHACHA20_POLY1305,  /* RFC 8439 */
    SS_AEAD_XCHACHA20_POLY1305, /* 24-byte nonce */
    SS_AEAD_CHACHA8_POLY1305,   /* the same two with 8 rounds */
    SS_AEAD_XCHACHA8_POLY1305,
    SS_AEAD_ALGORITHM_COUNT
};

/* In the usual order of preference. */
enum ss_aead_provider {
    SS_AEAD_IPSECMB,
    SS_AEAD_OPENSSL,
    SS_AEAD_SODIUM,
    SS_AEAD_MBEDTLS,
    SS_AEAD_OWN,
    SS_AEAD_PROVIDER_COUNT
};

#define SS_AEAD_TAG_LEN       16
#define SS_AEAD_NONCE_MAX     24
#define SS_AEAD_KEY_MAX       32
#define SS_AEAD_CONTEXT_ALIGN 64
#define SS_AEAD_CONTEXT_MAX   1088 /* bytes of the largest context */

/* One algorithm by one provider. */
struct ss_aead {
    const char *provider_name; /* "ipsec-mb", "openssl", "libsodium", "mbedtls", "own code" */
    enum ss_aead_algorithm algorithm;
    enum ss_aead_provider provider;
    size_t key_len, nonce_len;
    size_t context_size; /* a multiple of SS_AEAD_CONTEXT_ALIGN */

    /* Readies zeroed memory. Where the provider needs memory of its own, it is taken here. */
    enum ss_status (*init)(void *context);
    /* Wipes the key and gives back what init took; the memory is zero again. */
    void (*clear)(void *context);
    /* Wipes the key and keeps the provider's memory, so that the next set_key takes none. */
    void (*forget)(void *context);
    enum ss_status (*set_key)(void *context, const uint8_t *key);
    /* Writes len + 16 bytes to `out`, which is `plain` or does not overlap it. */
    enum ss_status (*seal)(void *context, const uint8_t *nonce, const uint8_t *plain, size_t len,
                           uint8_t *out);
    /*
     * Opens sealed_len >= 16 bytes into sealed_len - 16 bytes at `out`, which is `sealed` or does
     * not overlap it. SS_ERR_AUTH when the tag does not verify; `out` is then unusable.
     */
    enum ss_status (*open)(void *context, const uint8_t *nonce, const uint8_t *sealed,
                           size_t sealed_len, uint8_t *out);
};

/*
 * The best provider of an algorithm on this machine, or NULL when there is none. The first call for
 * a provider initialises it: before threads exist, and only where a configured method needs it.
 */
const struct ss_aead *ss_aead_best(enum ss_aead_algorithm algorithm);

/* A certain provider, or NULL when it is not built in, the processor lacks what it needs, or it
 * does not offer the algorithm. */
const struct ss_aead *ss_aead_find(enum ss_aead_algorithm algorithm,
                                   enum ss_aead_provider provider);

#endif
