/* The two cipher contexts of a codec. */
#include "codec/contexts.h"

#include "crypto/secret.h"

enum ss_status ss_contexts_begin(struct ss_contexts *contexts, void *memory,
                                 const struct ss_aead *aead)
{
    enum ss_status status;

    if (contexts->aead == aead)
        return SS_OK;
    ss_contexts_retire(contexts);
    contexts->sealing = memory;
    contexts->opening = (uint8_t *)memory + aead->context_size;
    status = aead->init(contexts->sealing);
    if (status != SS_OK)
        return status;
    status = aead->init(contexts->opening);
    if (status != SS_OK) {
        aead->clear(contexts->sealing);
        return status;
    }
    contexts->aead = aead;
    return SS_OK;
}

/* What failed half way may have left something of the key, so it counts as set in any case. */

enum ss_status ss_contexts_key_sealing(struct ss_contexts *contexts, const uint8_t *key)
{
    contexts->sealing_keyed = true;
    return contexts->aead->set_key(contexts->sealing, key);
}

enum ss_status ss_contexts_key_opening(struct ss_contexts *contexts, const uint8_t *key)
{
    contexts->opening_keyed = true;
    return contexts->aead->set_key(contexts->opening, key);
}

void ss_contexts_end(struct ss_contexts *contexts)
{
    if (contexts->sealing_keyed)
        contexts->aead->forget(contexts->sealing);
    if (contexts->opening_keyed)
        contexts->aead->forget(contexts->opening);
    contexts->sealing_keyed = false;
    contexts->opening_keyed = false;
}

void ss_contexts_retire(struct ss_contexts *contexts)
{
    if (contexts->aead != NULL) {
        contexts->aead->clear(contexts->sealing);
        contexts->aead->clear(contexts->opening);
    }
    ss_wipe(contexts, sizeof *contexts);
}
