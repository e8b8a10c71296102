/*
 * Bytes from one TCP connection to another inside the kernel, through a pipe (Linux's splice): no
 * byte is copied to us and back. Elsewhere every move is SS_ERR_UNSUPPORTED.
 */
#ifndef SS_NET_SPLICE_H
#define SS_NET_SPLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "base/status.h"

/* Descriptors that a pipe takes. */
#define SS_SPLICE_DESCRIPTORS 2

/* One pipe for all connections of a thread: between two moves it is empty. Zero before its first
 * use, which makes the pipe. */
struct ss_splice {
    int read_end, write_end;
    bool made;
    bool refused; /* the system gives no pipe that is worth it */
};

/* What a move came to. */
struct ss_spliced {
    size_t got;  /* bytes that have left the source */
    size_t left; /* of these, those that the sink did not take: ss_splice_take them at once */
};

/*
 * Moves up to `room` bytes (at least 1) that have arrived. SS_OK also when nothing is there, which
 * may mean nothing yet, the end, or urgent data in the way: only reading tells. A sink that fails
 * takes nothing, and the next write tells why.
 *
 * SS_ERR_UNSUPPORTED: these two can't be spliced, now or later; with *moved as after SS_OK, for the
 * sink may be the one. Any other status is the source's error; its connection is gone.
 */
SS_CHECKED enum ss_status ss_splice_move(struct ss_splice *splice, const uv_tcp_t *source,
                                         const uv_tcp_t *sink, size_t room,
                                         struct ss_spliced *moved);

/* Takes what a move has left out of the pipe, all of it. False when that fails, which a sound
 * system does not do: the bytes are lost, and the stream has a hole. */
SS_CHECKED bool ss_splice_take(struct ss_splice *splice, uint8_t *bytes, size_t left);

/* Closes the pipe, if there is one. */
void ss_splice_close(struct ss_splice *splice);

#endif
