/*
 * The heap that libraries are given (libuv, c-ares, PCRE2), so that they too ask the system for
 * nothing once running.
 *
 * Each thread has a heap of its own, reserved at its first use: size classes with free lists, cut
 * from address space that becomes resident when touched. A block knows its owner; one that is freed
 * by another thread goes back to the owner without a lock. The heap of a thread that ended serves
 * the next one. What does not fit (a block above the largest class, a heap that is used up) comes
 * from the system's malloc, so these functions fail only when that does. In sanitizer builds they
 * are the system's functions.
 */
#ifndef SS_BASE_HEAP_H
#define SS_BASE_HEAP_H

#include <stddef.h>

/* As malloc, calloc, realloc and free of the C library. Thread-safe. */
void *ss_heap_malloc(size_t size);
void *ss_heap_calloc(size_t count, size_t size);
void *ss_heap_realloc(void *block, size_t size);
void ss_heap_free(void *block);

#endif
