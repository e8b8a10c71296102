/* Reading the configuration again, and what comes of it. */
#include "service/reload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "config/config.h"
#include "crypto/secret.h"
#include "relay/engine.h"
#include "sys/process.h"
#include "sys/read_file.h"

#define NAMES_SIZE 512

struct ss_reload {
    struct ss_reload_options options;
    uv_async_t done;
    uv_thread_t thread;
    bool loading;    /* one is under way: files are opened, or */
    bool has_thread; /* read */
    bool again;      /* another one was asked for meanwhile */
    /* What the thread works with, and comes to: */
    const struct ss_service *before; /* held */
    struct ss_service *loaded;       /* NULL: it has failed, and said why */
    char fixed[NAMES_SIZE];          /* settings that can't change, and did in the file */
};

/* -- words -- */

enum ss_status ss_words_keep(struct ss_words *words, int argc, char *const *argv)
{
    *words = (struct ss_words){.list = calloc((size_t)argc + 1, sizeof(char *))};
    for (int i = 0; words->list != NULL && i < argc; i++) {
        words->list[i] = strdup(argv[i]);
        if (words->list[i] == NULL)
            return SS_ERR_MEMORY;
        words->count++;
    }
    return words->list != NULL ? SS_OK : SS_ERR_MEMORY;
}

void ss_words_forget(struct ss_words *words)
{
    for (int i = 0; i < words->count; i++) {
        ss_wipe(words->list[i], strlen(words->list[i]));
        free(words->list[i]);
    }
    free(words->list);
    *words = (struct ss_words){0};
}

/* -- in the thread -- */

/* The file that could not be read for want of rights; "" when there was none. One thread reads. */
static char denied[256];

static enum ss_status read_file(char **text, size_t *len, const char *path, size_t limit)
{
    enum ss_status status = ss_file_read(text, len, path, limit);

    if (status == SS_ERR_PERMISSION)
        snprintf(denied, sizeof denied, "%s", path);
    return status;
}

/* Reading blanks secrets out of the words, so it gets words of its own. */
static bool read_configuration(struct ss_config *config, const struct ss_reload *reload)
{
    struct ss_words words;
    bool good = false;

    if (ss_words_keep(&words, reload->options.words->count, reload->options.words->list) == SS_OK) {
        char **kept = words.list;
        char **argv = malloc(((size_t)words.count + 1) * sizeof *argv);

        if (argv != NULL) {
            memcpy(argv, kept, ((size_t)words.count + 1) * sizeof *argv);
            good = ss_config_read_again(config, reload->before->config->program, words.count, argv,
                                        read_file);
        }
        free(argv);
    } else {
        ss_log_error("%s", ss_status_text(SS_ERR_MEMORY));
    }
    ss_words_forget(&words);
    return good;
}

/* All that needs the system but no socket. NULL after the error lines. */
static struct ss_service *load(struct ss_reload *reload)
{
    const struct ss_service *before = reload->before;
    struct ss_config config;
    struct ss_service *service;
    enum ss_status status;

    if (!read_configuration(&config, reload))
        return NULL;
    if (config.workers == 0)
        config.workers = before->config->workers;
    status = ss_config_keep_fixed(&config, before->config, reload->fixed, sizeof reload->fixed);
    if (status == SS_OK && (!ss_service_supports(&config) || !ss_service_plans_fit(&config))) {
        ss_config_free(&config);
        return NULL;
    }
    service = status == SS_OK
                  ? ss_service_new(&config, before->shared, before->plugins, before->reaper)
                  : NULL;
    if (service == NULL) {
        ss_log_error("%s", ss_status_text(SS_ERR_MEMORY));
        ss_config_free(&config);
        return NULL;
    }
    if (ss_service_look_names_up(service) == SS_OK && ss_service_make_acl(service, true))
        return service;
    ss_service_release(service);
    return NULL;
}

static void run(void *argument)
{
    struct ss_reload *reload = argument;

    denied[0] = '\0';
    reload->loaded = load(reload);
    uv_async_send(&reload->done);
}

/* -- on loop 0 -- */

struct outcome {
    struct ss_sockets_change sockets;
    size_t users_added, users_removed;
};

/* Users of servers whose profile stays; those of others came with it. */
static void change_users(struct ss_service *service, struct ss_engine *engine,
                         struct outcome *outcome)
{
    for (size_t i = 0; i < service->config->server_count; i++) {
        struct ss_keying *keying = &service->keyings[i];

        outcome->users_added += keying->users_added;
        outcome->users_removed += keying->users_removed;
        if (keying->users != NULL &&
            ss_engine_set_users(engine, keying->profile, keying->users) != SS_OK)
            ss_log_error("the users of a server can't be changed: %s",
                         ss_status_text(SS_ERR_MEMORY));
        ss_users_release(keying->users);
        keying->users = NULL;
        if (service->config->program == SS_PROGRAM_SERVER)
            ss_keying_set_limits(keying, &service->config->servers[i]);
    }
}

/* Whether a server listens for TCP at a port itself. */
static bool listens_at(const struct ss_config *config, uint16_t port)
{
    for (size_t i = 0; i < config->server_count; i++) {
        const struct ss_config_server *server = &config->servers[i];

        if (server->mode == SS_MODE_UDP_ONLY || ss_plugin_carries(server, false))
            continue;
        for (size_t a = 0; a < server->address_count; a++)
            if (server->addresses[a].port == port)
                return true;
    }
    return false;
}

