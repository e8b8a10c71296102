/* Keys from passwords, subkeys from salts, fingerprints: MD5 and SHA-1 are Mbed TLS's, SipHash
 * libsodium's. */
#include "crypto/kdf.h"

#include <assert.h>
#include <string.h>

#include <mbedtls/md5.h>
#include <mbedtls/sha1.h>
#include <mbedtls/version.h>
#include <sodium.h>

#include "base/bytes.h"
#include "crypto/secret.h"

/* Mbed TLS 3 gave the functions that return a status the plain names. They fail only where a
 * hardware engine stands behind them. */
#if MBEDTLS_VERSION_MAJOR < 3
#define md5_starts  mbedtls_md5_starts_ret
#define md5_update  mbedtls_md5_update_ret
#define md5_finish  mbedtls_md5_finish_ret
#define sha1_starts mbedtls_sha1_starts_ret
#define sha1_update mbedtls_sha1_update_ret
#define sha1_finish mbedtls_sha1_finish_ret
#else
#define sha1_starts mbedtls_sha1_starts
#define sha1_update mbedtls_sha1_update
#define sha1_finish mbedtls_sha1_finish
#define md5_starts  mbedtls_md5_starts
#define md5_update  mbedtls_md5_update
#define md5_finish  mbedtls_md5_finish
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

#define SHA1_LEN   20
#define SHA1_BLOCK 64

/* HMAC-SHA1 (RFC 2104): both hashes with the key's block already in them, to be cloned. Contexts of
 * Mbed TLS lie on the stack and hold no memory of their own. */
struct hmac {
    mbedtls_sha1_context inner, outer;
};

static void hmac_init(struct hmac *hmac)
{
    mbedtls_sha1_init(&hmac->inner);
    mbedtls_sha1_init(&hmac->outer);
}

/* Wipes. */
static void hmac_clear(struct hmac *hmac)
{
    mbedtls_sha1_free(&hmac->inner);
    mbedtls_sha1_free(&hmac->outer);
}

static void hmac_set_key(struct hmac *hmac, const uint8_t *key, size_t key_len)
{
    uint8_t block[SHA1_BLOCK] = {0};

    if (key_len > sizeof block) {
        (void)sha1_starts(&hmac->inner);
        (void)sha1_update(&hmac->inner, key, key_len);
        (void)sha1_finish(&hmac->inner, block);
    } else if (key_len != 0) {
        memcpy(block, key, key_len);
    }

    for (size_t i = 0; i < sizeof block; i++)
        block[i] ^= 0x36;
    (void)sha1_starts(&hmac->inner);
    (void)sha1_update(&hmac->inner, block, sizeof block);

    for (size_t i = 0; i < sizeof block; i++)
        block[i] ^= 0x36 ^ 0x5c;
    (void)sha1_starts(&hmac->outer);
    (void)sha1_update(&hmac->outer, block, sizeof block);
    ss_wipe(block, sizeof block);
}

/* The code of up to three parts in a row. */
static void hmac_of(uint8_t code[SHA1_LEN], const struct hmac *hmac, struct ss_view a,
                    struct ss_view b, struct ss_view c)
{
    mbedtls_sha1_context hash;

    mbedtls_sha1_init(&hash);
    mbedtls_sha1_clone(&hash, &hmac->inner);
    (void)sha1_update(&hash, a.ptr, a.len);
    (void)sha1_update(&hash, b.ptr, b.len);
    (void)sha1_update(&hash, c.ptr, c.len);
    (void)sha1_finish(&hash, code);
    mbedtls_sha1_clone(&hash, &hmac->outer);
    (void)sha1_update(&hash, code, SHA1_LEN);
    (void)sha1_finish(&hash, code);
    mbedtls_sha1_free(&hash);
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

    hmac_init(&hmac);
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
    hmac_clear(&hmac);
    ss_wipe(code, sizeof code);
}

void ss_kdf_subkey_2017(uint8_t *subkey, const uint8_t *key, const uint8_t *salt, size_t key_len)
{
    static const uint8_t info[] = {'s', 's', '-', 's', 'u', 'b', 'k', 'e', 'y'};

    ss_kdf_hkdf_sha1(subkey, key_len, (struct ss_view){key, key_len},
                     (struct ss_view){salt, key_len}, (struct ss_view){info, sizeof info});
}

uint64_t ss_fingerprint(const uint8_t seed[16], const void *bytes, size_t len)
{
    uint8_t print[crypto_shorthash_BYTES];

    crypto_shorthash(print, bytes, len, seed);
    return ss_load_u64le(print);
}
