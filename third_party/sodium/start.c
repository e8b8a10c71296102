/*
 * What libsodium's own start does, for the algorithms that are built here: that one names every
 * algorithm there is, and so a linker keeps them all.
 */
#include <pthread.h>
#include <stdlib.h>

#include "core.h"
#include "private/implementations.h"
#include "randombytes.h"
#include "runtime.h"

int _sodium_runtime_get_cpu_features(void);

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void choose(void)
{
    _sodium_runtime_get_cpu_features();
    randombytes_stir();
    _crypto_onetimeauth_poly1305_pick_best_implementation();
    _crypto_stream_chacha20_pick_best_implementation();
}

int sodium_init(void)
{
    return pthread_once(&once, choose) == 0 ? 0 : -1;
}

void sodium_misuse(void)
{
    abort();
}
