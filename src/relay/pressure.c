/* What a ceiling on memory comes to. */
#include "relay/pressure.h"

#include "base/log.h"
#include "relay/engine_internal.h"

#define LOOK_MS 100

/* Shares of the ceiling, in percent. Between two looks the flows of a busy process can make some
 * MiB resident. */
#define NEAR_PERCENT 70
#define AT_PERCENT   88

/* Bytes of a read. */
#define NEAR_ROOM (32u * 1024u)
#define AT_ROOM   (4u * 1024u)

enum ss_pressure ss_pressure_of(const struct ss_engine *engine)
{
    return (enum ss_pressure)atomic_load_explicit(&engine->pressure, memory_order_relaxed);
}

size_t ss_pressure_room(enum ss_pressure pressure, size_t room)
{
    size_t most = pressure == SS_PRESSURE_NONE   ? room
                  : pressure == SS_PRESSURE_NEAR ? NEAR_ROOM
                                                 : AT_ROOM;

    return room < most ? room : most;
}

static void on_look(uv_timer_t *timer)
{
    struct ss_engine *engine = timer->data;
    uint64_t percent = engine->options.private_bytes() * 100 / engine->options.max_memory;
    enum ss_pressure now = percent >= AT_PERCENT     ? SS_PRESSURE_AT
                           : percent >= NEAR_PERCENT ? SS_PRESSURE_NEAR
                                                     : SS_PRESSURE_NONE;

    if (now == SS_PRESSURE_AT && ss_pressure_of(engine) != SS_PRESSURE_AT)
        ss_log_limited(&engine->memory_log, uv_now(timer->loop), SS_LOG_WARN,
                       "max_memory is near: new connections wait and what is open goes on slowly");
    atomic_store_explicit(&engine->pressure, (uint8_t)now, memory_order_relaxed);
    if (now != SS_PRESSURE_AT && atomic_load(&engine->listeners_paused))
        ss_engine_resume_listeners(engine);
}

void ss_pressure_start(struct ss_engine *engine)
{
    uv_timer_init(&engine->workers[0].loop, &engine->pressure_timer);
    engine->pressure_timer.data = engine;
    if (engine->options.max_memory != 0 && engine->options.private_bytes != NULL)
        uv_timer_start(&engine->pressure_timer, on_look, LOOK_MS, LOOK_MS);
}

void ss_pressure_stop(struct ss_engine *engine)
{
    uv_close((uv_handle_t *)&engine->pressure_timer, NULL);
}
