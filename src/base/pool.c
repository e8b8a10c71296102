/*
 * Slots in slabs. A slab is a whole number of pages, so that one whose slots are all free can be
 * given back alone; slots are taken from the lowest slab that has one, so that the upper slabs
 * become free. What is known about slots lies outside of them: their content belongs to the users.
 */
#include "base/pool.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/pages.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POOL_POISONS 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define POOL_POISONS 1
#endif
#ifdef POOL_POISONS
#include <sanitizer/asan_interface.h>
#else
/* Without the address sanitizer nothing watches the slots. */
#define ASAN_POISON_MEMORY_REGION(start, len)   ((void)(start), (void)(len))
#define ASAN_UNPOISON_MEMORY_REGION(start, len) ((void)(start), (void)(len))
#endif

#define SLOT_ALIGN     64
#define SLAB_SLOTS     16          /* at least so many in a slab, */
#define SLAB_BYTES     (64 * 1024) /* unless they would be longer than this */
#define SLOT_END       0           /* links are slot numbers in the slab plus one */
#define SLOT_TAKEN     UINT32_MAX
#define BITS           64
#define BITS_OF(count) (((size_t)(count) + BITS - 1) / BITS)

/* Numbers of slabs, the lowest of which is found fast: a bit each, and a bit for each word of
 * those. */
struct slab_set {
    uint64_t *words;
    uint64_t *summary;
    size_t summary_len;
};

struct slab {
    uint32_t free_head; /* the slot released last, or SLOT_END */
    uint32_t fresh;     /* slots from here on were not used since the slab was last given back */
    uint32_t used;
};

struct ss_pool {
    uint8_t *slots;
    size_t slots_len;
    void *books; /* the arrays below, in one reservation */
    size_t books_len;

    size_t slot_size;
    size_t slab_size;
    uint32_t slab_slots;
    uint32_t slab_count;
    uint32_t capacity;
    uint32_t keep;
    ss_pool_retire_fn *retire;

    uint32_t *links; /* the next free slot of the slab, or SLOT_TAKEN */
    struct slab *slabs;
    struct slab_set partial;  /* some slots used, some free */
    struct slab_set empty;    /* all free, and resident */
    struct slab_set returned; /* all free, given back */
    uint32_t touched;         /* slabs from here on were never used */

    uint32_t used;
    uint32_t resident_slabs;
    uint32_t empty_slabs;
    uint32_t empty_low; /* the fewest empty slabs since the last trim */
};

/* The number of the lowest bit that is set; `word` is not 0. */
static unsigned lowest_bit(uint64_t word)
{
    unsigned bit = 0;

    for (unsigned half = 32; half > 0; half /= 2) {
        if ((word & ((UINT64_C(1) << half) - 1)) == 0) {
            word >>= half;
            bit += half;
        }
    }
    return bit;
}

static void set_add(struct slab_set *set, uint32_t slab)
{
    size_t word = slab / BITS;

    set->words[word] |= UINT64_C(1) << slab % BITS;
    set->summary[word / BITS] |= UINT64_C(1) << word % BITS;
}

static void set_remove(struct slab_set *set, uint32_t slab)
{
    size_t word = slab / BITS;

    set->words[word] &= ~(UINT64_C(1) << slab % BITS);
    if (set->words[word] == 0)
        set->summary[word / BITS] &= ~(UINT64_C(1) << word % BITS);
}

static bool set_has(const struct slab_set *set, uint32_t slab)
{
    return (set->words[slab / BITS] >> slab % BITS & 1) != 0;
}

/* A summary word stands for 4,096 slabs, so nearly every pool has one. */
static bool set_lowest(const struct slab_set *set, uint32_t *slab)
{
    for (size_t i = 0; i < set->summary_len; i++) {
        if (set->summary[i] != 0) {
            size_t word = i * BITS + lowest_bit(set->summary[i]);

            *slab = (uint32_t)(word * BITS + lowest_bit(set->words[word]));
            return true;
        }
    }
    return false;
}

static uint8_t *slab_start(const struct ss_pool *pool, uint32_t slab)
{
    return pool->slots + (size_t)slab * pool->slab_size;
}

static uint32_t *slab_links(const struct ss_pool *pool, uint32_t slab)
{
    return pool->links + (size_t)slab * pool->slab_slots;
}

