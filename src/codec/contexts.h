/* The two cipher contexts of a codec, kept in the codec's slot from one user to the next. For this
 * folder alone. */
#ifndef SS_CODEC_CONTEXTS_H
#define SS_CODEC_CONTEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/aead.h"
#include "crypto/keystream.h"

struct ss_contexts {
    /* Whose they are, one of the two; both NULL: there are none. */
    const struct ss_aead *aead;
    const struct ss_keystream *keystream;
    void *sealing, *opening; /* inside the slot */
    bool sealing_keyed, opening_keyed;
};

#define SS_CONTEXTS_ALIGN SS_AEAD_CONTEXT_ALIGN
_Static_assert(SS_CONTEXTS_ALIGN % SS_KEYSTREAM_CONTEXT_ALIGN == 0, "either kind may lie there");

/* Where contexts may begin behind `size` bytes. */
#define SS_CONTEXTS_OFFSET(size) \
    (((size) + SS_CONTEXTS_ALIGN - 1) / SS_CONTEXTS_ALIGN * SS_CONTEXTS_ALIGN)

/* Bytes of both; one of the arguments is NULL, here as below. */
size_t ss_contexts_size(const struct ss_aead *aead, const struct ss_keystream *keystream);

/* Makes them at `memory`, unless they are there already. After a failure there are none. */
SS_CHECKED enum ss_status ss_contexts_begin(struct ss_contexts *contexts, void *memory,
                                            const struct ss_aead *aead,
                                            const struct ss_keystream *keystream);

/* An AEAD's. */
SS_CHECKED enum ss_status ss_contexts_key_sealing(struct ss_contexts *contexts, const uint8_t *key);
SS_CHECKED enum ss_status ss_contexts_key_opening(struct ss_contexts *contexts, const uint8_t *key);

/* A stream cipher's, from the beginning of a stream. */
SS_CHECKED enum ss_status ss_contexts_start_sealing(struct ss_contexts *contexts,
                                                    const uint8_t *key, const uint8_t *iv);
SS_CHECKED enum ss_status ss_contexts_start_opening(struct ss_contexts *contexts,
                                                    const uint8_t *key, const uint8_t *iv);

/* Wipes the keys that were set. */
void ss_contexts_end(struct ss_contexts *contexts);

/* Wipes, and gives back what the provider took. */
void ss_contexts_retire(struct ss_contexts *contexts);

#endif
