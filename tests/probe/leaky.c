/*
 * What makes ss-server tell a prober why a start was refused: for ss-server-leaky alone, on which
 * probe.py has to turn red. The linker puts these in the way of the real functions (--wrap), so
 * that the programs that ship know nothing of it.
 */
#include <stdlib.h>

#include "codec/codec.h"
#include "codec/replay_window.h"
#include "codec/salt_memory.h"
#include "relay/session.h"

enum ss_status __real_ss_codec_open(struct ss_codec *codec, struct ss_span wire, int64_t now_s,
                                    struct ss_opened *opened);
enum ss_status __wrap_ss_codec_open(struct ss_codec *codec, struct ss_span wire, int64_t now_s,
                                    struct ss_opened *opened);
void __real_ss_session_enter(struct ss_session *session, enum ss_phase next);
void __wrap_ss_session_enter(struct ss_session *session, enum ss_phase next);
void __real_ss_session_abort(struct ss_session *session);
void __wrap_ss_session_abort(struct ss_session *session);

bool __real_ss_replay_window_accepts(const struct ss_replay_window *window, uint64_t id);
bool __wrap_ss_replay_window_accepts(const struct ss_replay_window *window, uint64_t id);
bool __real_ss_salt_memory_store_print(struct ss_salt_memory *memory, uint64_t print);
bool __wrap_ss_salt_memory_store_print(struct ss_salt_memory *memory, uint64_t print);
bool __real_ss_salt_memory_store(struct ss_salt_memory *memory, const uint8_t *salt, size_t len);
bool __wrap_ss_salt_memory_store(struct ss_salt_memory *memory, const uint8_t *salt, size_t len);

/* Why the last start on this thread was refused. */
static _Thread_local enum ss_status last_refusal;

enum ss_status __wrap_ss_codec_open(struct ss_codec *codec, struct ss_span wire, int64_t now_s,
                                    struct ss_opened *opened)
{
    enum ss_status status = __real_ss_codec_open(codec, wire, now_s, opened);

    if (status != SS_OK)
        last_refusal = status;
    return status;
}

/* 2017: a tag that does not verify ends the connection at once; what is incomplete waits. */
void __wrap_ss_session_enter(struct ss_session *session, enum ss_phase next)
{
    if (next == SS_PHASE_REFUSED && last_refusal == SS_ERR_AUTH)
        ss_session_close(session);
    else
        __real_ss_session_enter(session, next);
}

/* 2022: a bad tag is answered with RST, and what was opened but is wrong with FIN. */
void __wrap_ss_session_abort(struct ss_session *session)
{
    if (last_refusal == SS_ERR_AUTH)
        __real_ss_session_abort(session);
    else
        ss_session_close(session);
}

/* Datagrams: what came before is taken again. */
static bool leaks_datagrams(void)
{
    return getenv("SS_LEAKY_UDP") != NULL;
}

bool __wrap_ss_replay_window_accepts(const struct ss_replay_window *window, uint64_t id)
{
    return leaks_datagrams() || __real_ss_replay_window_accepts(window, id);
}

bool __wrap_ss_salt_memory_store_print(struct ss_salt_memory *memory, uint64_t print)
{
    return leaks_datagrams() || __real_ss_salt_memory_store_print(memory, print);
}

bool __wrap_ss_salt_memory_store(struct ss_salt_memory *memory, const uint8_t *salt, size_t len)
{
    return leaks_datagrams() || __real_ss_salt_memory_store(memory, salt, len);
}