/* How slots are laid out; false when they are beyond what a size can say. */
static bool lay_out(struct ss_pool *pool, const struct ss_pool_options *options, uint32_t capacity)
{
    size_t slots = SLAB_SLOTS;

    if (options->slot_size == 0 || options->slot_size > SIZE_MAX / 2 || capacity == 0)
        return false;
    pool->slot_size = (options->slot_size + SLOT_ALIGN - 1) / SLOT_ALIGN * SLOT_ALIGN;
    if (pool->slot_size > SLAB_BYTES / SLAB_SLOTS)
        slots = pool->slot_size < SLAB_BYTES ? SLAB_BYTES / pool->slot_size : 1;
    pool->slab_size = ss_pages_round(slots * pool->slot_size);
    if (pool->slab_size == 0)
        return false;
    pool->slab_slots = (uint32_t)(pool->slab_size / pool->slot_size);
    pool->slab_count = (capacity - 1) / pool->slab_slots + 1;
    pool->capacity = capacity;
    if (pool->slab_count > SIZE_MAX / pool->slab_size)
        return false;
    pool->slots_len = pool->slab_count * pool->slab_size;
    return true;
}

/* Cuts an array out of the books; all of them are whole multiples of eight bytes. */
static void *take_array(uint8_t **at, size_t count, size_t size)
{
    uint8_t *start = *at;

    *at += (count * size + 7) / 8 * 8;
    return start;
}

static void take_set(struct slab_set *set, uint8_t **at, uint32_t slab_count)
{
    size_t words = BITS_OF(slab_count);

    set->words = take_array(at, words, sizeof *set->words);
    set->summary_len = BITS_OF(words);
    set->summary = take_array(at, set->summary_len, sizeof *set->summary);
}

static bool reserve(struct ss_pool *pool)
{
    size_t set_words = BITS_OF(pool->slab_count) + BITS_OF(BITS_OF(pool->slab_count));
    size_t link_count = (size_t)pool->slab_count * pool->slab_slots;
    uint8_t *at;

    pool->books_len = 3 * set_words * sizeof(uint64_t) + pool->slab_count * sizeof(struct slab) +
                      link_count * sizeof(uint32_t) + 16;
    pool->books = ss_pages_reserve(pool->books_len);
    pool->slots = ss_pages_reserve(pool->slots_len);
    if (pool->books == NULL || pool->slots == NULL) {
        ss_pages_release(pool->books, pool->books_len);
        ss_pages_release(pool->slots, pool->slots_len);
        return false;
    }

    at = pool->books;
    take_set(&pool->partial, &at, pool->slab_count);
    take_set(&pool->empty, &at, pool->slab_count);
    take_set(&pool->returned, &at, pool->slab_count);
    pool->slabs = take_array(&at, pool->slab_count, sizeof *pool->slabs);
    pool->links = take_array(&at, link_count, sizeof *pool->links);
    ASAN_POISON_MEMORY_REGION(pool->slots, pool->slots_len);
    return true;
}

struct ss_pool *ss_pool_new(const struct ss_pool_options *options)
{
    struct ss_pool *pool = calloc(1, sizeof *pool);

    if (pool == NULL)
        return NULL;
    pool->keep = options->keep;
    pool->retire = options->retire;
    if ((lay_out(pool, options, options->capacity) && reserve(pool)) ||
        (lay_out(pool, options, options->capacity / 2) && reserve(pool)))
        return pool;
    free(pool);
    return NULL;
}

/* Lets the users undo what they left in the free slots of a slab that is wholly free. */
static void retire_slab(struct ss_pool *pool, uint32_t slab)
{
    uint8_t *start = slab_start(pool, slab);

    ASAN_UNPOISON_MEMORY_REGION(start, pool->slab_size);
    if (pool->retire != NULL)
        for (uint32_t i = 0; i < pool->slabs[slab].fresh; i++)
            pool->retire(start + i * pool->slot_size);
}

void ss_pool_free(struct ss_pool *pool)
{
    if (pool == NULL)
        return;
    assert(pool->used == 0);
    for (uint32_t slab = 0; slab < pool->touched; slab++)
        if (pool->slabs[slab].used == 0)
            retire_slab(pool, slab);
    ASAN_UNPOISON_MEMORY_REGION(pool->slots, pool->slots_len);
    ss_pages_release(pool->slots, pool->slots_len);
    ss_pages_release(pool->books, pool->books_len);
    free(pool);
}

/* The slab to take the next slot from: used in part, else free and resident, else one that is not.
 */
