/* What streams and datagrams of the AEAD methods of 2017 share: salts and their subkeys (SIP004).
 */
#include "codec/codec_internal.h"
#include "crypto/kdf.h"
#include "crypto/random.h"
#include "crypto/secret.h"

enum ss_status ss_key_sealing_2017(struct ss_contexts *contexts, const struct ss_profile *profile,
                                   struct ss_salt_memory *salts, uint8_t *salt)
{
    uint8_t subkey[SS_KEY_MAX];
    enum ss_status status;

    ss_random_bytes(salt, profile->method->salt_len);
    /* Remembered too, so that nobody can send our own output back to us. */
    if (salts != NULL)
        (void)ss_salt_memory_store(salts, salt, profile->method->salt_len);
    ss_kdf_subkey_2017(subkey, profile->key, salt, profile->method->key_len);
    status = ss_contexts_key_sealing(contexts, subkey);
    ss_wipe(subkey, sizeof subkey);
    return status;
}

enum ss_status ss_key_opening_2017(struct ss_contexts *contexts, const struct ss_profile *profile,
                                   struct ss_salt_memory *salts, const uint8_t *salt)
{
    uint8_t subkey[SS_KEY_MAX];
    enum ss_status status;

    if (salts != NULL && ss_salt_memory_contains(salts, salt, profile->method->salt_len))
        return SS_ERR_REPLAY;
    ss_kdf_subkey_2017(subkey, profile->key, salt, profile->method->key_len);
    status = ss_contexts_key_opening(contexts, subkey);
    ss_wipe(subkey, sizeof subkey);
    return status;
}
