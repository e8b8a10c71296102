/* The order in which ss-manager starts, and how it ends. */
#include "service/manager.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "service/manager_internal.h"
#include "service/service_internal.h"
#include "sys/other_process.h"
#include "sys/read_file.h"
#include "sys/system_log.h"

#define EXIT_FATAL 255
#define PORTS      ((size_t)UINT16_MAX + 1)

/* -- the helper ------------------------------------------------------------------------------ */

static void take_notices(struct ss_manager *manager)
{
    struct ss_notice notice;
    enum ss_status status;

    while ((status = ss_helper_read(manager->helper, &notice)) == SS_OK)
        manager->backend->on_notice(manager, &notice);
    if (status == SS_NEED_INPUT || manager->stopped)
        return;
    ss_log_error("the helper process is gone, and all servers with it");
    manager->stopping = true;
    manager->exit_code = EXIT_FATAL;
    ss_manager_stopped(manager);
}

static void on_helper(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    take_notices(poll->data);
}

/* Requests may have taken notices in, of which the descriptor does not tell. */
static void before_waiting(uv_prepare_t *prepare)
{
    take_notices(prepare->data);
}

static bool watch_helper(struct ss_manager *manager)
{
    if (uv_poll_init(&manager->loop, &manager->helper_poll,
                     ss_helper_descriptor(manager->helper)) != 0)
        return false;
    manager->helper_poll.data = manager->helper_prepare.data = manager;
    uv_prepare_init(&manager->loop, &manager->helper_prepare);
    manager->helper_open = true;
    return uv_poll_start(&manager->helper_poll, UV_READABLE, on_helper) == 0 &&
           uv_prepare_start(&manager->helper_prepare, before_waiting) == 0;
}

static void forget_secrets(void *owner)
{
    ss_config_free(owner);
}

/* -- signals and the end --------------------------------------------------------------------- */

static void close_handle(uv_handle_t *handle, void *owner)
{
    (void)owner;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

/* Everything that the loop waits for goes, so that it ends. */
void ss_manager_stopped(struct ss_manager *manager)
{
    manager->stopped = true;
    uv_stop(&manager->loop);
}

static void begin_stop(struct ss_manager *manager)
{
    if (manager->stopping)
        return;
    manager->stopping = true;
    ss_manager_watch_socket(manager);
    ss_manager_drop_operation(manager);
    manager->backend->stop(manager);
}

void ss_manager_fail(struct ss_manager *manager, int exit_code)
{
    manager->exit_code = exit_code;
    begin_stop(manager);
}

bool ss_manager_is_free(const struct ss_manager *manager)
{
    return manager->ready && !manager->busy && !manager->operation.active && !manager->stopping;
}

void ss_manager_set_ready(struct ss_manager *manager)
{
    manager->ready = true;
    ss_manager_watch_socket(manager);
    ss_manager_go_on_reloading(manager);
}

static void log_summary(const struct ss_manager *manager)
{
    uint64_t total = 0;
    size_t served = 0;

    for (const struct ss_managed *port = manager->first; port != NULL; port = port->next) {
        total += port->total_before + port->total_now;
        served += port->served;
    }
    ss_log_info("ports: %zu, of which %zu are served; traffic: %llu bytes", manager->port_count,
                served, (unsigned long long)total);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct ss_manager *manager = handle->data;

    if (number == SIGUSR1)
        log_summary(manager);
    else if (number == SIGHUP)
        ss_manager_begin_reload(manager);
    else
        begin_stop(manager);
}

static bool open_signals(struct ss_manager *manager)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        uv_signal_init(&manager->loop, &manager->signals[i]);
        manager->signals[i].data = manager;
        if (uv_signal_start(&manager->signals[i], on_signal, numbers[i]) != 0)
            return false;
    }
    return true;
}

/* -- the start ------------------------------------------------------------------------------- */

