/*
 * Names and ends of names, each on some of the lists, in a hash table. For this folder alone. Names
 * are to be given in lower case, without a dot at the end.
 */
#ifndef SS_ACL_NAMES_H
#define SS_ACL_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* What a rule covers; both for a name with all that is below it. */
#define ACL_ITSELF 1u
#define ACL_BELOW  2u

struct acl_names_slot;

/* Begins as zero, but for the seed. */
struct acl_names {
    uint64_t seed;
    struct acl_names_slot *slots;
    uint32_t slot_count; /* a power of two, at most half of them taken; or 0 */
    uint32_t count;
    uint8_t *records; /* of each name: the lists, its length, its bytes */
    size_t records_len, records_cap;
    size_t longest; /* name of a rule */
};

/* `len` is 1 to 255 bytes. SS_ERR_MEMORY, or SS_ERR_LIMIT when there are 4 GiB of them. */
SS_CHECKED enum ss_status acl_names_add(struct acl_names *names, const char *name, size_t len,
                                        unsigned covers, unsigned list);

/* Gives back what was reserved for more. */
void acl_names_trim(struct acl_names *names);
void acl_names_clear(struct acl_names *names);

/* The lists that have a rule for this name. */
unsigned acl_names_find(const struct acl_names *names, const char *name, size_t len);

#endif
