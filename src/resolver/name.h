/* Names as they are compared, and those that need no file and no server. Pure. */
#ifndef SS_RESOLVER_NAME_H
#define SS_RESOLVER_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"

/* Copies a name in the form in which names are compared, lower case and without a final dot, to
 * `out` of SS_HOST_MAX + 1 bytes. False when it is none that a resolver takes. */
bool ss_name_read(char *out, const char *name);

/* The text of an address is that address, localhost and what ends in .localhost are the two of this
 * host (RFC 6761, 6.3). `name` in the form above, room for 2 in `ips`; returns how many. */
size_t ss_name_known(const char *name, struct ss_ip *ips);

#endif
