/*
 * A heap a thread: size classes with free lists, cut from one reservation.
 *
 * A block has a header of 16 bytes in front of it, which says whose it is and of which class.
 * Blocks that another thread frees wait in a list that anyone may push to and only the owner takes,
 * whole; so no lock is needed. The heap of a thread that ended serves the next thread that begins.
 */
#include "base/heap.h"

#include <errno.h>
#include <stdlib.h>

#ifdef SS_SANITIZED

void *ss_heap_malloc(size_t size)
{
    return malloc(size);
}

void *ss_heap_calloc(size_t count, size_t size)
{
    return calloc(count, size);
}

void *ss_heap_realloc(void *block, size_t size)
{
    return realloc(block, size);
}

void ss_heap_free(void *block)
{
    free(block);
}

#else

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <pthread.h>

#include "base/pages.h"

#define HEAP_LEN     ((size_t)4 << 20)
#define ALIGN        16
#define SMALL_MAX    128 /* up to here classes are 16 bytes apart, then four a doubling */
#define BLOCK_MAX    ((size_t)64 << 10)
#define CLASS_COUNT  (SMALL_MAX / 16 + 4 * 9)
#define CLASS_SYSTEM UINT32_MAX

enum { MARK_FREE = 0x46726565, MARK_USED = 0x55736564 };

struct header {
    alignas(ALIGN) struct heap *owner;
    uint32_t class_number; /* CLASS_SYSTEM: the system's malloc gave it, and there is no owner */
    uint32_t mark;         /* tells a second free from a first */
};

/* What a free block holds behind its header. */
struct free_block {
    struct header header;
    struct free_block *next;
};

struct heap {
    struct free_block *free_lists[CLASS_COUNT];
    _Atomic(struct free_block *) returned; /* freed by other threads */
    uint8_t *fresh, *end;                  /* what was never cut */
    struct heap *next_idle;
};

static _Thread_local struct heap *own_heap;
static _Thread_local bool reservation_failed;

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t heap_key; /* its destructor tells that a thread ends */
static bool has_key;
static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;
static struct heap *idle_heaps;

static size_t class_size(uint32_t class_number)
{
    uint32_t above = class_number - SMALL_MAX / 16;
    size_t base;

    if (class_number < SMALL_MAX / 16)
        return (class_number + 1) * (size_t)16;
    base = (size_t)SMALL_MAX << above / 4;
    return base + (above % 4 + 1) * (base / 4);
}

/* The smallest class that holds `size`, which is at most BLOCK_MAX. */
static uint32_t class_for(size_t size)
{
    uint32_t class_number = SMALL_MAX / 16;
    size_t base = SMALL_MAX;

    if (size <= SMALL_MAX)
        return size == 0 ? 0 : (uint32_t)((size - 1) / 16);
    for (; size > base * 2; base *= 2)
        class_number += 4;
    return class_number + (uint32_t)((size - base - 1) / (base / 4));
}

static struct header *header_of(void *block)
{
    return (struct header *)block - 1;
}

static void on_thread_end(void *value)
{
    struct heap *heap = value;

    own_heap = NULL;
    pthread_mutex_lock(&idle_lock);
    heap->next_idle = idle_heaps;
    idle_heaps = heap;
    pthread_mutex_unlock(&idle_lock);
}

static void make_key(void)
{
    has_key = pthread_key_create(&heap_key, on_thread_end) == 0;
}

static struct heap *take_idle_heap(void)
{
    struct heap *heap;

    pthread_mutex_lock(&idle_lock);
    heap = idle_heaps;
    if (heap != NULL)
        idle_heaps = heap->next_idle;
    pthread_mutex_unlock(&idle_lock);
    return heap;
}

static struct heap *reserve_heap(void)
{
    struct heap *heap = ss_pages_reserve(HEAP_LEN); /* all zero: lists are empty */

    if (heap != NULL) {
        heap->fresh = (uint8_t *)heap + (sizeof *heap + ALIGN - 1) / ALIGN * ALIGN;
        heap->end = (uint8_t *)heap + HEAP_LEN;
    }
    return heap;
}

/* The heap of this thread, or NULL when there is none to be had. */
static struct heap *find_heap(void)
{
    struct heap *heap = own_heap;

