/* What a list consists of. For this folder alone. */
#ifndef SS_ACL_ACL_INTERNAL_H
#define SS_ACL_ACL_INTERNAL_H

#include <stdatomic.h>

#include "acl/acl.h"
#include "acl/lists.h"
#include "acl/names.h"
#include "acl/networks.h"
#include "acl/patterns.h"

struct ss_acl {
    atomic_size_t holders;
    bool bypass_all; /* also reject_all: what is on no list */
    bool block_all;  /* the same of targets */
    struct ss_acl_counts counts;
    struct acl_networks networks;
    struct acl_names names;
    struct acl_patterns patterns[ACL_LISTS];
};

#endif
