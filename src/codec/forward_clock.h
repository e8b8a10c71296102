/*
 * Seconds that pass for memories of what was seen, out of the Unix time that is handed in.
 *
 * The time stamps that peers send are held against the same Unix time: what a memory has forgotten
 * because that time went by is refused for its stamp. A clock that is set back stands still here,
 * so nothing is forgotten too early, and nothing is kept for as long as it was wrong. For this
 * folder alone.
 */
#ifndef SS_CODEC_FORWARD_CLOCK_H
#define SS_CODEC_FORWARD_CLOCK_H

#include <stdint.h>

struct ss_forward_clock {
    int64_t last_s;     /* as handed in */
    uint32_t elapsed_s; /* all that went forward; starts at 1, so that 0 is before everything */
};

/* A step further than anything is remembered counts as this. */
#define SS_FORWARD_STEP_MAX 1000

static inline uint32_t ss_forward_clock_at(struct ss_forward_clock *clock, int64_t now_s)
{
    if (clock->elapsed_s == 0)
        clock->elapsed_s = 1;
    else if (now_s > clock->last_s)
        clock->elapsed_s += now_s - clock->last_s < SS_FORWARD_STEP_MAX
                                ? (uint32_t)(now_s - clock->last_s)
                                : SS_FORWARD_STEP_MAX;
    clock->last_s = now_s;
    return clock->elapsed_s;
}

#endif
