/* What plugins are made of, and what they are given. */
#include "service/plugin_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "crypto/secret.h"
#include "net/socket.h"

char *ss_plugin_join(const char *first, const char *between, const char *second)
{
    size_t size = strlen(first) + strlen(between) + strlen(second) + 1;
    char *text = malloc(size);

    if (text != NULL)
        snprintf(text, size, "%s%s%s", first, between, second);
    return text;
}

static void free_text(char *text)
{
    if (text != NULL)
        ss_wipe(text, strlen(text));
    free(text);
}

void ss_plugin_free(struct ss_plugin *plugin)
{
    for (size_t i = 0; plugin->args != NULL && plugin->args[i] != NULL; i++)
        free_text(plugin->args[i]);
    free(plugin->args);
    free(plugin->name);
    free_text(plugin->options);
    free(plugin->hosts);
    free(plugin);
}

/* All addresses with this port, and with it one after the other; NULL: memory is out. */
static char *join_hosts(const struct ss_config_server *server, uint16_t port)
{
    char *hosts = strdup("");

    for (size_t i = 0; hosts != NULL && i < server->address_count; i++) {
        char *longer;

        if (server->addresses[i].port != port)
            continue;
        longer = ss_plugin_join(hosts, hosts[0] != '\0' ? "|" : "", server->addresses[i].host);
        free(hosts);
        hosts = longer;
    }
    return hosts;
}

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool same_words(char *const *a, char *const *b)
{
    size_t i = 0;

    if (a == NULL || b == NULL)
        return a == b;
    while (a[i] != NULL && b[i] != NULL && strcmp(a[i], b[i]) == 0)
        i++;
    return a[i] == NULL && b[i] == NULL;
}

static bool copy_words(char ***out, char *const *words)
{
    size_t count = 0;

    if (words == NULL)
        return true;
    while (words[count] != NULL)
        count++;
    *out = calloc(count + 1, sizeof **out);
    for (size_t i = 0; *out != NULL && i < count; i++) {
        (*out)[i] = strdup(words[i]);
        if ((*out)[i] == NULL)
            return false;
    }
    return *out != NULL;
}

/* On the loopback address of IPv4, unless this machine has none. */
static bool choose_local(struct ss_plugin *plugin)
{
    bool tcp = plugin->mode != SS_MODE_UDP_ONLY, udp = plugin->mode != SS_MODE_TCP_ONLY;
    enum ss_status status = SS_ERR_IO;
    struct ss_addr *local = &plugin->local;

    for (int ipv6 = 0; status != SS_OK && ipv6 <= 1; ipv6++) {
        if (ss_ip_parse(&local->ip, ipv6 ? "::1" : "127.0.0.1") == SS_OK)
            status = ss_socket_free_port(local, tcp, udp);
    }
    if (status != SS_OK)
        ss_log_error("plugin \"%s\": there is no free port on the loopback address: %s",
                     plugin->name, ss_status_text(status));
    return status == SS_OK;
}

/* A port that another plugin was given may not be in use yet. */
static bool is_taken(const struct ss_plugins *plugins, uint16_t port)
{
    for (const struct ss_plugin *p = plugins->list; p != NULL; p = p->next)
        if (p->local.port == port)
            return true;
    return false;
}

static struct ss_plugin *make(struct ss_plugins *plugins, const struct ss_config_server *server,
                              char *hosts, uint16_t port)
{
    struct ss_plugin *plugin = calloc(1, sizeof *plugin);

    if (plugin == NULL) {
        free(hosts);
        return NULL;
    }
    *plugin = (struct ss_plugin){.plugins = plugins,
                                 .hosts = hosts,
                                 .port = port,
                                 .mode = server->plugin_mode,
                                 .name = strdup(server->plugin)};
    if (server->plugin_opts != NULL)
        plugin->options = strdup(server->plugin_opts);
    if (plugin->name == NULL || (plugin->options == NULL && server->plugin_opts != NULL) ||
        !copy_words(&plugin->args, server->plugin_args)) {
        ss_plugin_free(plugin);
        return NULL;
    }
    return plugin;
}