static bool choose_slab(struct ss_pool *pool, uint32_t *slab)
{
    if (set_lowest(&pool->partial, slab))
        return true;
    if (set_lowest(&pool->empty, slab)) {
        set_remove(&pool->empty, *slab);
        if (--pool->empty_slabs < pool->empty_low)
            pool->empty_low = pool->empty_slabs;
        return true;
    }
    if (set_lowest(&pool->returned, slab)) {
        set_remove(&pool->returned, *slab);
    } else {
        if (pool->touched == pool->slab_count)
            return false;
        *slab = pool->touched++;
    }
    pool->resident_slabs++;
    return true;
}

void *ss_pool_acquire(struct ss_pool *pool)
{
    uint32_t number, slot;
    uint32_t *links;
    struct slab *slab;
    uint8_t *start;

    if (pool->used == pool->capacity || !choose_slab(pool, &number))
        return NULL;

    slab = &pool->slabs[number];
    links = slab_links(pool, number);
    if (slab->free_head != SLOT_END) {
        slot = slab->free_head - 1;
        slab->free_head = links[slot];
    } else {
        slot = slab->fresh++;
    }
    links[slot] = SLOT_TAKEN;
    slab->used++;
    pool->used++;
    if (slab->used == pool->slab_slots)
        set_remove(&pool->partial, number);
    else
        set_add(&pool->partial, number);

    start = slab_start(pool, number) + slot * pool->slot_size;
    ASAN_UNPOISON_MEMORY_REGION(start, pool->slot_size);
    return start;
}

void ss_pool_release(struct ss_pool *pool, void *slot)
{
    size_t offset = (size_t)((uint8_t *)slot - pool->slots);
    uint32_t number = (uint32_t)(offset / pool->slab_size);
    size_t offset_in_slab = offset % pool->slab_size;
    uint32_t index = (uint32_t)(offset_in_slab / pool->slot_size);
    struct slab *slab;
    uint32_t *links;

    assert(offset < pool->slots_len && offset_in_slab % pool->slot_size == 0);
    slab = &pool->slabs[number];
    links = slab_links(pool, number);
    assert(links[index] == SLOT_TAKEN); /* or it was released twice */

    links[index] = slab->free_head;
    slab->free_head = index + 1;
    slab->used--;
    pool->used--;
    if (slab->used == 0) {
        set_remove(&pool->partial, number);
        set_add(&pool->empty, number);
        pool->empty_slabs++;
    } else {
        set_add(&pool->partial, number);
    }
    ASAN_POISON_MEMORY_REGION(slot, pool->slot_size);
}

/* How many of `slabs` empty ones can go while `keep` free slots stay. */
static uint32_t slabs_to_spare(const struct ss_pool *pool, uint32_t slabs)
{
    uint64_t resident_free = (uint64_t)pool->resident_slabs * pool->slab_slots - pool->used;
    uint64_t spare = resident_free > pool->keep ? resident_free - pool->keep : 0;

    spare /= pool->slab_slots;
    return spare < slabs ? (uint32_t)spare : slabs;
}

static void give_back(struct ss_pool *pool, uint32_t first, uint32_t count)
{
    ASAN_UNPOISON_MEMORY_REGION(slab_start(pool, first), count * pool->slab_size);
    ss_pages_discard(slab_start(pool, first), count * pool->slab_size);
    ASAN_POISON_MEMORY_REGION(slab_start(pool, first), count * pool->slab_size);
}

uint32_t ss_pool_trim(struct ss_pool *pool)
{
    uint32_t left = slabs_to_spare(pool, pool->empty_low);
    uint32_t run = 0; /* slabs from `slab` on that are to go, given back in one call */
    uint32_t slab = left > 0 ? pool->touched : 0;

    pool->empty_slabs -= left;
    pool->resident_slabs -= left;
    pool->empty_low = pool->empty_slabs;
    while (slab > 0) {
        slab--;
        if (left > 0 && set_has(&pool->empty, slab)) {
            retire_slab(pool, slab);
            memset(&pool->slabs[slab], 0, sizeof pool->slabs[slab]);
            set_remove(&pool->empty, slab);
            set_add(&pool->returned, slab);
            left--;
            run++;
            continue;
        }
        if (run > 0)
            give_back(pool, slab + 1, run);
        run = 0;
        if (left == 0)
            break;
    }
    if (run > 0)
        give_back(pool, 0, run);
    return slabs_to_spare(pool, pool->empty_slabs) * pool->slab_slots;
}

uint32_t ss_pool_capacity(const struct ss_pool *pool)
{
    return pool->capacity;
}

uint32_t ss_pool_used(const struct ss_pool *pool)
{
    return pool->used;
}
