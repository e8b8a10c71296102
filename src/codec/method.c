/* The table of methods. */
#include "codec/method.h"

#include <string.h>
#include <strings.h>

#define AEAD_2017(text, other, len, cipher)                                                       \
    {                                                                                             \
        .name = text, .alias = other, .family = SS_METHODS_2017, .key_len = len, .salt_len = len, \
        .aead = SS_AEAD_##cipher, .packet_aead = SS_AEAD_##cipher,                                \
    }

#define AEAD_2022(text, len, cipher, packet, identities)                                         \
    {                                                                                            \
        .name = "2022-blake3-" text, .family = SS_METHODS_2022, .key_len = len, .salt_len = len, \
        .aead = SS_AEAD_##cipher, .packet_aead = SS_AEAD_##packet, .has_identities = identities, \
    }

static const struct ss_method methods[] = {
    AEAD_2017("aes-128-gcm", "AEAD_AES_128_GCM", 16, AES_128_GCM),
    AEAD_2017("aes-192-gcm", "AEAD_AES_192_GCM", 24, AES_192_GCM),
    AEAD_2017("aes-256-gcm", "AEAD_AES_256_GCM", 32, AES_256_GCM),
    AEAD_2017("chacha20-ietf-poly1305", "AEAD_CHACHA20_POLY1305", 32, CHACHA20_POLY1305),
    AEAD_2017("xchacha20-ietf-poly1305", NULL, 32, XCHACHA20_POLY1305),
    AEAD_2022("aes-128-gcm", 16, AES_128_GCM, AES_128_GCM, true),
    AEAD_2022("aes-256-gcm", 32, AES_256_GCM, AES_256_GCM, true),
    AEAD_2022("chacha20-poly1305", 32, CHACHA20_POLY1305, XCHACHA20_POLY1305, false),
    AEAD_2022("chacha8-poly1305", 32, CHACHA8_POLY1305, XCHACHA8_POLY1305, false),
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
