/* Blocks and queues of them. */
#include "relay/block.h"

#include <string.h>

struct ss_block *ss_block_acquire(struct ss_pool *pool)
{
    struct ss_block *block = ss_pool_acquire(pool);

    if (block != NULL) {
        block->next = NULL;
        block->begin = block->end = 0;
    }
    return block;
}

bool ss_block_queue_append(struct ss_block_queue *queue, struct ss_pool *pool, struct ss_view bytes)
{
    while (bytes.len != 0) {
        struct ss_block *block = queue->last;
        size_t part;

        if (block == NULL || block->end == SS_BLOCK_CAPACITY) {
            block = ss_block_acquire(pool);
            if (block == NULL)
                return false;
            if (queue->last == NULL)
                queue->first = block;
            else
                queue->last->next = block;
            queue->last = block;
        }
        part = SS_BLOCK_CAPACITY - block->end;
        if (part > bytes.len)
            part = bytes.len;
        memcpy(block->bytes + block->end, bytes.ptr, part);
        block->end += (uint32_t)part;
        queue->len += part;
        bytes.ptr += part;
        bytes.len -= part;
    }
    return true;
}

void ss_block_queue_consume(struct ss_block_queue *queue, struct ss_pool *pool, size_t len)
{
    queue->len -= len;
    while (queue->first != NULL) {
        struct ss_block *block = queue->first;
        size_t waiting = block->end - block->begin;

        if (len < waiting) {
            block->begin += (uint32_t)len;
            return;
        }
        len -= waiting;
        queue->first = block->next;
        ss_pool_release(pool, block);
    }
    queue->last = NULL;
}

size_t ss_block_queue_spans(const struct ss_block_queue *queue, struct ss_span *spans, size_t max)
{
    size_t count = 0;

    for (struct ss_block *block = queue->first; block != NULL && count < max; block = block->next)
        spans[count++] =
            (struct ss_span){.ptr = block->bytes + block->begin, .len = block->end - block->begin};
    return count;
}

void ss_block_queue_clear(struct ss_block_queue *queue, struct ss_pool *pool)
{
    ss_block_queue_consume(queue, pool, queue->len);
}
