/*
 * The classic layout: a server for each port, started with a configuration file of its own, which
 * goes to the background and is known by its pid file.
 */
#include "service/manager_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <dirent.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "config/child_args.h"
#include "control/port_file.h"
#include "crypto/secret.h"
#include "net/socket.h"
#include "net/udp.h"
#include "sys/names.h"
#include "sys/other_process.h"

#define TICK_MS     5     /* of looking whether a process has ended */
#define GRACE_MS    2000  /* between SIGTERM and SIGKILL */
#define GIVE_UP_MS  4000  /* what is there then stays */
#define LAUNCH_MS   10000 /* until the launched command must have come back */
#define LOOK_MS     5000  /* between two looks for servers that have died */
#define STALE_MS    2000  /* for what an earlier manager has left */
#define PATH_SIZE   4096
#define FILE_PREFIX ".shadowsocks_"

enum step { STEP_NONE, STEP_END, STEP_LAUNCH };

/* What is done about one port; there is one at a time. */
struct job {
    enum step step;
    bool removing;
    bool own;                 /* not of a command: of the start, or for a server that has died */
    bool recovering;          /* puts the old server back after the new one could not be had */
    struct ss_port_spec spec; /* what is to be served */
    struct ss_port_spec old;  /* what was, for recovering; port 0: nothing */
    uint64_t began_ms;
    bool killed;
    char reason[160];
};

struct ss_processes {
    struct job job;
    uv_timer_t tick, look;
    uint32_t start_next; /* ports that are still to be started: by number */
    bool starting;
};

struct paths {
    char config[PATH_SIZE], pid[PATH_SIZE];
};

static void end_job(struct ss_manager *manager, enum ss_wire_result result);
static void begin_end(struct ss_manager *manager);

static void set_paths(const struct ss_manager *manager, uint16_t port, struct paths *paths)
{
    snprintf(paths->config, sizeof paths->config, "%.4000s/" FILE_PREFIX "%u.conf", manager->folder,
             port);
    snprintf(paths->pid, sizeof paths->pid, "%.4000s/" FILE_PREFIX "%u.pid", manager->folder, port);
}

/* The server of a port; 0 when there is none. Its configuration file in its command line tells it
 * from another process that has come by the number. */
static int32_t server_of(const struct ss_manager *manager, uint16_t port)
{
    struct paths paths;
    int32_t pid;

    set_paths(manager, port, &paths);
    pid = ss_other_process_pid(paths.pid);
    return pid != 0 && ss_other_process_is(pid, paths.config) ? pid : 0;
}

static void remove_files(const struct ss_manager *manager, uint16_t port)
{
    struct paths paths;

    set_paths(manager, port, &paths);
    (void)unlink(paths.pid);
    (void)unlink(paths.config);
}

/* -- trying the port ------------------------------------------------------------------------- */

static bool try_address(const struct ss_config *config, const struct ss_addr *addr, bool udp,
                        const char **error_text)
{
    const struct ss_listen_options listen_options = {
        .backlog = 1, .ipv6_only = true, .reuse_port = config->reuse_port};
    const struct ss_udp_socket_options udp_options = {.ipv6_only = true,
                                                      .reuse_port = config->reuse_port};
    int fd = -1;
    enum ss_status status = udp ? ss_udp_open(&fd, addr, &udp_options, error_text)
                                : ss_socket_listen(&fd, addr, &listen_options, error_text);

    if (status == SS_OK)
        ss_socket_close(fd);
    return status == SS_OK;
}

