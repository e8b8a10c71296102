/* The questions that a list answers. */
#include "acl/acl.h"

#include <stdlib.h>
#include <string.h>

#include "acl/acl_internal.h"

void ss_acl_hold(struct ss_acl *acl)
{
    atomic_fetch_add_explicit(&acl->holders, 1, memory_order_relaxed);
}

void ss_acl_release(struct ss_acl *acl)
{
    if (acl == NULL || atomic_fetch_sub_explicit(&acl->holders, 1, memory_order_acq_rel) != 1)
        return;
    acl_networks_clear(&acl->networks);
    acl_names_clear(&acl->names);
    for (int list = 0; list < ACL_LISTS; list++)
        acl_patterns_clear(&acl->patterns[list]);
    free(acl);
}

struct ss_acl_counts ss_acl_count(const struct ss_acl *acl)
{
    return acl->counts;
}

static unsigned lists_of(const struct ss_acl *acl, const struct ss_ip *ip)
{
    struct ss_ip plain = *ip;

    ss_ip_unmap(&plain);
    return acl_networks_find(&acl->networks, &plain);
}

static bool has_networks(const struct ss_acl *acl, enum acl_list list)
{
    return (acl->networks.lists & ACL_BIT(list)) != 0;
}

/* A name as rules see it. */
struct subject {
    struct ss_acl_scratch *scratch;
    const char *name;
    size_t len;
    unsigned lists; /* that have it in their set of names */
};

/* The address that a name is the text of. A zone says where it is, not which it is. */
static bool is_address(const struct subject *subject, struct ss_ip *ip)
{
    const char last = subject->len != 0 ? subject->name[subject->len - 1] : '\0';
    char text[SS_IP_TEXT_MAX];
    size_t len;

    /* Every address ends in a digit or has a colon. */
    if ((last < '0' || last > '9') && memchr(subject->name, ':', subject->len) == NULL)
        return false;
    len = strcspn(subject->name, "%");
    if (len >= sizeof text)
        return false;
    memcpy(text, subject->name, len);
    text[len] = '\0';
    return ss_ip_parse(ip, text) == SS_OK;
}

static void read_name(struct subject *subject, const struct ss_acl *acl,
                      struct ss_acl_scratch *scratch, const char *name, size_t len)
{
    char *copy = acl_scratch_name(scratch);

    if (len != 0 && name[len - 1] == '.')
        len--;
    if (len > SS_HOST_MAX)
        len = 0;
    for (size_t i = 0; i < len; i++)
        copy[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] - 'A' + 'a') : name[i];
    copy[len] = '\0';
    subject->scratch = scratch;
    subject->name = copy;
    subject->len = len;
    subject->lists = acl_names_find(&acl->names, copy, len);
}

static bool is_on(const struct ss_acl *acl, enum acl_list list, const struct subject *subject,
                  bool unknown)
{
    if (subject->len == 0)
        return false;
    return (subject->lists & ACL_BIT(list)) != 0 ||
           acl_patterns_match(&acl->patterns[list], subject->scratch, subject->name, subject->len,
                              unknown);
}

enum ss_acl_route ss_acl_name_route(const struct ss_acl *acl, struct ss_acl_scratch *scratch,
                                    const char *name, size_t len)
{
    struct subject subject;
    struct ss_ip ip;

    read_name(&subject, acl, scratch, name, len);
    if (is_address(&subject, &ip))
        return ss_acl_addresses_route(acl, &ip, 1);
    /* What a pattern can't tell goes through the server, which gives nothing away. */
    if (is_on(acl, ACL_BLACK, &subject, false))
        return SS_ACL_BYPASS;
    if (is_on(acl, ACL_WHITE, &subject, true))
        return SS_ACL_PROXY;
    if (has_networks(acl, acl->bypass_all ? ACL_WHITE : ACL_BLACK))
        return SS_ACL_RESOLVE;
    return acl->bypass_all ? SS_ACL_BYPASS : SS_ACL_PROXY;
}

enum ss_acl_route ss_acl_addresses_route(const struct ss_acl *acl, const struct ss_ip *addresses,
                                         size_t count)
{
    if (count == 0)
        return SS_ACL_PROXY;
    for (size_t i = 0; i < count; i++) {
        const unsigned lists = lists_of(acl, &addresses[i]);
        const bool black = (lists & ACL_BIT(ACL_BLACK)) != 0;

        if (!acl->bypass_all && black)
            return SS_ACL_BYPASS;
        if (acl->bypass_all && !black && (lists & ACL_BIT(ACL_WHITE)) != 0)
            return SS_ACL_PROXY;
    }
    return acl->bypass_all ? SS_ACL_BYPASS : SS_ACL_PROXY;
}

bool ss_acl_client_refused(const struct ss_acl *acl, const struct ss_ip *client)
{
    const unsigned lists = lists_of(acl, client);

    if ((lists & ACL_BIT(ACL_BLACK)) != 0)
        return true;
    return acl->bypass_all && (lists & ACL_BIT(ACL_WHITE)) == 0;
}

enum ss_acl_outbound ss_acl_outbound_name(const struct ss_acl *acl, struct ss_acl_scratch *scratch,
                                          const char *name, size_t len)
{
    struct subject subject;
    struct ss_ip ip;

    read_name(&subject, acl, scratch, name, len);
    if (is_address(&subject, &ip))
        return ss_acl_outbound_blocked(acl, &ip, false) ? SS_ACL_REFUSED : SS_ACL_BY_ADDRESS;
    /* What a pattern can't tell is refused. */
    if (is_on(acl, ACL_BLOCK, &subject, true))
        return SS_ACL_REFUSED;
    if (is_on(acl, ACL_ALLOW, &subject, false))
        return SS_ACL_NAMED;
    return acl->block_all && !has_networks(acl, ACL_ALLOW) ? SS_ACL_REFUSED : SS_ACL_BY_ADDRESS;
}

bool ss_acl_outbound_blocked(const struct ss_acl *acl, const struct ss_ip *target, bool named)
{
    const unsigned lists = lists_of(acl, target);

    if ((lists & ACL_BIT(ACL_BLOCK)) != 0)
        return true;
    return acl->block_all && !named && (lists & ACL_BIT(ACL_ALLOW)) == 0;
}