static bool start_helper(struct ss_manager *manager)
{
    const struct ss_config *config = manager->config;
    const char *const paths[] = {manager->config_path};
    const struct ss_helper_options options = {.paths = paths,
                                              .path_count = manager->config_path != NULL,
                                              .user = config->user,
                                              .forget = forget_secrets,
                                              .owner = manager->config};
    enum ss_status status = ss_helper_start(&manager->helper, &options);

    if (status != SS_OK) {
        ss_log_error("the helper process can't be started: %s", ss_status_text(status));
        return false;
    }
    if (!config->process_per_port && !ss_child_start(manager))
        return false;
    return ss_helper_seal(manager->helper) == SS_OK;
}

/* Where files are kept: what was given, or a folder in the user's own. */
static bool enter_folder(struct ss_manager *manager)
{
    const struct ss_config *config = manager->config;
    const char *error_text = "";
    char base[4000] = "/tmp", path[4096];
    bool has_home = ss_home_folder(base, sizeof base);

    if (config->workdir != NULL && config->workdir[0] != '\0') {
        manager->folder = strdup(config->workdir);
        manager->path = strdup(config->workdir);
    } else {
        if (!has_home)
            strcpy(base, "/tmp");
        snprintf(path, sizeof path, "%s/.shadowsocks", base);
        manager->folder = strdup(path);
        manager->path = strdup(base);
    }
    if (manager->folder == NULL || manager->path == NULL)
        return false;
    ss_log_info("working directory points to %s", manager->folder);
    /* In a folder that everybody writes to, another one's would be a trap. */
    if (ss_private_folder(manager->folder, config->workdir == NULL && !has_home, &error_text) ==
        SS_OK)
        return true;
    ss_log_error("unable to create working directory");
    ss_log_error("%s: %s", manager->folder, error_text);
    return false;
}

/* The ports of the configuration, which come before those of the state file. */
static void take_configured(struct ss_manager *manager)
{
    const struct ss_config *config = manager->config;

    for (size_t i = 0; i < config->server_count; i++) {
        const struct ss_port_spec whole = ss_manager_configured_spec(&config->servers[i]);
        struct ss_port_spec spec;
        struct ss_reason reason;
        struct ss_managed *port;

        if (!ss_manager_check_spec(config, &whole, &reason)) {
            ss_log_error("port %u is not served: %s", whole.port, reason.text);
            continue;
        }
        if (ss_port_spec_copy(&spec, &whole) != SS_OK ||
            (port = ss_managed_put(manager, &spec)) == NULL) {
            ss_log_error("%s", ss_status_text(SS_ERR_MEMORY));
            continue;
        }
        port->configured = true;
    }
}

static void log_options(const struct ss_config *config)
{
    if (config->ipv6_first)
        ss_log_info("resolving hostname to IPv6 address first");
    if (config->fast_open)
        ss_log_info("using tcp fast open");
    if (config->no_delay)
        ss_log_info("using tcp no-delay");
    if (config->plugin != NULL)
        ss_log_info("plugin \"%s\" enabled", config->plugin);
    if (config->nameservers != NULL)
        ss_log_info("using nameserver: %s", config->nameservers);
}

static bool start_backend(struct ss_manager *manager)
{
    if (manager->config->process_per_port) {
        manager->backend = &ss_backend_processes;
        return ss_processes_start(manager);
    }
    return ss_child_watch(manager);
}

static bool start(struct ss_manager *manager)
{
    manager->by_port = calloc(PORTS, sizeof(struct ss_managed *));
    if (manager->by_port == NULL) {
        ss_log_error("%s", ss_status_text(SS_ERR_MEMORY));
        return false;
    }
    manager->backend = &ss_backend_child;
    if (!start_helper(manager) || !ss_service_switch_user(manager->config, 0) ||
        !enter_folder(manager) || !ss_manager_find_address(manager))
        return false;
    take_configured(manager);
    if (!ss_manager_load_state(manager))
        return false;
    ss_processes_end_stale(manager);
    if (uv_loop_init(&manager->loop) != 0)
        return false;
    manager->loop_open = true;
    return open_signals(manager) && watch_helper(manager) && ss_manager_open_socket(manager) &&
           start_backend(manager);
}