/* Whether the server will be able to listen, as far as that can be told beforehand. */
static bool port_is_free(const struct ss_manager *manager, struct job *job)
{
    const struct ss_config *config = manager->config;
    const struct ss_config_server *server = &job->spec.server;
    enum ss_mode mode = server->mode_given ? server->mode : config->mode;

    for (size_t i = 0; i < config->host_count; i++) {
        struct ss_addr addr = {.port = job->spec.port};
        const char *error_text = "";
        bool good = ss_names_first(&addr.ip, config->hosts[i].host, &error_text) == SS_OK;

        if (good && mode != SS_MODE_UDP_ONLY)
            good = try_address(config, &addr, false, &error_text);
        if (good && mode != SS_MODE_TCP_ONLY)
            good = try_address(config, &addr, true, &error_text);
        if (!good) {
            snprintf(job->reason, sizeof job->reason, "%.80s: %s", config->hosts[i].host,
                     error_text);
            return false;
        }
    }
    return true;
}

/* -- launching ------------------------------------------------------------------------------- */

static bool write_config(const struct ss_manager *manager, struct job *job, const char *path)
{
    const char *error_text = ss_status_text(SS_ERR_MEMORY);
    struct ss_port_spec complete;
    char *text = NULL;
    bool good;

    /* Only what the request says itself is written, as ever; but never a port without a user that
     * is to be for users alone. */
    if (job->spec.of_users && job->spec.server.identity_count == 0) {
        if (ss_manager_complete(&complete, manager->config, &job->spec) == SS_OK &&
            ss_manager_put_nobody(&complete.server) == SS_OK)
            text = ss_port_file_text(&complete, manager->config);
        ss_port_spec_clear(&complete);
    } else {
        text = ss_port_file_text(&job->spec, manager->config);
    }
    good = text != NULL && ss_private_write(path, text, strlen(text), &error_text) == SS_OK;

    if (text != NULL)
        ss_wipe(text, strlen(text));
    free(text);
    if (!good)
        snprintf(job->reason, sizeof job->reason, "%.100s: %s", path, error_text);
    return good;
}

static void log_command(char *const *words)
{
    char line[1024];
    size_t used = 0;

    for (size_t i = 0; words[i] != NULL && used < sizeof line; i++)
        used +=
            (size_t)snprintf(line + used, sizeof line - used, "%s%s", i != 0 ? " " : "", words[i]);
    ss_log_info("cmd: %s", line);
}

static bool request_launch(struct ss_manager *manager, struct job *job)
{
    const struct ss_config *config = manager->config;
    struct paths paths;
    struct ss_port_files files = {.manager_address = manager->address_text};
    struct ss_child_options options = {.descriptors = {-1, -1, -1}, .leaves = true};
    enum ss_status status;
    char **words;

    set_paths(manager, job->spec.port, &paths);
    files.pid_path = paths.pid;
    files.config_path = paths.config;
    if (!write_config(manager, job, paths.config))
        return false;
    status = ss_child_args_port(&words, config, &job->spec, &files);
    if (status == SS_OK) {
        if (config->verbose && config->plugin_opts == NULL)
            log_command(words);
        options.argv = (const char *const *)words;
        options.file = words[0];
        status =
            ss_helper_start_child(manager->helper, SS_PORT_ID((uint32_t)job->spec.port), &options);
    }
    ss_child_args_free(words);
    if (status != SS_OK)
        snprintf(job->reason, sizeof job->reason, "%s", ss_status_text(status));
    return status == SS_OK;
}

static void on_launch_time(uv_timer_t *timer)
{
    struct ss_manager *manager = timer->data;
    struct job *job = &manager->processes->job;

    snprintf(job->reason, sizeof job->reason, "the command does not come back");
    (void)!ss_helper_stop_child(manager->helper, SS_PORT_ID((uint32_t)job->spec.port));
}

static void begin_launch(struct ss_manager *manager)
{
    struct ss_processes *processes = manager->processes;
    struct job *job = &processes->job;

    job->step = STEP_LAUNCH;
    if ((job->recovering || port_is_free(manager, job)) && request_launch(manager, job)) {
        uv_timer_start(&processes->tick, on_launch_time, LAUNCH_MS, 0);
        return;
    }
    end_job(manager, SS_WIRE_NO_PORT);
}

/* -- ending ---------------------------------------------------------------------------------- */

