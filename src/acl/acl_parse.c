/* Texts become a list. */
#include <stdlib.h>
#include <string.h>

#include "acl/acl_internal.h"
#include "acl/rule.h"

#define NO_LIST ACL_LISTS

struct parse {
    struct ss_acl *acl;
    ss_acl_report_fn *report;
    void *owner;
    size_t text, line;
    enum acl_list list; /* where rules go; NO_LIST behind a section that there is not */
    bool fatal;
    struct acl_rule rule;
};

/* Takes the next line off the text. False when none is left. */
static bool next_line(struct ss_view *text, struct ss_view *line)
{
    const uint8_t *end;

    if (text->len == 0)
        return false;
    end = memchr(text->ptr, '\n', text->len);
    line->ptr = text->ptr;
    line->len = end != NULL ? (size_t)(end - text->ptr) : text->len;
    text->ptr += line->len + (end != NULL);
    text->len -= line->len + (end != NULL);
    return true;
}

static struct ss_view without_mark(struct ss_view text)
{
    static const char mark[] = "\xef\xbb\xbf"; /* some editors begin a file with it */

    if (text.len >= 3 && memcmp(text.ptr, mark, 3) == 0) {
        text.ptr += 3;
        text.len -= 3;
    }
    return text;
}

static void report(struct parse *parse, const char *reason, bool fatal)
{
    const struct ss_acl_fault fault = {
        .text = parse->text,
        .line = parse->line,
        .line_text = parse->rule.text,
        .reason = reason,
        .fatal = fatal,
    };

    parse->fatal |= fatal;
    if (parse->report != NULL)
        parse->report(parse->owner, &fault);
}

/* Without a bad line of these, what the list is for stays open. */
static bool guards(const struct parse *parse)
{
    return parse->list == ACL_BLOCK || (parse->list == ACL_WHITE && parse->acl->bypass_all);
}

static enum ss_status add(struct parse *parse)
{
    const struct acl_rule *rule = &parse->rule;
    struct ss_acl *acl = parse->acl;
    char reason[ACL_PATTERN_REASON_MAX];
    enum ss_status status = SS_OK;

    switch (rule->kind) {
    case ACL_RULE_NETWORK:
        status = acl_networks_add(&acl->networks, &rule->ip, rule->prefix, parse->list);
        acl->counts.networks++;
        break;
    case ACL_RULE_NAME:
        status =
            acl_names_add(&acl->names, rule->name, strlen(rule->name), rule->covers, parse->list);
        acl->counts.names++;
        break;
    case ACL_RULE_PATTERN:
        status = acl_patterns_add(&acl->patterns[parse->list], rule->text, reason);
        if (status == SS_ERR_FORMAT || status == SS_ERR_UNSUPPORTED) {
            /* A good rule that this build does not know is not passed over. */
            report(parse, reason, status == SS_ERR_UNSUPPORTED);
            return SS_OK;
        }
        acl->counts.patterns++;
        break;
    default:
        break;
    }
    return status;
}

static enum ss_status take_line(struct parse *parse, struct ss_view line)
{
    const struct acl_rule *rule = &parse->rule;

    acl_rule_read(&parse->rule, (const char *)line.ptr, line.len);
    switch (rule->kind) {
    case ACL_RULE_SECTION:
        parse->list = rule->list;
        break;
    case ACL_RULE_BAD_SECTION:
        parse->list = NO_LIST;
        report(parse, rule->reason, false);
        break;
    case ACL_RULE_BAD:
    case ACL_RULE_BAD_ADDRESS:
        report(parse, rule->reason, rule->kind == ACL_RULE_BAD_ADDRESS && guards(parse));
        break;
    case ACL_RULE_NONE:
    case ACL_RULE_CLIENT_MODE: /* known already */
    case ACL_RULE_TARGET_MODE:
        break;
    case ACL_RULE_NETWORK:
    case ACL_RULE_NAME:
    case ACL_RULE_PATTERN:
        return parse->list != NO_LIST ? add(parse) : SS_OK;
    }
    return SS_OK;
}

/* Modes may stand anywhere, and what a bad line means depends on them: they are read before. */
static void read_modes(struct parse *parse, struct ss_view text)
{
    struct ss_view line;

    while (next_line(&text, &line)) {
        if (memchr(line.ptr, '[', line.len) == NULL)
            continue;
        acl_rule_read(&parse->rule, (const char *)line.ptr, line.len);
        if (parse->rule.kind == ACL_RULE_CLIENT_MODE)
            parse->acl->bypass_all = parse->rule.mode_on;
        else if (parse->rule.kind == ACL_RULE_TARGET_MODE)
            parse->acl->block_all = parse->rule.mode_on;
    }
}

static enum ss_status read_rules(struct parse *parse, struct ss_view text)
{
    enum ss_status status = SS_OK;
    struct ss_view line;

    parse->list = ACL_BLACK;
    parse->line = 0;
    while (status == SS_OK && next_line(&text, &line)) {
        parse->line++;
        status = take_line(parse, line);
    }
    return status;
}

static enum ss_status read_all(struct parse *parse, const struct ss_view *texts, size_t count)
{
    size_t total = 0;

    for (size_t i = 0; i < count; i++) {
        if (texts[i].len > SS_ACL_TEXT_MAX - total)
            return SS_ERR_LIMIT;
        total += texts[i].len;
        read_modes(parse, without_mark(texts[i]));
    }
    for (parse->text = 0; parse->text < count; parse->text++) {
        const enum ss_status status = read_rules(parse, without_mark(texts[parse->text]));

        if (status != SS_OK)
            return status;
    }
    return parse->fatal ? SS_ERR_FORMAT : SS_OK;
}

enum ss_status ss_acl_parse(struct ss_acl **out, const struct ss_view *texts, size_t count,
                            uint64_t seed, ss_acl_report_fn *report_fault, void *owner)
{
    struct parse *parse = calloc(1, sizeof *parse);
    struct ss_acl *acl = calloc(1, sizeof *acl);
    enum ss_status status = SS_ERR_MEMORY;

    *out = NULL;
    if (parse != NULL && acl != NULL) {
        atomic_init(&acl->holders, 1);
        acl->names.seed = seed;
        parse->acl = acl;
        parse->report = report_fault;
        parse->owner = owner;
        status = read_all(parse, texts, count);
        acl_networks_trim(&acl->networks);
        acl_names_trim(&acl->names);
    }
    free(parse);
    if (status == SS_OK)
        *out = acl;
    else
        ss_acl_release(acl);
    return status;
}
