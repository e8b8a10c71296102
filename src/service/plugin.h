/*
 * Plugins (SIP003, SIP003u): programs that carry the traffic between two loopback sides. Each is a
 * child of the helper. For this folder.
 *
 * A plugin is named by what it was configured to be; whoever needs one holds it, and those who
 * configure the same share one. One that ends is started again, with growing pauses; only one whose
 * first run fails, or is over within a second, is a reason for the program to end.
 */
#ifndef SS_SERVICE_PLUGIN_H
#define SS_SERVICE_PLUGIN_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/addr.h"
#include "base/status.h"
#include "config/config.h"
#include "sys/helper.h"

struct ss_helper_link;
struct ss_plugins;
struct ss_plugin;

/* A plugin is gone without which the program is not to run, or the helper is; logged. From a
 * callback of the loop. */
typedef void ss_plugins_fatal_fn(void *owner);

/*
 * Remembers the present directory, for names that are relative to it. `exit_with`: any end of a
 * plugin is fatal (plugin_exit). NULL: memory is out.
 */
struct ss_plugins *ss_plugins_new(bool exit_with, ss_plugins_fatal_fn *fatal, void *owner);

/* No plugin's end is fatal from here on: of many ports only one is down until it runs again. */
void ss_plugins_forgive(struct ss_plugins *plugins);

/* With or without ss_plugins_close before; every plugin must have been released. NULL is fine. */
void ss_plugins_free(struct ss_plugins *plugins);

/*
 * The plugin of a server's addresses with this port: one that there is, or a new one, which has a
 * loopback port, and runs after ss_plugins_start. NULL after an error line.
 */
struct ss_plugin *ss_plugin_hold(struct ss_plugins *plugins, const struct ss_config_server *server,
                                 uint16_t port);

/* With the last holder it ends. NULL is fine. */
void ss_plugin_release(struct ss_plugin *plugin);

/* Its loopback side: clients connect there, a server listens there. */
const struct ss_addr *ss_plugin_local(const struct ss_plugin *plugin);

/* Whether it carries TCP, or UDP. NULL: there is no plugin, false. */
bool ss_plugin_carries(const struct ss_config_server *server, bool udp);

/* The helper, forked before there was a loop, and the loop: before the first start. Both outlive
 * `plugins`, or their closing. */
SS_CHECKED enum ss_status ss_plugins_attach(struct ss_plugins *plugins, struct ss_helper *helper,
                                            uv_loop_t *loop);

/* For other requests to the helper. NULL before ss_plugins_attach and after ss_plugins_close. */
struct ss_helper_link *ss_plugins_link(const struct ss_plugins *plugins);

/*
 * Starts those that are held and have not been started yet; `later`: while the program serves, so
 * that a first run that is over soon is no reason for it to end. Waits until each has been
 * executed, and for nothing else. False after an error line when one could not be.
 */
bool ss_plugins_start(struct ss_plugins *plugins, bool later);

/* No callback comes after this; the loop must run once more. They are ended by the helper's end.
 * Twice is fine, and NULL. */
void ss_plugins_close(struct ss_plugins *plugins);

#endif
