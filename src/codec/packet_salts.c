/* Salts of datagrams, drawn and foreseen. */
#include "codec/packet_salts.h"

#include <stdlib.h>
#include <string.h>

#include "codec/codec_internal.h"
#include "crypto/kdf.h"
#include "crypto/random.h"
#include "crypto/secret.h"

static uint64_t foresee(const struct ss_profile *profile, const uint8_t *salt)
{
    uint64_t print;

    if (profile->packet_salts == NULL)
        return 0;
    print = ss_salt_memory_print(profile->packet_salts, salt, profile->method->salt_len);
    ss_salt_memory_foresee(profile->packet_salts, print);
    return print;
}

static void draw(struct ss_packet_salts *salts, const struct ss_profile *profile, size_t index)
{
    ss_random_bytes(salts->drawn[index], profile->method->salt_len);
    salts->drawn_prints[index] = foresee(profile, salts->drawn[index]);
}

void ss_packet_salts_draw(struct ss_packet_salts *salts, const struct ss_profile *profile,
                          uint8_t *salt, uint8_t *subkey)
{
    size_t salt_len = profile->method->salt_len, key_len = profile->method->key_len;
    size_t index = salts->next_drawn;

    if (!salts->is_drawn)
        for (size_t i = 0; i < SS_SALTS_DRAWN; i++)
            draw(salts, profile, i);
    salts->is_drawn = true;
    salts->next_drawn = (index + 1) % SS_SALTS_DRAWN;
    if (index % 2 == 0) {
        uint8_t *const subkeys[] = {subkey, salts->sealing};
        const uint8_t *const both[] = {salts->drawn[index], salts->drawn[index + 1]};

        ss_kdf_two_subkeys_2017(subkeys, profile->key, both, key_len);
    } else {
        memcpy(subkey, salts->sealing, key_len);
        ss_wipe(salts->sealing, sizeof salts->sealing);
    }
    memcpy(salt, salts->drawn[index], salt_len);
    /* Remembered too, so that nobody can send our own output back to us. */
    if (profile->packet_salts != NULL)
        (void)ss_salt_memory_store_print(profile->packet_salts, salts->drawn_prints[index]);
    draw(salts, profile, index);
}

static void forget(struct ss_packet_foreseen *foreseen)
{
    if (foreseen->opening_of != 0)
        ss_wipe(foreseen->opening, sizeof foreseen->opening); /* it may not have come */
    foreseen->coming_count = foreseen->next_coming = foreseen->opening_of = 0;
    foreseen->of = NULL;
}

struct ss_packet_foreseen *ss_packet_foreseen_new(void)
{
    return calloc(1, sizeof(struct ss_packet_foreseen));
}

void ss_packet_foreseen_free(struct ss_packet_foreseen *foreseen)
{
    if (foreseen != NULL)
        forget(foreseen);
    free(foreseen);
}

/* The batch, where it is of these salts. */
static struct ss_packet_foreseen *batch_of(const struct ss_packet_salts *salts)
{
    return salts->foreseen != NULL && salts->foreseen->of == salts ? salts->foreseen : NULL;
}

void ss_packet_salts_end(struct ss_packet_salts *salts)
{
    if (batch_of(salts) != NULL)
        forget(salts->foreseen);
    salts->foreseen = NULL;
}

void ss_packet_salts_foresee(struct ss_packet_salts *salts, struct ss_packet_foreseen *foreseen,
                             const struct ss_profile *profile, const struct ss_view *wires,
                             size_t count)
{
    size_t salt_len = profile->method->salt_len;

    forget(foreseen);
    foreseen->of = salts;
    salts->foreseen = foreseen;
    for (size_t i = 0; i < count && foreseen->coming_count < SS_PACKET_BATCH; i++) {
        if (wires[i].len < salt_len)
            continue;
        memcpy(foreseen->coming[foreseen->coming_count], wires[i].ptr, salt_len);
        foreseen->coming_prints[foreseen->coming_count++] = foresee(profile, wires[i].ptr);
    }
}

/* A subkey of a salt that was foreseen, and of the next one with it where there is one. */
static void subkey_of(struct ss_packet_foreseen *foreseen, const struct ss_profile *profile,
                      size_t index, uint8_t *subkey)
{
    size_t key_len = profile->method->key_len;

    if (index != 0 && index == foreseen->opening_of) {
        memcpy(subkey, foreseen->opening, key_len);
        ss_wipe(foreseen->opening, sizeof foreseen->opening);
        foreseen->opening_of = 0;
    } else if (index + 1 < foreseen->coming_count) {
        uint8_t *const subkeys[] = {subkey, foreseen->opening};
        const uint8_t *const both[] = {foreseen->coming[index], foreseen->coming[index + 1]};

        ss_kdf_two_subkeys_2017(subkeys, profile->key, both, key_len);
        foreseen->opening_of = index + 1;
    } else {
        ss_kdf_subkey_2017(subkey, profile->key, foreseen->coming[index], key_len);
    }
}

enum ss_status ss_packet_salts_subkey(struct ss_packet_salts *salts,
                                      const struct ss_profile *profile, const uint8_t *salt,
                                      uint8_t *subkey, uint64_t *print)
{
    struct ss_salt_memory *memory = profile->packet_salts;
    struct ss_packet_foreseen *foreseen = batch_of(salts);
    size_t salt_len = profile->method->salt_len;
    size_t index = foreseen != NULL ? foreseen->next_coming : 0;
    size_t count = foreseen != NULL ? foreseen->coming_count : 0;
    bool was_foreseen;

    /* Those between were left out: their sender is refused, or they are too short. */
    while (index < count && memcmp(foreseen->coming[index], salt, salt_len) != 0)
        index++;
    was_foreseen = index < count;
    if (was_foreseen)
        foreseen->next_coming = index + 1;
    if (memory != NULL) {
        *print = was_foreseen ? foreseen->coming_prints[index]
                              : ss_salt_memory_print(memory, salt, salt_len);
        if (ss_salt_memory_contains_print(memory, *print))
            return SS_ERR_REPLAY;
    }
    if (was_foreseen)
        subkey_of(foreseen, profile, index, subkey);
    else
        ss_kdf_subkey_2017(subkey, profile->key, salt, profile->method->key_len);
    return SS_OK;
}
