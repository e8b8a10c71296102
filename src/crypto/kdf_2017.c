/* Subkeys of salts under the methods of 2017 (SIP004): by the processor's instructions for SHA-1
 * where it has them, else as any HKDF. */
#include "crypto/kdf.h"

#include "crypto/kdf_2017_internal.h"

static void by_hkdf(uint8_t *subkey, const uint8_t *key, const uint8_t *salt, size_t key_len)
{
    static const uint8_t info[] = {'s', 's', '-', 's', 'u', 'b', 'k', 'e', 'y'};

    ss_kdf_hkdf_sha1(subkey, key_len, (struct ss_view){key, key_len},
                     (struct ss_view){salt, key_len}, (struct ss_view){info, sizeof info});
}

void ss_kdf_subkey_2017(uint8_t *subkey, const uint8_t *key, const uint8_t *salt, size_t key_len)
{
    if (!ss_kdf_subkeys_2017_x86(&subkey, key, &salt, 1, key_len))
        by_hkdf(subkey, key, salt, key_len);
}

void ss_kdf_two_subkeys_2017(uint8_t *const subkeys[2], const uint8_t *key,
                             const uint8_t *const salts[2], size_t key_len)
{
    if (ss_kdf_subkeys_2017_x86(subkeys, key, salts, 2, key_len))
        return;
    by_hkdf(subkeys[0], key, salts[0], key_len);
    by_hkdf(subkeys[1], key, salts[1], key_len);
}
