/* Keys from passwords, subkeys from salts, fingerprints: MD5 is Mbed TLS's, SipHash libsodium's. */
#include "crypto/kdf.h"

#include <assert.h>
#include <string.h>

#include <mbedtls/md5.h>
#include <mbedtls/version.h>
#include <sodium.h>

#include "base/bytes.h"
#include "crypto/secret.h"
#include "crypto/sha1_internal.h"

/* Mbed TLS 3 gave the functions that return a status the plain names. They fail only where a
 * hardware engine stands behind them. */
#if MBEDTLS_VERSION_MAJOR < 3
#define md5_starts mbedtls_md5_starts_ret
#define md5_update mbedtls_md5_update_ret
#define md5_finish mbedtls_md5_finish_ret
#else
#define md5_starts mbedtls_md5_starts
#define md5_update mbedtls_md5_update
#define md5_finish mbedtls_md5_finish
#endif

#define MD5_LEN 16

void ss_kdf_password(uint8_t *key, size_t key_len, const char *password, size_t password_len)
{
    mbedtls_md5_context md5;
    uint8_t digest[MD5_LEN];
    size_t have = 0;

    while (have < key_len) {
        size_t take = key_len - have < MD5_LEN ? key_len - have : MD5_LEN;

        mbedtls_md5_init(&md5);
        (void)md5_starts(&md5);
        if (have != 0)
            (void)md5_update(&md5, digest, sizeof digest);
        (void)md5_update(&md5, (const uint8_t *)password, password_len);
        (void)md5_finish(&md5, digest);
        mbedtls_md5_free(&md5);
        memcpy(key + have, digest, take);
        have += take;
    }
    ss_wipe(digest, sizeof digest);
}

/* HMAC-SHA1 (RFC 2104): both hashes with the key's block already in them, to be copied. */
struct hmac {
    ss_sha1 inner, outer;
};

static void hmac_set_key(struct hmac *hmac, const uint8_t *key, size_t key_len)
{
    uint8_t block[SHA1_BLOCK] = {0};

    if (key_len > sizeof block) {
        sha1_start(&hmac->inner);
        sha1_add(&hmac->inner, key, key_len);
        sha1_end(&hmac->inner, block);
    } else if (key_len != 0) {
        memcpy(block, key, key_len);
    }

    for (size_t i = 0; i < sizeof block; i++)
        block[i] ^= 0x36;
    sha1_start(&hmac->inner);
    sha1_add(&hmac->inner, block, sizeof block);

    for (size_t i = 0; i < sizeof block; i++)
        block[i] ^= 0x36 ^ 0x5c;
    sha1_start(&hmac->outer);
    sha1_add(&hmac->outer, block, sizeof block);
    ss_wipe(block, sizeof block);
}

/* The code of up to three parts in a row. */
static void hmac_of(uint8_t code[SHA1_LEN], const struct hmac *hmac, struct ss_view a,
                    struct ss_view b, struct ss_view c)
{
    ss_sha1 hash = hmac->inner;

    sha1_add(&hash, a.ptr, a.len);
    sha1_add(&hash, b.ptr, b.len);
    sha1_add(&hash, c.ptr, c.len);
    sha1_end(&hash, code);
    hash = hmac->outer;
    sha1_add(&hash, code, SHA1_LEN);
    sha1_end(&hash, code);
    ss_wipe(&hash, sizeof hash);
}

void ss_kdf_hkdf_sha1(uint8_t *out, size_t len, struct ss_view key, struct ss_view salt,
                      struct ss_view info)
{
    static const struct ss_view nothing = {NULL, 0};
    struct hmac hmac;
    uint8_t code[SHA1_LEN];
    uint8_t round = 0;
    size_t have = 0;

    assert(len <= 255 * SHA1_LEN);

    hmac_set_key(&hmac, salt.ptr, salt.len);
    hmac_of(code, &hmac, key, nothing, nothing);

    hmac_set_key(&hmac, code, sizeof code);
    while (have < len) {
        struct ss_view before = {code, round == 0 ? 0 : sizeof code};
        size_t take = len - have < sizeof code ? len - have : sizeof code;

        round++;
        hmac_of(code, &hmac, before, info, (struct ss_view){&round, 1});
        memcpy(out + have, code, take);
        have += take;
    }
    ss_wipe(&hmac, sizeof hmac);
    ss_wipe(code, sizeof code);
}

uint64_t ss_fingerprint(const uint8_t seed[16], const void *bytes, size_t len)
{
    uint8_t print[crypto_shorthash_BYTES];

    crypto_shorthash(print, bytes, len, seed);
    return ss_load_u64le(print);
}
