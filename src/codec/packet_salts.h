/*
 * Salts of datagrams under the methods of 2017, known before their datagrams' turn: those to be
 * sealed with because they are drawn ahead, those to be opened because they lie in clear in front
 * of a batch that has come. So the memory of salts, of which each look-up would wait for the main
 * memory, is asked for them early, and subkeys are made two at once. For this folder alone.
 */
#ifndef SS_CODEC_PACKET_SALTS_H
#define SS_CODEC_PACKET_SALTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "codec/method.h"
#include "codec/packet.h"
#include "codec/profile.h"

/* Salts that are drawn ahead: as many datagrams have been sealed before one is used, less one. */
#define SS_SALTS_DRAWN 4

struct ss_packet_salts {
    /* To be sealed with. */
    uint8_t drawn[SS_SALTS_DRAWN][SS_SALT_MAX];
    uint64_t drawn_prints[SS_SALTS_DRAWN]; /* here as below: only where there is a memory */
    size_t next_drawn;
    bool is_drawn;
    uint8_t sealing[SS_KEY_MAX]; /* the subkey of the next salt, when its index is odd */
    /* To be opened: those of the batch, as long as it is `of` these. */
    struct ss_packet_foreseen *foreseen;
};

/* A batch that has come, of one codec; the next may be another's. */
struct ss_packet_foreseen {
    const struct ss_packet_salts *of; /* NULL: there is none */
    uint8_t coming[SS_PACKET_BATCH][SS_SALT_MAX];
    uint64_t coming_prints[SS_PACKET_BATCH];
    size_t coming_count, next_coming;
    uint8_t opening[SS_KEY_MAX];
    size_t
        opening_of; /* index of the salt that has this subkey; 0: none, as it is never the first */
};

/* Draws a salt, never the same twice, remembers it as the profile says, and makes its subkey. */
void ss_packet_salts_draw(struct ss_packet_salts *salts, const struct ss_profile *profile,
                          uint8_t *salt, uint8_t *subkey);

/* The salts in front of `wires`, in the order in which they will be opened. */
void ss_packet_salts_foresee(struct ss_packet_salts *salts, struct ss_packet_foreseen *foreseen,
                             const struct ss_profile *profile, const struct ss_view *wires,
                             size_t count);

/* Leaves nothing of theirs in the batch. */
void ss_packet_salts_end(struct ss_packet_salts *salts);

/* The subkey of a salt to be opened with, foreseen or not, and its print for the profile's memory.
 * SS_ERR_REPLAY when that has it. */
SS_CHECKED enum ss_status ss_packet_salts_subkey(struct ss_packet_salts *salts,
                                                 const struct ss_profile *profile,
                                                 const uint8_t *salt, uint8_t *subkey,
                                                 uint64_t *print);

#endif
