/* Addresses that a dial knows and has not tried yet. For this folder alone. */
#ifndef SS_RELAY_DIAL_PLACES_H
#define SS_RELAY_DIAL_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

/* Enough for those of a name and those that another was remembered by. */
#define SS_DIAL_PLACES_MAX 24

struct ss_dial_place {
    struct ss_ip ip;
    uint16_t port;
    uint8_t server; /* which of a role's; 0 for a target */
};

struct ss_dial_places {
    struct ss_dial_place list[SS_DIAL_PLACES_MAX];
    size_t count;
};

/* Behind those that are there. What there is no room for is left out. */
void ss_dial_places_add(struct ss_dial_places *places, uint8_t server,
                        const struct ss_ip *addresses, size_t count, uint16_t port);

bool ss_dial_places_have(const struct ss_dial_places *places, uint8_t server);

/*
 * Takes the next of *place's server, or with `any` of whichever, out of the list and into *place.
 * The first that is of another family than `waited_for` (SS_FAMILY_NONE: no matter) goes before
 * others (RFC 8305, section 4). False when there is none.
 */
bool ss_dial_places_take(struct ss_dial_places *places, struct ss_dial_place *place, bool any,
                         enum ss_family waited_for);

#endif
