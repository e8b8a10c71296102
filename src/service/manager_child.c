/* One ss-server that serves all ports of a manager, which tells it of them over a socket pair that
 * is its standard input and output: its runs, and commands that are for it. */
#include "service/manager_child_internal.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "config/child_args.h"

#define HELLO_MS  1000  /* a server that has not greeted by then is of another kind */
#define READY_MS  3000  /* commands wait no longer for a server that does not come up */
#define FIRST_MS  50    /* before a server that has died is started again, doubled each time */
#define STEADY_MS 10000 /* one that lived so long begins from the front */

/* More of them are told with the whole port. */
#define USERS_ONE_BY_ONE 4

static void start_run(struct ss_manager *manager);

/* -- its runs -------------------------------------------------------------------------------- */

static void to_processes(struct ss_manager *manager)
{
    struct ss_child_state *child = manager->child;

    uv_timer_stop(&child->hello);
    uv_timer_stop(&child->ready);
    ss_talk_close(manager);
    (void)!ss_helper_stop_child(manager->helper, SS_CHILD_ID);
    ss_log_info("%s does not take commands over its standard input: each port gets a process of "
                "its own",
                child->program);
    manager->backend = &ss_backend_processes;
    if (!ss_processes_start(manager))
        ss_manager_fail(manager, 255);
}

static void on_no_hello(uv_timer_t *timer)
{
    struct ss_manager *manager = timer->data;

    if (manager->child->greeted_once) {
        ss_log_error("%s does not greet and is ended", manager->child->program);
        (void)!ss_helper_stop_child(manager->helper, SS_CHILD_ID);
    } else {
        to_processes(manager);
    }
}

static void on_not_ready(uv_timer_t *timer)
{
    struct ss_manager *manager = timer->data;

    ss_log_error("%s has not come up; ports can't be added until it has", manager->child->program);
    ss_manager_set_ready(manager);
}

static void on_again(uv_timer_t *timer)
{
    start_run(timer->data);
}

static void start_later(struct ss_manager *manager)
{
    struct ss_child_state *child = manager->child;
    uint64_t pause = FIRST_MS;

    for (unsigned i = 1; i < child->failures && pause < LONGEST_MS; i++)
        pause *= 2;
    uv_timer_start(&child->again, on_again, pause < LONGEST_MS ? pause : LONGEST_MS, 0);
}

static bool make_pair(struct ss_child_state *child)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return false;
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    child->our_end = ends[0];
    child->their_end = ends[1];
    return true;
}

/* Asks the helper for a run; what becomes of it comes as a notice. */
static enum ss_status request_run(struct ss_manager *manager)
{
    struct ss_child_state *child = manager->child;
    int descriptors[3];
    enum ss_status status;

    if (!make_pair(child))
        return SS_ERR_LIMIT;
    descriptors[0] = descriptors[1] = child->their_end;
    descriptors[2] = -1;
    if (child->kept) {
        status = ss_helper_start_again(manager->helper, SS_CHILD_ID, descriptors);
    } else {
        const struct ss_child_options options = {
            .argv = (const char *const *)child->words,
            .file = child->program,
            .descriptors = {descriptors[0], descriptors[1], descriptors[2]},
            .keep = true};

        status = ss_helper_start_child(manager->helper, SS_CHILD_ID, &options);
    }
    close(child->their_end);
    child->their_end = -1;
    if (status == SS_OK) {
        child->kept = child->running = true;
    } else {
        close(child->our_end);
        child->our_end = -1;
    }
    return status;
}

static void start_run(struct ss_manager *manager)
{
    struct ss_child_state *child = manager->child;
    enum ss_status status = request_run(manager);

    if (status == SS_ERR_RESET) /* which is told of where the helper is watched */
        return;
    if (status == SS_OK && ss_talk_open(manager, child->our_end)) {
        child->our_end = -1;
        child->phase = PHASE_STARTING;
        return;
    }
    child->our_end = -1;
    child->failures++;
    ss_log_error("%s can't be started: %s", child->program, ss_status_text(status));
    if (status == SS_OK)
        (void)!ss_helper_stop_child(manager->helper, SS_CHILD_ID);
    else
        start_later(manager);
}

static void on_started(struct ss_manager *manager, const struct ss_notice *notice)
{
    struct ss_child_state *child = manager->child;

    child->pid = notice->pid;
    if (notice->error == 0) {
        if (child->phase == PHASE_STARTING) /* its greeting may have come before this */
            uv_timer_start(&child->hello, on_no_hello, HELLO_MS, 0);
        return;
    }
    ss_log_error("%s can't be executed: %s", child->program, strerror(notice->error));
    child->running = false;
    child->phase = PHASE_DOWN;
    child->failures++;
    ss_talk_close(manager);
    if (manager->stopping)
        ss_manager_stopped(manager);
    else
        start_later(manager);
}

static void log_end(const struct ss_child_state *child, const struct ss_notice *notice)
{
    if (notice->signal != 0)
        ss_log_error("%s was ended by signal %d; it is started again", child->program,
                     notice->signal);
    else
        ss_log_error("%s has ended with %d; it is started again", child->program,
                     notice->exit_code);
}

