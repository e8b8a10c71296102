/* What each library offers to the choice in keystream.c. For this folder alone. */
#ifndef SS_CRYPTO_KEYSTREAM_INTERNAL_H
#define SS_CRYPTO_KEYSTREAM_INTERNAL_H

#include "crypto/keystream.h"

const struct ss_keystream *ss_keystream_mbedtls_find(enum ss_keystream_algorithm algorithm);
const struct ss_keystream *ss_keystream_sodium_find(enum ss_keystream_algorithm algorithm);

#define SS_KEYSTREAM_CONTEXT_SIZE(type)                                             \
    ((sizeof(type) + SS_KEYSTREAM_CONTEXT_ALIGN - 1) / SS_KEYSTREAM_CONTEXT_ALIGN * \
     SS_KEYSTREAM_CONTEXT_ALIGN)

#endif
