/* What the shim counts, as it lies in the shared file. measure_alloc.py knows this order. */
#ifndef SS_TESTS_ALLOC_AUDIT_COUNTERS_H
#define SS_TESTS_ALLOC_AUDIT_COUNTERS_H

#include <stdint.h>

#define COUNTERS_MAGIC 0x534155444954ull

struct counters {
    uint64_t magic;
    uint64_t mallocs, callocs, reallocs, aligned, maps;
    uint64_t frees;
    uint64_t bytes;
    int64_t traces; /* set by the driver: allocations that are still to be traced */
};

#endif
