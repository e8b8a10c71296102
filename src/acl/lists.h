/* The four lists that rules belong to. For this folder alone. */
#ifndef SS_ACL_LISTS_H
#define SS_ACL_LISTS_H

/* Sets of lists are bits, 1 << list. */
enum acl_list { ACL_BLACK, ACL_WHITE, ACL_BLOCK, ACL_ALLOW, ACL_LISTS };

#define ACL_BIT(list) (1u << (list))
#define ACL_ALL       (ACL_BIT(ACL_LISTS) - 1)

#endif
