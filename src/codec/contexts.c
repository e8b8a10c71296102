/* The two cipher contexts of a codec. */
#include "codec/contexts.h"

#include "crypto/secret.h"

static size_t context_size(const struct ss_aead *aead, const struct ss_keystream *keystream)
{
    return aead != NULL ? aead->context_size : keystream->context_size;
}

size_t ss_contexts_size(const struct ss_aead *aead, const struct ss_keystream *keystream)
{
    return 2 * context_size(aead, keystream);
}

enum ss_status ss_contexts_begin(struct ss_contexts *contexts, void *memory,
                                 const struct ss_aead *aead, const struct ss_keystream *keystream)
{
    enum ss_status status;

    if (contexts->aead == aead && contexts->keystream == keystream)
        return SS_OK;
    ss_contexts_retire(contexts);
    contexts->sealing = memory;
    contexts->opening = (uint8_t *)memory + context_size(aead, keystream);
    if (aead != NULL) {
        status = aead->init(contexts->sealing);
        if (status != SS_OK)
            return status;
        status = aead->init(contexts->opening);
        if (status != SS_OK) {
            aead->clear(contexts->sealing);
            return status;
        }
    }
    contexts->aead = aead;
    contexts->keystream = keystream;
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

enum ss_status ss_contexts_start_sealing(struct ss_contexts *contexts, const uint8_t *key,
                                         const uint8_t *iv)
{
    contexts->sealing_keyed = true;
    return contexts->keystream->start(contexts->sealing, SS_KEYSTREAM_ENCRYPT, key, iv);
}

enum ss_status ss_contexts_start_opening(struct ss_contexts *contexts, const uint8_t *key,
                                         const uint8_t *iv)
{
    contexts->opening_keyed = true;
    return contexts->keystream->start(contexts->opening, SS_KEYSTREAM_DECRYPT, key, iv);
}

static void forget(const struct ss_contexts *contexts, void *context)
{
    if (contexts->aead != NULL)
        contexts->aead->forget(context);
    else
        contexts->keystream->wipe(context);
}

void ss_contexts_end(struct ss_contexts *contexts)
{
    if (contexts->sealing_keyed)
        forget(contexts, contexts->sealing);
    if (contexts->opening_keyed)
        forget(contexts, contexts->opening);
    contexts->sealing_keyed = false;
    contexts->opening_keyed = false;
}

void ss_contexts_retire(struct ss_contexts *contexts)
{
    if (contexts->aead != NULL) {
        contexts->aead->clear(contexts->sealing);
        contexts->aead->clear(contexts->opening);
    } else if (contexts->keystream != NULL) {
        contexts->keystream->wipe(contexts->sealing);
        contexts->keystream->wipe(contexts->opening);
    }
    ss_wipe(contexts, sizeof *contexts);
}
