/* The list of addresses that are left to try. */
#include "relay/dial_places.h"

#include <string.h>

void ss_dial_places_add(struct ss_dial_places *places, uint8_t server,
                        const struct ss_ip *addresses, size_t count, uint16_t port)
{
    for (size_t i = 0; i < count && places->count < SS_DIAL_PLACES_MAX; i++)
        places->list[places->count++] =
            (struct ss_dial_place){.ip = addresses[i], .port = port, .server = server};
}

bool ss_dial_places_have(const struct ss_dial_places *places, uint8_t server)
{
    for (size_t i = 0; i < places->count; i++)
        if (places->list[i].server == server)
            return true;
    return false;
}

bool ss_dial_places_take(struct ss_dial_places *places, struct ss_dial_place *place, bool any,
                         enum ss_family waited_for)
{
    size_t found = places->count;

    for (size_t i = 0; i < places->count; i++) {
        if (!any && places->list[i].server != place->server)
            continue;
        if (found == places->count)
            found = i;
        if (places->list[i].ip.family != waited_for) {
            found = i;
            break;
        }
    }
    if (found == places->count)
        return false;
    *place = places->list[found];
    places->count--;
    memmove(&places->list[found], &places->list[found + 1],
            (places->count - found) * sizeof places->list[0]);
    return true;
}
