/* What the tests of the 2022 vectors share: profiles out of the keys in a vector. */
#ifndef SS_TESTS_CODEC_VECTORS_2022_H
#define SS_TESTS_CODEC_VECTORS_2022_H

#include <jansson.h>

#include "codec/profile.h"

/* The time of all vectors that are not about time. */
#define VECTORS_NOW 1700000000

/* A chunk as large as can be from the start, so that what is sealed has the vectors' chunks. */
#define VECTORS_CHUNK 0xffff

/* A client with this key or chain, base64. */
struct ss_profile *client_of(const struct ss_method *method, const struct ss_aead *aead,
                             const char *password);

/* A server with this key, in hex; with users when `user_key` is not NULL: one with that key, whose
 * traffic goes to `next` if there is one. */
struct ss_profile *server_of(const struct ss_method *method, const struct ss_aead *aead,
                             const char *key, const char *user_key, const struct ss_endpoint *next);

/* The server that a vector is for: its key, or with identity headers that of the first, and a user
 * with the next key, of one that passes on when there are more. */
struct ss_profile *server_of_vector(const struct ss_method *method, const struct ss_aead *aead,
                                    const json_t *vector);

/* The method of a vector. */
const struct ss_method *method_of_vector(const json_t *vector);

#endif
