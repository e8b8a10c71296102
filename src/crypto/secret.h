/* Care for secrets. */
#ifndef SS_CRYPTO_SECRET_H
#define SS_CRYPTO_SECRET_H

#include <stdbool.h>
#include <stddef.h>

/* Overwrites; not optimised away. */
void ss_wipe(void *bytes, size_t len);

/* Takes equally long whatever the contents. */
bool ss_equal_constant_time(const void *a, const void *b, size_t len);

#endif
