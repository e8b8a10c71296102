/* The order in which a program starts, and how it ends. */
#include "service/service.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <signal.h>
#include <uv.h>

#include "base/heap.h"
#include "base/log.h"
#include "crypto/random.h"
#include "net/socket.h"
#include "resolver/resolver.h"
#include "service/control_stdio.h"
#include "service/generation.h"
#include "service/helped.h"
#include "service/manager.h"
#include "service/reload.h"
#include "service/report.h"
#include "service/service_internal.h"
#include "sys/process.h"
#include "sys/read_file.h"
#include "sys/rights.h"
#include "sys/system_log.h"

#define EXIT_FATAL   255
#define EXIT_REFUSED 1 /* what TPROXY needs is not allowed, as the classic has it */
#define WORKERS_MAX  8
/* How often limits of ports and users are looked at. */
#define ENFORCE_MS      1000
#define SIGNALS_HANDLED 4

struct running {
    struct ss_service *service; /* in force; held */
    struct ss_shared shared;
    struct ss_reaper reaper;
    struct ss_plugins *plugins; /* NULL where none is used */
    struct ss_sockets sockets;
    struct ss_engine *engine;
    struct ss_background background;
    struct ss_helped helped;
    int exit_code;
    uint32_t descriptors;
    uv_signal_t signals[SIGNALS_HANDLED];
    bool signals_open;
    struct ss_report *report; /* NULL: there is nobody to tell */
    struct ss_words words;    /* of the command line, for reloads */
    struct ss_reload *reload;
    uv_timer_t enforcer; /* of limits; ss-server's */
    bool enforcing;
    bool had_terminal; /* which may hang up */
    /* Of a manager, which says what is served; NULL where there is none. */
    struct ss_control_stdio *control;
    struct ss_ports *ports;
    struct ss_binder binder; /* for ports that only the helper can bind */
};

/* Library heaps go in before any library allocates. */
static bool start_libraries(void)
{
#ifndef SS_SANITIZED
    if (uv_replace_allocator(ss_heap_malloc, ss_heap_realloc, ss_heap_calloc, ss_heap_free) != 0)
        return false;
#endif
    return ss_resolver_global_start() == SS_OK && ss_random_start() == SS_OK;
}

static void close_signals(struct running *running)
{
    for (size_t i = 0; running->signals_open && i < SIGNALS_HANDLED; i++)
        uv_close((uv_handle_t *)&running->signals[i], NULL);
    running->signals_open = false;
}

/* Limits that are reached end sessions that wait for nothing, too. */
static void on_enforce(uv_timer_t *timer)
{
    struct running *running = timer->data;
    const struct ss_service *service = running->service;

    for (size_t i = 0; i < service->config->server_count; i++)
        ss_keying_enforce(&service->keyings[i], running->engine);
    if (running->ports != NULL)
        ss_ports_enforce(running->ports);
}

static void start_enforcing(struct running *running)
{
    if (running->service->config->program != SS_PROGRAM_SERVER)
        return;
    uv_timer_init(ss_engine_loop(running->engine), &running->enforcer);
    running->enforcer.data = running;
    running->enforcing = true;
    uv_timer_start(&running->enforcer, on_enforce, ENFORCE_MS, ENFORCE_MS);
}

static void stop(struct running *running, int exit_code)
{
    running->exit_code = exit_code;
    close_signals(running);
    if (running->enforcing)
        uv_close((uv_handle_t *)&running->enforcer, NULL);
    running->enforcing = false;
    ss_report_stop(&running->report);
    ss_reload_close(running->reload);
    running->reload = NULL;
    ss_helped_close(&running->helped);
    ss_control_stdio_close(running->control);
    ss_plugins_close(running->plugins);
    ss_reaper_close(&running->reaper);
    ss_engine_stop(running->engine);
}

static void on_plugins_failed(void *owner)
{
    stop(owner, EXIT_FATAL);
}

static void on_manager_gone(void *owner)
{
    stop(owner, 0);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct running *running = handle->data;

    if (number == SIGUSR1) {
        ss_service_log_traffic(running->service, &running->sockets);
        return;
    }
    if (number == SIGHUP && !(running->had_terminal && !ss_process_has_terminal())) {
        ss_reload_begin(running->reload);
        return;
    }
    stop(running, 0);
}

