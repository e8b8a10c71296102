/* What a line says: section or mode, address, name or pattern. */
#include "acl/rule.h"

#include <string.h>

#include "acl/names.h"

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Whether the text consists of bytes of `set`, and of digits and hexadecimal letters as told. */
static bool consists_of(const char *text, const char *set, bool hexadecimal)
{
    for (; *text != '\0'; text++)
        if (!is_digit(*text) && strchr(set, *text) == NULL &&
            !(hexadecimal && lower(*text) >= 'a' && lower(*text) <= 'f'))
            return false;
    return true;
}

static void bad(struct acl_rule *rule, enum acl_rule_kind kind, const char *reason)
{
    rule->kind = kind;
    rule->reason = reason;
}

/* Where the comment begins: at the first number sign that no backslash stands for. */
static size_t without_comment(const char *line, size_t len)
{
    bool escaped = false;

    for (size_t i = 0; i < len; i++) {
        if (line[i] == '#' && !escaped)
            return i;
        escaped = line[i] == '\\' && !escaped;
    }
    return len;
}

/* False when there is no rule in it, or none can be. */
static bool take_text(struct acl_rule *rule, const char *line, size_t len)
{
    size_t copied;

    len = without_comment(line, len);
    while (len != 0 && is_blank(*line)) {
        line++;
        len--;
    }
    while (len != 0 && is_blank(line[len - 1]))
        len--;
    copied = len < sizeof rule->text ? len : sizeof rule->text - 1;
    if (copied != 0)
        memcpy(rule->text, line, copied);
    rule->text[copied] = '\0';
    if (len == 0)
        return false;
    if (len > SS_ACL_LINE_MAX) {
        bad(rule, ACL_RULE_BAD, "the line is too long");
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (line[i] == '\0' || (unsigned char)line[i] >= 0x80) {
            bad(rule, ACL_RULE_BAD,
                line[i] == '\0' ? "there is a NUL in it"
                                : "rules are ASCII: names of other letters are written as xn--...");
            return false;
        }
    }
    return true;
}

/* Both dialects' words, in any case. */
static bool is_word(const char *text, const char *word)
{
    for (; *text != '\0' && lower(*text) == *word; text++)
        word++;
    return *text == *word;
}

static bool read_section(struct acl_rule *rule)
{
    static const struct {
        const char *word;
        enum acl_rule_kind kind;
        enum acl_list list;
        bool mode_on;
    } words[] = {
        {"[bypass_list]", ACL_RULE_SECTION, ACL_BLACK, false},
        {"[black_list]", ACL_RULE_SECTION, ACL_BLACK, false},
        {"[proxy_list]", ACL_RULE_SECTION, ACL_WHITE, false},
        {"[white_list]", ACL_RULE_SECTION, ACL_WHITE, false},
        {"[outbound_block_list]", ACL_RULE_SECTION, ACL_BLOCK, false},
        {"[outbound_allow_list]", ACL_RULE_SECTION, ACL_ALLOW, false},
        {"[proxy_all]", ACL_RULE_CLIENT_MODE, ACL_BLACK, false},
        {"[accept_all]", ACL_RULE_CLIENT_MODE, ACL_BLACK, false},
        {"[bypass_all]", ACL_RULE_CLIENT_MODE, ACL_BLACK, true},
        {"[reject_all]", ACL_RULE_CLIENT_MODE, ACL_BLACK, true},
        {"[outbound_allow_all]", ACL_RULE_TARGET_MODE, ACL_BLOCK, false},
        {"[outbound_block_all]", ACL_RULE_TARGET_MODE, ACL_BLOCK, true},
    };
    const char *text = rule->text;
    const size_t len = strlen(text);

    if (text[0] != '[' || text[len - 1] != ']')
        return false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (!is_word(text, words[i].word))
            continue;
        rule->kind = words[i].kind;
        rule->list = words[i].list;
        rule->mode_on = words[i].mode_on;
        return true;
    }
    /* The classic suite takes such a line for a set of characters, which hits nearly every name. */
    for (size_t i = 1; i < len - 1; i++)
        if (!is_letter(text[i]) && text[i] != '_')
            return false;
    bad(rule, ACL_RULE_BAD_SECTION, "there is no such section: it is left out with its rules");
    return true;
}

static bool read_prefix(const char *text, unsigned max, unsigned *prefix)
{
    unsigned value = 0;
    size_t len = strlen(text);

    if (len == 0 || len > 3)
        return false;
    for (; *text != '\0'; text++) {
        if (!is_digit(*text))
            return false;
        value = value * 10 + (unsigned)(*text - '0');
    }
    *prefix = value;
    return value <= max;
}

/* What can only have been meant for an address, a network, or several: taken for a pattern it would
 * match nothing, or the wrong names. */
static bool looks_like_address(const char *text)
{
    size_t dots = 0;

    for (const char *c = text; *c != '\0'; c++)
        dots += *c == '.';
    if (strchr(text, ':') != NULL)
        return consists_of(text, ":./-, []", true);
    if (dots == 0 || strpbrk(text, "0123456789") == NULL)
        return false;
    return consists_of(text, "./-, ", false) ||
           (dots == 3 && is_digit(text[0]) && consists_of(text, ".*/", false));
}

