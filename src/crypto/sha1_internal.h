/*
 * SHA-1 for keyed uses (HMAC, RFC 2104; never for signatures): OpenSSL's where it is built in,
 * since that uses the processor's instructions for it, else Mbed TLS's. A hash lies in the caller's
 * memory, holds none of its own, and may be copied by assignment. For this folder alone.
 */
#ifndef SS_CRYPTO_SHA1_INTERNAL_H
#define SS_CRYPTO_SHA1_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#define SHA1_LEN   20
#define SHA1_BLOCK 64

#if SS_HAVE_OPENSSL

/* The plain functions are old, but they allocate nothing, and a hash in progress can be copied. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

typedef SHA_CTX ss_sha1;

static inline void sha1_start(ss_sha1 *hash)
{
    (void)SHA1_Init(hash);
}

static inline void sha1_add(ss_sha1 *hash, const void *bytes, size_t len)
{
    (void)SHA1_Update(hash, bytes, len);
}

static inline void sha1_end(ss_sha1 *hash, uint8_t digest[SHA1_LEN])
{
    (void)SHA1_Final(digest, hash);
}

#else

#include <mbedtls/sha1.h>
#include <mbedtls/version.h>

/* Mbed TLS 3 gave the functions that return a status the plain names. They fail only where a
 * hardware engine stands behind them. */
#if MBEDTLS_VERSION_MAJOR < 3
#define mbedtls_sha1_starts mbedtls_sha1_starts_ret
#define mbedtls_sha1_update mbedtls_sha1_update_ret
#define mbedtls_sha1_finish mbedtls_sha1_finish_ret
#endif

typedef mbedtls_sha1_context ss_sha1;

static inline void sha1_start(ss_sha1 *hash)
{
    mbedtls_sha1_init(hash);
    (void)mbedtls_sha1_starts(hash);
}

static inline void sha1_add(ss_sha1 *hash, const void *bytes, size_t len)
{
    (void)mbedtls_sha1_update(hash, bytes, len);
}

static inline void sha1_end(ss_sha1 *hash, uint8_t digest[SHA1_LEN])
{
    (void)mbedtls_sha1_finish(hash, digest);
}

#endif

#endif
