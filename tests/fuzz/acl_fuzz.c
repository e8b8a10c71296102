/*
 * Access control lists: the input is a list, a byte 0xff, and a name. Whatever the list is, the
 * answers do not depend on the seed, on the name's case or on a dot at its end; they stay the same
 * when the list comes twice; and a name that is the text of an address gets the address's.
 */
#include "fuzz/fuzz.h"

#include <string.h>

#include "acl/acl.h"

struct answers {
    enum ss_acl_route route;
    enum ss_acl_outbound outbound;
};

static void on_fault(void *owner, const struct ss_acl_fault *fault)
{
    size_t *lines = owner;

    CHECK(fault->line >= 1 && fault->line <= *lines);
    CHECK(strlen(fault->line_text) <= SS_ACL_LINE_MAX);
    CHECK(fault->reason[0] != '\0');
}

static struct answers ask(const struct ss_acl *acl, struct ss_acl_scratch *scratch,
                          const char *name, size_t len)
{
    return (struct answers){ss_acl_name_route(acl, scratch, name, len),
                            ss_acl_outbound_name(acl, scratch, name, len)};
}

static void check_same(struct answers a, struct answers b)
{
    CHECK(a.route == b.route);
    CHECK(a.outbound == b.outbound);
}

static void check_address(const struct ss_acl *acl, const char *text, struct answers answers)
{
    struct ss_ip ip, mapped = {.family = SS_FAMILY_IPV6, .bytes = {[10] = 0xff, [11] = 0xff}};

    if (strchr(text, '%') != NULL || ss_ip_parse(&ip, text) != SS_OK)
        return;
    CHECK(answers.route == ss_acl_addresses_route(acl, &ip, 1));
    CHECK((answers.outbound == SS_ACL_REFUSED) == ss_acl_outbound_blocked(acl, &ip, false));
    if (ip.family != SS_FAMILY_IPV4)
        return;
    memcpy(mapped.bytes + 12, ip.bytes, 4);
    CHECK(answers.route == ss_acl_addresses_route(acl, &mapped, 1));
    CHECK(ss_acl_client_refused(acl, &ip) == ss_acl_client_refused(acl, &mapped));
}

static void check_name(const struct ss_acl *acl, const struct ss_acl *twice, const char *name,
                       size_t len)
{
    struct ss_acl_scratch *scratch = ss_acl_scratch_new();
    struct answers answers;
    char other[SS_HOST_MAX + 2];

    CHECK(scratch != NULL);
    answers = ask(acl, scratch, name, len);
    check_same(answers, ask(twice, scratch, name, len));
    if (len != 0 && len <= SS_HOST_MAX && name[len - 1] != '.') {
        for (size_t i = 0; i < len; i++)
            other[i] = name[i] >= 'a' && name[i] <= 'z' ? (char)(name[i] - 'a' + 'A') : name[i];
        other[len] = '.';
        check_same(answers, ask(acl, scratch, other, len));
        check_same(answers, ask(acl, scratch, other, len + 1));
        other[len] = '\0';
        if (memchr(other, '\0', len) == NULL)
            check_address(acl, other, answers);
    }
    ss_acl_scratch_free(scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const uint8_t *mark = len != 0 ? memchr(bytes, 0xff, len) : NULL;
    const struct ss_view text = {bytes, mark != NULL ? (size_t)(mark - bytes) : len};
    const struct ss_view texts[] = {text, text};
    struct ss_acl *acl, *twice;
    enum ss_status status;
    size_t lines = 1;

    for (size_t i = 0; i < text.len; i++)
        lines += bytes[i] == '\n';
    status = ss_acl_parse(&acl, &text, 1, 1, on_fault, &lines);
    CHECK(status == SS_OK || status == SS_ERR_FORMAT);
    CHECK(ss_acl_parse(&twice, texts, 2, 0xfeedface, NULL, NULL) == status);
    CHECK((acl != NULL) == (status == SS_OK));
    if (acl != NULL) {
        const struct ss_acl_counts once = ss_acl_count(acl), both = ss_acl_count(twice);

        CHECK(both.names == 2 * once.names && both.networks == 2 * once.networks &&
              both.patterns == 2 * once.patterns);
        if (mark != NULL)
            check_name(acl, twice, (const char *)mark + 1, len - text.len - 1);
    }
    ss_acl_release(acl);
    ss_acl_release(twice);
    return 0;
}
