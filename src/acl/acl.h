/*
 * Access control lists: which targets a client reaches itself, which clients a server takes, and
 * which targets it refuses. One grammar for the classic dialect and that of shadowsocks-rust,
 * described in docs/acl/README.md.
 *
 * A list is immutable once made and counted by those who hold it, so that it can be replaced while
 * sessions go on with the one they began with. Texts are handed in; nothing here reads a file,
 * looks a name up or allocates after a list and a scratch are made. All calls but those with the
 * same scratch are thread-safe.
 *
 * Names are compared without regard to case, and a dot at the end is ignored. A name that is the
 * text of an address is that address, and an IPv4-mapped address is its IPv4 address, in rules too.
 */
#ifndef SS_ACL_ACL_H
#define SS_ACL_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/span.h"
#include "base/status.h"

struct ss_acl;

/* Bytes of a rule with its comment; a longer line is a bad one. */
#define SS_ACL_LINE_MAX 4096

/* Bytes of all texts together. */
#define SS_ACL_TEXT_MAX (64u * 1024u * 1024u)

/* A line that is no rule, and was left out. */
struct ss_acl_fault {
    size_t text;           /* which of the texts, from 0 */
    size_t line;           /* from 1 */
    const char *line_text; /* the rule, NUL-terminated, perhaps cut; valid during the call */
    const char *reason;    /* what is wrong with it; valid during the call */
    /* What it would have guarded stays open without it (an address in a list of what is refused,
     * or of the only clients that are taken), so that the list as a whole is refused. */
    bool fatal;
};
typedef void ss_acl_report_fn(void *owner, const struct ss_acl_fault *fault);

/*
 * Makes one list of all rules of the texts, in their order; modes set by a later one win, and each
 * text begins in the section that any text begins in. Bad lines go to `report`, which may be NULL,
 * and are left out. `seed` is random, for the hash of names. SS_ERR_FORMAT when a bad line was
 * fatal, SS_ERR_LIMIT when the texts are too long, SS_ERR_MEMORY. The caller holds the list once.
 */
SS_CHECKED enum ss_status ss_acl_parse(struct ss_acl **out, const struct ss_view *texts,
                                       size_t count, uint64_t seed, ss_acl_report_fn *report,
                                       void *owner);

void ss_acl_hold(struct ss_acl *acl);
/* The last one frees it. NULL is fine. */
void ss_acl_release(struct ss_acl *acl);

/* Refuses targets in loopback, private, link-local and other ranges of the local network: what
 * `block_local` adds to a server's list. */
struct ss_view ss_acl_block_local_text(void);

/* How many rules of each kind there are. A pattern that says no more than a name or the end of one
 * is counted as a name. */
struct ss_acl_counts {
    size_t networks, names, patterns;
};
struct ss_acl_counts ss_acl_count(const struct ss_acl *acl);

/* What matching needs, one for each thread; serves any list. NULL when memory is out. */
struct ss_acl_scratch *ss_acl_scratch_new(void);
/* NULL is fine. */
void ss_acl_scratch_free(struct ss_acl_scratch *scratch);

/* Of a client: ss-local. */

enum ss_acl_route {
    SS_ACL_PROXY,   /* through the upstream server */
    SS_ACL_BYPASS,  /* directly */
    SS_ACL_RESOLVE, /* its addresses decide: only where there are rules that could */
};

/* `name` is of at most SS_HOST_MAX bytes; a longer one has no rule. */
enum ss_acl_route ss_acl_name_route(const struct ss_acl *acl, struct ss_acl_scratch *scratch,
                                    const char *name, size_t len);

/* Of a target that is an address, or of all addresses of a name that was to be resolved; with none
 * SS_ACL_PROXY. Never SS_ACL_RESOLVE. */
enum ss_acl_route ss_acl_addresses_route(const struct ss_acl *acl, const struct ss_ip *addresses,
                                         size_t count);

/* Of a server. */

/* Whether a client of this address is refused. */
bool ss_acl_client_refused(const struct ss_acl *acl, const struct ss_ip *client);

enum ss_acl_outbound {
    SS_ACL_REFUSED,
    SS_ACL_BY_ADDRESS, /* no rule for the name: its addresses decide */
    SS_ACL_NAMED,      /* allowed by name; an address may be blocked nevertheless */
};
enum ss_acl_outbound ss_acl_outbound_name(const struct ss_acl *acl, struct ss_acl_scratch *scratch,
                                          const char *name, size_t len);

/* Whether a target of this address is refused: one given as such, or one of a name, `named` when
 * ss_acl_outbound_name said SS_ACL_NAMED. */
bool ss_acl_outbound_blocked(const struct ss_acl *acl, const struct ss_ip *target, bool named);

#endif
