/* The parts of a plugin; for plugin.c and plugin_make.c alone. */
#ifndef SS_SERVICE_PLUGIN_INTERNAL_H
#define SS_SERVICE_PLUGIN_INTERNAL_H

#include "service/helper_link.h"
#include "service/plugin.h"

struct ss_plugins {
    ss_plugins_fatal_fn *fatal;
    void *owner;
    bool exit_with;
    bool forgiving; /* a plugin's end is never fatal */

    char *folder; /* with a slash at its end; NULL: not known */
    char *search; /* the folder, and then PATH; NULL: PATH */

    struct ss_helper_link *link;
    uv_loop_t *loop;
    struct ss_plugin *list;
    unsigned starting;
    bool failed;
};

enum ss_plugin_state {
    SS_PLUGIN_NEW,
    SS_PLUGIN_STARTING,
    SS_PLUGIN_RUNNING,
    SS_PLUGIN_SETTLING, /* it has ended, which is soon looked at */
    SS_PLUGIN_PAUSING   /* until it is started again */
};

struct ss_plugin {
    struct ss_plugins *plugins;
    struct ss_plugin *next;
    unsigned holders;

    char *name, *options; /* options: NULL: none */
    char **args;          /* NULL-terminated; NULL: none */
    char *hosts;          /* with `|` between, as in SS_REMOTE_HOST */
    uint16_t port;
    enum ss_mode mode;
    struct ss_addr local;

    enum ss_plugin_state state;
    uint32_t id; /* with the helper; 0: none yet */
    bool proven; /* its first run was one */
    uint32_t pause_ms;
    struct ss_notice end; /* its last */
    uv_timer_t timer;
    bool timer_open;
};

/* One text of three; NULL: memory is out. */
char *ss_plugin_join(const char *first, const char *between, const char *second);

void ss_plugin_free(struct ss_plugin *plugin);

/* Sends what the plugin is to be executed with. As ss_helper_start_child. */
SS_CHECKED enum ss_status ss_plugin_ask_to_start(struct ss_plugin *plugin);

#endif