/* A program that was started to outlive its terminal (nohup) does. */
static bool follows_terminal(void)
{
    struct sigaction before;

    return sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN &&
           ss_process_has_terminal();
}

static bool open_signals(struct running *running)
{
    static const int numbers[SIGNALS_HANDLED] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};

    running->had_terminal = follows_terminal();
    for (size_t i = 0; i < SIGNALS_HANDLED; i++) {
        uv_signal_init(ss_engine_loop(running->engine), &running->signals[i]);
        running->signals[i].data = running;
    }
    running->signals_open = true;
    for (size_t i = 0; i < SIGNALS_HANDLED; i++) {
        if (uv_signal_start(&running->signals[i], on_signal, numbers[i]) != 0)
            return false;
    }
    return true;
}

static void raise_limits(struct running *running)
{
    const struct ss_config *config = running->service->config;

    if (config->nofile != 0 && config->verbose)
        ss_log_info("setting NOFILE to %u", config->nofile);
    if (ss_process_raise_descriptors(config->nofile, &running->descriptors) != SS_OK)
        ss_log_error("insufficient permission to change NOFILE, not starting as root?");
}

static bool make_engine(struct running *running)
{
    /* The engine's budget is for sessions; the listening sockets come first. */
    uint32_t listeners = (uint32_t)running->service->plan_count;
    struct ss_engine_options options;
    enum ss_status status;

    ss_service_engine_options(running->service, &options);
    options.binder = running->helped.helper != NULL ? &running->binder : NULL;
    options.listeners = listeners;
    options.descriptors = running->descriptors > listeners ? running->descriptors - listeners : 0;
    status = ss_engine_new(&running->engine, &options);
    if (status == SS_OK)
        status = ss_reaper_open(&running->reaper, ss_engine_loop(running->engine));
    if (status == SS_OK) {
        running->sockets.engine = running->engine;
        return true;
    }
    if (status == SS_ERR_LIMIT)
        ss_log_error("%u descriptors are too few for %u listening sockets and a connection; raise "
                     "the limit, see -n",
                     running->descriptors, listeners);
    else
        ss_log_error("the relay can't be started: %s", ss_status_text(status));
    return false;
}

/* What sockets that are made later take, of root's rights. */
static unsigned rights_needed(const struct ss_service *service)
{
    const struct ss_config *config = service->config;
    unsigned rights = 0;

    if (config->program == SS_PROGRAM_REDIR && service->udp_plans != 0)
        rights |= SS_RIGHT_FOREIGN_ADDRESS | SS_RIGHT_LOW_PORT;
    if (config->outbound_fwmark != 0)
        rights |= SS_RIGHT_MARK;
    if (config->interface != NULL)
        rights |= SS_RIGHT_INTERFACE;
    return rights;
}

/* All that is served; the engine has been freed, or was never made. */
static void free_service(struct running *running)
{
    ss_service_release(running->service);
    running->service = NULL;
    ss_reaper_clear(&running->reaper);
    ss_plugins_free(running->plugins);
    running->plugins = NULL;
    ss_shared_clear(&running->shared);
}

/* In the helper, which has no use for keys. */
static void forget(void *owner)
{
    struct running *running = owner;

    free_service(running);
    ss_words_forget(&running->words);
}

static bool start_helper(struct running *running)
{
    running->binder = ss_helped_binder(&running->helped);
    return ss_helped_start(&running->helped, running->service->config, running->plugins != NULL,
                           forget, running);
}

static bool start_plugins(struct running *running)
{
    return ss_helped_attach(&running->helped, running->plugins, ss_engine_loop(running->engine)) &&
           (running->plugins == NULL || ss_plugins_start(running->plugins, false));
}

static bool make_reload(struct running *running)
{
    const struct ss_reload_options options = {.words = &running->words,
                                              .ports = running->ports,
                                              .service = &running->service,
                                              .sockets = &running->sockets,
                                              .helped = &running->helped,
                                              .loop = ss_engine_loop(running->engine)};

    if (ss_reload_new(&running->reload, &options) == SS_OK)
        return true;
    ss_log_error("%s", ss_status_text(SS_ERR_MEMORY));
    return false;
}

