/*
 * The names of a hosts file: parsed from its text, then looked up. Pure: no file, no clock.
 */
#ifndef SS_RESOLVER_HOSTS_H
#define SS_RESOLVER_HOSTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/status.h"

struct ss_hosts_entry;

/* All zero is an empty table. */
struct ss_hosts {
    struct ss_hosts_entry *entries; /* by name, then by place in the file */
    size_t count;
    char *names;       /* lower case, no final dot, each with a NUL */
    struct ss_ip *ips; /* one for each line that counts */
};

/* Longer texts are refused; a list that blocks some hundred thousand names still fits. */
#define SS_HOSTS_TEXT_MAX ((size_t)16 << 20)

/*
 * Replaces what *hosts holds by the lines of `text`: an address, blanks, names; `#` begins a
 * comment. A line whose address can't be read is skipped, and so is a name that no resolver takes.
 * SS_OK, SS_ERR_FORMAT when the text is too long, SS_ERR_MEMORY: then *hosts is as it was.
 */
SS_CHECKED enum ss_status ss_hosts_parse(struct ss_hosts *hosts, const char *text, size_t len);

/* Frees what the table holds and empties it. */
void ss_hosts_clear(struct ss_hosts *hosts);

/*
 * Copies up to `cap` different addresses of `name` (lower case, no final dot) to `out`, in the
 * order of the file; returns how many. Allocates nothing.
 */
size_t ss_hosts_find(const struct ss_hosts *hosts, const char *name, struct ss_ip *out, size_t cap);

#endif
