/*
 * Queues of entries that all wait equally long, so that the next to expire is at the head and
 * starting, touching and stopping an entry take constant time. Time is passed in: milliseconds of
 * any clock that does not go back; that of another thread may be a little off. Nothing here
 * allocates.
 */
#ifndef SS_BASE_DEADLINE_H
#define SS_BASE_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

/* Lies in its owner's struct, all zero when it is in no queue. */
struct ss_deadline {
    struct ss_deadline *prev, *next;
    uint64_t due_ms;
};

/* Stays where it is while anything is in it. */
struct ss_deadline_queue {
    struct ss_deadline head; /* a ring; head.next expires first */
    uint64_t duration_ms;
};

void ss_deadline_queue_init(struct ss_deadline_queue *queue, uint64_t duration_ms);

/* Puts the entry at the tail, due in `duration_ms`; takes it out of the queue it was in, if any. */
void ss_deadline_start(struct ss_deadline_queue *queue, struct ss_deadline *entry, uint64_t now_ms);

/*
 * As ss_deadline_start, for an entry whose time began earlier, at `since_ms`. Keeps the order by
 * walking from the tail: cheap when `since_ms` is not much older than what was started last.
 */
void ss_deadline_start_since(struct ss_deadline_queue *queue, struct ss_deadline *entry,
                             uint64_t since_ms);

/* Takes the entry out of its queue; fine when it is in none. */
void ss_deadline_stop(struct ss_deadline *entry);

bool ss_deadline_pending(const struct ss_deadline *entry);

/* Takes out and returns an entry that is due, or NULL. */
struct ss_deadline *ss_deadline_pop(struct ss_deadline_queue *queue, uint64_t now_ms);

/* The entry that expires first, left in its place, or NULL. */
struct ss_deadline *ss_deadline_first(struct ss_deadline_queue *queue);

/* The one that expires after `entry`, which is in the queue, or NULL. */
struct ss_deadline *ss_deadline_after(struct ss_deadline_queue *queue,
                                      const struct ss_deadline *entry);

#endif
