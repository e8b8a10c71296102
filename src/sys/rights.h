/*
 * Single rights of root (capabilities) that a process keeps when it becomes another user, for what
 * it can't do before it serves.
 */
#ifndef SS_SYS_RIGHTS_H
#define SS_SYS_RIGHTS_H

#include "base/status.h"

/* Bits. */
enum ss_right {
    SS_RIGHT_FOREIGN_ADDRESS = 1, /* sockets bound to addresses that are not this machine's */
    SS_RIGHT_LOW_PORT = 2,        /* ports below 1024 */
    SS_RIGHT_MARK = 4,            /* marks on sockets */
    SS_RIGHT_INTERFACE = 8        /* sockets bound to an interface */
};

/* Before the user is switched: what the process may do then survives it. SS_ERR_UNSUPPORTED where
 * the system knows no single rights. */
SS_CHECKED enum ss_status ss_rights_hold(void);

/*
 * After it: of the rights that the process has, those in `rights` stay in effect, all others go for
 * good, in the calling thread and those that it starts. A right that the process never had is no
 * error.
 */
SS_CHECKED enum ss_status ss_rights_reduce(unsigned rights);

#endif