    if (heap != NULL || reservation_failed)
        return heap;
    pthread_once(&key_once, make_key);
    heap = take_idle_heap();
    if (heap == NULL)
        heap = reserve_heap();
    own_heap = heap;
    reservation_failed = heap == NULL;
    /* Where the end of the thread can't be noticed its heap is not used again: a loss, no fault. */
    if (heap != NULL && has_key)
        (void)pthread_setspecific(heap_key, heap);
    return heap;
}

static void put_free(struct heap *heap, struct free_block *block)
{
    struct free_block **list = &heap->free_lists[block->header.class_number];

    block->next = *list;
    *list = block;
}

static void take_returned(struct heap *heap)
{
    struct free_block *block;

    if (atomic_load_explicit(&heap->returned, memory_order_relaxed) == NULL)
        return;
    block = atomic_exchange_explicit(&heap->returned, NULL, memory_order_acquire);
    while (block != NULL) {
        struct free_block *next = block->next;

        put_free(heap, block);
        block = next;
    }
}

static void *allocate_here(struct heap *heap, uint32_t class_number)
{
    struct free_block **list = &heap->free_lists[class_number];
    size_t len = sizeof(struct header) + class_size(class_number);
    struct header *header;

    if (*list == NULL)
        take_returned(heap);
    if (*list != NULL) {
        header = &(*list)->header;
        *list = (*list)->next;
    } else if ((size_t)(heap->end - heap->fresh) >= len) {
        header = (struct header *)(void *)heap->fresh;
        heap->fresh += len;
        header->owner = heap;
        header->class_number = class_number;
    } else {
        return NULL;
    }
    header->mark = MARK_USED;
    return header + 1;
}

/* Names a block of the system's as such. */
static void *from_system(struct header *header)
{
    if (header == NULL)
        return NULL;
    header->owner = NULL;
    header->class_number = CLASS_SYSTEM;
    header->mark = MARK_USED;
    return header + 1;
}

static void *allocate(size_t size, bool zeroed)
{
    struct heap *heap = size <= BLOCK_MAX ? find_heap() : NULL;
    void *block = heap != NULL ? allocate_here(heap, class_for(size)) : NULL;

    if (block != NULL)
        return zeroed ? memset(block, 0, size) : block;
    if (size > SIZE_MAX - sizeof(struct header)) {
        errno = ENOMEM;
        return NULL;
    }
    size += sizeof(struct header);
    return from_system(zeroed ? calloc(1, size) : malloc(size));
}

void *ss_heap_malloc(size_t size)
{
    return allocate(size, false);
}

void *ss_heap_calloc(size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) {
        errno = ENOMEM;
        return NULL;
    }
    return allocate(count * size, true);
}

void ss_heap_free(void *block)
{
    struct header *header;
    struct free_block *freed;
    struct heap *heap;

    if (block == NULL)
        return;
    header = header_of(block);
    assert(header->mark == MARK_USED);
    header->mark = MARK_FREE;
    heap = header->owner;
    if (heap == NULL) {
        free(header);
        return;
    }

    freed = (struct free_block *)header;
    if (heap == own_heap) {
        put_free(heap, freed);
        return;
    }
    freed->next = atomic_load_explicit(&heap->returned, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&heap->returned, &freed->next, freed,
                                                  memory_order_release, memory_order_relaxed)) {
    }
}

void *ss_heap_realloc(void *block, size_t size)
{
    struct header *header;
    size_t held;
    void *moved;

    if (block == NULL)
        return ss_heap_malloc(size);
    if (size == 0) {
        ss_heap_free(block);
        return NULL;
    }
    header = header_of(block);
    assert(header->mark == MARK_USED);
    if (header->owner == NULL) { /* its length is the system's secret, so it stays there */
        if (size > SIZE_MAX - sizeof *header) {
            errno = ENOMEM;
            return NULL;
        }
        return from_system(realloc(header, sizeof *header + size));
    }

    /* A block stays until it is too small or half of it is idle. */
    held = class_size(header->class_number);
    if (size <= held && (size > held / 2 || class_for(size) == header->class_number))
        return block;
    moved = ss_heap_malloc(size);
    if (moved != NULL) {
        memcpy(moved, block, size < held ? size : held);
        ss_heap_free(block);
    }
    return moved;
}

#endif
