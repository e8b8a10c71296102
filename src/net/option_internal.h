/* What both kinds of sockets do with their options. For this folder alone. */
#ifndef SS_NET_OPTION_INTERNAL_H
#define SS_NET_OPTION_INTERNAL_H

#include <stdatomic.h>

#include "base/addr.h"
#include "base/status.h"

/* An option that the kernel refuses is no reason to fail: one line a process for each `warned`. */
void ss_option_refused(atomic_flag *warned, const char *what, enum ss_status status);

/* Asks for socket buffers of these sizes, 0 for the system's; warns where they are refused. */
void ss_option_buffers(int fd, int sndbuf, int rcvbuf);

/* The mark and the DSCP of what the socket sends, 0 for none; warns where they are refused. */
void ss_option_outgoing(int fd, enum ss_family family, uint32_t mark, uint8_t tos);

#endif
