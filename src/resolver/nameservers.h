/* The addresses of name servers, as a setting or a resolv.conf lists them. Pure. */
#ifndef SS_RESOLVER_NAMESERVERS_H
#define SS_RESOLVER_NAMESERVERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"
#include "base/status.h"

#define SS_NAMESERVERS_MAX    24
#define SS_NAMESERVERS_SYSTEM 3 /* of a resolv.conf, as the C library has it */

struct ss_nameservers {
    size_t count;
    struct ss_addr list[SS_NAMESERVERS_MAX]; /* each with its port */
};

/* Reads "ip[:port],…", where blanks separate as well; SS_ERR_ARGUMENT for anything else, an empty
 * list, or too long a one. */
SS_CHECKED enum ss_status ss_nameservers_read(struct ss_nameservers *servers, const char *list);

/* Takes the first of the `nameserver` lines of a resolv.conf; none when there are none. What is no
 * address is skipped, and so is everything else in the file. */
void ss_nameservers_read_resolv_conf(struct ss_nameservers *servers, const char *text, size_t len);

bool ss_nameservers_equal(const struct ss_nameservers *a, const struct ss_nameservers *b);

/* Writes the list in the one form that every version of c-ares reads the same: an address in
 * brackets if it is IPv6, always with its port. Those with a zone are left out unless `zones`. */
#define SS_NAMESERVERS_TEXT_MAX (SS_NAMESERVERS_MAX * (SS_ADDR_TEXT_MAX + 1))
void ss_nameservers_format(const struct ss_nameservers *servers, bool zones,
                           char text[SS_NAMESERVERS_TEXT_MAX]);

#endif
