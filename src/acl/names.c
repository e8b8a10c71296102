/*
 * Open addressing over the names of rules. A name is hashed from its end, so that on the way to its
 * front the hash of each of its ends is there for nothing.
 *
 * Who asks can put nothing in, so all that a name of his could find is the longest run of taken
 * slots; the seed keeps him from knowing where that is.
 */
#include "acl/names.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "acl/lists.h"

struct acl_names_slot {
    uint32_t record; /* its offset + 1; 0: free */
    uint32_t tag;    /* the hash's upper half: most strangers are told apart by it */
};

#define RECORD_HEAD 2
#define FIRST_SLOTS 64

static uint64_t hash_byte(uint64_t hash, char c)
{
    hash = (hash ^ (uint8_t)c) * UINT64_C(0x9e3779b97f4a7c15);
    return hash << 29 | hash >> 35;
}

/* So that every bit has a say in those that are used. */
static uint64_t finish(uint64_t hash)
{
    hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return hash ^ hash >> 32;
}

static uint64_t hash_of(const struct acl_names *names, const char *name, size_t len)
{
    uint64_t hash = names->seed;

    while (len != 0)
        hash = hash_byte(hash, name[--len]);
    return finish(hash);
}

/* The slot of the name, or the free one where it would stand. */
static struct acl_names_slot *slot_for(const struct acl_names *names, uint64_t hash,
                                       const char *name, size_t len)
{
    const uint32_t mask = names->slot_count - 1;
    const uint32_t tag = (uint32_t)(hash >> 32);

    for (uint32_t at = (uint32_t)hash & mask;; at = (at + 1) & mask) {
        struct acl_names_slot *slot = &names->slots[at];
        const uint8_t *record;

        if (slot->record == 0)
            return slot;
        if (slot->tag != tag)
            continue;
        record = names->records + slot->record - 1;
        if (record[1] == len && memcmp(record + RECORD_HEAD, name, len) == 0)
            return slot;
    }
}

static bool grow_slots(struct acl_names *names)
{
    const struct acl_names old = *names;
    struct acl_names_slot *slots;

    if (names->slot_count != 0 && names->count < names->slot_count / 2)
        return true;
    if (names->slot_count > UINT32_MAX / 4)
        return false;
    names->slot_count = old.slot_count != 0 ? 2 * old.slot_count : FIRST_SLOTS;
    slots = calloc(names->slot_count, sizeof *slots);
    if (slots == NULL) {
        names->slot_count = old.slot_count;
        return false;
    }
    names->slots = slots;
    for (uint32_t i = 0; i < old.slot_count; i++) {
        const uint8_t *record;
        const char *name;

        if (old.slots[i].record == 0)
            continue;
        record = names->records + old.slots[i].record - 1;
        name = (const char *)record + RECORD_HEAD;
        *slot_for(names, hash_of(names, name, record[1]), name, record[1]) = old.slots[i];
    }
    free(old.slots);
    return true;
}

static bool grow_records(struct acl_names *names, size_t more)
{
    size_t cap = names->records_cap;
    uint8_t *records;

    if (cap - names->records_len >= more)
        return true;
    cap += cap / 2 + 4096;
    records = realloc(names->records, cap);
    if (records == NULL)
        return false;
    names->records = records;
    names->records_cap = cap;
    return true;
}

enum ss_status acl_names_add(struct acl_names *names, const char *name, size_t len, unsigned covers,
                             unsigned list)
{
    const uint64_t hash = hash_of(names, name, len);
    const unsigned lists = ((covers & ACL_ITSELF) != 0 ? ACL_BIT(list) : 0) |
                           ((covers & ACL_BELOW) != 0 ? ACL_BIT(list) << ACL_LISTS : 0);
    struct acl_names_slot *slot;
    uint8_t *record;

    if (names->records_len > UINT32_MAX - 2 * UINT8_MAX)
        return SS_ERR_LIMIT;
    if (!grow_slots(names) || !grow_records(names, RECORD_HEAD + len))
        return SS_ERR_MEMORY;
    slot = slot_for(names, hash, name, len);
    if (slot->record != 0) {
        names->records[slot->record - 1] |= (uint8_t)lists;
        return SS_OK;
    }
    record = names->records + names->records_len;
    record[0] = (uint8_t)lists;
    record[1] = (uint8_t)len;
    memcpy(record + RECORD_HEAD, name, len);
    slot->record = (uint32_t)names->records_len + 1;
    slot->tag = (uint32_t)(hash >> 32);
    names->records_len += RECORD_HEAD + len;
    names->count++;
    if (len > names->longest)
        names->longest = len;
    return SS_OK;
}

void acl_names_trim(struct acl_names *names)
{
    uint8_t *records = names->count != 0 ? realloc(names->records, names->records_len) : NULL;

    if (records == NULL)
        return; /* it is as good as before */
    names->records = records;
    names->records_cap = names->records_len;
}

void acl_names_clear(struct acl_names *names)
{
    free(names->slots);
    free(names->records);
    *names = (struct acl_names){.seed = names->seed};
}

unsigned acl_names_find(const struct acl_names *names, const char *name, size_t len)
{
    uint64_t hash = names->seed;
    unsigned lists = 0;

    if (names->count == 0)
        return 0;
    for (size_t at = len; at != 0 && len - at < names->longest; at--) {
        const struct acl_names_slot *slot;
        uint64_t whole;

        hash = hash_byte(hash, name[at - 1]);
        if (at != 1 && name[at - 2] != '.')
            continue;
        whole = finish(hash);
        slot = slot_for(names, whole, name + at - 1, len - at + 1);
        if (slot->record == 0)
            continue;
        lists |= at == 1 ? names->records[slot->record - 1] & ACL_ALL
                         : names->records[slot->record - 1] >> ACL_LISTS;
    }
    return lists;
}
