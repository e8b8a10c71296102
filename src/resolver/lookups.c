/* The queues of records that are looked up, and the two lookups behind each. */
#include "resolver/lookups.h"

#include "base/container.h"

/* How long the addresses of one family wait for those of the other. */
#define RESOLUTION_DELAY_MS 50

/*
 * Names that are asked of the name servers at once. A burst of a thousand queries would overflow
 * the socket buffers of most servers, and forwarders refuse what is above their own limit. A server
 * that is silent about a name must not hold up the others, so a name counts for a short time only.
 */
#define WINDOW    64
#define WINDOW_MS 250

#define JOIN_MS 1000

/* How long after its beginning a lookup whose channel was given up is begun again. */
#define AGAIN_MS 5000

static const uint64_t place_ms[SS_PLACE_COUNT] = {
    [SS_PLACE_ASKED] = WINDOW_MS,
    [SS_PLACE_PARTIAL] = RESOLUTION_DELAY_MS,
};

void ss_lookups_init(struct ss_lookups *lookups)
{
    for (int place = 0; place < SS_PLACE_COUNT; place++)
        ss_deadline_queue_init(&lookups->queues[place], place_ms[place]);
}

static void move(struct ss_record *record, enum ss_record_place place)
{
    struct ss_lookups *lookups = record->lookups;

    if (record->place != SS_PLACE_NONE) {
        ss_deadline_stop(&record->entry);
        lookups->counts[record->place]--;
    }
    record->place = place;
    if (place != SS_PLACE_NONE) {
        ss_deadline_start(&lookups->queues[place], &record->entry, uv_now(lookups->loop));
        lookups->counts[place]++;
    }
}

static struct ss_record *first_at(struct ss_lookups *lookups, enum ss_record_place place)
{
    struct ss_deadline *entry = ss_deadline_first(&lookups->queues[place]);

    return entry != NULL ? SS_CONTAINER_OF(entry, struct ss_record, entry) : NULL;
}

static struct ss_record *first_due(struct ss_lookups *lookups, enum ss_record_place place)
{
    struct ss_record *record = first_at(lookups, place);

    return record != NULL && record->entry.due_ms <= uv_now(lookups->loop) ? record : NULL;
}

struct ss_record *ss_lookups_first_waiting(struct ss_lookups *lookups)
{
    return first_at(lookups, SS_PLACE_WAITING);
}

/* Whether a lookup that ended with its channel is worth another one. */
static bool may_ask_again(struct ss_record *record)
{
    const struct ss_lookups *lookups = record->lookups;

    return !lookups->closing && ss_record_is_awaited(record) && !ss_record_has_addresses(record) &&
           uv_now(lookups->loop) - record->begun_ms < AGAIN_MS;
}

/* Comes from inside c-ares: notes the answer and finds the record its next place. */
static void on_answered(struct ss_channel_lookup *lookup, const struct ss_answer *answer)
{
    struct ss_record_half *half = SS_CONTAINER_OF(lookup, struct ss_record_half, lookup);
    struct ss_record *record = half->record;
    struct ss_lookups *lookups = record->lookups;

    half->outstanding = false;
    /* What we ended ourselves had brought nothing. */
    half->status = answer->status != SS_ERR_RESET ? answer->status : SS_ERR_TIMEOUT;
    half->until_ms = uv_now(lookups->loop) + ss_answer_lifetime_ms(answer, lookups->ttl_max_s);
    half->count = (uint32_t)answer->count;
    for (size_t i = 0; i < answer->count; i++) {
        half->ips[i] = answer->ips[i];
        ss_ip_unmap(&half->ips[i]);
    }
    if (!ss_record_is_outstanding(record))
        lookups->held--;
    if (record->place == SS_PLACE_WAITING)
        return; /* the other family is still to be asked for */
    if (answer->status == SS_ERR_RESET && may_ask_again(record)) {
        move(record, SS_PLACE_WAITING);
        return;
    }
    if (!ss_record_is_outstanding(record)) {
        move(record, SS_PLACE_NONE);
        lookups->events->ready(record);
        lookups->events->left(record);
    } else if (ss_record_has_addresses(record) && ss_record_is_awaited(record) &&
               record->place != SS_PLACE_PARTIAL) {
        move(record, SS_PLACE_PARTIAL);
    }
}

