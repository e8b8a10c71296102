/* The table of methods. */
#include "codec/method.h"

#include <string.h>
#include <strings.h>

static const struct ss_method methods[] = {
    {"aes-128-gcm", "AEAD_AES_128_GCM", SS_METHODS_2017, 16, 16, SS_AEAD_AES_128_GCM},
    {"aes-192-gcm", "AEAD_AES_192_GCM", SS_METHODS_2017, 24, 24, SS_AEAD_AES_192_GCM},
    {"aes-256-gcm", "AEAD_AES_256_GCM", SS_METHODS_2017, 32, 32, SS_AEAD_AES_256_GCM},
    {"chacha20-ietf-poly1305", "AEAD_CHACHA20_POLY1305", SS_METHODS_2017, 32, 32,
     SS_AEAD_CHACHA20_POLY1305},
    {"xchacha20-ietf-poly1305", NULL, SS_METHODS_2017, 32, 32, SS_AEAD_XCHACHA20_POLY1305},
};

#define METHOD_COUNT (sizeof methods / sizeof methods[0])

const struct ss_method *ss_method_find(const char *name)
{
    for (size_t i = 0; i < METHOD_COUNT; i++)
        if (strcmp(methods[i].name, name) == 0 ||
            (methods[i].alias != NULL && strcasecmp(methods[i].alias, name) == 0))
            return &methods[i];
    return NULL;
}

const struct ss_method *ss_method_all(size_t *count)
{
    *count = METHOD_COUNT;
    return methods;
}
