/* One configuration with all that is made from it, and how it goes away. */
#include "service/generation.h"

#include <stdlib.h>

#include "acl/acl.h"

static void on_reap(uv_async_t *async)
{
    ss_reaper_run(async->data);
}

enum ss_status ss_reaper_open(struct ss_reaper *reaper, uv_loop_t *loop)
{
    if (uv_mutex_init(&reaper->lock) != 0)
        return SS_ERR_MEMORY;
    if (uv_async_init(loop, &reaper->async, on_reap) != 0) {
        uv_mutex_destroy(&reaper->lock);
        return SS_ERR_LIMIT;
    }
    reaper->async.data = reaper;
    reaper->is_open = true;
    reaper->has_lock = true;
    /* It is no reason for the loop to go on. */
    uv_unref((uv_handle_t *)&reaper->async);
    return SS_OK;
}

void ss_reaper_close(struct ss_reaper *reaper)
{
    if (!reaper->is_open)
        return;
    uv_mutex_lock(&reaper->lock);
    reaper->is_open = false;
    uv_mutex_unlock(&reaper->lock);
    uv_close((uv_handle_t *)&reaper->async, NULL);
}

static void free_service(struct ss_service *service)
{
    ss_service_free_plans(service);
    ss_service_free_profiles(service);
    ss_acl_release(service->acl);
    ss_config_free(&service->own_config);
    free(service);
}

void ss_reaper_run(struct ss_reaper *reaper)
{
    struct ss_service *list;

    if (!reaper->has_lock)
        return;
    uv_mutex_lock(&reaper->lock);
    list = reaper->list;
    reaper->list = NULL;
    uv_mutex_unlock(&reaper->lock);
    while (list != NULL) {
        struct ss_service *service = list;

        list = service->next_dead;
        free_service(service);
    }
}

void ss_reaper_clear(struct ss_reaper *reaper)
{
    ss_reaper_run(reaper);
    if (reaper->has_lock)
        uv_mutex_destroy(&reaper->lock);
    reaper->has_lock = false;
}

struct ss_service *ss_service_new(struct ss_config *config, struct ss_shared *shared,
                                  struct ss_plugins *plugins, struct ss_reaper *reaper)
{
    struct ss_service *service = calloc(1, sizeof *service);

    if (service == NULL)
        return NULL;
    atomic_init(&service->holders, 1);
    service->own_config = *config;
    *config = (struct ss_config){0};
    service->config = &service->own_config;
    service->shared = shared;
    service->plugins = plugins;
    service->reaper = reaper;
    return service;
}

void ss_service_hold(struct ss_service *service)
{
    atomic_fetch_add_explicit(&service->holders, 1, memory_order_relaxed);
}

void ss_service_release(void *owner)
{
    struct ss_service *service = owner;
    struct ss_reaper *reaper;

    if (service == NULL ||
        atomic_fetch_sub_explicit(&service->holders, 1, memory_order_acq_rel) != 1)
        return;
    reaper = service->reaper;
    if (!reaper->has_lock) {
        free_service(service);
        return;
    }
    uv_mutex_lock(&reaper->lock);
    service->next_dead = reaper->list;
    reaper->list = service;
    if (reaper->is_open)
        uv_async_send(&reaper->async);
    uv_mutex_unlock(&reaper->lock);
}
