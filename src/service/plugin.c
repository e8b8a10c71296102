/* The life of plugins. */
#include "service/plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "service/plugin_internal.h"
#include "sys/process.h"

#define START_WAIT_MS 10000 /* until it is executed, which only a broken file system delays */
#define FIRST_RUN_MS  1000  /* a first run that is over sooner is no run */
#define SETTLE_MS     50    /* whoever ends plugin and program together means no end of a plugin */
#define PAUSE_MS      100   /* before the second run, and doubled from there */
#define PAUSE_MAX_MS  30000
#define LONG_RUN_MS   10000 /* after a run of this the pauses are short again */

struct ss_plugins *ss_plugins_new(bool exit_with, ss_plugins_fatal_fn *fatal, void *owner)
{
    struct ss_plugins *plugins = calloc(1, sizeof *plugins);
    const char *path = getenv("PATH");

    if (plugins == NULL)
        return NULL;
    plugins->exit_with = exit_with;
    plugins->fatal = fatal;
    plugins->owner = owner;
    plugins->folder = ss_path_absolute("");
    if (plugins->folder != NULL)
        plugins->search = path != NULL ? ss_plugin_join(plugins->folder, ":", path)
                                       : ss_plugin_join(plugins->folder, ":", "/usr/bin:/bin");
    return plugins;
}

void ss_plugins_forgive(struct ss_plugins *plugins)
{
    plugins->forgiving = true;
}

struct ss_helper_link *ss_plugins_link(const struct ss_plugins *plugins)
{
    return plugins->link;
}

void ss_plugins_free(struct ss_plugins *plugins)
{
    if (plugins == NULL)
        return;
    ss_plugins_close(plugins);
    free(plugins->folder);
    free(plugins->search);
    free(plugins);
}

static void on_timer_closed(uv_handle_t *handle)
{
    ss_plugin_free(handle->data);
}

void ss_plugin_release(struct ss_plugin *plugin)
{
    struct ss_plugins *plugins;
    struct ss_plugin **at;

    if (plugin == NULL || --plugin->holders != 0)
        return;
    plugins = plugin->plugins;
    for (at = &plugins->list; *at != plugin;)
        at = &(*at)->next;
    *at = plugin->next;
    if (plugin->id != 0 && plugins->link != NULL) {
        ss_helper_link_remove(plugins->link, plugin->id);
        /* A helper that is gone has ended it. */
        if (ss_helper_stop_child(ss_helper_link_ask(plugins->link), plugin->id) == SS_OK &&
            ss_helper_forget_child(ss_helper_link_ask(plugins->link), plugin->id) == SS_OK)
            ss_log_debug("plugin \"%s\" is not needed any more", plugin->name);
    }
    if (plugin->timer_open)
        uv_close((uv_handle_t *)&plugin->timer, on_timer_closed);
    else
        ss_plugin_free(plugin);
}

const struct ss_addr *ss_plugin_local(const struct ss_plugin *plugin)
{
    return &plugin->local;
}

bool ss_plugin_carries(const struct ss_config_server *server, bool udp)
{
    return server->plugin != NULL &&
           server->plugin_mode != (udp ? SS_MODE_TCP_ONLY : SS_MODE_UDP_ONLY);
}

/* Which one, where there are several. */
static void name_plugin(char *text, size_t size, const struct ss_plugin *plugin)
{
    if (plugin->plugins->list == plugin && plugin->next == NULL)
        snprintf(text, size, "plugin \"%s\"", plugin->name);
    else
        snprintf(text, size, "plugin \"%s\" of port %u", plugin->name, plugin->port);
}

static void fail_to_start(const struct ss_plugin *plugin, const char *why)
{
    const char *folder = plugin->plugins->folder;
    char name[512];

    name_plugin(name, sizeof name, plugin);
    if (strchr(plugin->name, '/') == NULL)
        ss_log_error("%s can't be started: %s (looked for in %s and in PATH)", name, why,
                     folder != NULL ? folder : "no other folder");
    else if (plugin->name[0] != '/' && folder != NULL)
        ss_log_error("%s can't be started: %s%s: %s", name, folder, plugin->name, why);
    else
        ss_log_error("%s can't be started: %s", name, why);
}

static void describe_end(char *text, size_t size, const struct ss_notice *end)
{
    int used = end->signal != 0 ? snprintf(text, size, "was ended by signal %d (%s)", end->signal,
                                           strsignal(end->signal))
                                : snprintf(text, size, "ended with status %d", end->exit_code);

    if (used > 0 && (size_t)used < size)
        snprintf(text + used, size - (size_t)used, " after %u.%03u s", end->ran_ms / 1000,
                 end->ran_ms % 1000);
}

static void begin_again(uv_timer_t *timer);

static void pause_before_next(struct ss_plugin *plugin, uint32_t ran_ms)
{
    if (plugin->pause_ms == 0 || ran_ms >= LONG_RUN_MS)
        plugin->pause_ms = PAUSE_MS;
    else
        plugin->pause_ms =
            plugin->pause_ms < PAUSE_MAX_MS / 2 ? plugin->pause_ms * 2 : PAUSE_MAX_MS;
    plugin->state = SS_PLUGIN_PAUSING;
    uv_timer_start(&plugin->timer, begin_again, plugin->pause_ms, 0);
}

