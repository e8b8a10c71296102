/*
 * Salts that were seen or sent, as fingerprints in two generations.
 *
 * A generation of a shard is a hash table that grows a page at a time (linear hashing): page P
 * takes over about half of the fingerprints of one page before it, so memory grows with what is
 * stored, no insertion moves more than a page, and a look-up reads one page. Inside a page
 * fingerprints lie open-addressed.
 */
#include "codec/salt_memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>

#include "crypto/kdf.h"
#include "crypto/random.h"
#include "crypto/secret.h"

#define SHARD_BITS  4
#define SHARD_COUNT (1u << SHARD_BITS)
#define SLOT_BITS   9
#define SLOT_COUNT  (1u << SLOT_BITS)

/* Fingerprints a page on average. A page that is about to be split holds up to twice as many as one
 * that was, so this stays below half of what fits. */
#define PAGE_LOAD 224

struct page {
    uint64_t slots[SLOT_COUNT]; /* 0: free */
};

struct generation {
    struct page *pages;
    size_t page_count; /* in use */
    size_t count;      /* fingerprints */
};

struct shard {
    pthread_mutex_t lock;
    struct generation generations[2];
    unsigned young; /* the one that is added to */
};

struct ss_salt_memory {
    uint8_t seed[16];
    size_t shard_capacity; /* fingerprints a generation */
    size_t page_max;       /* pages a generation */
    void *memory;
    size_t memory_len;
    struct shard shards[SHARD_COUNT];
};

struct ss_salt_memory *ss_salt_memory_new(size_t capacity)
{
    struct ss_salt_memory *memory = calloc(1, sizeof *memory);
    struct page *pages;

    if (memory == NULL)
        return NULL;
    memory->shard_capacity = (capacity + SHARD_COUNT - 1) / SHARD_COUNT;
    if (memory->shard_capacity == 0)
        memory->shard_capacity = 1;
    /* Half as much again, for pages that fill up before it is their turn to be split. */
    memory->page_max = memory->shard_capacity / PAGE_LOAD;
    memory->page_max += memory->page_max / 2 + 2;
    memory->memory_len = 2 * SHARD_COUNT * memory->page_max * sizeof(struct page);
    memory->memory = mmap(NULL, memory->memory_len, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory->memory == MAP_FAILED) {
        free(memory);
        return NULL;
    }
    /* A huge page would make resident what is never used. Old kernels do not know the advice. */
    (void)madvise(memory->memory, memory->memory_len, MADV_NOHUGEPAGE);

    ss_random_bytes(memory->seed, sizeof memory->seed);
    pages = memory->memory;
    for (size_t i = 0; i < SHARD_COUNT; i++) {
        struct shard *shard = &memory->shards[i];

        (void)pthread_mutex_init(&shard->lock, NULL); /* a plain mutex: can't fail on Linux */
        for (size_t g = 0; g < 2; g++) {
            shard->generations[g].pages = pages;
            shard->generations[g].page_count = 1;
            pages += memory->page_max;
        }
    }
    return memory;
}

void ss_salt_memory_free(struct ss_salt_memory *memory)
{
    if (memory == NULL)
        return;
    for (size_t i = 0; i < SHARD_COUNT; i++)
        (void)pthread_mutex_destroy(&memory->shards[i].lock);
    (void)munmap(memory->memory, memory->memory_len);
    ss_wipe(memory, sizeof *memory);
    free(memory);
}

/* The parts of a fingerprint, from the bottom: shard, page, (unused), slot. */
static struct shard *shard_of(struct ss_salt_memory *memory, uint64_t print)
{
    return &memory->shards[print & (SHARD_COUNT - 1)];
}

static size_t first_slot_of(uint64_t print)
{
    return (size_t)(print >> (64 - SLOT_BITS));
}

/* With a power of two of pages, the bits of the hash; between two powers, the pages that were split
 * already look at one bit more. */
static size_t page_of(size_t page_count, uint64_t print)
{
    uint64_t hash = print >> SHARD_BITS;
    size_t power = 1;
    size_t page;

    while (power < page_count)
        power *= 2;
    page = (size_t)(hash & (power - 1));
    return page < page_count ? page : page & (power / 2 - 1);
}

/* The slot that holds the fingerprint or, if none does, the free one for it; NULL when it is not
 * there and the page is full. */
static uint64_t *find_slot(struct page *page, uint64_t print)
{
    size_t slot = first_slot_of(print);

    for (size_t i = 0; i < SLOT_COUNT; i++) {
        if (page->slots[slot] == 0 || page->slots[slot] == print)
            return &page->slots[slot];
        slot = (slot + 1) & (SLOT_COUNT - 1);
    }
    return NULL;
}

