/*
 * A generation: one configuration with all that is made from it. It does not change once it is in
 * force, is counted by the roles that are made of it, and is freed in the thread of loop 0 when the
 * last session of it has ended. For this folder.
 */
#ifndef SS_SERVICE_GENERATION_H
#define SS_SERVICE_GENERATION_H

#include <stdbool.h>

#include <uv.h>

#include "service/service_internal.h"

/* Takes those whose last holder has let go, in whatever thread, to the loop. All zero: they are
 * freed at once, where there is one thread alone. */
struct ss_reaper {
    uv_async_t async;
    uv_mutex_t lock;
    struct ss_service *list;
    bool is_open, has_lock;
};

/* SS_ERR_MEMORY, SS_ERR_LIMIT. */
SS_CHECKED enum ss_status ss_reaper_open(struct ss_reaper *reaper, uv_loop_t *loop);
/* In the loop's thread; the loop must run once more. Twice is fine. */
void ss_reaper_close(struct ss_reaper *reaper);
/* Frees those that wait for it. */
void ss_reaper_run(struct ss_reaper *reaper);
/* The same, for the last time. */
void ss_reaper_clear(struct ss_reaper *reaper);

/* Takes the configuration, which is empty then. The rest is borrowed and outlives it. The caller
 * holds it once. NULL: out of memory, and the configuration stays the caller's. */
struct ss_service *ss_service_new(struct ss_config *config, struct ss_shared *shared,
                                  struct ss_plugins *plugins, struct ss_reaper *reaper);

void ss_service_hold(struct ss_service *service);
/* Any thread. NULL is fine. */
void ss_service_release(void *service);

#endif
