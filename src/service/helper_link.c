/* The helper's notices on a loop. */
#include "service/helper_link.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

struct entry {
    uint32_t id;
    ss_helper_notice_fn *notice;
    void *owner;
};

struct ss_helper_link {
    struct ss_helper *helper;
    uv_poll_t poll;
    uv_timer_t look; /* for notices that a request has taken in, of which the poll does not tell */
    unsigned open_handles;
    bool closed;

    ss_helper_gone_fn *gone;
    void *owner;

    struct entry *entries; /* in no order */
    size_t count, room;
    uint32_t last_id;
};

static void tell(struct ss_helper_link *link, const struct ss_notice *notice)
{
    for (size_t i = 0; i < link->count; i++) {
        if (link->entries[i].id == notice->id) {
            link->entries[i].notice(link->entries[i].owner, notice);
            return;
        }
    }
    if (notice->descriptor >= 0)
        close(notice->descriptor);
}

static void read_all(struct ss_helper_link *link)
{
    while (!link->closed) {
        struct ss_notice notice;
        enum ss_status status = ss_helper_read(link->helper, &notice);

        if (status == SS_NEED_INPUT)
            return;
        if (status != SS_OK) {
            uv_poll_stop(&link->poll);
            link->gone(link->owner);
            return;
        }
        tell(link, &notice);
    }
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    read_all(poll->data);
}

static void on_look(uv_timer_t *timer)
{
    read_all(timer->data);
}

static void on_closed(uv_handle_t *handle)
{
    struct ss_helper_link *link = handle->data;

    if (--link->open_handles != 0)
        return;
    free(link->entries);
    free(link);
}

enum ss_status ss_helper_link_new(struct ss_helper_link **out, struct ss_helper *helper,
                                  uv_loop_t *loop, ss_helper_gone_fn *gone, void *owner)
{
    struct ss_helper_link *link = calloc(1, sizeof *link);

    *out = NULL;
    if (link == NULL)
        return SS_ERR_MEMORY;
    *link = (struct ss_helper_link){.helper = helper, .gone = gone, .owner = owner};
    if (uv_poll_init(loop, &link->poll, ss_helper_descriptor(helper)) != 0) {
        free(link);
        return SS_ERR_IO;
    }
    uv_timer_init(loop, &link->look);
    link->poll.data = link->look.data = link;
    link->open_handles = 2;
    if (uv_poll_start(&link->poll, UV_READABLE, on_readable) != 0) {
        ss_helper_link_close(link);
        return SS_ERR_IO;
    }
    *out = link;
    return SS_OK;
}

void ss_helper_link_close(struct ss_helper_link *link)
{
    if (link == NULL)
        return;
    link->closed = true;
    uv_close((uv_handle_t *)&link->poll, on_closed);
    uv_close((uv_handle_t *)&link->look, on_closed);
}

static bool is_taken(const struct ss_helper_link *link, uint32_t id)
{
    for (size_t i = 0; i < link->count; i++)
        if (link->entries[i].id == id)
            return true;
    return id == 0;
}

uint32_t ss_helper_link_add(struct ss_helper_link *link, ss_helper_notice_fn *notice, void *owner)
{
    if (link->count == link->room) {
        size_t room = link->room != 0 ? link->room * 2 : 8;
        struct entry *grown = realloc(link->entries, room * sizeof *grown);

        if (grown == NULL)
            return 0;
        link->entries = grown;
        link->room = room;
    }
    do
        link->last_id++;
    while (is_taken(link, link->last_id));
    link->entries[link->count++] =
        (struct entry){.id = link->last_id, .notice = notice, .owner = owner};
    return link->last_id;
}

void ss_helper_link_remove(struct ss_helper_link *link, uint32_t id)
{
    for (size_t i = 0; i < link->count; i++) {
        if (link->entries[i].id == id) {
            link->entries[i] = link->entries[--link->count];
            return;
        }
    }
}

struct ss_helper *ss_helper_link_ask(struct ss_helper_link *link)
{
    uv_timer_start(&link->look, on_look, 0, 0);
    return link->helper;
}

enum ss_status ss_helper_link_wait(struct ss_helper_link *link, uint32_t timeout_ms)
{
    struct ss_notice notice;
    enum ss_status status = ss_helper_wait(link->helper, &notice, timeout_ms);

    if (status == SS_OK)
        tell(link, &notice);
    return status;
}
