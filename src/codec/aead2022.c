/* What streams and datagrams of the 2022 edition share: subkeys and time stamps (SIP022). */
#include "codec/codec_internal.h"
#include "codec/stamps.h"
#include "crypto/kdf.h"
#include "crypto/secret.h"

enum ss_status ss_key_sealing_2022(struct ss_contexts *contexts, struct ss_view key,
                                   struct ss_view salt)
{
    uint8_t subkey[SS_KEY_MAX];
    enum ss_status status;

    ss_kdf_session_subkey(subkey, key, salt);
    status = ss_contexts_key_sealing(contexts, subkey);
    ss_wipe(subkey, sizeof subkey);
    return status;
}

enum ss_status ss_key_opening_2022(struct ss_contexts *contexts, struct ss_view key,
                                   struct ss_view salt)
{
    uint8_t subkey[SS_KEY_MAX];
    enum ss_status status;

    ss_kdf_session_subkey(subkey, key, salt);
    status = ss_contexts_key_opening(contexts, subkey);
    ss_wipe(subkey, sizeof subkey);
    return status;
}

enum ss_status ss_check_stamp(uint64_t stamp, int64_t now_s, int64_t *difference)
{
    if (now_s < 0)
        now_s = 0; /* then it can't run over below */
    *difference = stamp > INT64_MAX ? INT64_MAX : (int64_t)stamp - now_s;
    return *difference >= -SS_STAMP_TOLERANCE_S && *difference <= SS_STAMP_TOLERANCE_S
               ? SS_OK
               : SS_ERR_STALE;
}
