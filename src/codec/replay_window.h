/* Which packet IDs of a datagram session have come (SIP022, 3.2.4): the highest, and the last
 * SS_REPLAY_WINDOW below it. */
#ifndef SS_CODEC_REPLAY_WINDOW_H
#define SS_CODEC_REPLAY_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

/* IDs that may come after a higher one. */
#define SS_REPLAY_WINDOW 1024

/* A window that does not begin at a block's edge reaches into one block more. */
#define SS_REPLAY_BLOCKS (SS_REPLAY_WINDOW / 64 + 1)

/* All zero: nothing has come. */
struct ss_replay_window {
    uint64_t top;
    uint64_t blocks[SS_REPLAY_BLOCKS]; /* a ring of bits */
};

/* Whether an ID is new and not too old. Asking changes nothing. */
bool ss_replay_window_accepts(const struct ss_replay_window *window, uint64_t id);

/* Marks an ID that the window accepts. */
void ss_replay_window_mark(struct ss_replay_window *window, uint64_t id);

#endif
