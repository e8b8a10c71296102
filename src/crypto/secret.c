/* Care for secrets, by libsodium. */
#include "crypto/secret.h"

#include <sodium.h>

void ss_wipe(void *bytes, size_t len)
{
    sodium_memzero(bytes, len);
}

bool ss_equal_constant_time(const void *a, const void *b, size_t len)
{
    if (len == 16)
        return crypto_verify_16(a, b) == 0;
    return sodium_memcmp(a, b, len) == 0;
}
