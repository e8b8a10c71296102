/* Subkeys of the 2022 edition, by BLAKE3. */
#include "crypto/kdf.h"

#include <assert.h>
#include <string.h>

#include "crypto/blake3.h"
#include "crypto/secret.h"

#define MATERIAL_MAX 64

/* "shadowsocks 2022 session subkey" and "shadowsocks 2022 identity subkey", hashed once and for
 * all: what is left for each subkey is one compression. */
static const struct ss_blake3_context session = {{0x31ae821a, 0xa375eea4, 0xea62276a, 0x218e45be,
                                                  0x86bb309d, 0xed8ae6db, 0x9af9739c, 0x5f626ac7}};
static const struct ss_blake3_context identity = {{0xacfe3e97, 0xf82d4d79, 0xc5443716, 0x5952c0c8,
                                                   0xdab8c75c, 0xba33e200, 0x7b7ef803, 0xb5a6ad68}};

static void derive(uint8_t *subkey, const struct ss_blake3_context *context, struct ss_view key,
                   struct ss_view salt)
{
    uint8_t material[MATERIAL_MAX];

    assert(key.len + salt.len <= sizeof material);
    memcpy(material, key.ptr, key.len);
    memcpy(material + key.len, salt.ptr, salt.len);
    ss_blake3_derive(subkey, key.len, context, material, key.len + salt.len);
    ss_wipe(material, sizeof material);
}

void ss_kdf_session_subkey(uint8_t *subkey, struct ss_view key, struct ss_view salt)
{
    derive(subkey, &session, key, salt);
}

void ss_kdf_identity_subkey(uint8_t *subkey, struct ss_view key, struct ss_view salt)
{
    derive(subkey, &identity, key, salt);
}

void ss_kdf_identity(uint8_t out[SS_IDENTITY_LEN], struct ss_view key)
{
    ss_blake3(out, SS_IDENTITY_LEN, key.ptr, key.len);
}