static void old_is_gone(struct ss_manager *manager)
{
    struct job *job = &manager->processes->job;

    if (!job->removing) {
        begin_launch(manager);
        return;
    }
    remove_files(manager, job->spec.port);
    end_job(manager, SS_WIRE_OK);
}

static void on_tick(uv_timer_t *timer)
{
    struct ss_manager *manager = timer->data;
    struct ss_processes *processes = manager->processes;
    struct job *job = &processes->job;
    int32_t pid = server_of(manager, job->spec.port);
    uint64_t waited = uv_now(&manager->loop) - job->began_ms;

    if (pid != 0 && waited < GIVE_UP_MS) {
        if (waited >= GRACE_MS && !job->killed) {
            job->killed = true;
            ss_other_process_end(pid, true);
        }
        return;
    }
    uv_timer_stop(&processes->tick);
    old_is_gone(manager);
}

/* Waits for the server that is there to go; without one that is at once. */
static void begin_end(struct ss_manager *manager)
{
    struct ss_processes *processes = manager->processes;
    struct job *job = &processes->job;
    int32_t pid = server_of(manager, job->spec.port);

    job->step = STEP_END;
    job->began_ms = uv_now(&manager->loop);
    job->killed = false;
    if (pid == 0) {
        old_is_gone(manager);
        return;
    }
    ss_other_process_end(pid, false);
    uv_timer_start(&processes->tick, on_tick, TICK_MS, TICK_MS);
}

/* -- jobs ------------------------------------------------------------------------------------ */

static void clear_job(struct job *job)
{
    ss_port_spec_clear(&job->spec);
    ss_port_spec_clear(&job->old);
    memset(job, 0, sizeof *job);
}

static void start_next(struct ss_manager *manager);

static void own_job_ended(struct ss_manager *manager, enum ss_wire_result result)
{
    struct job *job = &manager->processes->job;
    struct ss_managed *port = ss_managed_find(manager, job->spec.port);

    if (port != NULL) {
        port->served = result == SS_WIRE_OK;
        if (result != SS_WIRE_OK)
            ss_log_error("port %u is not served: %s", port->spec.port, job->reason);
    }
    clear_job(job);
    manager->busy = false;
    if (manager->processes->starting) {
        start_next(manager);
    } else {
        ss_manager_watch_socket(manager);
        ss_manager_go_on_reloading(manager);
    }
}

static void end_job(struct ss_manager *manager, enum ss_wire_result result)
{
    struct job *job = &manager->processes->job;
    char reason[sizeof job->reason];

    if (result != SS_WIRE_OK && !job->recovering && !job->removing && job->old.port != 0) {
        /* The old server goes on in the place of the new one. */
        struct ss_port_spec spec = job->spec;

        job->spec = job->old;
        job->old = spec;
        job->recovering = true;
        begin_launch(manager);
        return;
    }
    if (job->own) {
        own_job_ended(manager, result);
        return;
    }
    if (job->recovering) {
        if (result != SS_WIRE_OK)
            ss_log_error("port %u: its old server can't be put back", job->spec.port);
        result = SS_WIRE_NO_PORT;
    }
    memcpy(reason, job->reason, sizeof reason);
    clear_job(job);
    ss_manager_done(manager, result, reason);
}

static void begin_job(struct ss_manager *manager, const struct ss_port_spec *spec,
                      const struct ss_port_spec *old, bool removing)
{
    struct job *job = &manager->processes->job;
    enum ss_status status;

    clear_job(job);
    job->removing = removing;
    status = ss_port_spec_copy(&job->spec, spec);
    if (status == SS_OK && old != NULL)
        status = ss_port_spec_copy(&job->old, old);
    if (status == SS_OK) {
        begin_end(manager);
        return;
    }
    snprintf(job->reason, sizeof job->reason, "%s", ss_status_text(status));
    ss_port_spec_clear(&job->old);
    end_job(manager, SS_WIRE_NO_PORT);
}

