/*
 * What a name server's answer says of one name and one family: addresses, or that there are none,
 * and for how long (RFC 1035, RFC 2308). Pure: bytes in, facts out.
 *
 * Only records that belong to the name that was asked for count: its own, and those at the end of
 * the aliases that begin with it. What else a message holds is left alone, so that an answer about
 * one name can say nothing about another.
 */
#ifndef SS_RESOLVER_ANSWER_H
#define SS_RESOLVER_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/span.h"
#include "base/status.h"

#define SS_ADDRESSES_MAX 16

struct ss_answer {
    /* SS_OK with an address or more; SS_ERR_NOT_FOUND when there is no such name or it has none;
     * else there is no answer, and why. */
    enum ss_status status;
    bool has_ttl;   /* `ttl_s` was said */
    uint32_t ttl_s; /* how long this holds: the least of the records', of the SOA's for a "no" */
    size_t count;
    struct ss_ip ips[SS_ADDRESSES_MAX]; /* the first ones, as they came */
};

/*
 * Reads an answer to a question for `name` (valid for ss_host_is_valid, with a final dot or not),
 * A or AAAA by `family`. The status is in *answer: SS_ERR_FORMAT when the message is malformed or
 * answers another question, SS_ERR_IO when the server says that it failed.
 */
void ss_answer_read(struct ss_answer *answer, struct ss_view message, const char *name,
                    enum ss_family family);

/*
 * How long an answer may be kept, in milliseconds: what it says, at most `ttl_max_s` (so not at all
 * where it says 0); a "no" 1 to 60 s, 2 s where nothing is said; a failure of the name servers 2 s,
 * their silence 1 s; what was our own trouble not at all.
 */
uint64_t ss_answer_lifetime_ms(const struct ss_answer *answer, uint32_t ttl_max_s);

#endif
