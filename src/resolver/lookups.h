/*
 * Records on their way through the name servers: in line for their turn, asked, half answered.
 *
 * So many names are out at once that neither a name server's socket nor a bound of the operator's
 * overflows; the rest wait in line. Nothing is answered from here: the owner is told when those who
 * wait for a record can be.
 */
#ifndef SS_RESOLVER_LOOKUPS_H
#define SS_RESOLVER_LOOKUPS_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/deadline.h"
#include "resolver/record.h"
#include "resolver/servers.h"

/* Told about a record. Comes from within c-ares, too. */
struct ss_lookups_events {
    /* Who waits for it can be answered. */
    void (*ready)(struct ss_record *record);
    /* It is no longer known here. */
    void (*left)(struct ss_record *record);
};

struct ss_lookups {
    const struct ss_lookups_events *events;
    uv_loop_t *loop;
    struct ss_servers *servers;
    struct ss_deadline_queue queues[SS_PLACE_COUNT];
    uint32_t counts[SS_PLACE_COUNT];
    uint32_t held, held_max; /* names that are with name servers */
    uint32_t ttl_max_s;
    bool ipv6_first;
    bool closing; /* nothing is asked any more */
};

/* Fills in what the fields above do not say. */
void ss_lookups_init(struct ss_lookups *lookups);

/* Puts a listed record that someone waits for in line, and starts what there is room for. */
void ss_lookups_add(struct ss_lookups *lookups, struct ss_record *record);

/* Nobody waits for the record any more. What is with the name servers stays there. */
void ss_lookups_abandon(struct ss_record *record);

/* Goes on with what is due. */
void ss_lookups_turn(struct ss_lookups *lookups);

/* When ss_lookups_turn has to be called next, on the loop's clock; UINT64_MAX: not before an
 * answer comes. */
uint64_t ss_lookups_due_ms(struct ss_lookups *lookups);

/* The first in line, or NULL. */
struct ss_record *ss_lookups_first_waiting(struct ss_lookups *lookups);

/*
 * Whether who asks now should wait for this record's answer. Not so when nothing has come of it for
 * a second: the network may have changed since it was sent, and a fresh question is answered sooner
 * than the next try of the old one.
 */
bool ss_lookups_may_join(const struct ss_lookups *lookups, const struct ss_record *record);

#endif
