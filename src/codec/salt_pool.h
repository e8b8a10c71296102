/*
 * The salts of requests under the 2022 methods, each kept as long as its request could be accepted
 * again (SIP022, 3.1.4): until the clock is 60 s further, twice the tolerance of its time stamp.
 * A clock that is set back keeps it for longer, and never makes it acceptable again.
 *
 * A fixed number of them: when the pool is full, what is new is refused, because a salt that is
 * forgotten too early opens the door to a replay. Address space is reserved at the start and
 * becomes resident in proportion to what is stored. All calls are thread-safe.
 */
#ifndef SS_CODEC_SALT_POOL_H
#define SS_CODEC_SALT_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct ss_salt_pool;

#define SS_SALT_POOL_DEFAULT (1u << 18) /* salts that programs use */
#define SS_SALT_POOL_MAX     (1u << 28)

/* 1 to SS_SALT_POOL_MAX salts. NULL when address space is out. */
struct ss_salt_pool *ss_salt_pool_new(size_t capacity);
void ss_salt_pool_free(struct ss_salt_pool *pool); /* NULL is fine */

/*
 * Looks and stores as one step; `len` is at most 32, `now_s` is Unix time in seconds and `stamp_s`
 * that of the request, at most 30 s away from it. SS_ERR_REPLAY when the salt is there already,
 * SS_ERR_CLOCK when the clock was set back so far that it may have been there, SS_ERR_LIMIT when
 * the pool is full.
 */
SS_CHECKED enum ss_status ss_salt_pool_store(struct ss_salt_pool *pool, const uint8_t *salt,
                                             size_t len, int64_t stamp_s, int64_t now_s);

/* How many are kept now, those included that only the next call drops. */
size_t ss_salt_pool_count(struct ss_salt_pool *pool);

#endif