static bool read_network(struct acl_rule *rule)
{
    char head[SS_IP_TEXT_MAX];
    const char *slash = strchr(rule->text, '/');
    size_t len = slash != NULL ? (size_t)(slash - rule->text) : strlen(rule->text);
    size_t zone;
    struct ss_ip ip;

    while (len != 0 && is_blank(rule->text[len - 1]))
        len--;
    if (len >= sizeof head)
        len = 0;
    memcpy(head, rule->text, len);
    head[len] = '\0';
    zone = strcspn(head, "%");
    head[zone] = '\0';
    if (ss_ip_parse(&rule->ip, head) != SS_OK) {
        if (!looks_like_address(rule->text))
            return false;
        bad(rule, ACL_RULE_BAD_ADDRESS, "not an address or network");
        return true;
    }
    rule->kind = ACL_RULE_NETWORK;
    rule->prefix = rule->ip.family == SS_FAMILY_IPV4 ? 32 : 128;
    if (zone != len)
        bad(rule, ACL_RULE_BAD_ADDRESS, "an address with a zone can't be listed");
    else if (slash != NULL && !read_prefix(slash + 1, rule->prefix, &rule->prefix))
        bad(rule, ACL_RULE_BAD_ADDRESS, "not a prefix length of its family");
    ip = rule->ip;
    ss_ip_unmap(&ip);
    if (ip.family != rule->ip.family && rule->prefix >= 96) {
        rule->ip = ip;
        rule->prefix -= 96;
    }
    return true;
}

static bool is_address(const char *text)
{
    struct ss_ip ip;

    return ss_ip_parse(&ip, text) == SS_OK;
}

static bool is_name_byte(char c)
{
    return is_letter(c) || is_digit(c) || c == '-' || c == '_';
}

/* False when it is no name then. */
static bool take_final_dot(char *name, size_t len)
{
    if (len > 1 && name[len - 1] == '.')
        name[--len] = '\0';
    return ss_host_is_valid(name, len) && name[len - 1] != '.';
}

/* "||name", the name and all below it; "|name", the name alone. */
static bool read_barred(struct acl_rule *rule)
{
    const char *text = rule->text + 1;
    size_t len = 0;

    if (rule->text[0] != '|')
        return false;
    rule->covers = ACL_ITSELF;
    if (*text == '|') {
        rule->covers |= ACL_BELOW;
        text++;
    }
    for (; (is_name_byte(text[len]) || text[len] == '.') && len < SS_HOST_MAX; len++)
        rule->name[len] = lower(text[len]);
    rule->kind = ACL_RULE_NAME;
    rule->name[len] = '\0';
    if (text[len] != '\0' || !take_final_dot(rule->name, len))
        bad(rule, ACL_RULE_BAD, "not a name behind the bar");
    else if (is_address(rule->name))
        bad(rule, ACL_RULE_BAD_ADDRESS, "addresses are written without a bar");
    return true;
}

/*
 * A pattern that says no more than a name, or the end of names, becomes that: usual lists consist
 * of thousands of them. Without its `$` a pattern goes on matching whatever follows, and stays one.
 */
static bool read_plain_pattern(struct acl_rule *rule)
{
    static const struct {
        const char *head;
        unsigned covers;
    } heads[] = {
        {"(^|\\.)", ACL_ITSELF | ACL_BELOW},
        {"(?:^|\\.)", ACL_ITSELF | ACL_BELOW},
        {"(\\.|^)", ACL_ITSELF | ACL_BELOW},
        {"(?:\\.|^)", ACL_ITSELF | ACL_BELOW},
        {"^(.*\\.)?", ACL_ITSELF | ACL_BELOW},
        {"^(?:.*\\.)?", ACL_ITSELF | ACL_BELOW},
        {"^(.+\\.)?", ACL_ITSELF | ACL_BELOW},
        {"^(?:.+\\.)?", ACL_ITSELF | ACL_BELOW},
        {"^([^.]+\\.)*", ACL_ITSELF | ACL_BELOW},
        {"^(?:[^.]+\\.)*", ACL_ITSELF | ACL_BELOW},
        {"^.*\\.", ACL_BELOW},
        {"^.+\\.", ACL_BELOW},
        {"\\.", ACL_BELOW},
        {"^", ACL_ITSELF},
    };
    const char *text = NULL;
    size_t len = 0;

    for (size_t i = 0; text == NULL && i < sizeof heads / sizeof heads[0]; i++) {
        const size_t head_len = strlen(heads[i].head);

        if (strncmp(rule->text, heads[i].head, head_len) != 0)
            continue;
        text = rule->text + head_len;
        rule->covers = heads[i].covers;
    }
    if (text == NULL)
        return false;
    for (; *text != '\0' && len < SS_HOST_MAX; text++) {
        if (*text == '\\' && (text[1] == '.' || text[1] == '-'))
            text++;
        else if (!is_name_byte(*text))
            break;
        rule->name[len++] = lower(*text);
    }
    rule->name[len] = '\0';
    /* A name at whose end there is a dot is not met, for it is taken off before. */
    if (strcmp(text, "$") != 0 || !ss_host_is_valid(rule->name, len) || rule->name[len - 1] == '.')
        return false;
    /* Such a name is an address and never asked for as a name; the end of one it can be. */
    rule->kind = ACL_RULE_NAME;
    return true;
}

void acl_rule_read(struct acl_rule *rule, const char *line, size_t len)
{
    rule->kind = ACL_RULE_NONE;
    if (!take_text(rule, line, len))
        return;
    if (read_section(rule) || read_network(rule) || read_barred(rule) || read_plain_pattern(rule))
        return;
    rule->kind = ACL_RULE_PATTERN;
}
