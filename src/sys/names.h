/* Names of addresses to listen on, looked up by the C library: it blocks, so only at the start. */
#ifndef SS_SYS_NAMES_H
#define SS_SYS_NAMES_H

#include "base/addr.h"
#include "base/status.h"

/*
 * The address of a host. The text of an address is that address, whatever addresses the machine
 * has; `localhost` is 127.0.0.1; of a name it is the first that the C library gives.
 * SS_ERR_NOT_FOUND with *error_text.
 */
SS_CHECKED enum ss_status ss_names_first(struct ss_ip *ip, const char *host,
                                         const char **error_text);

#endif
