/* One line of an access control list. For this folder alone. */
#ifndef SS_ACL_RULE_H
#define SS_ACL_RULE_H

#include <stdbool.h>
#include <stddef.h>

#include "acl/acl.h"
#include "acl/lists.h"

enum acl_rule_kind {
    ACL_RULE_NONE,        /* nothing but blanks and a comment */
    ACL_RULE_SECTION,     /* `list` is where the following go */
    ACL_RULE_CLIENT_MODE, /* `mode_on`: bypass or refuse what is not listed */
    ACL_RULE_TARGET_MODE, /* `mode_on`: block what is not listed */
    ACL_RULE_NETWORK,     /* `ip`, `prefix` */
    ACL_RULE_NAME,        /* `name`, `covers` */
    ACL_RULE_PATTERN,     /* `text` */
    ACL_RULE_BAD,         /* `reason` */
    ACL_RULE_BAD_ADDRESS, /* the same, and it was meant for an address */
    ACL_RULE_BAD_SECTION, /* the same of a section, whose rules are for no list */
};

struct acl_rule {
    enum acl_rule_kind kind;
    enum acl_list list;
    bool mode_on;
    struct ss_ip ip;
    unsigned prefix;
    unsigned covers;                /* ACL_ITSELF, ACL_BELOW */
    const char *reason;             /* a constant */
    char name[SS_HOST_MAX + 1];     /* in lower case, without a dot at the end */
    char text[SS_ACL_LINE_MAX + 1]; /* without blanks around it and comment; cut when too long */
};

/* Takes the line apart; it holds no line feed. */
void acl_rule_read(struct acl_rule *rule, const char *line, size_t len);

#endif
