/*
 * Socket options that differ between systems. Each call says whether the kernel took it:
 * SS_ERR_UNSUPPORTED where it does not know the option, SS_ERR_PERMISSION where the right is
 * missing.
 */
#ifndef SS_NET_SOCKOPT_H
#define SS_NET_SOCKOPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/status.h"

/* Listening side: at most `queue` connections whose request came with the first segment. */
SS_CHECKED enum ss_status ss_sockopt_fast_open_listen(int fd, int queue);

/* Dialling side: the next connect waits for the first write and carries it where it can. */
SS_CHECKED enum ss_status ss_sockopt_fast_open_connect(int fd);

SS_CHECKED enum ss_status ss_sockopt_reuse_port(int fd);

/* On Linux SS_ERR_PERMISSION without CAP_NET_RAW on old kernels; SS_ERR_NOT_FOUND: no such device.
 */
SS_CHECKED enum ss_status ss_sockopt_interface(int fd, const char *name);

/* The mark that the system's rules see on what the socket sends. On Linux SS_ERR_PERMISSION without
 * CAP_NET_ADMIN (since 5.17 CAP_NET_RAW does too). */
SS_CHECKED enum ss_status ss_sockopt_mark(int fd, uint32_t mark);

/* The byte with the DSCP of what a socket of `family` sends. */
SS_CHECKED enum ss_status ss_sockopt_tos(int fd, enum ss_family family, uint8_t tos);

/* Seconds of idleness before the first probe, between probes, and how many probes. */
SS_CHECKED enum ss_status ss_sockopt_keep_alive(int fd, int idle_s, int interval_s, int count);

/* Whether the peer has ended its direction, or the connection is gone, though not all of what came
 * has been read. False where the system does not say. */
bool ss_sockopt_peer_has_ended(int fd);

/* Lets a source address be bound without a port, so that one local port can serve many targets. */
SS_CHECKED enum ss_status ss_sockopt_bind_no_port(int fd);

/* The protocol number to give to socket(2) for multipath TCP, or -1 where there is none. */
int ss_sockopt_mptcp_protocol(void);

/* A socket of datagrams keeps what comes back for those it sent (ICMP), for the call below. */
SS_CHECKED enum ss_status ss_sockopt_keep_errors(int fd, enum ss_family family);

/* Takes the next destination that can't be reached of what was kept; false when there is none left.
 * Never waits. */
bool ss_sockopt_next_unreachable(int fd, struct ss_addr *to);

/* Buffers for bursts of datagrams, as large as the system lets them be; 0: left as they are. */
void ss_sockopt_burst(int fd, int sndbuf, int rcvbuf);

#endif