static void begin_own_job(struct ss_manager *manager, const struct ss_managed *port)
{
    struct job *job = &manager->processes->job;

    clear_job(job);
    if (ss_port_spec_copy(&job->spec, &port->spec) != SS_OK)
        ss_log_error("port %u: %s", port->spec.port, ss_status_text(SS_ERR_MEMORY));
    job->spec.port = port->spec.port;
    job->own = true;
    manager->busy = true;
    ss_manager_watch_socket(manager);
    begin_end(manager);
}

/* All ports of the table, one after the other; then commands are taken. */
static void start_next(struct ss_manager *manager)
{
    struct ss_processes *processes = manager->processes;

    while (processes->start_next <= UINT16_MAX) {
        const struct ss_managed *port = manager->by_port[processes->start_next++];

        if (port != NULL && !manager->stopping) {
            begin_own_job(manager, port);
            return;
        }
    }
    processes->starting = false;
    ss_manager_set_ready(manager);
}

static void on_look(uv_timer_t *timer)
{
    struct ss_manager *manager = timer->data;
    struct ss_processes *processes = manager->processes;

    if (processes->job.step != STEP_NONE || processes->starting || !ss_manager_is_free(manager) ||
        ss_manager_is_reloading(manager))
        return;
    for (struct ss_managed *port = manager->first; port != NULL; port = port->next) {
        if (server_of(manager, port->spec.port) != 0)
            continue;
        if (port->served)
            ss_log_error("the server of port %u is gone; it is started again", port->spec.port);
        begin_own_job(manager, port);
        return; /* the others have their turn at the next look */
    }
}

static void on_launched(struct ss_manager *manager, const struct ss_notice *notice)
{
    struct ss_processes *processes = manager->processes;
    struct job *job = &processes->job;
    bool started = notice->kind == SS_NOTICE_STARTED;

    if (job->step != STEP_LAUNCH || notice->id != SS_PORT_ID((uint32_t)job->spec.port) ||
        (started && notice->error == 0))
        return;
    uv_timer_stop(&processes->tick);
    if (started)
        snprintf(job->reason, sizeof job->reason, "the server can't be executed: %s",
                 strerror(notice->error));
    else if (job->reason[0] == '\0' && notice->signal != 0)
        snprintf(job->reason, sizeof job->reason, "the server was ended by signal %d",
                 notice->signal);
    else if (job->reason[0] == '\0' && notice->exit_code != 0)
        snprintf(job->reason, sizeof job->reason, "the server has ended with %d",
                 notice->exit_code);
    end_job(manager, !started && notice->signal == 0 && notice->exit_code == 0 ? SS_WIRE_OK
                                                                               : SS_WIRE_NO_PORT);
}

/* -- commands -------------------------------------------------------------------------------- */

static void set_port(struct ss_manager *manager, const struct ss_port_spec *spec,
                     const struct ss_managed *old)
{
    begin_job(manager, spec, old != NULL && old->served ? &old->spec : NULL, false);
}

static void remove_port(struct ss_manager *manager, const struct ss_managed *port)
{
    begin_job(manager, &port->spec, NULL, true);
}

static void change_users(struct ss_manager *manager, enum ss_command command,
                         const struct ss_port_spec *spec, const struct ss_port_spec *change)
{
    (void)command;
    (void)change;
    set_port(manager, spec, ss_managed_find(manager, spec->port));
}

/* The servers report by themselves. */
static void refresh(struct ss_manager *manager)
{
    ss_manager_done(manager, SS_WIRE_OK, NULL);
}

