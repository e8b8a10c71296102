/*
 * Preloaded into a program, counts what it asks of the heap.
 *
 * The counters lie in a file that the variable SS_ALLOC_AUDIT_FILE names, shared with the driver,
 * which reads them while the program runs. What is allocated before the file is mapped is counted
 * too. Where the driver sets `traces`, that many of the next allocations print where they come
 * from.
 */
#include "counters.h"

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The C library's own entry points: no dlsym, which would itself allocate. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

static struct counters early;
static struct counters *counters = &early;
static __thread int tracing;

static void trace(size_t size)
{
    void *frames[32];
    int count;
    char line[64], *at = line + sizeof line;

    if (tracing || __atomic_load_n(&counters->traces, __ATOMIC_RELAXED) == 0)
        return;
    if (__atomic_fetch_sub(&counters->traces, 1, __ATOMIC_RELAXED) <= 0)
        return;
    tracing = 1;
    *--at = '\n';
    do
        *--at = (char)('0' + size % 10);
    while ((size /= 10) > 0);
    if (write(STDERR_FILENO, "allocation of ", 14) < 0 ||
        write(STDERR_FILENO, at, (size_t)(line + sizeof line - at)) < 0)
        _exit(99);
    count = backtrace(frames, 32);
    backtrace_symbols_fd(frames, count, STDERR_FILENO);
    tracing = 0;
}

static void note(uint64_t *kind, size_t size)
{
    if (tracing)
        return;
    __atomic_fetch_add(kind, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&counters->bytes, size, __ATOMIC_RELAXED);
    trace(size);
}

__attribute__((constructor)) static void start(void)
{
    const char *path = getenv("SS_ALLOC_AUDIT_FILE");
    struct counters *shared;
    void *frames[1];
    int fd;

    /* Its first call loads a library, which must not happen inside an allocation. */
    backtrace(frames, 1);
    if (path == NULL)
        return;
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (shared == MAP_FAILED)
        return;
    *shared = early;
    shared->magic = COUNTERS_MAGIC;
    __atomic_store_n(&counters, shared, __ATOMIC_RELEASE);
}

void *malloc(size_t size)
{
    note(&counters->mallocs, size);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    note(&counters->callocs, count * size);
    return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size)
{
    note(&counters->reallocs, size);
    return __libc_realloc(block, size);
}

void *reallocarray(void *block, size_t count, size_t size)
{
    size_t total;

    if (__builtin_mul_overflow(count, size, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    note(&counters->reallocs, total);
    return __libc_realloc(block, total);
}

void *memalign(size_t alignment, size_t size)
{
    note(&counters->aligned, size);
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    note(&counters->aligned, size);
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
    note(&counters->aligned, size);
    if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0)
        return EINVAL;
    *block = __libc_memalign(alignment, size);
    return *block == NULL ? ENOMEM : 0;
}

void *valloc(size_t size)
{
    return memalign((size_t)sysconf(_SC_PAGESIZE), size);
}

void free(void *block)
{
    if (block != NULL && !tracing)
        __atomic_fetch_add(&counters->frees, 1, __ATOMIC_RELAXED);
    __libc_free(block);
}

/* Memory that is mapped for itself is an allocation like another. */
void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    note(&counters->maps, size);
    /* The call wants an address; the result of the system call is one. */
    return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
}

void *mmap64(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    return mmap(address, size, protection, flags, fd, offset);
}
