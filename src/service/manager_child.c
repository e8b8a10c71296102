/* One ss-server that serves all ports of a manager, which tells it of them over a socket pair that
 * is its standard input and output. */
#include "service/manager_internal.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "config/child_args.h"
#include "control/lines.h"
#include "crypto/secret.h"

#define HELLO_MS        1000 /* a server that has not greeted by then is of another kind */
#define ANSWER_MS       5000 /* a request that takes longer ends the server */
#define READY_MS        3000 /* commands wait no longer for a server that does not come up */
#define COUNT_MS        5000 /* between two looks at the counters */
#define COUNTS_A_RECORD 6    /* of them, one goes to the state file where there are quotas */
#define RETRY_MS        200  /* ports that could not be listened on; doubled each time */
#define FIRST_MS        50   /* before a server that has died is started again, doubled each time */
#define LONGEST_MS      10000
#define STEADY_MS       10000 /* one that lived so long begins from the front */
#define IN_FLIGHT_MAX   64
#define READ_MAX        65536

/* More of them are told with the whole port. */
#define USERS_ONE_BY_ONE 4

enum purpose { FOR_RESTORING, FOR_OPERATION, FOR_COUNTING };

/* A request without an answer; the server answers in order. */
struct waiting {
    uint64_t id;
    enum purpose purpose;
    uint16_t port;
};

/* The conversation with one run of the server. */
struct ss_child_link {
    struct ss_manager *manager; /* NULL: it is over, and only the close callback is missing */
    uv_pipe_t pipe;
    struct ss_lines lines;
    char read[READ_MAX];
};

enum phase { PHASE_DOWN, PHASE_STARTING, PHASE_RESTORING, PHASE_UP };

struct ss_child_state {
    enum phase phase;
    char **words;
    const char *program;
    int their_end, our_end; /* of the run that is to begin; -1 */
    bool kept;              /* the helper knows how to start it */
    bool greeted_once;      /* it is of our kind, whatever happens later */
    bool running;
    int32_t pid;
    unsigned failures, counts;
    uint64_t retry_ms; /* until ports are tried again that could not be listened on */
    uv_timer_t hello, answer, again, count, ready, retry;
    uint64_t next_id;
    struct waiting waiting[IN_FLIGHT_MAX + 2];
    size_t waiting_first, waiting_count;
    uint16_t restore_next; /* ports are gone through by number */
    bool restore_left;
};

struct sending {
    uv_write_t request;
    char *text;
    size_t len;
};

static void start_run(struct ss_manager *manager);

/* -- the conversation ------------------------------------------------------------------------ */

static void on_link_closed(uv_handle_t *handle)
{
    struct ss_child_link *link = handle->data;

    ss_lines_free(&link->lines);
    ss_wipe(link, sizeof *link);
    free(link);
}

static void close_link(struct ss_manager *manager)
{
    struct ss_child_link *link = manager->link;

    if (link == NULL)
        return;
    manager->link = NULL;
    link->manager = NULL;
    uv_close((uv_handle_t *)&link->pipe, on_link_closed);
}

static void on_sent(uv_write_t *request, int status)
{
    struct sending *sending = request->data;

    (void)status; /* a server that does not read is noticed by its end, or its silence */
    ss_wipe(sending->text, sending->len);
    free(sending->text);
    free(sending);
}

/* Takes the line over. False when it can't be sent. */
static bool send_line(struct ss_manager *manager, char *text)
{
    struct sending *sending = text != NULL ? calloc(1, sizeof *sending) : NULL;
    uv_buf_t buffer;

    if (sending == NULL || manager->link == NULL)
        goto failed;
    sending->text = text;
    sending->len = strlen(text);
    sending->request.data = sending;
    buffer = uv_buf_init(text, (unsigned)sending->len);
    if (uv_write(&sending->request, (uv_stream_t *)&manager->link->pipe, &buffer, 1, on_sent) == 0)
        return true;
failed:
    if (text != NULL)
        ss_wipe(text, strlen(text));
    free(text);
    free(sending);
    return false;
}

static void on_silence(uv_timer_t *timer)
{
    struct ss_manager *manager = timer->data;

    ss_log_error("%s does not answer and is ended", manager->child->program);
    (void)!ss_helper_stop_child(manager->helper, SS_CHILD_ID);
}

static bool ask(struct ss_manager *manager, enum purpose purpose, enum ss_wire_verb verb,
                const struct ss_port_spec *spec)
{
    struct ss_child_state *child = manager->child;
    size_t room = sizeof child->waiting / sizeof child->waiting[0];
    uint64_t id = ++child->next_id;

    if (child->waiting_count == room || !send_line(manager, ss_wire_request_text(id, verb, spec)))
        return false;
    child->waiting[(child->waiting_first + child->waiting_count++) % room] =
        (struct waiting){id, purpose, spec != NULL ? spec->port : 0};
    uv_timer_start(&child->answer, on_silence, ANSWER_MS, 0);
    return true;
}