bool ss_service_switch_user(const struct ss_config *config, unsigned rights)
{
    const char *error_text;
    enum ss_status status;

    if (config->user != NULL) {
        status = ss_process_switch_user(config->user, rights, &error_text);
        if (status == SS_ERR_NOT_FOUND)
            ss_log_error("run_as user '%s' could not be found.", config->user);
        else if (status != SS_OK)
            ss_log_error("run_as user '%s': %s", config->user, error_text);
        if (status != SS_OK) {
            ss_log_error("failed to switch user");
            return false;
        }
    }
    if (ss_process_is_root())
        ss_log_info("running from root user");
    return true;
}

/*
 * Everything that needs nothing of the system, so that errors are still seen by who started the
 * program.
 */
static bool prepare(struct ss_service *service)
{
    const struct ss_config *config = service->config;

    if (!ss_service_supports(config))
        return false;
    ss_service_log_options(config);
    if (!ss_service_make_profiles(service, NULL))
        return false;
    if (config->nameservers != NULL && !ss_nameservers_valid(config->nameservers)) {
        ss_log_error("failed to set nameservers");
        return false;
    }
    return ss_service_plans_fit(config);
}

/* A program that goes to the background says its lines there, as people find them in its log. */
static bool prepare_quietly(struct ss_service *service)
{
    enum ss_log_level level = ss_log_get_level();
    bool good;

    ss_log_set_level(level < SS_LOG_WARN ? level : SS_LOG_WARN);
    good = prepare(service);
    ss_log_set_level(level);
    return good;
}

/* What is listened on at the start; a manager's ports come later. */
static bool open_ports(struct running *running)
{
    struct ss_sockets_change change;

    if (running->control == NULL)
        return ss_service_listen(running->service, NULL, &running->sockets, &change);
    running->ports = ss_ports_new(running->engine, running->service, running->plugins);
    if (running->ports == NULL)
        ss_log_error("%s", ss_status_text(SS_ERR_MEMORY));
    return running->ports != NULL;
}

static bool hear_manager(struct running *running)
{
    enum ss_status status = SS_OK;

    if (running->control != NULL)
        status = ss_control_stdio_start(running->control, ss_engine_loop(running->engine),
                                        running->ports, on_manager_gone, running);
    if (status != SS_OK)
        ss_log_error("the manager can't be heard: %s", ss_status_text(status));
    return status == SS_OK;
}

/* From the fork on: sockets, user, threads, and then the loop. */
static int serve(struct running *running)
{
    const struct ss_config *config = running->service->config;

    ss_process_ignore_pipes();
    if (config->nameservers != NULL)
        ss_log_info("using nameserver: %s", config->nameservers);
    ss_service_log_providers(running->service);
    if (!ss_service_may_redirect(running->service))
        return EXIT_REFUSED;
    if (!start_helper(running) || !make_engine(running) || !open_ports(running) ||
        !make_reload(running) || !open_signals(running) ||
        !ss_report_start(&running->report, config->manager_address, &running->sockets,
                         ss_engine_loop(running->engine)) ||
        !start_plugins(running) || !ss_helped_seal(&running->helped, config) ||
        !ss_service_switch_user(config, rights_needed(running->service)))
        return EXIT_FATAL;
    if (ss_engine_start_workers(running->engine) != SS_OK) {
        ss_log_error("the worker threads can't be started");
        return EXIT_FATAL;
    }
    if (!hear_manager(running))
        return EXIT_FATAL;
    start_enforcing(running);
    ss_background_ready(&running->background);
    ss_engine_run(running->engine);
    config = running->service->config;
    if (running->exit_code == 0 && config->verbose && config->program != SS_PROGRAM_TUNNEL)
        ss_log_info("closed gracefully");
    return running->exit_code;
}

/* While the present directory is still that of the start. */
static bool make_plugins(struct running *running)
{
    const struct ss_config *config = running->service->config;

    /* A manager's ports may have plugins. */
    if (!ss_service_uses_plugins(config) && running->control == NULL)
        return true;
    running->plugins = ss_plugins_new(config->plugin_exit, on_plugins_failed, running);
    if (running->plugins == NULL)
        ss_log_error("%s", ss_status_text(SS_ERR_MEMORY));
    else if (running->control != NULL)
        ss_plugins_forgive(running->plugins);
    return running->plugins != NULL;
}

/* Everything up to the sockets. False after the error lines. */
static bool make_service(struct running *running, struct ss_config *config)
{
    bool background = config->pid_file != NULL;

    running->service = ss_service_new(config, &running->shared, NULL, &running->reaper);
    if (running->service == NULL) {
        ss_log_error("%s", ss_status_text(SS_ERR_MEMORY));
        return false;
    }
    if (!ss_service_make_acl(running->service, false) ||
        !(background ? prepare_quietly : prepare)(running->service) || !make_plugins(running))
        return false;
    running->service->plugins = running->plugins;
    return ss_service_make_plans(running->service, NULL);
}