static void begin_again(uv_timer_t *timer)
{
    static const int inherited[3] = {-1, -1, -1};
    struct ss_plugin *plugin = timer->data;
    struct ss_plugins *plugins = plugin->plugins;

    plugin->state = SS_PLUGIN_STARTING;
    /* Should the helper be gone, the link tells. */
    if (ss_helper_start_again(ss_helper_link_ask(plugins->link), plugin->id, inherited) ==
        SS_ERR_MEMORY)
        pause_before_next(plugin, 0);
}

static void on_settled(uv_timer_t *timer)
{
    struct ss_plugin *plugin = timer->data;
    struct ss_plugins *plugins = plugin->plugins;
    char name[512], how[128];

    name_plugin(name, sizeof name, plugin);
    describe_end(how, sizeof how, &plugin->end);
    if (!plugins->forgiving &&
        (plugins->exit_with || (!plugin->proven && plugin->end.ran_ms < FIRST_RUN_MS))) {
        ss_log_error("plugin service exit unexpectedly: %s %s", name, how);
        plugins->fatal(plugins->owner);
        return;
    }
    plugin->proven = true;
    pause_before_next(plugin, plugin->end.ran_ms);
    ss_log_warn("%s %s; it is started again in %u.%u s", name, how, plugin->pause_ms / 1000,
                plugin->pause_ms % 1000 / 100);
}

static void on_started(struct ss_plugin *plugin, int error)
{
    struct ss_plugins *plugins = plugin->plugins;
    bool first = plugin->end.kind != SS_NOTICE_ENDED;

    if (first)
        plugins->starting--;
    if (error == 0) {
        plugin->state = SS_PLUGIN_RUNNING;
        return;
    }
    fail_to_start(plugin, strerror(error));
    if (first)
        plugins->failed = true;
    else
        pause_before_next(plugin, 0);
}

static void on_notice(void *owner, const struct ss_notice *notice)
{
    struct ss_plugin *plugin = owner;

    if (notice->kind == SS_NOTICE_STARTED && plugin->state == SS_PLUGIN_STARTING) {
        on_started(plugin, notice->error);
    } else if (notice->kind == SS_NOTICE_ENDED && plugin->state == SS_PLUGIN_RUNNING) {
        plugin->end = *notice;
        plugin->state = SS_PLUGIN_SETTLING;
        uv_timer_start(&plugin->timer, on_settled, SETTLE_MS, 0);
    }
}

static void on_gone(void *owner)
{
    struct ss_plugins *plugins = owner;

    ss_log_error("the helper process is gone, and the plugins with it");
    plugins->fatal(plugins->owner);
}

enum ss_status ss_plugins_attach(struct ss_plugins *plugins, struct ss_helper *helper,
                                 uv_loop_t *loop)
{
    plugins->loop = loop;
    return ss_helper_link_new(&plugins->link, helper, loop, on_gone, plugins);
}

static bool begin(struct ss_plugin *plugin)
{
    struct ss_plugins *plugins = plugin->plugins;
    enum ss_status status = SS_ERR_MEMORY;

    uv_timer_init(plugins->loop, &plugin->timer);
    plugin->timer.data = plugin;
    plugin->timer_open = true;
    plugin->id = ss_helper_link_add(plugins->link, on_notice, plugin);
    if (plugin->id != 0)
        status = ss_plugin_ask_to_start(plugin);
    if (status != SS_OK) {
        fail_to_start(plugin, status == SS_ERR_ARGUMENT ? "its name, options and arguments are too "
                                                          "long"
                                                        : ss_status_text(status));
        return false;
    }
    plugin->state = SS_PLUGIN_STARTING;
    plugins->starting++;
    return true;
}

bool ss_plugins_start(struct ss_plugins *plugins, bool later)
{
    bool good = true;

    plugins->failed = false;
    for (struct ss_plugin *p = plugins->list; good && p != NULL; p = p->next)
        if (p->state == SS_PLUGIN_NEW) {
            p->proven = later;
            good = begin(p);
        }
    while (plugins->starting != 0) {
        enum ss_status status = ss_helper_link_wait(plugins->link, START_WAIT_MS);

        if (status != SS_OK) {
            plugins->starting = 0;
            ss_log_error("the plugins can't be started: %s", ss_status_text(status));
            return false;
        }
    }
    return good && !plugins->failed;
}

void ss_plugins_close(struct ss_plugins *plugins)
{
    if (plugins == NULL)
        return;
    ss_helper_link_close(plugins->link);
    plugins->link = NULL;
    for (struct ss_plugin *p = plugins->list; p != NULL; p = p->next) {
        if (p->timer_open)
            uv_close((uv_handle_t *)&p->timer, NULL);
        p->timer_open = false;
    }
}
