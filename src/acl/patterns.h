/* Regular expressions over names (PCRE2), one set for each list. For this folder alone. */
#ifndef SS_ACL_PATTERNS_H
#define SS_ACL_PATTERNS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct ss_acl_scratch;

/* Begins as zero. */
struct acl_patterns {
    void **codes; /* compiled */
    size_t count, cap;
};

#define ACL_PATTERN_REASON_MAX 200 /* bytes, with the NUL */

/* SS_ERR_MEMORY, or with the reason SS_ERR_FORMAT for what is no regular expression and
 * SS_ERR_UNSUPPORTED from a build without them. */
SS_CHECKED enum ss_status acl_patterns_add(struct acl_patterns *patterns, const char *text,
                                           char reason[ACL_PATTERN_REASON_MAX]);
void acl_patterns_clear(struct acl_patterns *patterns);

/*
 * Whether one of them matches the name, in lower case and without a dot at the end. `unknown` is
 * the answer for a pattern that a name kept busy beyond its bound.
 */
bool acl_patterns_match(const struct acl_patterns *patterns, struct ss_acl_scratch *scratch,
                        const char *name, size_t len, bool unknown);

/* Room for a name of SS_HOST_MAX bytes and a NUL, of the scratch. */
char *acl_scratch_name(struct ss_acl_scratch *scratch);

#endif
