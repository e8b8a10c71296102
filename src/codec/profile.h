/* A method with its keys, as configured. Immutable once made and shared by sessions and threads. */
#ifndef SS_CODEC_PROFILE_H
#define SS_CODEC_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "base/status.h"
#include "codec/method.h"
#include "codec/salt_memory.h"
#include "crypto/aead.h"

struct ss_profile;

struct ss_profile_options {
    const struct ss_method *method;
    /* One of the two. A key beats a password; a longer key is cut to the method's length. */
    struct ss_view key; /* raw bytes; ptr NULL: none */
    struct ss_view password;
    /* Borrowed, shared by all profiles of a process; NULL: nothing is remembered (tests). */
    struct ss_salt_memory *salts;
    /* The same for datagrams; NULL: `salts` serves them too. With a memory of their own, many
     * datagrams can't push the salts of connections out. */
    struct ss_salt_memory *packet_salts;
    /* NULL: the best one of this machine. Tests pass each. */
    const struct ss_aead *aead;
};

/* SS_ERR_KEY for a key that is too short, SS_ERR_UNSUPPORTED when no provider has the algorithm. */
SS_CHECKED enum ss_status ss_profile_new(struct ss_profile **out,
                                         const struct ss_profile_options *options);

/* Wipes the keys. No codec may use it any more. NULL is fine. */
void ss_profile_free(struct ss_profile *profile);

const struct ss_method *ss_profile_method(const struct ss_profile *profile);
const struct ss_aead *ss_profile_aead(const struct ss_profile *profile);

#endif
