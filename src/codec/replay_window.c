/* The window of packet IDs: a ring of blocks of bits. */
#include "codec/replay_window.h"

static uint64_t bit_of(uint64_t id)
{
    return UINT64_C(1) << (id % 64);
}

bool ss_replay_window_accepts(const struct ss_replay_window *window, uint64_t id)
{
    if (id > window->top)
        return true;
    if (window->top - id >= SS_REPLAY_WINDOW)
        return false;
    return (window->blocks[id / 64 % SS_REPLAY_BLOCKS] & bit_of(id)) == 0;
}

void ss_replay_window_mark(struct ss_replay_window *window, uint64_t id)
{
    if (id > window->top) {
        uint64_t ahead = id / 64 - window->top / 64;

        /* What lay in the blocks a turn of the ring ago is forgotten. */
        for (uint64_t i = 1; i <= ahead && i <= SS_REPLAY_BLOCKS; i++)
            window->blocks[(window->top / 64 + i) % SS_REPLAY_BLOCKS] = 0;
        window->top = id;
    }
    window->blocks[id / 64 % SS_REPLAY_BLOCKS] |= bit_of(id);
}