static void on_stop_tick(uv_timer_t *timer)
{
    struct ss_manager *manager = timer->data;
    struct ss_processes *processes = manager->processes;
    uint64_t waited = uv_now(&manager->loop) - processes->job.began_ms;
    bool kill_now = waited >= GRACE_MS && !processes->job.killed, any = false;

    for (const struct ss_managed *port = manager->first; port != NULL; port = port->next) {
        int32_t pid = server_of(manager, port->spec.port);

        any |= pid != 0;
        if (kill_now)
            ss_other_process_end(pid, true);
    }
    processes->job.killed |= kill_now;
    if (any && waited < GIVE_UP_MS)
        return;
    uv_timer_stop(&processes->tick);
    for (const struct ss_managed *port = manager->first; port != NULL; port = port->next)
        remove_files(manager, port->spec.port);
    ss_manager_stopped(manager);
}

static void stop(struct ss_manager *manager)
{
    struct ss_processes *processes = manager->processes;

    if (processes->job.step == STEP_LAUNCH)
        (void)!ss_helper_stop_child(manager->helper,
                                    SS_PORT_ID((uint32_t)processes->job.spec.port));
    clear_job(&processes->job);
    uv_timer_stop(&processes->look);
    for (const struct ss_managed *port = manager->first; port != NULL; port = port->next)
        ss_other_process_end(server_of(manager, port->spec.port), false);
    processes->job.began_ms = uv_now(&manager->loop);
    uv_timer_start(&processes->tick, on_stop_tick, 0, TICK_MS);
}

const struct ss_backend ss_backend_processes = {
    .set = set_port,
    .remove = remove_port,
    .change_users = change_users,
    .refresh = refresh,
    .on_notice = on_launched,
    .stop = stop,
};

bool ss_processes_start(struct ss_manager *manager)
{
    struct ss_processes *processes = calloc(1, sizeof *processes);

    manager->processes = processes;
    if (processes == NULL) {
        ss_log_error("%s", ss_status_text(SS_ERR_MEMORY));
        return false;
    }
    uv_timer_init(&manager->loop, &processes->tick);
    uv_timer_init(&manager->loop, &processes->look);
    processes->tick.data = processes->look.data = manager;
    uv_timer_start(&processes->look, on_look, LOOK_MS, LOOK_MS);
    processes->starting = true;
    start_next(manager);
    return true;
}

/* -- what an earlier manager has left -------------------------------------------------------- */

/* The port of a pid file's name; 0 when it is none of ours. */
static uint16_t port_of_name(const char *name)
{
    size_t prefix = sizeof FILE_PREFIX - 1;
    unsigned long port;
    char *end;

    if (strncmp(name, FILE_PREFIX, prefix) != 0 || name[prefix] < '1' || name[prefix] > '9')
        return 0;
    port = strtoul(name + prefix, &end, 10);
    return strcmp(end, ".pid") == 0 && port <= UINT16_MAX ? (uint16_t)port : 0;
}

/* How many of them still live; `first`: they are told to end. */
static size_t visit_stale(const struct ss_manager *manager, bool first, bool last)
{
    DIR *folder = opendir(manager->folder);
    const struct dirent *entry;
    size_t living = 0;

    if (folder == NULL)
        return 0;
    while ((entry = readdir(folder)) != NULL) {
        uint16_t port = port_of_name(entry->d_name);
        int32_t pid = port != 0 ? server_of(manager, port) : 0;

        if (first && pid != 0)
            ss_log_debug("kill %s", entry->d_name);
        if (pid != 0 && (first || last))
            ss_other_process_end(pid, last);
        living += pid != 0;
        if (port != 0 && last)
            remove_files(manager, port);
    }
    closedir(folder);
    return living;
}

void ss_processes_end_stale(struct ss_manager *manager)
{
    const struct timespec pause = {.tv_nsec = TICK_MS * 1000000L};
    size_t living = visit_stale(manager, true, false);

    for (int waited = 0; living != 0 && waited < STALE_MS; waited += TICK_MS) {
        nanosleep(&pause, NULL);
        living = visit_stale(manager, false, false);
    }
    (void)visit_stale(manager, false, true);
}

void ss_processes_free(struct ss_manager *manager)
{
    if (manager->processes != NULL)
        clear_job(&manager->processes->job);
    free(manager->processes);
    manager->processes = NULL;
}
