/* Reserving and giving back address space by mmap and madvise. */
#include "base/pages.h"

#include <string.h>

#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

size_t ss_pages_size(void)
{
    long size = sysconf(_SC_PAGESIZE);

    return size > 0 ? (size_t)size : 4096;
}

size_t ss_pages_round(size_t len)
{
    size_t mask = ss_pages_size() - 1;

    return len > (size_t)-1 - mask ? 0 : (len + mask) & ~mask;
}

void *ss_pages_reserve(size_t len)
{
    void *start;

    len = ss_pages_round(len);
    if (len == 0)
        return NULL;
    start =
        mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
#ifdef MADV_NOHUGEPAGE
    /* A kernel without huge pages refuses the advice, which is as good. */
    (void)madvise(start, len, MADV_NOHUGEPAGE);
#endif
    return start;
}

void ss_pages_release(void *start, size_t len)
{
    if (start != NULL)
        (void)munmap(start, ss_pages_round(len));
}

void ss_pages_discard(void *start, size_t len)
{
    /* Only Linux promises zeros after the advice; where it is refused or means less, they are
     * written, because users of the pages rely on them. */
#ifdef __linux__
    if (madvise(start, len, MADV_DONTNEED) == 0)
        return;
#endif
    memset(start, 0, len);
}
