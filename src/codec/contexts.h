/* The two cipher contexts of a codec, kept in the codec's slot from one user to the next. For this
 * folder alone. */
#ifndef SS_CODEC_CONTEXTS_H
#define SS_CODEC_CONTEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/aead.h"

struct ss_contexts {
    const struct ss_aead *aead; /* whose they are; NULL: there are none */
    void *sealing, *opening;    /* inside the slot */
    bool sealing_keyed, opening_keyed;
};

/* Where contexts may begin behind `size` bytes. */
#define SS_CONTEXTS_OFFSET(size) \
    (((size) + SS_AEAD_CONTEXT_ALIGN - 1) / SS_AEAD_CONTEXT_ALIGN * SS_AEAD_CONTEXT_ALIGN)

/* Makes them at `memory`, 2 * aead->context_size bytes, unless they are there already. After a
 * failure there are none. */
SS_CHECKED enum ss_status ss_contexts_begin(struct ss_contexts *contexts, void *memory,
                                            const struct ss_aead *aead);

SS_CHECKED enum ss_status ss_contexts_key_sealing(struct ss_contexts *contexts, const uint8_t *key);
SS_CHECKED enum ss_status ss_contexts_key_opening(struct ss_contexts *contexts, const uint8_t *key);

/* Wipes the keys that were set. */
void ss_contexts_end(struct ss_contexts *contexts);

/* Wipes, and gives back what the provider took. */
void ss_contexts_retire(struct ss_contexts *contexts);

#endif