/* Asks for what is not known. */
static void start(struct ss_record *record)
{
    struct ss_lookups *lookups = record->lookups;
    const uint64_t now_ms = uv_now(lookups->loop);
    bool asked[2];

    move(record, SS_PLACE_ASKED);
    record->asked_ms = now_ms;
    if (!ss_record_is_outstanding(record))
        lookups->held++;
    for (int i = 0; i < 2; i++) {
        struct ss_record_half *half = &record->halves[i];

        asked[i] = ss_record_is_missing(record, i, now_ms);
        if (!asked[i])
            continue;
        half->outstanding = true;
        half->count = 0;
        half->lookup.name = record->name;
        half->lookup.family = (i == 0) == lookups->ipv6_first ? SS_FAMILY_IPV6 : SS_FAMILY_IPV4;
        half->lookup.answered = on_answered;
    }
    for (int i = 0; i < 2; i++) {
        if (asked[i])
            ss_servers_ask(lookups->servers, &record->halves[i].lookup);
    }
    if (record->place == SS_PLACE_ASKED && ss_record_has_addresses(record))
        move(record, SS_PLACE_PARTIAL);
}

/* Starts what there is room for. A record that is answered at once stays: someone waits for it. */
static void start_waiting(struct ss_lookups *lookups)
{
    struct ss_record *record;

    while ((record = first_due(lookups, SS_PLACE_ASKED)) != NULL)
        move(record, SS_PLACE_NONE);
    while (lookups->counts[SS_PLACE_ASKED] < WINDOW && lookups->held < lookups->held_max &&
           lookups->counts[SS_PLACE_WAITING] != 0) {
        ss_servers_choose(lookups->servers); /* which may put more in line */
        if (!ss_servers_have_room(lookups->servers))
            break;
        start(first_at(lookups, SS_PLACE_WAITING));
    }
}

void ss_lookups_add(struct ss_lookups *lookups, struct ss_record *record)
{
    record->lookups = lookups;
    record->begun_ms = uv_now(lookups->loop);
    move(record, SS_PLACE_WAITING);
    start_waiting(lookups);
}

void ss_lookups_abandon(struct ss_record *record)
{
    /* What is with name servers goes on being counted, or a client could flood them. */
    if (record->place == SS_PLACE_WAITING || record->place == SS_PLACE_PARTIAL)
        move(record, SS_PLACE_NONE);
}

void ss_lookups_turn(struct ss_lookups *lookups)
{
    struct ss_record *record;

    while ((record = first_due(lookups, SS_PLACE_PARTIAL)) != NULL) {
        move(record, SS_PLACE_NONE);
        lookups->events->ready(record);
    }
    start_waiting(lookups);
}

uint64_t ss_lookups_due_ms(struct ss_lookups *lookups)
{
    uint64_t due_ms = UINT64_MAX;
    const struct ss_record *record = first_at(lookups, SS_PLACE_PARTIAL);

    if (record != NULL)
        due_ms = record->entry.due_ms;
    /* That a name no longer counts in the window matters only to those who wait for it. */
    record = lookups->counts[SS_PLACE_WAITING] != 0 ? first_at(lookups, SS_PLACE_ASKED) : NULL;
    if (record != NULL && record->entry.due_ms < due_ms)
        due_ms = record->entry.due_ms;
    return due_ms;
}

bool ss_lookups_may_join(const struct ss_lookups *lookups, const struct ss_record *record)
{
    return !ss_record_is_outstanding(record) || record->place == SS_PLACE_WAITING ||
           ss_record_has_addresses(record) || record->ready_count != 0 ||
           uv_now(lookups->loop) - record->asked_ms < JOIN_MS;
}
