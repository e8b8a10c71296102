/* Keys of the 2022 methods as they are configured: base64, and chains of them (SIP022, SIP023). */
#ifndef SS_CODEC_KEYS_H
#define SS_CODEC_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "base/status.h"
#include "codec/method.h"

/* Keys of a chain, the user's own included. With more than ten a datagram's headers and the longest
 * target may be more than there is room for in front of a payload. */
#define SS_CHAIN_MAX 16

/* What is wrong with a key, so that a message can say it in numbers. */
enum ss_key_fault_kind {
    SS_KEY_IS_FINE,
    SS_KEY_NOT_BASE64,
    SS_KEY_HAS_OTHER_LENGTH,   /* see `needed` and `given`; an empty key is one of 0 bytes */
    SS_KEY_HAS_NO_CHAINS,      /* several keys, or users, with a method without identity headers */
    SS_KEY_CHAIN_TOO_LONG,     /* `given` keys, at most `needed` are allowed */
    SS_KEY_OF_SERVER_IS_CHAIN, /* a server with users takes one key */
    SS_KEY_IS_DOUBLE,          /* two users have it */
    SS_KEY_IS_THE_SERVERS      /* a user has the key that all users have */
};

struct ss_key_fault {
    enum ss_key_fault_kind kind;
    size_t needed, given; /* bytes */
    size_t position;      /* of the key in its chain, from 0 */
    size_t user;          /* of the user in the list, from 0, where it is a user's */
};

/*
 * Reads one key or a chain of them, joined by colons, either alphabet, padded or not, each of
 * exactly the method's length, into keys[0] to keys[*count - 1]. SS_ERR_KEY and *fault otherwise;
 * the caller wipes `keys` in either case.
 */
SS_CHECKED enum ss_status ss_keys_parse(uint8_t keys[SS_CHAIN_MAX][SS_KEY_MAX], size_t *count,
                                        const struct ss_method *method, struct ss_view text,
                                        struct ss_key_fault *fault);

#endif
