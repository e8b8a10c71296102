/* One block of AES: what the 2022 edition puts over the separate header of a datagram and over
 * identity headers. No mode, no padding. */
#ifndef SS_CRYPTO_BLOCK_H
#define SS_CRYPTO_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define SS_BLOCK_LEN 16

enum ss_block_use { SS_BLOCK_ENCRYPT, SS_BLOCK_DECRYPT };

/* A key for one use. It stays where it was made. Nothing allocates; once it has a key it is only
 * read, so threads may share it. */
struct ss_block_key {
    uint64_t memory[36];
    enum ss_block_use use;
};

/* `key_len` is 16, 24 or 32. */
SS_CHECKED enum ss_status ss_block_key_init(struct ss_block_key *block, enum ss_block_use use,
                                            const uint8_t *key, size_t key_len);

/* `out` may be `in`. */
void ss_block_apply(const struct ss_block_key *block, const uint8_t in[SS_BLOCK_LEN],
                    uint8_t out[SS_BLOCK_LEN]);

/* Wipes. Fine on a zero one. */
void ss_block_key_clear(struct ss_block_key *block);

#endif
