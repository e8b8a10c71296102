/*
 * A ceiling on the private memory of the process. It is looked at ten times a second; near the
 * ceiling flows read less, so that less can wait, and what is free goes back to the system at once;
 * at it new connections stay in the kernel's queue and flows go on in drops, so that what waits can
 * drain and nothing fails. For this folder alone.
 */
#ifndef SS_RELAY_PRESSURE_H
#define SS_RELAY_PRESSURE_H

#include <stddef.h>
#include <stdint.h>

struct ss_engine;

enum ss_pressure { SS_PRESSURE_NONE, SS_PRESSURE_NEAR, SS_PRESSURE_AT };

/* Begins to look, where the engine's options ask for it. Loop 0, as the next. */
void ss_pressure_start(struct ss_engine *engine);
void ss_pressure_stop(struct ss_engine *engine);

/* Any thread. */
enum ss_pressure ss_pressure_of(const struct ss_engine *engine);

/* Of `room` bytes those that a flow may read. */
size_t ss_pressure_room(enum ss_pressure pressure, size_t room);

#endif
