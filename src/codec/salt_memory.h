/*
 * Salts that were seen or sent under the 2017 and stream methods, so that a recorded stream is not
 * accepted again (SIP004; protocol notes section 7).
 *
 * Two generations of keyed 64-bit fingerprints are used in turn: when the younger holds `capacity`,
 * the older is dropped. Address space is reserved at the start and becomes resident in proportion
 * to what is stored: a server that has seen a thousand salts has touched some tens of KiB. Sharded,
 * each shard with a lock of its own; all calls are thread-safe.
 */
#ifndef SS_CODEC_SALT_MEMORY_H
#define SS_CODEC_SALT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ss_salt_memory;

/* Salts a generation, that programs use. */
#define SS_SALT_MEMORY_SERVER 1000000u
#define SS_SALT_MEMORY_CLIENT 10000u

/* NULL when address space is out. */
struct ss_salt_memory *ss_salt_memory_new(size_t capacity);
void ss_salt_memory_free(struct ss_salt_memory *memory);

/* Whether it was stored in the current or the previous generation. */
bool ss_salt_memory_contains(struct ss_salt_memory *memory, const uint8_t *salt, size_t len);

/* Looks and stores as one step: false when it was there already. */
bool ss_salt_memory_store(struct ss_salt_memory *memory, const uint8_t *salt, size_t len);

/* What is kept of a salt. The calls below take it in the salt's place, which saves making it anew.
 */
uint64_t ss_salt_memory_print(const struct ss_salt_memory *memory, const uint8_t *salt, size_t len);
bool ss_salt_memory_contains_print(struct ss_salt_memory *memory, uint64_t print);
bool ss_salt_memory_store_print(struct ss_salt_memory *memory, uint64_t print);

/* A salt that will be looked for soon: asks the processor for where it would be. Changes nothing.
 */
void ss_salt_memory_foresee(struct ss_salt_memory *memory, uint64_t print);

#endif
