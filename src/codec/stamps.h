/*
 * How long what had a time stamp is remembered, so that it is never taken twice (SIP022, 3.1.4 and
 * 3.2.4). For this folder alone.
 *
 * All times are Unix time as the caller hands it in: that is what stamps are held against. What was
 * seen at S had a stamp of at most S + 30 s, so it is stale once the clock is past S + 60 s, and
 * may be forgotten then; a clock that is set back keeps it for longer. If the clock is set back
 * behind what was forgotten already, nobody can tell a repeat from what is new: stamps up to the
 * latest that was forgotten are refused. While the clock only goes forward, these are stale anyway.
 */
#ifndef SS_CODEC_STAMPS_H
#define SS_CODEC_STAMPS_H

#include <stdbool.h>
#include <stdint.h>

#define SS_STAMP_TOLERANCE_S 30
#define SS_STAMP_MEMORY_S    (2 * SS_STAMP_TOLERANCE_S)

static inline bool ss_may_forget(int64_t seen_s, int64_t now_s)
{
    return now_s - seen_s > SS_STAMP_MEMORY_S;
}

/* Seen by a clock that was set back since: it will have to stay for a while. */
static inline bool ss_is_ahead(int64_t seen_s, int64_t now_s)
{
    return seen_s > now_s;
}

/* `fresh_s` is the first stamp that nothing forgotten had; 0 at first. */
static inline void ss_note_forgotten(int64_t *fresh_s, int64_t seen_s)
{
    if (*fresh_s <= seen_s + SS_STAMP_TOLERANCE_S)
        *fresh_s = seen_s + SS_STAMP_TOLERANCE_S + 1;
}

#endif
