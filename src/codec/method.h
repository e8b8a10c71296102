/* The methods: their names, the sizes of their keys and salts, and which family they belong to. */
#ifndef SS_CODEC_METHOD_H
#define SS_CODEC_METHOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/aead.h"
#include "crypto/keystream.h"

enum ss_family_of_methods {
    SS_METHODS_2017,   /* AEAD, SIP004 */
    SS_METHODS_2022,   /* SIP022 */
    SS_METHODS_STREAM, /* insecure: nothing tells what was changed on the way */
    SS_METHODS_PLAIN   /* no cipher at all */
};

struct ss_method {
    const char *name;
    const char *alias; /* compared without case (AEAD_AES_128_GCM); may be NULL */
    enum ss_family_of_methods family;
    size_t key_len;
    size_t salt_len;
    enum ss_aead_algorithm aead;           /* SS_AEAD_ALGORITHM_COUNT: none */
    enum ss_aead_algorithm packet_aead;    /* of datagrams; mostly the same */
    bool has_identities;                   /* SIP023: chains of keys, and users */
    enum ss_keystream_algorithm keystream; /* SS_METHODS_STREAM: the salt is its IV */
};

#define SS_KEY_MAX  32
#define SS_SALT_MAX 32

/* Stream methods are only there if the libraries have their ciphers. */

/* By name, with case, or by alias, without; NULL when there is none. */
const struct ss_method *ss_method_find(const char *name);

/* All of them, for listings and tests; *count is their number. */
const struct ss_method *ss_method_all(size_t *count);

#define SS_METHOD_DEFAULT "chacha20-ietf-poly1305"

#endif
