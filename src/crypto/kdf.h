/* Keys from passwords, and subkeys from keys and salts. Nothing here allocates. */
#ifndef SS_CRYPTO_KDF_H
#define SS_CRYPTO_KDF_H

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

/* OpenSSL's EVP_BytesToKey with MD5, no salt, one round: the master key of the password methods. */
void ss_kdf_password(uint8_t *key, size_t key_len, const char *password, size_t password_len);

/* HKDF-SHA1 (RFC 5869); `len` at most 255 * 20. SIP004: info "ss-subkey". */
void ss_kdf_hkdf_sha1(uint8_t *out, size_t len, struct ss_view key, struct ss_view salt,
                      struct ss_view info);

/* The same for many salts under one key with info "ss-subkey", SIP004. */
void ss_kdf_subkey_2017(uint8_t *subkey, const uint8_t *key, const uint8_t *salt, size_t key_len);

/* Two at once, which may take less time than one and then the other. */
void ss_kdf_two_subkeys_2017(uint8_t *const subkeys[2], const uint8_t *key,
                             const uint8_t *const salts[2], size_t key_len);

/*
 * SIP022, 2.2: a subkey of a stream (the salt is as long as the key) or of a datagram session (the
 * salt is its ID, 8 bytes). SIP023: the key of an identity header.
 */
void ss_kdf_session_subkey(uint8_t *subkey, struct ss_view key, struct ss_view salt);
void ss_kdf_identity_subkey(uint8_t *subkey, struct ss_view key, struct ss_view salt);

/* What an identity header says of the next key (SIP023). */
#define SS_IDENTITY_LEN 16
void ss_kdf_identity(uint8_t out[SS_IDENTITY_LEN], struct ss_view key);

/* A keyed 64-bit fingerprint (SipHash-2-4). */
uint64_t ss_fingerprint(const uint8_t seed[16], const void *bytes, size_t len);

#endif
