/* Patterns, compiled to machine code where the system allows it. */
#include "acl/patterns.h"

#include <stdio.h>
#include <stdlib.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "acl/acl.h"

/*
 * A pattern that tries very many ways through a name, as (a+)+$ does with aaaa…b, stops here; what
 * people write for names of at most 255 bytes needs a fraction. The heap is in KiB; it is the
 * interpreter's, is kept from match to match, and holds a few frames for each byte of a name.
 */
#define STEPS_MAX 10000
#define DEPTH_MAX 5000
#define HEAP_MAX  512

/* Compiling to machine code pays off for patterns that are often used, and costs about 100 us each;
 * a list with more patterns than this is slow in any case. */
#define COMPILED_MAX 5000

struct ss_acl_scratch {
    pcre2_match_data *match;
    pcre2_match_context *limits;
    char name[SS_HOST_MAX + 1];
};

struct ss_acl_scratch *ss_acl_scratch_new(void)
{
    struct ss_acl_scratch *scratch = calloc(1, sizeof *scratch);

    if (scratch == NULL)
        return NULL;
    scratch->match = pcre2_match_data_create(1, NULL); /* where it matched is of no interest */
    scratch->limits = pcre2_match_context_create(NULL);
    if (scratch->match == NULL || scratch->limits == NULL) {
        ss_acl_scratch_free(scratch);
        return NULL;
    }
    pcre2_set_match_limit(scratch->limits, STEPS_MAX);
    pcre2_set_depth_limit(scratch->limits, DEPTH_MAX);
    pcre2_set_heap_limit(scratch->limits, HEAP_MAX);
    return scratch;
}

void ss_acl_scratch_free(struct ss_acl_scratch *scratch)
{
    if (scratch == NULL)
        return;
    pcre2_match_data_free(scratch->match);
    pcre2_match_context_free(scratch->limits);
    free(scratch);
}

char *acl_scratch_name(struct ss_acl_scratch *scratch)
{
    return scratch->name;
}

static bool reserve(struct acl_patterns *patterns)
{
    size_t cap = patterns->cap + patterns->cap / 2 + 16;
    void **codes;

    if (patterns->count < patterns->cap)
        return true;
    codes = realloc(patterns->codes, cap * sizeof *codes);
    if (codes == NULL)
        return false;
    patterns->codes = codes;
    patterns->cap = cap;
    return true;
}

enum ss_status acl_patterns_add(struct acl_patterns *patterns, const char *text,
                                char reason[ACL_PATTERN_REASON_MAX])
{
    PCRE2_UCHAR message[ACL_PATTERN_REASON_MAX / 2];
    PCRE2_SIZE offset;
    pcre2_code *code;
    int error;

    if (!reserve(patterns))
        return SS_ERR_MEMORY;
    code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
                         PCRE2_CASELESS | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_UTF, &error, &offset,
                         NULL);
    if (code == NULL) {
        if (error == PCRE2_ERROR_HEAP_FAILED)
            return SS_ERR_MEMORY;
        pcre2_get_error_message(error, message, sizeof message);
        snprintf(reason, ACL_PATTERN_REASON_MAX, "regex compilation failed: %s, offset %zu",
                 (const char *)message, (size_t)offset);
        return SS_ERR_FORMAT;
    }
    /* Where memory may not be made executable it is interpreted. */
    if (patterns->count < COMPILED_MAX)
        (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    patterns->codes[patterns->count++] = code;
    return SS_OK;
}

void acl_patterns_clear(struct acl_patterns *patterns)
{
    for (size_t i = 0; i < patterns->count; i++)
        pcre2_code_free(patterns->codes[i]);
    free(patterns->codes);
    *patterns = (struct acl_patterns){0};
}

bool acl_patterns_match(const struct acl_patterns *patterns, struct ss_acl_scratch *scratch,
                        const char *name, size_t len, bool unknown)
{
    for (size_t i = 0; i < patterns->count; i++) {
        const int result = pcre2_match(patterns->codes[i], (PCRE2_SPTR)name, len, 0, 0,
                                       scratch->match, scratch->limits);

        if (result >= 0 || (result != PCRE2_ERROR_NOMATCH && unknown))
            return true;
    }
    return false;
}
