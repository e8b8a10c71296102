/* What every fuzz target needs: its entry, and a check that stays in release builds. */
#ifndef SS_TESTS_FUZZ_H
#define SS_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Called with one input; returns 0. The input lies in memory of exactly its length. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* Ends the program where a property does not hold. */
#define CHECK(property)                                                              \
    do {                                                                             \
        if (!(property)) {                                                           \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #property); \
            abort();                                                                 \
        }                                                                            \
    } while (0)

#endif
