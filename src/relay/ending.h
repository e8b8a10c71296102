/*
 * Sessions that are ended from outside: a port or a user is gone, or has another key. Each worker
 * is asked through its wake-up, and walks its own. For this folder alone.
 */
#ifndef SS_RELAY_ENDING_H
#define SS_RELAY_ENDING_H

struct ss_ending;
struct ss_worker;

/* Does what was asked of the worker, in its thread and after the connections that were handed over
 * before. */
void ss_worker_end_sessions(struct ss_worker *worker);

/* Drops it, when the worker ends. */
void ss_endings_clear(struct ss_worker *worker);

#endif