/* A plugin of a server has the public port until it has ended, which takes it a while. */
static bool plugins_may_change(const struct ss_service *service, const struct ss_service *before)
{
    if (ss_service_uses_plugins(service->config) && service->plugins == NULL) {
        ss_log_error("plugins can't be added while running where there were none at the start; a "
                     "restart begins them");
        return false;
    }
    for (size_t i = 0; service->config->program == SS_PROGRAM_SERVER && i < before->place_count;
         i++) {
        uint16_t port = before->places[i].port;

        if (!ss_plugin_carries(&before->config->servers[before->places[i].server], false) ||
            !listens_at(service->config, port))
            continue;
        ss_log_error("port %u: its plugin can't be taken away while running; a restart does that",
                     port);
        return false;
    }
    return true;
}

/* False after the error lines; then all is as it was. */
static bool commit(struct ss_reload *reload, struct outcome *outcome)
{
    const struct ss_reload_options *options = &reload->options;
    struct ss_service *service = reload->loaded, *before = *options->service;

    if (!plugins_may_change(service, before) || !ss_service_make_profiles(service, before) ||
        !ss_service_make_plans(service, before) ||
        (service->plugins != NULL && !ss_plugins_start(service->plugins, true)) ||
        !ss_service_listen(service, before, options->sockets, &outcome->sockets))
        return false;
    change_users(service, options->sockets->engine, outcome);
    if (options->ports != NULL && ss_ports_follow(options->ports, service) != SS_OK)
        ss_log_error("some ports of the manager go on as before");
    ss_log_set_level((enum ss_log_level)service->config->log_level);
    /* Those of a server would keep its ports from those that follow; what goes through them ends.
     */
    if (service->config->program == SS_PROGRAM_SERVER)
        ss_service_leave_plugins(before);
    ss_service_hold(service);
    *options->service = service;
    ss_service_release(before);
    return true;
}

static void log_failure(const struct ss_reload *reload)
{
    const char *user = reload->before->config->user;

    if (denied[0] != '\0' && user != NULL)
        ss_log_error("not reloaded: the user of -a, %s, may not read %s; what was in force stays",
                     user, denied);
    else
        ss_log_error("not reloaded: what was in force stays");
}

static void log_success(const struct ss_reload *reload, const struct outcome *outcome)
{
    if (reload->fixed[0] != '\0')
        ss_log_warn("a restart is needed for what was changed of: %s", reload->fixed);
    ss_log_info("reloaded: ports: %zu opened, %zu closed, %zu changed; users: %zu added, %zu "
                "removed",
                outcome->sockets.opened, outcome->sockets.closed, outcome->sockets.changed,
                outcome->users_added, outcome->users_removed);
}

static void let_go(struct ss_reload *reload)
{
    ss_service_release(reload->loaded);
    ss_service_release((struct ss_service *)(uintptr_t)reload->before);
    reload->loaded = NULL;
    reload->before = NULL;
    reload->loading = false;
    ss_helped_close_files(reload->options.helped);
}

/* Files that only others may open are open. */
static void on_files(void *owner)
{
    struct ss_reload *reload = owner;
    struct ss_service *before = *reload->options.service;

    ss_service_hold(before);
    reload->before = before;
    reload->loaded = NULL;
    reload->has_thread = uv_thread_create(&reload->thread, run, reload) == 0;
    if (reload->has_thread)
        return;
    ss_log_error("not reloaded: there is no thread for it");
    let_go(reload);
}

static void begin(struct ss_reload *reload)
{
    reload->loading = true;
    ss_helped_open_files(reload->options.helped, on_files, reload);
}

/* The thread has ended, or is about to. */
static void join(struct ss_reload *reload)
{
    uv_thread_join(&reload->thread);
    reload->has_thread = false;
}

static void on_done(uv_async_t *done)
{
    struct ss_reload *reload = done->data;
    struct outcome outcome = {0};

    if (!reload->has_thread)
        return;
    join(reload);
    if (reload->loaded != NULL && commit(reload, &outcome))
        log_success(reload, &outcome);
    else
        log_failure(reload);
    let_go(reload);
    if (reload->again) {
        reload->again = false;
        begin(reload);
    }
}

enum ss_status ss_reload_new(struct ss_reload **out, const struct ss_reload_options *options)
{
    struct ss_reload *reload = calloc(1, sizeof *reload);

    *out = NULL;
    if (reload == NULL)
        return SS_ERR_MEMORY;
    if (uv_async_init(options->loop, &reload->done, on_done) != 0) {
        free(reload);
        return SS_ERR_LIMIT;
    }
    reload->done.data = reload;
    reload->options = *options;
    *out = reload;
    return SS_OK;
}

void ss_reload_begin(struct ss_reload *reload)
{
    if (reload->loading)
        reload->again = true;
    else
        begin(reload);
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void ss_reload_close(struct ss_reload *reload)
{
    if (reload == NULL)
        return;
    if (reload->has_thread) {
        join(reload);
        let_go(reload);
    }
    uv_close((uv_handle_t *)&reload->done, on_closed);
}
