/*
 * Blocks: what a connection borrows only while bytes wait. A queue of them holds what a sink has
 * not taken; a single one holds the incomplete message at the end of what was read.
 */
#ifndef SS_RELAY_BLOCK_H
#define SS_RELAY_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "base/pool.h"
#include "base/span.h"

/* A whole number of pages; what is left after the head holds the largest incomplete chunk of any
 * method (2 + 16 + 65,535 + 16), and four of them hold a sealed scratch. */
#define SS_BLOCK_SIZE (68u * 1024u)

struct ss_block {
    uv_write_t request; /* of the queue whose first block this is */
    struct ss_block *next;
    uint32_t begin, end; /* the waiting bytes, as offsets into `bytes` */
    uint8_t bytes[];
};

#define SS_BLOCK_CAPACITY (SS_BLOCK_SIZE - (uint32_t)offsetof(struct ss_block, bytes))

struct ss_block_queue {
    struct ss_block *first, *last;
    size_t len; /* bytes waiting in all */
};

/* An empty block, or NULL. */
struct ss_block *ss_block_acquire(struct ss_pool *pool);

/* Copies the bytes to the end of the queue. False when the pool is out of blocks: the connection
 * can't go on then. */
bool ss_block_queue_append(struct ss_block_queue *queue, struct ss_pool *pool,
                           struct ss_view bytes);

/* Takes `len` bytes, at most all, from the front and gives back the blocks that are empty then. */
void ss_block_queue_consume(struct ss_block_queue *queue, struct ss_pool *pool, size_t len);

/* Lists the waiting bytes of up to `max` blocks; returns how many. */
size_t ss_block_queue_spans(const struct ss_block_queue *queue, struct ss_span *spans, size_t max);

/* Gives every block back. */
void ss_block_queue_clear(struct ss_block_queue *queue, struct ss_pool *pool);

#endif
