/* Networks of both families, each on some of the lists, in a prefix tree. For this folder alone. */
#ifndef SS_ACL_NETWORKS_H
#define SS_ACL_NETWORKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/status.h"

struct acl_node;

/* Begins as zero. */
struct acl_networks {
    struct acl_node *nodes;
    uint32_t count, cap;
    unsigned lists; /* that have a network at all */
};

/* Puts the network of the first `prefix` bits, at most 32 or 128, on a list. SS_ERR_MEMORY. */
SS_CHECKED enum ss_status acl_networks_add(struct acl_networks *networks, const struct ss_ip *ip,
                                           unsigned prefix, unsigned list);

/* Gives back what was reserved for more. */
void acl_networks_trim(struct acl_networks *networks);
void acl_networks_clear(struct acl_networks *networks);

/* The lists that have a network with this address. IPv4-mapped addresses are to be given as IPv4.
 */
unsigned acl_networks_find(const struct acl_networks *networks, const struct ss_ip *ip);

#endif
