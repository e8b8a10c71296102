/* Random bytes from the system, behind which a test may put a seeded source. */
#ifndef SS_CRYPTO_RANDOM_H
#define SS_CRYPTO_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Once, before the first use and before any thread. SS_ERR_RANDOM when the system has none. */
SS_CHECKED enum ss_status ss_random_start(void);

void ss_random_bytes(void *out, size_t len);

/* Even over 0 to bound - 1; bound is at least 1. */
uint32_t ss_random_below(uint32_t bound);

/* For tests: bytes come from `source` until it is NULL again. Not thread-safe. */
typedef void ss_random_source_fn(void *out, size_t len);
void ss_random_set_source(ss_random_source_fn *source);

#endif