static void end(struct ss_manager *manager, bool orderly)
{
    if (manager->loop_open) {
        ss_manager_close_socket(manager);
        ss_child_unwatch(manager);
        uv_walk(&manager->loop, close_handle, NULL);
        uv_run(&manager->loop, UV_RUN_DEFAULT);
        uv_loop_close(&manager->loop);
    }
    ss_helper_end(manager->helper);
    ss_manager_end_reload(manager);
    ss_processes_free(manager);
    ss_child_free(manager);
    ss_manager_close_state(manager, orderly);
    if (manager->by_port != NULL)
        ss_managed_drop_all(manager);
    free(manager->by_port);
    free(manager->config_path);
    free(manager->folder);
    free(manager->path);
    free(manager->address_text);
}

static void raise_limits(const struct ss_config *config)
{
    uint32_t limit;

    if (config->nofile != 0 && config->verbose)
        ss_log_info("setting NOFILE to %u", config->nofile);
    if (ss_process_raise_descriptors(config->nofile, &limit) != SS_OK)
        ss_log_error("insufficient permission to change NOFILE, not starting as root?");
}

static bool acl_is_fine(const struct ss_config *config)
{
    struct ss_service service = {.config = config};
    bool fine = ss_service_make_acl(&service, false);

    ss_acl_release(service.acl);
    return fine;
}

bool ss_manager_check(const struct ss_config *config)
{
    if (config->nameservers != NULL && !ss_nameservers_valid(config->nameservers)) {
        ss_log_error("failed to set nameservers");
        return false;
    }
    return acl_is_fine(config);
}

/* Servers are started from the root directory then, where a path that is not whole leads nowhere.
 */
static bool complete_path(char **path)
{
    char *whole = *path != NULL ? ss_path_absolute(*path) : NULL;

    if (*path == NULL)
        return true;
    if (whole == NULL) {
        ss_log_error("%s: %s", *path, ss_status_text(SS_ERR_MEMORY));
        return false;
    }
    free(*path);
    *path = whole;
    return true;
}

static int serve(struct ss_manager *manager, struct ss_background *background)
{
    ss_process_ignore_pipes();
    if (!start(manager))
        return manager->exit_code != 0 ? manager->exit_code : EXIT_FATAL;
    ss_background_ready(background);
    while (!manager->stopped)
        uv_run(&manager->loop, UV_RUN_DEFAULT);
    if (manager->config->verbose && manager->exit_code == 0)
        ss_log_info("closed gracefully");
    return manager->exit_code;
}

int ss_manager_run(struct ss_config *config, const char *ident, struct ss_words *words)
{
    static struct ss_manager manager;
    struct ss_background background = {.pid_fd = -1, .ready_fd = -1};
    int exit_code = EXIT_FATAL;

    manager = (struct ss_manager){
        .words = words, .config = config, .socket.fd = -1, .journal.fd = -1, .late_next = 0};
    if (config->config_path != NULL)
        manager.config_path = ss_file_absolute(config->config_path);
    if (config->use_syslog)
        ss_syslog_start(ident);
    if (!ss_manager_check(config))
        return EXIT_FATAL;
    raise_limits(config);
    if (config->executable == NULL) /* of one version with this; else the one of PATH */
        config->executable = ss_path_sibling("ss-server");
    if (config->pid_file != NULL) {
        const char *error_text = "";

        if (!complete_path(&config->acl) ||
            (config->executable != NULL && strchr(config->executable, '/') != NULL &&
             !complete_path(&config->executable)))
            return EXIT_FATAL;
        switch (ss_background_enter(&background, config->pid_file, &error_text, &exit_code)) {
        case SS_BACKGROUND_PARENT:
            return exit_code;
        case SS_BACKGROUND_FAILED:
            ss_log_error("Invalid pid file");
            ss_log_error("%s: %s", config->pid_file, error_text);
            return EXIT_FATAL;
        case SS_BACKGROUND_CHILD:
            ss_syslog_start(ident);
            break;
        }
    }
    log_options(config);
    exit_code = serve(&manager, &background);
    end(&manager, exit_code == 0);
    if (exit_code == 0)
        ss_background_leave(&background);
    return exit_code;
}
