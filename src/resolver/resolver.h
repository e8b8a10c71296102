/*
 * Names to addresses, on a libuv loop, without ever blocking it. One resolver a loop.
 *
 * The system's hosts file is read by us (again when it changes), `localhost` is answered at home
 * (RFC 6761), everything else is asked of name servers through c-ares: DNS only, names always
 * absolute, A and AAAA apart. Answers are kept as long as they say, failures briefly; who asks for
 * a name that is being looked up waits for the same answer.
 */
#ifndef SS_RESOLVER_RESOLVER_H
#define SS_RESOLVER_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "base/addr.h"
#include "base/status.h"
#include "resolver/answer.h"

struct ss_resolver;
struct ss_query;

struct ss_resolver_options {
    const char *nameservers; /* "ip[:port],…", borrowed during the call; NULL: the system's,
                                followed as they change */
    uint32_t timeout_ms;     /* of one try; 0: 3,000 */
    uint32_t tries;          /* 0: 2 */
    bool ipv6_first;
    uint32_t max_queries; /* that wait for an answer at once; 0: 1,024 */
    uint32_t max_names;   /* out with the name servers at once, others wait; 0: 1,024 */
    uint32_t ttl_max_s;   /* no answer is kept for longer; 0: 3,600 */
    uint32_t mark;        /* of the queries, for the system's rules; 0: none */
    uint32_t cache_names; /* whose answers are kept at most; 0: 1,024 */
    /* Borrowed for the resolver's life, as the next. NULL: /etc/hosts, /etc/resolv.conf. */
    const char *hosts_path;
    const char *resolv_path; /* looked at only where `nameservers` is NULL */
};

/* Once a process, before any resolver and any thread; gives c-ares our heap. */
SS_CHECKED enum ss_status ss_resolver_global_start(void);
void ss_resolver_global_end(void);

/* SS_ERR_ARGUMENT when the name servers can't be read. */
SS_CHECKED enum ss_status ss_resolver_new(struct ss_resolver **out, uv_loop_t *loop,
                                          const struct ss_resolver_options *options);

/* Ends all queries without calling back and closes its handles; it is gone when the loop has run
 * their close callbacks. NULL is fine. */
void ss_resolver_close(struct ss_resolver *resolver);

/*
 * `addresses` are in the order in which to try them: the families by turns, the preferred one
 * first; valid during the call. SS_ERR_NOT_FOUND when there is no such name or no address,
 * SS_ERR_TIMEOUT, SS_ERR_IO for SERVFAIL and the like.
 */
typedef void ss_resolved_fn(void *owner, enum ss_status status, const struct ss_ip *addresses,
                            size_t count);

/*
 * Looks a name up. `done` comes once, never from inside this call, unless the query is cancelled.
 * NULL when `name` is not one that a resolver takes, or too many queries are open.
 */
struct ss_query *ss_resolver_ask(struct ss_resolver *resolver, const char *name,
                                 ss_resolved_fn *done, void *owner);

/* From here on its callback does not come. NULL is fine. */
void ss_resolver_cancel(struct ss_query *query);

/* Descriptors that a resolver with these name servers holds open at most, for the budget. */
uint32_t ss_resolver_descriptors(const char *nameservers);

#endif
