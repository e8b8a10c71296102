/*
 * A fixed number of equal slots in address space that is reserved once and becomes resident when it
 * is touched. One pool serves one event loop; it is not thread-safe.
 *
 * A slot keeps its content between uses, so that what was costly to make in it (a cipher context)
 * is there for the next user; it is all zero the first time and after the pool gave its pages back.
 * Slots are taken last in, first out, from the lowest part that has one, so that few pages stay
 * warm and the upper ones can be given back.
 */
#ifndef SS_BASE_POOL_H
#define SS_BASE_POOL_H

#include <stddef.h>
#include <stdint.h>

struct ss_pool;

/* Undoes what a slot's users left in it (frees contexts), before its pages are given back. */
typedef void ss_pool_retire_fn(void *slot);

struct ss_pool_options {
    size_t slot_size;  /* bytes; rounded up to a multiple of 64, which is also the alignment */
    uint32_t capacity; /* slots, at least 1 */
    uint32_t keep;     /* this many free slots are never given back */
    ss_pool_retire_fn *retire; /* may be NULL */
};

/*
 * Reserves the address space, without backing store. When even half of it can't be had, NULL; when
 * only half, the pool has half the capacity.
 */
struct ss_pool *ss_pool_new(const struct ss_pool_options *options);

/* Every slot must be back. Retires what is left in them. NULL is fine. */
void ss_pool_free(struct ss_pool *pool);

/* A slot that stays at its address until released, or NULL when all are taken. */
void *ss_pool_acquire(struct ss_pool *pool);

/* Takes back a slot of this pool. Sanitizer builds poison it until it is acquired again. */
void ss_pool_release(struct ss_pool *pool, void *slot);

/*
 * Gives back to the system what was free during the whole time since the last call, less `keep`.
 * Called about once a second, so a burst that recurs within that time costs no page faults.
 * Returns the number of free slots that are still resident beyond `keep`: zero means that there is
 * nothing more to give back.
 */
uint32_t ss_pool_trim(struct ss_pool *pool);

uint32_t ss_pool_capacity(const struct ss_pool *pool);
uint32_t ss_pool_used(const struct ss_pool *pool);

#endif
