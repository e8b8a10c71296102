/* Salts of datagrams, drawn and foreseen. */
#include "codec/packet_salts.h"

#include <string.h>

#include "codec/codec_internal.h"
#include "crypto/kdf.h"
#include "crypto/random.h"
#include "crypto/secret.h"

static void draw(struct ss_packet_salts *salts, const struct ss_profile *profile, size_t index)
{
    ss_random_bytes(salts->drawn[index], profile->method->salt_len);
    if (profile->packet_salts != NULL)
        ss_salt_memory_foresee(profile->packet_salts, salts->drawn[index],
                               profile->method->salt_len);
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
        (void)ss_salt_memory_store(profile->packet_salts, salt, salt_len);
    draw(salts, profile, index);
}

void ss_packet_salts_foresee(struct ss_packet_salts *salts, const struct ss_profile *profile,
                             const struct ss_view *wires, size_t count)
{
    size_t salt_len = profile->method->salt_len;

    salts->coming_count = salts->next_coming = salts->opening_of = 0;
    for (size_t i = 0; i < count && salts->coming_count < SS_PACKET_BATCH; i++) {
        if (wires[i].len < salt_len)
            continue;
        memcpy(salts->coming[salts->coming_count++], wires[i].ptr, salt_len);
        if (profile->packet_salts != NULL)
            ss_salt_memory_foresee(profile->packet_salts, wires[i].ptr, salt_len);
    }
}

void ss_packet_salts_subkey(struct ss_packet_salts *salts, const struct ss_profile *profile,
                            const uint8_t *salt, uint8_t *subkey)
{
    size_t salt_len = profile->method->salt_len, key_len = profile->method->key_len;
    size_t index = salts->next_coming;

    /* Those between were not worth a subkey: their sender is refused, or they are repeats. */
    while (index < salts->coming_count && memcmp(salts->coming[index], salt, salt_len) != 0)
        index++;
    if (index == salts->coming_count) {
        ss_kdf_subkey_2017(subkey, profile->key, salt, key_len);
        return;
    }
    salts->next_coming = index + 1;
    if (index != 0 && index == salts->opening_of) {
        memcpy(subkey, salts->opening, key_len);
    } else if (salts->next_coming < salts->coming_count) {
        uint8_t *const subkeys[] = {subkey, salts->opening};
        const uint8_t *const both[] = {salt, salts->coming[salts->next_coming]};

        ss_kdf_two_subkeys_2017(subkeys, profile->key, both, key_len);
        salts->opening_of = salts->next_coming;
    } else {
        ss_kdf_subkey_2017(subkey, profile->key, salt, key_len);
    }
}