static bool generation_contains(const struct generation *generation, uint64_t print)
{
    const uint64_t *slot;

    if (generation->count == 0)
        return false; /* and its pages stay untouched */
    slot = find_slot(&generation->pages[page_of(generation->page_count, print)], print);
    return slot != NULL && *slot == print;
}

/* Adds a page and moves there what belongs to it from the one page that had it until now. */
static void split_next_page(struct generation *generation)
{
    size_t added = generation->page_count;
    size_t power = 1;
    struct page old;
    struct page *from;

    while (power * 2 <= added)
        power *= 2;
    from = &generation->pages[added - power];
    old = *from;
    memset(from, 0, sizeof *from);
    generation->page_count++;
    for (size_t i = 0; i < SLOT_COUNT; i++) {
        uint64_t print = old.slots[i];

        if (print != 0)
            *find_slot(&generation->pages[page_of(generation->page_count, print)], print) = print;
    }
}

/* False when there is no room for it in any number of pages that may be used. */
static bool generation_add(struct generation *generation, uint64_t print, size_t page_max)
{
    uint64_t *slot;

    if (generation->count / PAGE_LOAD >= generation->page_count &&
        generation->page_count < page_max)
        split_next_page(generation);
    for (;;) {
        slot = find_slot(&generation->pages[page_of(generation->page_count, print)], print);
        if (slot != NULL)
            break;
        if (generation->page_count == page_max)
            return false;
        split_next_page(generation);
    }
    *slot = print;
    generation->count++;
    return true;
}

/* Drops the older generation, whose pages become the new, empty, younger one. */
static void turn(struct shard *shard, size_t page_max)
{
    struct generation *older;

    shard->young ^= 1;
    older = &shard->generations[shard->young];
    /* On private memory this brings zeroes back; if the kernel refuses, they are written. */
    if (madvise(older->pages, page_max * sizeof *older->pages, MADV_DONTNEED) != 0)
        memset(older->pages, 0, older->page_count * sizeof *older->pages);
    older->page_count = 1;
    older->count = 0;
}

uint64_t ss_salt_memory_print(const struct ss_salt_memory *memory, const uint8_t *salt, size_t len)
{
    uint64_t print = ss_fingerprint(memory->seed, salt, len);

    return print != 0 ? print : 1; /* 0 marks a free slot */
}

static bool shard_contains(const struct shard *shard, uint64_t print)
{
    return generation_contains(&shard->generations[0], print) ||
           generation_contains(&shard->generations[1], print);
}

bool ss_salt_memory_contains(struct ss_salt_memory *memory, const uint8_t *salt, size_t len)
{
    return ss_salt_memory_contains_print(memory, ss_salt_memory_print(memory, salt, len));
}

bool ss_salt_memory_contains_print(struct ss_salt_memory *memory, uint64_t print)
{
    struct shard *shard = shard_of(memory, print);
    bool found;

    (void)pthread_mutex_lock(&shard->lock);
    found = shard_contains(shard, print);
    (void)pthread_mutex_unlock(&shard->lock);
    return found;
}

void ss_salt_memory_foresee(struct ss_salt_memory *memory, uint64_t print)
{
    struct shard *shard = shard_of(memory, print);

    (void)pthread_mutex_lock(&shard->lock); /* the number of pages is read */
    for (size_t g = 0; g < 2; g++) {
        const struct generation *generation = &shard->generations[g];

        if (generation->count != 0)
            __builtin_prefetch(&generation->pages[page_of(generation->page_count, print)]
                                    .slots[first_slot_of(print)]);
    }
    (void)pthread_mutex_unlock(&shard->lock);
}

bool ss_salt_memory_store(struct ss_salt_memory *memory, const uint8_t *salt, size_t len)
{
    return ss_salt_memory_store_print(memory, ss_salt_memory_print(memory, salt, len));
}

bool ss_salt_memory_store_print(struct ss_salt_memory *memory, uint64_t print)
{
    struct shard *shard = shard_of(memory, print);
    bool found;

    (void)pthread_mutex_lock(&shard->lock);
    found = shard_contains(shard, print);
    if (!found) {
        if (shard->generations[shard->young].count >= memory->shard_capacity)
            turn(shard, memory->page_max);
        if (!generation_add(&shard->generations[shard->young], print, memory->page_max)) {
            turn(shard, memory->page_max);
            (void)generation_add(&shard->generations[shard->young], print, memory->page_max);
        }
    }
    (void)pthread_mutex_unlock(&shard->lock);
    return !found;
}
