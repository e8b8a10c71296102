/*
 * Counts what is allocated by everything in the process, libraries included: the executable's own
 * malloc stands in front of the C library's. Included by one file of an executable. Not with
 * sanitizers, which put theirs there.
 */
#ifndef SS_TESTS_VECTORS_ALLOCATIONS_H
#define SS_TESTS_VECTORS_ALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#if defined(__GLIBC__) && !defined(SS_SANITIZED)
#define CAN_COUNT_ALLOCATIONS 1

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);

static volatile unsigned long allocations;

__attribute__((visibility("default"))) void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}

__attribute__((visibility("default"))) void *calloc(size_t count, size_t size)
{
    allocations++;
    return __libc_calloc(count, size);
}

__attribute__((visibility("default"))) void *realloc(void *block, size_t size)
{
    allocations++;
    return __libc_realloc(block, size);
}
#else
#define CAN_COUNT_ALLOCATIONS 0
static unsigned long allocations;
#endif

/* Not under valgrind either, which is preloaded and then stands in front. */
static inline bool allocations_count(void)
{
    return CAN_COUNT_ALLOCATIONS && getenv("LD_PRELOAD") == NULL;
}

#endif
