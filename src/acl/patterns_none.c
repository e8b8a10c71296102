/* Of a build without PCRE2: no pattern is taken, and a list that has one is refused. */
#include "acl/patterns.h"

#include <stdio.h>
#include <stdlib.h>

#include "acl/acl.h"

struct ss_acl_scratch {
    char name[SS_HOST_MAX + 1];
};

struct ss_acl_scratch *ss_acl_scratch_new(void)
{
    return calloc(1, sizeof(struct ss_acl_scratch));
}

void ss_acl_scratch_free(struct ss_acl_scratch *scratch)
{
    free(scratch);
}

char *acl_scratch_name(struct ss_acl_scratch *scratch)
{
    return scratch->name;
}

enum ss_status acl_patterns_add(struct acl_patterns *patterns, const char *text,
                                char reason[ACL_PATTERN_REASON_MAX])
{
    (void)patterns;
    (void)text;
    snprintf(reason, ACL_PATTERN_REASON_MAX, "regular expressions are not in this build");
    return SS_ERR_UNSUPPORTED;
}

void acl_patterns_clear(struct acl_patterns *patterns)
{
    *patterns = (struct acl_patterns){0};
}

bool acl_patterns_match(const struct acl_patterns *patterns, struct ss_acl_scratch *scratch,
                        const char *name, size_t len, bool unknown)
{
    (void)patterns;
    (void)scratch;
    (void)name;
    (void)len;
    (void)unknown;
    return false;
}