static void on_ended(struct ss_manager *manager, const struct ss_notice *notice)
{
    struct ss_child_state *child = manager->child;
    bool greeted;

    ss_talk_drain(manager);
    greeted = child->phase != PHASE_STARTING;
    child->running = false;
    child->phase = PHASE_DOWN;
    uv_timer_stop(&child->hello);
    ss_talk_close(manager);
    if (manager->stopping) {
        ss_manager_stopped(manager);
        return;
    }
    if (manager->backend != &ss_backend_child)
        return;
    if (!greeted && !child->greeted_once) {
        to_processes(manager);
        return;
    }
    log_end(child, notice);
    ss_managed_bank(manager);
    ss_talk_fail(manager);
    manager->ready = false; /* until it is up again, or too long */
    ss_manager_watch_socket(manager);
    uv_timer_start(&child->ready, on_not_ready, READY_MS, 0);
    child->failures = notice->ran_ms >= STEADY_MS ? 1 : child->failures + 1;
    start_later(manager);
}

static void on_notice(struct ss_manager *manager, const struct ss_notice *notice)
{
    if (notice->id != SS_CHILD_ID)
        return;
    if (notice->kind == SS_NOTICE_STARTED)
        on_started(manager, notice);
    else if (notice->kind == SS_NOTICE_ENDED)
        on_ended(manager, notice);
}

/* -- commands -------------------------------------------------------------------------------- */

static void ask_or_fail(struct ss_manager *manager, enum ss_wire_verb verb,
                        const struct ss_port_spec *spec)
{
    if (manager->child->phase != PHASE_UP)
        ss_manager_done(manager, SS_WIRE_NO_PORT, "the server is not up");
    else if (!ss_talk_ask(manager, FOR_OPERATION, verb, spec))
        ss_manager_done(manager, SS_WIRE_NO_PORT, "the server can't be asked");
}

static void set_port(struct ss_manager *manager, const struct ss_port_spec *spec,
                     const struct ss_managed *old)
{
    struct ss_port_spec complete;

    (void)old;
    if (ss_manager_complete(&complete, manager->config, spec) != SS_OK)
        ss_manager_done(manager, SS_WIRE_NO_PORT, ss_status_text(SS_ERR_MEMORY));
    else
        ask_or_fail(manager, SS_WIRE_ADD, &complete);
    ss_port_spec_clear(&complete);
}

static void remove_port(struct ss_manager *manager, const struct ss_managed *port)
{
    ask_or_fail(manager, SS_WIRE_REMOVE, &(struct ss_port_spec){.port = port->spec.port});
}

static void change_users(struct ss_manager *manager, enum ss_command command,
                         const struct ss_port_spec *spec, const struct ss_port_spec *change)
{
    /* The server makes its list of users anew for each one. */
    if (change->server.identity_count > USERS_ONE_BY_ONE)
        set_port(manager, spec, NULL);
    else
        ask_or_fail(manager, command == SS_COMMAND_ADD_USER ? SS_WIRE_ADD_USER : SS_WIRE_DEL_USER,
                    change);
}

static void refresh(struct ss_manager *manager)
{
    ask_or_fail(manager, SS_WIRE_STATS, NULL);
}

static void stop(struct ss_manager *manager)
{
    struct ss_child_state *child = manager->child;

    ss_talk_fail(manager);
    uv_timer_stop(&child->again);
    if (child->running)
        (void)!ss_helper_stop_child(manager->helper, SS_CHILD_ID);
    else
        ss_manager_stopped(manager);
}

const struct ss_backend ss_backend_child = {
    .set = set_port,
    .remove = remove_port,
    .change_users = change_users,
    .refresh = refresh,
    .on_notice = on_notice,
    .stop = stop,
};

/* The helper is asked before the user is switched, and its answer is read on the loop. */
bool ss_child_start(struct ss_manager *manager)
{
    struct ss_child_state *child = calloc(1, sizeof *child);
    enum ss_status status;

    manager->child = child;
    if (child == NULL) {
        ss_log_error("%s", ss_status_text(SS_ERR_MEMORY));
        return false;
    }
    child->their_end = child->our_end = -1;
    status = ss_child_args_all(&child->words, manager->config);
    if (status == SS_OK) {
        child->program = child->words[0];
        status = request_run(manager);
    }
    if (status == SS_OK)
        return true;
    ss_log_error("ss-server can't be started: %s", ss_status_text(status));
    return false;
}

bool ss_child_watch(struct ss_manager *manager)
{
    struct ss_child_state *child = manager->child;
    uv_timer_t *const timers[] = {&child->hello, &child->answer, &child->again,
                                  &child->count, &child->ready,  &child->retry};
    int fd = child->our_end;

    for (size_t i = 0; i < sizeof timers / sizeof timers[0]; i++) {
        uv_timer_init(&manager->loop, timers[i]);
        timers[i]->data = manager;
    }
    child->our_end = -1;
    child->phase = PHASE_STARTING;
    uv_timer_start(&child->ready, on_not_ready, READY_MS, 0);
    return ss_talk_open(manager, fd);
}

void ss_child_signal(const struct ss_manager *manager, int number)
{
    /* Before it hears requests a signal would end it. */
    if (manager->child->running && manager->child->phase == PHASE_UP)
        kill((pid_t)manager->child->pid, number);
}

void ss_child_unwatch(struct ss_manager *manager)
{
    ss_talk_close(manager);
}

void ss_child_free(struct ss_manager *manager)
{
    struct ss_child_state *child = manager->child;

    if (child == NULL)
        return;
    if (child->our_end >= 0)
        close(child->our_end);
    ss_child_args_free(child->words);
    free(child);
    manager->child = NULL;
}
