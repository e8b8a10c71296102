/*
 * Counters that one worker writes and any thread reads. Written without a locked instruction: each
 * has a single writer.
 */
#ifndef SS_RELAY_COUNTERS_H
#define SS_RELAY_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

/* One listener's, by one worker; a cache line of its own. */
struct ss_counters {
    _Alignas(64) _Atomic uint64_t opened;
    _Atomic uint64_t closed;
    _Atomic uint64_t rx_bytes, tx_bytes;
    _Atomic uint64_t rx_wire_bytes;
    _Atomic uint64_t handshakes_failed;
    _Atomic uint64_t rx_datagrams, tx_datagrams;
    _Atomic uint64_t associations_opened, associations_closed;
};

static inline void ss_count(_Atomic uint64_t *counter, uint64_t more)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

static inline uint64_t ss_counted(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

#endif