static struct ss_plugin *find(const struct ss_plugins *plugins,
                              const struct ss_config_server *server, const char *hosts,
                              uint16_t port)
{
    for (struct ss_plugin *p = plugins->list; p != NULL; p = p->next)
        if (p->port == port && p->mode == server->plugin_mode &&
            strcmp(p->name, server->plugin) == 0 && same_text(p->options, server->plugin_opts) &&
            same_words(p->args, server->plugin_args) && strcmp(p->hosts, hosts) == 0)
            return p;
    return NULL;
}

struct ss_plugin *ss_plugin_hold(struct ss_plugins *plugins, const struct ss_config_server *server,
                                 uint16_t port)
{
    char *hosts = join_hosts(server, port);
    struct ss_plugin *plugin = NULL;

    if (hosts != NULL)
        plugin = find(plugins, server, hosts, port);
    if (plugin != NULL) {
        free(hosts);
        plugin->holders++;
        return plugin;
    }
    if (hosts != NULL)
        plugin = make(plugins, server, hosts, port);
    if (plugin == NULL) {
        ss_log_error("%s", ss_status_text(SS_ERR_MEMORY));
        return NULL;
    }
    do {
        if (!choose_local(plugin)) {
            ss_plugin_free(plugin);
            return NULL;
        }
    } while (is_taken(plugins, plugin->local.port));
    plugin->holders = 1;
    plugin->next = plugins->list;
    plugins->list = plugin;
    return plugin;
}

/* What the plugin is told, byte for byte; `text` has room for the hosts and the options. */
struct environment {
    char *texts[6];
    const char *list[8];
};

static void free_environment(struct environment *environment)
{
    for (size_t i = 0; i < sizeof environment->texts / sizeof environment->texts[0]; i++)
        free_text(environment->texts[i]);
}

static bool make_environment(struct environment *environment, const struct ss_plugin *plugin)
{
    char port[8], local[SS_IP_TEXT_MAX], local_port[8];
    char **texts = environment->texts;
    size_t count = 0;

    memset(environment, 0, sizeof *environment);
    snprintf(port, sizeof port, "%u", plugin->port);
    snprintf(local_port, sizeof local_port, "%u", plugin->local.port);
    texts[0] = ss_plugin_join("SS_REMOTE_HOST", "=", plugin->hosts);
    texts[1] = ss_plugin_join("SS_REMOTE_PORT", "=", port);
    texts[2] = ss_plugin_join("SS_LOCAL_HOST", "=", ss_ip_format(&plugin->local.ip, local));
    texts[3] = ss_plugin_join("SS_LOCAL_PORT", "=", local_port);
    texts[4] = plugin->options != NULL ? ss_plugin_join("SS_PLUGIN_OPTIONS", "=", plugin->options)
                                       : strdup("SS_PLUGIN_OPTIONS");
    texts[5] = strdup("SS_SERVER_PASSWORD"); /* ours, and no plugin's business */
    for (; count < 6; count++) {
        if (texts[count] == NULL)
            return false;
        environment->list[count] = texts[count];
    }
    return true;
}

enum ss_status ss_plugin_ask_to_start(struct ss_plugin *plugin)
{
    struct ss_plugins *plugins = plugin->plugins;
    struct environment environment;
    const char **argv = NULL;
    char *file = NULL;
    size_t count = 0;
    enum ss_status status = SS_ERR_MEMORY;

    while (plugin->args != NULL && plugin->args[count] != NULL)
        count++;
    argv = calloc(count + 2, sizeof *argv);
    if (strchr(plugin->name, '/') != NULL && plugin->name[0] != '/' && plugins->folder != NULL)
        file = ss_plugin_join(plugins->folder, "", plugin->name);
    else
        file = strdup(plugin->name);
    if (make_environment(&environment, plugin) && argv != NULL && file != NULL) {
        const struct ss_child_options options = {.argv = argv,
                                                 .file = file,
                                                 .search = plugins->search,
                                                 .directory = plugins->folder,
                                                 .environment = environment.list,
                                                 .descriptors = {-1, -1, -1},
                                                 .keep = true};

        argv[0] = plugin->name;
        for (size_t i = 0; i < count; i++)
            argv[i + 1] = plugin->args[i];
        status = ss_helper_start_child(ss_helper_link_ask(plugins->link), plugin->id, &options);
    }
    free_environment(&environment);
    free(argv);
    free(file);
    return status;
}
