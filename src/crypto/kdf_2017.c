/* The subkey of a salt under the methods of 2017 (SIP004): by the processor's instructions for
 * SHA-1 where it has them, else as any HKDF. */
#include "crypto/kdf_2017_internal.h"

#include "crypto/kdf.h"

void ss_kdf_subkey_2017(uint8_t *subkey, const uint8_t *key, const uint8_t *salt, size_t key_len)
{
    static const uint8_t info[] = {'s', 's', '-', 's', 'u', 'b', 'k', 'e', 'y'};

    if (ss_kdf_subkey_2017_x86(subkey, key, salt, key_len))
        return;
    ss_kdf_hkdf_sha1(subkey, key_len, (struct ss_view){key, key_len},
                     (struct ss_view){salt, key_len}, (struct ss_view){info, sizeof info});
}
