/* Keys of the 2022 methods as they are configured. */
#include "codec/keys.h"

#include <string.h>

#include "base/base64.h"

static enum ss_status fail(struct ss_key_fault *fault, enum ss_key_fault_kind kind, size_t needed,
                           size_t given, size_t position)
{
    *fault =
        (struct ss_key_fault){.kind = kind, .needed = needed, .given = given, .position = position};
    return SS_ERR_KEY;
}

static size_t count_keys(struct ss_view text)
{
    size_t count = 1;

    for (size_t i = 0; i < text.len; i++)
        count += text.ptr[i] == ':';
    return count;
}

enum ss_status ss_keys_parse(uint8_t keys[SS_CHAIN_MAX][SS_KEY_MAX], size_t *count,
                             const struct ss_method *method, struct ss_view text,
                             struct ss_key_fault *fault)
{
    size_t wanted = count_keys(text);
    const char *at = (const char *)text.ptr;
    const char *end = text.len != 0 ? at + text.len : at;

    *count = 0;
    if (wanted > 1 && !method->has_identities)
        return fail(fault, SS_KEY_HAS_NO_CHAINS, 1, wanted, 0);
    if (wanted > SS_CHAIN_MAX)
        return fail(fault, SS_KEY_CHAIN_TOO_LONG, SS_CHAIN_MAX, wanted, 0);
    for (size_t i = 0; i < wanted; i++) {
        size_t left = (size_t)(end - at);
        const char *colon = left != 0 ? memchr(at, ':', left) : NULL;
        size_t text_len = colon != NULL ? (size_t)(colon - at) : left;
        size_t len = 0;
        enum ss_status status =
            ss_base64_decode(keys[i], SS_KEY_MAX, &len, at, text_len, SS_BASE64_EITHER);

        if (status != SS_OK && status != SS_NEED_ROOM)
            return fail(fault, SS_KEY_NOT_BASE64, method->key_len, 0, i);
        if (len != method->key_len)
            return fail(fault, SS_KEY_HAS_OTHER_LENGTH, method->key_len, len, i);
        at += text_len + (colon != NULL);
    }
    *count = wanted;
    return SS_OK;
}
