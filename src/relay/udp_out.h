/* What comes back to an association's socket. For this folder alone. */
#ifndef SS_RELAY_UDP_OUT_H
#define SS_RELAY_UDP_OUT_H

#include <uv.h>

/* The poll callback of a struct ss_udp_out. */
void ss_udp_out_readable(uv_poll_t *poll, int status, int events);

#endif
