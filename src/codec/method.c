/* The table of methods. */
#include "codec/method.h"

#include <pthread.h>
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

#define STREAM(text, key, iv, cipher)                                              \
    {                                                                              \
        .name = text, .family = SS_METHODS_STREAM, .key_len = key, .salt_len = iv, \
        .aead = SS_AEAD_ALGORITHM_COUNT, .packet_aead = SS_AEAD_ALGORITHM_COUNT,   \
        .keystream = SS_KEYSTREAM_##cipher,                                        \
    }

static const struct ss_method known[] = {
    AEAD_2017("aes-128-gcm", "AEAD_AES_128_GCM", 16, AES_128_GCM),
    AEAD_2017("aes-192-gcm", "AEAD_AES_192_GCM", 24, AES_192_GCM),
    AEAD_2017("aes-256-gcm", "AEAD_AES_256_GCM", 32, AES_256_GCM),
    AEAD_2017("chacha20-ietf-poly1305", "AEAD_CHACHA20_POLY1305", 32, CHACHA20_POLY1305),
    AEAD_2017("xchacha20-ietf-poly1305", NULL, 32, XCHACHA20_POLY1305),
    AEAD_2022("aes-128-gcm", 16, AES_128_GCM, AES_128_GCM, true),
    AEAD_2022("aes-256-gcm", 32, AES_256_GCM, AES_256_GCM, true),
    AEAD_2022("chacha20-poly1305", 32, CHACHA20_POLY1305, XCHACHA20_POLY1305, false),
    AEAD_2022("chacha8-poly1305", 32, CHACHA8_POLY1305, XCHACHA8_POLY1305, false),
    STREAM("aes-128-cfb", 16, 16, AES_128_CFB),
    STREAM("aes-192-cfb", 24, 16, AES_192_CFB),
    STREAM("aes-256-cfb", 32, 16, AES_256_CFB),
    STREAM("aes-128-ctr", 16, 16, AES_128_CTR),
    STREAM("aes-192-ctr", 24, 16, AES_192_CTR),
    STREAM("aes-256-ctr", 32, 16, AES_256_CTR),
    STREAM("camellia-128-cfb", 16, 16, CAMELLIA_128_CFB),
    STREAM("camellia-192-cfb", 24, 16, CAMELLIA_192_CFB),
    STREAM("camellia-256-cfb", 32, 16, CAMELLIA_256_CFB),
    STREAM("bf-cfb", 16, 8, BF_CFB),
    STREAM("rc4-md5", 16, 16, RC4_MD5),
    STREAM("chacha20", 32, 8, CHACHA20),
    STREAM("chacha20-ietf", 32, 12, CHACHA20_IETF),
    STREAM("salsa20", 32, 8, SALSA20),
    {
        .name = "none",
        .alias = "plain",
        .family = SS_METHODS_PLAIN,
        .aead = SS_AEAD_ALGORITHM_COUNT,
        .packet_aead = SS_AEAD_ALGORITHM_COUNT,
        .keystream = SS_KEYSTREAM_NONE,
    },
};

#define KNOWN_COUNT (sizeof known / sizeof known[0])

/* Those whose ciphers the libraries have. */
static struct ss_method methods[KNOWN_COUNT];
static size_t method_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void choose(void)
{
    for (size_t i = 0; i < KNOWN_COUNT; i++)
        if (known[i].aead != SS_AEAD_ALGORITHM_COUNT ||
            ss_keystream_find(known[i].keystream) != NULL)
            methods[method_count++] = known[i];
}

const struct ss_method *ss_method_find(const char *name)
{
    size_t count;
    const struct ss_method *all = ss_method_all(&count);

    for (size_t i = 0; i < count; i++)
        if (strcmp(all[i].name, name) == 0 ||
            (all[i].alias != NULL && strcasecmp(all[i].alias, name) == 0))
            return &all[i];
    return NULL;
}

const struct ss_method *ss_method_all(size_t *count)
{
    (void)pthread_once(&once, choose);
    *count = method_count;
    return methods;
}
