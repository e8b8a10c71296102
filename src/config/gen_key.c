/* Fresh keys and passwords, for --gen-key. */
#include "config/config_internal.h"

#include <string.h>

#include "base/base64.h"
#include "base/log.h"
#include "codec/method.h"
#include "crypto/random.h"
#include "crypto/secret.h"

/* Of a password that is hashed into a key: more than anybody can guess, and a whole number of
 * base64 groups. */
#define PASSWORD_LEN 24

bool ss_method_needs_key(const char *name)
{
    const struct ss_method *method = name != NULL ? ss_method_find(name) : NULL;

    return method == NULL || method->family != SS_METHODS_PLAIN;
}

bool ss_key_print(const char *name, FILE *out)
{
    const struct ss_method *method = ss_method_find(name);
    uint8_t key[SS_KEY_MAX];
    char text[SS_BASE64_LEN(SS_KEY_MAX) + 1];
    size_t len = PASSWORD_LEN;
    bool written;

    if (method == NULL) {
        ss_log_error("invalid cipher name: %s", name);
        ss_log_error("--gen-key wants one of the methods that -h lists");
        return false;
    }
    if (!ss_method_needs_key(name)) {
        ss_log_error("%s encrypts nothing and has no key", name);
        return false;
    }
    if (method->family == SS_METHODS_2022)
        len = method->key_len;
    ss_random_bytes(key, len);
    ss_base64_encode(text, key, len, SS_BASE64_STANDARD);
    written = fprintf(out, "%s\n", text) > 0 && fflush(out) == 0;
    ss_wipe(key, sizeof key);
    ss_wipe(text, sizeof text);
    return written;
}
