/* Rings of entries in the order in which they expire. */
#include "base/deadline.h"

#include <stddef.h>

/* A time that lies beyond the clock's range never comes. */
static uint64_t due_after(uint64_t from_ms, uint64_t duration_ms)
{
    return duration_ms > UINT64_MAX - from_ms ? UINT64_MAX : from_ms + duration_ms;
}

static void link_after(struct ss_deadline *before, struct ss_deadline *entry)
{
    entry->prev = before;
    entry->next = before->next;
    before->next->prev = entry;
    before->next = entry;
}

void ss_deadline_queue_init(struct ss_deadline_queue *queue, uint64_t duration_ms)
{
    queue->head.prev = &queue->head;
    queue->head.next = &queue->head;
    queue->head.due_ms = 0;
    queue->duration_ms = duration_ms;
}

void ss_deadline_start(struct ss_deadline_queue *queue, struct ss_deadline *entry, uint64_t now_ms)
{
    /* Nearly always the tail is the place. Not so where an entry came from a thread whose clock
     * was read a moment later. */
    ss_deadline_start_since(queue, entry, now_ms);
}

void ss_deadline_start_since(struct ss_deadline_queue *queue, struct ss_deadline *entry,
                             uint64_t since_ms)
{
    struct ss_deadline *before;

    ss_deadline_stop(entry);
    entry->due_ms = due_after(since_ms, queue->duration_ms);
    before = queue->head.prev;
    while (before != &queue->head && before->due_ms > entry->due_ms)
        before = before->prev;
    link_after(before, entry);
}

void ss_deadline_stop(struct ss_deadline *entry)
{
    if (entry->next == NULL)
        return;
    entry->prev->next = entry->next;
    entry->next->prev = entry->prev;
    entry->prev = NULL;
    entry->next = NULL;
}

bool ss_deadline_pending(const struct ss_deadline *entry)
{
    return entry->next != NULL;
}

struct ss_deadline *ss_deadline_first(struct ss_deadline_queue *queue)
{
    return queue->head.next == &queue->head ? NULL : queue->head.next;
}

struct ss_deadline *ss_deadline_after(struct ss_deadline_queue *queue,
                                      const struct ss_deadline *entry)
{
    return entry->next == &queue->head ? NULL : entry->next;
}

struct ss_deadline *ss_deadline_pop(struct ss_deadline_queue *queue, uint64_t now_ms)
{
    struct ss_deadline *first = ss_deadline_first(queue);

    if (first == NULL || first->due_ms > now_ms)
        return NULL;
    ss_deadline_stop(first);
    return first;
}