static void end(struct running *running)
{
    close_signals(running);
    ss_reload_close(running->reload);
    ss_helped_close(&running->helped);
    ss_plugins_close(running->plugins);
    ss_report_stop(&running->report);
    ss_control_stdio_close(running->control);
    ss_reaper_close(&running->reaper);
    ss_engine_free(running->engine);
    ss_control_stdio_free(running->control);
    ss_ports_free(running->ports);
    ss_sockets_clear(&running->sockets);
    free_service(running);
    ss_helped_end(&running->helped);
    ss_words_forget(&running->words);
}

/* Takes the configuration, and the words. */
static int run(struct ss_config *given, const char *ident, struct ss_words *words)
{
    struct running running = {.words = *words};
    int exit_code = EXIT_FATAL;
    const struct ss_config *config;

    *words = (struct ss_words){0};
    if (given->use_syslog)
        ss_syslog_start(ident);
    /* First of all, for the manager waits a second. */
    if (given->control_stdio && ss_control_stdio_new(&running.control) != SS_OK) {
        ss_log_error("standard input and output can't be had for a manager");
        goto done;
    }
    if (!make_service(&running, given))
        goto done;
    config = running.service->config;
    raise_limits(&running);
    if (config->pid_file != NULL) {
        const char *error_text = "";

        switch (
            ss_background_enter(&running.background, config->pid_file, &error_text, &exit_code)) {
        case SS_BACKGROUND_PARENT:
            goto done;
        case SS_BACKGROUND_FAILED:
            ss_log_error("Invalid pid file");
            ss_log_error("%s: %s", config->pid_file, error_text);
            goto done;
        case SS_BACKGROUND_CHILD:
            ss_syslog_start(ident);
            ss_service_log_options(config);
            ss_service_log_methods(config);
            break;
        }
    }
    exit_code = serve(&running);
    ss_background_leave(&running.background);
done:
    end(&running);
    return exit_code;
}

/* As far as one can get without a socket, so that what passes here starts too. */
static int check_config(const struct ss_config *config)
{
    struct ss_shared shared = {0};
    struct ss_service service = {.config = config, .shared = &shared};
    bool good;

    if (config->program == SS_PROGRAM_MANAGER)
        good = ss_manager_check(config);
    else
        good = ss_service_make_acl(&service, false) && prepare(&service);

    if (good)
        ss_config_print(config, stdout);
    ss_service_free_profiles(&service);
    ss_acl_release(service.acl);
    ss_shared_clear(&shared);
    return good ? 0 : EXIT_FATAL;
}

int ss_service_main(enum ss_program program, int argc, char **argv)
{
    struct ss_config config;
    struct ss_words words = {0};
    int exit_code = EXIT_FATAL;

    ss_process_fill_streams();
    if (!start_libraries() || ss_words_keep(&words, argc, argv) != SS_OK) {
        ss_log_error("the libraries can't be started");
        return EXIT_FATAL;
    }
    ss_file_keep_folder();
    if (ss_process_logs_to_journal())
        ss_log_set_timestamps(false);
    if (!ss_config_read(&config, program, argc, argv, ss_file_read, &exit_code)) {
        ss_words_forget(&words);
        return exit_code;
    }
    if (config.workers == 0) {
        config.workers = ss_process_cpu_count();
        if (config.workers > WORKERS_MAX)
            config.workers = WORKERS_MAX;
    }
    switch (config.task) {
    case SS_TASK_PRINT_URL:
        exit_code = ss_config_print_url(&config, stdout) ? 0 : EXIT_FATAL;
        break;
    case SS_TASK_CHECK_CONFIG:
        exit_code = check_config(&config);
        break;
    case SS_TASK_SERVE:
        ss_log_set_level((enum ss_log_level)config.log_level);
        exit_code = config.program == SS_PROGRAM_MANAGER ? ss_manager_run(&config, argv[0], &words)
                                                         : run(&config, argv[0], &words);
        break;
    }
    ss_config_free(&config);
    ss_words_forget(&words);
    ss_resolver_global_end();
    return exit_code;
}