/* -- making all ports in a fresh server ------------------------------------------------------ */

static void on_count(uv_timer_t *timer)
{
    struct ss_manager *manager = timer->data;

    if (manager->child->phase == PHASE_UP && manager->child->waiting_count == 0)
        (void)ask(manager, FOR_COUNTING, SS_WIRE_STATS, NULL);
}

static void restored(struct ss_manager *manager)
{
    struct ss_child_state *child = manager->child;

    child->phase = PHASE_UP;
    uv_timer_start(&child->count, on_count, COUNT_MS, COUNT_MS);
    ss_manager_set_ready(manager);
}

/* The next port that is to be told of. NULL when there is none. */
static struct ss_managed *next_to_restore(struct ss_manager *manager)
{
    struct ss_child_state *child = manager->child;

    while (child->restore_left) {
        struct ss_managed *port = manager->by_port[child->restore_next];

        child->restore_left = child->restore_next != UINT16_MAX;
        if (child->restore_left)
            child->restore_next++;
        /* Those that are served are so in the present server. */
        if (port != NULL && (child->phase == PHASE_RESTORING || !port->served))
            return port;
    }
    return NULL;
}

static void restore_some(struct ss_manager *manager)
{
    struct ss_child_state *child = manager->child;

    while (child->restore_left && child->waiting_count < IN_FLIGHT_MAX) {
        struct ss_managed *port = next_to_restore(manager);
        struct ss_port_spec complete;

        if (port == NULL)
            break;
        if (ss_manager_complete(&complete, manager->config, &port->spec) != SS_OK ||
            !ask(manager, FOR_RESTORING, SS_WIRE_ADD, &complete))
            ss_log_error("port %u: it can't be told to the server", port->spec.port);
        ss_port_spec_clear(&complete);
    }
    if (child->phase == PHASE_RESTORING && !child->restore_left && child->waiting_count == 0)
        restored(manager);
}

static void begin_restore(struct ss_manager *manager)
{
    manager->child->restore_next = 0;
    manager->child->restore_left = true;
    restore_some(manager);
}

static void on_retry(uv_timer_t *timer)
{
    struct ss_manager *manager = timer->data;

    if (manager->child->phase != PHASE_UP)
        return;
    if (manager->operation.active || manager->child->waiting_count != 0)
        uv_timer_start(timer, on_retry, RETRY_MS, 0);
    else
        begin_restore(manager);
}

/* Often it is an old server that is about to let go. */
void ss_child_retry_later(struct ss_manager *manager)
{
    struct ss_child_state *child = manager->child;

    if (uv_is_active((uv_handle_t *)&child->retry))
        return;
    if (child->retry_ms == 0)
        child->retry_ms = RETRY_MS;
    uv_timer_start(&child->retry, on_retry, child->retry_ms, 0);
    child->retry_ms = child->retry_ms < LONGEST_MS / 2 ? child->retry_ms * 2 : LONGEST_MS;
}

static void restored_one(struct ss_manager *manager, const struct waiting *waiting,
                         const struct ss_wire_heard *heard)
{
    struct ss_managed *port = ss_managed_find(manager, waiting->port);

    if (port == NULL)
        return;
    if (heard->result == SS_WIRE_OK) {
        if (!port->served && manager->child->phase == PHASE_UP)
            ss_log_info("port %u is served now", port->spec.port);
        port->served = true;
        return;
    }
    if (port->served || manager->child->phase == PHASE_RESTORING)
        ss_log_error("port %u is not served: %s", port->spec.port, heard->reason.text);
    port->served = false;
    ss_child_retry_later(manager);
}

/* -- what it says ---------------------------------------------------------------------------- */

static void on_hello(struct ss_manager *manager)
{
    struct ss_child_state *child = manager->child;

    uv_timer_stop(&child->hello);
    uv_timer_stop(&child->ready); /* from here on each answer has its own time */
    child->greeted_once = true;
    child->phase = PHASE_RESTORING;
    child->retry_ms = 0;
    begin_restore(manager);
}

static void on_answer(struct ss_manager *manager, const struct ss_wire_heard *heard)
{
    struct ss_child_state *child = manager->child;
    size_t room = sizeof child->waiting / sizeof child->waiting[0];
    struct waiting waiting;

    if (child->waiting_count == 0 || child->waiting[child->waiting_first].id != heard->id)
        return; /* of a request that nobody waits for */
    waiting = child->waiting[child->waiting_first];
    child->waiting_first = (child->waiting_first + 1) % room;
    child->waiting_count--;
    if (child->waiting_count == 0)
        uv_timer_stop(&child->answer);
    else
        uv_timer_start(&child->answer, on_silence, ANSWER_MS, 0);
    for (size_t i = 0; i < heard->use_count; i++)
        ss_managed_count(manager, &heard->uses[i]);
    switch (waiting.purpose) {
    case FOR_RESTORING:
        restored_one(manager, &waiting, heard);
        restore_some(manager);
        break;
    case FOR_OPERATION:
        ss_manager_done(manager, heard->result, heard->reason.text);
        break;
    case FOR_COUNTING:
        if (++child->counts % COUNTS_A_RECORD == 0)
            ss_manager_record_used(manager);
        break;
    }
}

