/* Files and ports through the helper. */
#include "service/helped.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include "base/log.h"

#define BIND_WAIT_MS 2000

/* -- begin and end -- */

static void add_path(struct ss_helped *helped, const char *path)
{
    char *whole;

    if (path == NULL || helped->file_count == SS_HELPER_PATHS_MAX)
        return;
    whole = ss_file_absolute(path);
    for (size_t i = 0; whole != NULL && i < helped->file_count; i++)
        if (strcmp(helped->files[i].path, whole) == 0) {
            free(whole);
            return;
        }
    if (whole != NULL)
        helped->files[helped->file_count++] = (struct ss_handed_file){.path = whole, .fd = -1};
}

static void name_files(struct ss_helped *helped, const struct ss_config *config)
{
    add_path(helped, config->config_path);
    add_path(helped, config->acl);
    add_path(helped, config->socks5_auth_path);
    for (size_t i = 0; i < config->local_count; i++)
        add_path(helped, config->locals[i].auth_path);
}

bool ss_helped_start(struct ss_helped *helped, const struct ss_config *config, bool has_plugins,
                     void (*forget)(void *owner), void *owner)
{
    const char *paths[SS_HELPER_PATHS_MAX];
    struct ss_helper_options options = {
        .paths = paths, .user = config->user, .forget = forget, .owner = owner};

    /* In ss-manager's child the manager's own helper has the files. */
    if (config->user != NULL)
        name_files(helped, config);
    if (!has_plugins && helped->file_count == 0)
        return true;
    for (size_t i = 0; i < helped->file_count; i++)
        paths[i] = helped->files[i].path;
    options.path_count = helped->file_count;
    if (ss_helper_start(&helped->helper, &options) == SS_OK)
        return true;
    ss_log_error("the helper process can't be started");
    return false;
}

static void all_are_there(struct ss_helped *helped)
{
    ss_file_take_handed(helped->files, helped->file_count);
    helped->opened(helped->owner);
}

/* Without plugins nothing stands still for want of it. */
static void on_gone(void *owner)
{
    struct ss_helped *helped = owner;

    ss_log_warn("the helper process is gone: files that only root may read are not read again");
    ss_helper_link_close(helped->link);
    helped->link = NULL;
    helped->owns_link = false;
    if (helped->waiting == 0)
        return;
    helped->waiting = 0;
    all_are_there(helped);
}

bool ss_helped_attach(struct ss_helped *helped, struct ss_plugins *plugins, uv_loop_t *loop)
{
    if (helped->helper == NULL)
        return true;
    if (plugins != NULL) {
        if (ss_plugins_attach(plugins, helped->helper, loop) != SS_OK) {
            ss_log_error("the plugins can't be started");
            return false;
        }
        helped->link = ss_plugins_link(plugins);
        return true;
    }
    if (ss_helper_link_new(&helped->link, helped->helper, loop, on_gone, helped) != SS_OK) {
        ss_log_error("the helper process can't be heard");
        return false;
    }
    helped->owns_link = true;
    return true;
}

bool ss_helped_seal(const struct ss_helped *helped, const struct ss_config *config)
{
    if (config->user == NULL || helped->helper == NULL || ss_helper_seal(helped->helper) == SS_OK)
        return true;
    ss_log_error("the helper process is gone");
    return false;
}

void ss_helped_close(struct ss_helped *helped)
{
    if (helped->owns_link)
        ss_helper_link_close(helped->link);
    helped->owns_link = false;
    helped->link = NULL;
    ss_helped_close_files(helped);
}

void ss_helped_end(struct ss_helped *helped)
{
    ss_helper_end(helped->helper);
    helped->helper = NULL;
    for (size_t i = 0; i < helped->file_count; i++)
        free((char *)(uintptr_t)helped->files[i].path);
    helped->file_count = 0;
}

/* -- ports -- */

struct answer {
    bool there;
    struct ss_notice notice;
};

static void on_answer(void *owner, const struct ss_notice *notice)
{
    struct answer *answer = owner;

    answer->notice = *notice;
    answer->there = true;
}

static enum ss_status bind_port(void *owner, int *fd, const struct ss_addr *addr, bool udp,
                                bool ipv6_only, bool reuse_port, bool mptcp,
                                const char **error_text)
{
    struct ss_helped *helped = owner;
    const struct ss_bind_options options = {.address = *addr,
                                            .udp = udp,
                                            .ipv6_only = ipv6_only,
                                            .reuse_port = reuse_port,
                                            .mptcp = mptcp};
    struct answer answer = {.notice.descriptor = -1};
    enum ss_status status = SS_ERR_PERMISSION;
    uint32_t id;

    if (error_text != NULL)
        *error_text = strerror(EACCES);
    if (helped->link == NULL)
        return status;
    id = ss_helper_link_add(helped->link, on_answer, &answer);
    if (id == 0)
        return SS_ERR_MEMORY;
    status = ss_helper_bind(ss_helper_link_ask(helped->link), id, &options);
    while (status == SS_OK && !answer.there)
        status = ss_helper_link_wait(helped->link, BIND_WAIT_MS);
    ss_helper_link_remove(helped->link, id);
    if (status == SS_OK && answer.notice.error != 0) {
        if (error_text != NULL)
            *error_text = strerror(answer.notice.error);
        status = ss_status_from_errno(answer.notice.error);
    }
    if (status == SS_OK)
        *fd = answer.notice.descriptor;
    return status;
}

struct ss_binder ss_helped_binder(struct ss_helped *helped)
{
    return (struct ss_binder){.bind = bind_port, .owner = helped};
}

/* -- files -- */

static void on_opened(void *owner, const struct ss_notice *notice)
{
    struct ss_helped *helped = owner;

    for (size_t i = 0; i < helped->file_count; i++) {
        if (helped->ids[i] != notice->id)
            continue;
        ss_helper_link_remove(helped->link, notice->id);
        helped->ids[i] = 0;
        helped->files[i].fd = notice->error == 0 ? notice->descriptor : -1;
        if (--helped->waiting == 0)
            all_are_there(helped);
        return;
    }
}

void ss_helped_open_files(struct ss_helped *helped, void (*opened)(void *owner), void *owner)
{
    helped->opened = opened;
    helped->owner = owner;
    for (size_t i = 0; helped->link != NULL && i < helped->file_count; i++) {
        uint32_t id = ss_helper_link_add(helped->link, on_opened, helped);

        if (id == 0)
            continue;
        if (ss_helper_open(ss_helper_link_ask(helped->link), id, i) != SS_OK) {
            ss_helper_link_remove(helped->link, id);
            continue;
        }
        helped->ids[i] = id;
        helped->waiting++;
    }
    if (helped->waiting == 0)
        all_are_there(helped);
}

void ss_helped_close_files(struct ss_helped *helped)
{
    ss_file_take_handed(NULL, 0);
    for (size_t i = 0; i < helped->file_count; i++) {
        if (helped->files[i].fd >= 0)
            close(helped->files[i].fd);
        helped->files[i].fd = -1;
    }
}
