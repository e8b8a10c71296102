/* What TCP over libuv's uv_tcp_t lacks: adopting a socket, writing without a request, ending well.
 */
#ifndef SS_NET_TCP_H
#define SS_NET_TCP_H

#include <stdbool.h>
#include <stddef.h>

#include <uv.h>

#include "base/addr.h"
#include "base/span.h"
#include "base/status.h"

/* Initialises the handle on the loop with a connected or fresh socket; the handle owns `fd` then.
 * After a failure the handle still has to be closed, and `fd` is closed. */
SS_CHECKED enum ss_status ss_tcp_adopt(uv_loop_t *loop, uv_tcp_t *tcp, int fd);

/* The same with a socket of its own, which does not block. After a failure there is nothing to
 * close.
 */
SS_CHECKED enum ss_status ss_tcp_open_new(uv_loop_t *loop, uv_tcp_t *tcp, enum ss_family family);

/* Begins to connect; `done` comes later. */
SS_CHECKED enum ss_status ss_tcp_connect(uv_connect_t *request, uv_tcp_t *tcp,
                                         const struct ss_addr *addr, uv_connect_cb done);

#define SS_TCP_SPANS_MAX 64

/*
 * Writes what the kernel takes at once of up to SS_TCP_SPANS_MAX spans; *written may be anything
 * from 0 to all of it. SS_OK, or SS_ERR_RESET and the like when the connection is gone. Nothing
 * may be queued on the handle.
 */
SS_CHECKED enum ss_status ss_tcp_write_now(uv_tcp_t *tcp, const struct ss_span *spans, size_t count,
                                           size_t *written);

/* The handle's descriptor, or -1. */
int ss_tcp_descriptor(const uv_tcp_t *tcp);

/* Bytes that were written and have not been acknowledged, ours and the kernel's. */
size_t ss_tcp_in_flight(const uv_tcp_t *tcp);

/* The error that the connection has met and not told yet: SS_OK when there is none. Asking clears
 * it. */
enum ss_status ss_tcp_error(const uv_tcp_t *tcp);

/* Whether the handshake is done: with fast open, writing may begin before. */
bool ss_tcp_is_established(const uv_tcp_t *tcp);

/* Ends our direction with FIN. Everything must have been written. */
void ss_tcp_shut(uv_tcp_t *tcp);

/* Reads and forgets what has arrived, within a bound, so that closing sends FIN and not RST. */
void ss_tcp_discard(uv_tcp_t *tcp);

/* Makes the coming uv_close send RST. */
void ss_tcp_close_will_reset(uv_tcp_t *tcp);

enum ss_status ss_status_from_uv(int error);

#endif