static void on_line(struct ss_manager *manager, char *line, size_t len)
{
    struct ss_wire_heard heard;
    enum ss_status status = ss_wire_answer_read(&heard, line, len);

    if (heard.hello && manager->child->phase == PHASE_STARTING)
        on_hello(manager);
    else if (status == SS_OK && !heard.hello && manager->child->phase != PHASE_STARTING)
        on_answer(manager, &heard);
    ss_wire_heard_clear(&heard);
}

static void on_alloc(uv_handle_t *handle, size_t wanted, uv_buf_t *buffer)
{
    struct ss_child_link *link = handle->data;

    (void)wanted;
    *buffer = uv_buf_init(link->read, sizeof link->read);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer)
{
    struct ss_child_link *link = stream->data;
    struct ss_manager *manager = link->manager;
    char *line;
    size_t len;

    if (got == 0 || manager == NULL)
        return;
    if (got < 0 ||
        ss_lines_put(&link->lines, buffer->base, (size_t)got, SS_WIRE_LINE_MAX) != SS_OK) {
        /* Its end is told by the helper; one that has closed its output is ended. */
        uv_read_stop(stream);
        if (manager->child->phase != PHASE_STARTING)
            (void)!ss_helper_stop_child(manager->helper, SS_CHILD_ID);
        return;
    }
    while (manager->link == link && ss_lines_next(&link->lines, &line, &len))
        on_line(manager, line, len);
}

/* -- its runs -------------------------------------------------------------------------------- */

/* What was asked of a server that is gone. */
static void fail_waiting(struct ss_manager *manager)
{
    struct ss_child_state *child = manager->child;

    child->waiting_count = 0;
    child->restore_left = false;
    uv_timer_stop(&child->answer);
    uv_timer_stop(&child->count);
    uv_timer_stop(&child->retry);
    if (manager->operation.active)
        ss_manager_done(manager, SS_WIRE_NO_PORT, "the server has ended");
}

static void to_processes(struct ss_manager *manager)
{
    struct ss_child_state *child = manager->child;

    uv_timer_stop(&child->hello);
    uv_timer_stop(&child->ready);
    close_link(manager);
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

static bool open_link(struct ss_manager *manager, int fd)
{
    struct ss_child_link *link = calloc(1, sizeof *link);

    if (link == NULL || uv_pipe_init(&manager->loop, &link->pipe, 0) != 0) {
        free(link);
        close(fd);
        return false;
    }
    link->pipe.data = link;
    link->manager = manager;
    manager->link = link;
    if (uv_pipe_open(&link->pipe, fd) != 0) {
        close(fd);
        close_link(manager);
        return false;
    }
    return uv_read_start((uv_stream_t *)&link->pipe, on_alloc, on_read) == 0;
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
    if (status == SS_OK && open_link(manager, child->our_end)) {
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
    close_link(manager);
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

/* The last that it said: whether it has greeted decides what it is. */
static void drain(struct ss_manager *manager)
{
    struct ss_child_link *link = manager->link;
    char *line;
    size_t len;
    uv_os_fd_t fd;

    if (link == NULL || uv_fileno((uv_handle_t *)&link->pipe, &fd) != 0)
        return;
    while (true) {
        ssize_t got = read(fd, link->read, sizeof link->read);

        if (got <= 0 ||
            ss_lines_put(&link->lines, link->read, (size_t)got, SS_WIRE_LINE_MAX) != SS_OK)
            break;
    }
    while (manager->link == link && ss_lines_next(&link->lines, &line, &len))
        on_line(manager, line, len);
}

static void on_ended(struct ss_manager *manager, const struct ss_notice *notice)
{
    struct ss_child_state *child = manager->child;
    bool greeted;

    drain(manager);
    greeted = child->phase != PHASE_STARTING;
    child->running = false;
    child->phase = PHASE_DOWN;
    uv_timer_stop(&child->hello);
    close_link(manager);
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
    fail_waiting(manager);
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
    else if (!ask(manager, FOR_OPERATION, verb, spec))
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

    fail_waiting(manager);
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
    return open_link(manager, fd);
}

void ss_child_signal(const struct ss_manager *manager, int number)
{
    /* Before it hears requests a signal would end it. */
    if (manager->child->running && manager->child->phase == PHASE_UP)
        kill((pid_t)manager->child->pid, number);
}

void ss_child_unwatch(struct ss_manager *manager)
{
    close_link(manager);
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
