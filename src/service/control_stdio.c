/* Ports that a manager asks for, line by line. */
#include "service/control_stdio.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/log.h"
#include "config/json.h"
#include "control/lines.h"
#include "control/wire.h"
#include "crypto/secret.h"

#define READ_SIZE ((size_t)65536)
#define PORTS     ((size_t)UINT16_MAX + 1)

/* Answers that the manager has not read: above this no request is taken. */
#define UNREAD_MAX ((size_t)4 << 20)

/* What the manager knows of a port's counters: sums, which change with any of them. */
struct told {
    uint64_t sum;
    uint64_t *user_sums; /* by place in the list */
    size_t user_count;
};

struct ss_control_stdio {
    int in, out; /* -1 once the handles have them */
    uv_pipe_t input, output;
    bool open, paused;
    struct ss_ports *ports;
    void (*gone)(void *owner);
    void *owner;
    struct ss_lines lines;
    struct told *told; /* by number */
    char read[READ_SIZE];
};

struct sending {
    uv_write_t request;
    struct ss_control_stdio *control;
    char *text;
};

static char line_end[] = "\n";

/* -- answers --------------------------------------------------------------------------------- */

static void watch(struct ss_control_stdio *control);

static void on_sent(uv_write_t *request, int status)
{
    struct sending *sending = request->data;
    struct ss_control_stdio *control = sending->control;

    (void)status; /* that the manager is gone is read */
    ss_json_text_free(sending->text);
    ss_heap_free(sending);
    if (control->open)
        watch(control);
}

static void answer(struct ss_control_stdio *control, struct ss_wire_answer *what)
{
    struct sending *sending = ss_heap_calloc(1, sizeof *sending);
    char *text = ss_wire_answer_text(what);
    uv_buf_t line[2];

    if (sending != NULL && text != NULL) {
        sending->control = control;
        sending->text = text;
        sending->request.data = sending;
        line[0] = uv_buf_init(text, (unsigned)strlen(text));
        line[1] = uv_buf_init(line_end, 1);
        if (uv_write(&sending->request, (uv_stream_t *)&control->output, line, 2, on_sent) == 0)
            return;
    }
    /* The manager ends a server that does not answer, and starts another. */
    ss_log_error("an answer to the manager can't be sent");
    if (text != NULL)
        ss_json_text_free(text);
    ss_heap_free(sending);
}

static void answer_result(struct ss_control_stdio *control, uint64_t id, enum ss_wire_result result,
                          const char *reason)
{
    struct ss_wire_answer what;

    ss_wire_answer_begin(&what, id);
    ss_wire_answer_result(&what, result, reason);
    answer(control, &what);
}

static enum ss_wire_result result_of(enum ss_status status)
{
    switch (status) {
    case SS_OK:
        return SS_WIRE_OK;
    case SS_ERR_ARGUMENT:
    case SS_ERR_KEY:
    case SS_ERR_UNSUPPORTED:
        return SS_WIRE_REFUSED;
    default:
        return SS_WIRE_NO_PORT;
    }
}

/* -- counters -------------------------------------------------------------------------------- */

static void forget_told(struct told *told)
{
    free(told->user_sums);
    memset(told, 0, sizeof *told);
}

/* Another number of users than before: all are told anew. */
static bool fit_users(struct told *told, size_t count)
{
    uint64_t *sums;

    if (told->user_count == count)
        return true;
    sums = calloc(count + 1, sizeof *sums);
    if (sums == NULL)
        return false;
    free(told->user_sums);
    told->user_sums = sums;
    told->user_count = count;
    return true;
}

/* In a word, as `list` and `users` show it. */
static const char *state_text(enum ss_limit_reason reason)
{
    return reason == SS_LIMIT_QUOTA ? "quota" : reason == SS_LIMIT_EXPIRED ? "expired" : NULL;
}

/* Another state is told like another count. */
static uint64_t with_state(uint64_t sum, enum ss_limit_reason reason)
{
    return sum ^ (uint64_t)reason << 60;
}

static void put_users(struct ss_control_stdio *control, struct ss_wire_answer *what,
                      const struct ss_port_view *view, bool all)
{
    struct told *told = &control->told[view->port];
    struct ss_port_user_view user;

    if (!fit_users(told, view->user_count))
        return;
    for (size_t i = 0;
         i < view->user_count && ss_ports_user_at(control->ports, view->port, i, &user); i++) {
        uint64_t sum = with_state(user.rx_bytes + user.tx_bytes + user.sessions + user.quota_used,
                                  user.reason);

        if (!all && sum == told->user_sums[i])
            continue;
        told->user_sums[i] = sum;
        ss_wire_answer_use(what, &(struct ss_wire_use){.port = view->port,
                                                       .user = user.name,
                                                       .rx_bytes = user.rx_bytes,
                                                       .tx_bytes = user.tx_bytes,
                                                       .sessions = user.sessions,
                                                       .quota_used = user.quota_used,
                                                       .quota_period_end = user.quota_period_end,
                                                       .state = state_text(user.reason)});
    }
}

/* Of all ports, or of those whose counters have changed. */
static void answer_stats(struct ss_control_stdio *control, uint64_t id, bool all)
{
    struct ss_wire_answer what;
    struct ss_port_view view;

    ss_wire_answer_begin(&what, id);
    ss_wire_answer_result(&what, SS_WIRE_OK, NULL);
    for (size_t i = 0; ss_ports_at(control->ports, i, &view); i++) {
        const struct ss_traffic *traffic = &view.traffic;
        uint64_t sessions = traffic->sessions_opened + traffic->associations_opened;
        uint64_t total = traffic->rx_wire_bytes + traffic->tx_bytes; /* as the classic counts */
        struct told *told = &control->told[view.port];

        uint64_t sum = with_state(total + sessions + view.quota_used, view.reason);

        if (all || told->sum != sum) {
            told->sum = sum;
            ss_wire_answer_use(&what,
                               &(struct ss_wire_use){.port = view.port,
                                                     .rx_bytes = traffic->rx_bytes,
                                                     .tx_bytes = traffic->tx_bytes,
                                                     .total = total,
                                                     .sessions = sessions,
                                                     .quota_used = view.quota_used,
                                                     .quota_period_end = view.quota_period_end,
                                                     .state = state_text(view.reason)});
        }
        if (view.has_users)
            put_users(control, &what, &view, all);
    }
    answer(control, &what);
}

/* -- requests -------------------------------------------------------------------------------- */

static void change_users(struct ss_control_stdio *control, const struct ss_wire_request *request)
{
    const struct ss_config_server *server = &request->spec.server;
    char error[SS_PORTS_ERROR_MAX] = "there is no such port";
    enum ss_status status = SS_OK;

    for (size_t i = 0; status == SS_OK && i < server->identity_count; i++) {
        const struct ss_config_identity *user = &server->identities[i];

        if (request->verb == SS_WIRE_ADD_USER)
            status = ss_ports_set_user(control->ports, request->spec.port, user, error);
        else
            status = ss_ports_remove_user(control->ports, request->spec.port, user->name);
        /* One that is not there is as asked for. */
        if (request->verb == SS_WIRE_DEL_USER && status == SS_ERR_NOT_FOUND)
            status = SS_OK;
    }
    /* The places of the users may have changed. */
    forget_told(&control->told[request->spec.port]);
    answer_result(control, request->id,
                  status == SS_ERR_NOT_FOUND ? SS_WIRE_REFUSED : result_of(status),
                  status == SS_OK ? NULL : error);
}

static void set_port(struct ss_control_stdio *control, const struct ss_wire_request *request)
{
    char error[SS_PORTS_ERROR_MAX] = "";
    enum ss_status status = ss_ports_set(control->ports, &request->spec, error);

    forget_told(&control->told[request->spec.port]);
    answer_result(control, request->id, result_of(status), status == SS_OK ? NULL : error);
}

static void remove_port(struct ss_control_stdio *control, const struct ss_wire_request *request)
{
    enum ss_status status = ss_ports_remove(control->ports, request->spec.port);

    forget_told(&control->told[request->spec.port]);
    if (status == SS_ERR_NOT_FOUND)
        status = SS_OK;
    answer_result(control, request->id, result_of(status),
                  status == SS_OK ? NULL : ss_status_text(status));
}

static void handle(struct ss_control_stdio *control, char *line, size_t len)
{
    struct ss_wire_request request;
    struct ss_reason reason;

    if (ss_wire_request_read(&request, line, len, &reason) != SS_OK) {
        ss_log_error("what the manager asks for is not understood: %s", reason.text);
        if (request.id != 0)
            answer_result(control, request.id, SS_WIRE_REFUSED, reason.text);
        ss_wire_request_clear(&request);
        return;
    }
    switch (request.verb) {
    case SS_WIRE_ADD:
        set_port(control, &request);
        break;
    case SS_WIRE_REMOVE:
        remove_port(control, &request);
        break;
    case SS_WIRE_ADD_USER:
    case SS_WIRE_DEL_USER:
        change_users(control, &request);
        break;
    case SS_WIRE_STATS:
    case SS_WIRE_LIST:
        answer_stats(control, request.id, request.verb == SS_WIRE_LIST);
        break;
    case SS_WIRE_UNKNOWN:
        break;
    }
    ss_wire_request_clear(&request);
}

static void on_alloc(uv_handle_t *handle_of, size_t wanted, uv_buf_t *buffer)
{
    struct ss_control_stdio *control = handle_of->data;

    (void)wanted;
    *buffer = uv_buf_init(control->read, sizeof control->read);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer)
{
    struct ss_control_stdio *control = stream->data;
    char *line;
    size_t len;

    if (got == 0)
        return;
    if (got < 0 ||
        ss_lines_put(&control->lines, buffer->base, (size_t)got, SS_WIRE_LINE_MAX) != SS_OK) {
        uv_read_stop(stream);
        control->gone(control->owner);
        return;
    }
    while (control->open && ss_lines_next(&control->lines, &line, &len))
        handle(control, line, len);
    ss_wipe(buffer->base, (size_t)got);
    if (control->open)
        watch(control);
}

/* Reads as long as answers are read. */
static void watch(struct ss_control_stdio *control)
{
    bool full = uv_stream_get_write_queue_size((uv_stream_t *)&control->output) > UNREAD_MAX;

    if (full && !control->paused)
        uv_read_stop((uv_stream_t *)&control->input);
    else if (!full && control->paused)
        uv_read_start((uv_stream_t *)&control->input, on_alloc, on_read);
    control->paused = full;
}

/* -- begin and end --------------------------------------------------------------------------- */

static bool greet(int out)
{
    struct ss_wire_answer hello;
    char *text;
    bool good;

    ss_wire_answer_begin(&hello, 0);
    text = ss_wire_answer_text(&hello);
    good = text != NULL && write(out, text, strlen(text)) == (ssize_t)strlen(text) &&
           write(out, line_end, 1) == 1;
    if (text != NULL)
        ss_json_text_free(text);
    return good;
}

/* What is written to standard output belongs to the log from here on, and nothing is read from
 * standard input, also by plugins, which inherit both. */
static bool take_streams(struct ss_control_stdio *control)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    bool good;

    control->in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    control->out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    good = null >= 0 && control->in >= 0 && control->out >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
           dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
    if (null >= 0)
        close(null);
    return good;
}

enum ss_status ss_control_stdio_new(struct ss_control_stdio **out)
{
    struct ss_control_stdio *control = calloc(1, sizeof *control);

    /* The manager asks for the counters every few seconds. */
    ss_json_use_heap();
    *out = NULL;
    if (control == NULL)
        return SS_ERR_MEMORY;
    control->in = control->out = -1;
    control->told = calloc(PORTS, sizeof *control->told);
    if (control->told == NULL || !take_streams(control) || !greet(control->out)) {
        ss_control_stdio_free(control);
        return SS_ERR_IO;
    }
    *out = control;
    return SS_OK;
}

enum ss_status ss_control_stdio_start(struct ss_control_stdio *control, uv_loop_t *loop,
                                      struct ss_ports *ports, void (*gone)(void *owner),
                                      void *owner)
{
    control->ports = ports;
    control->gone = gone;
    control->owner = owner;
    if (uv_pipe_init(loop, &control->input, 0) != 0 || uv_pipe_init(loop, &control->output, 0) != 0)
        return SS_ERR_IO;
    control->open = true;
    control->input.data = control->output.data = control;
    if (uv_pipe_open(&control->input, control->in) != 0)
        return SS_ERR_IO;
    control->in = -1;
    if (uv_pipe_open(&control->output, control->out) != 0)
        return SS_ERR_IO;
    control->out = -1;
    return uv_read_start((uv_stream_t *)&control->input, on_alloc, on_read) == 0 ? SS_OK
                                                                                 : SS_ERR_IO;
}

void ss_control_stdio_close(struct ss_control_stdio *control)
{
    if (control == NULL || !control->open)
        return;
    control->open = false;
    uv_close((uv_handle_t *)&control->input, NULL);
    uv_close((uv_handle_t *)&control->output, NULL);
}

void ss_control_stdio_free(struct ss_control_stdio *control)
{
    if (control == NULL)
        return;
    if (control->in >= 0)
        close(control->in);
    if (control->out >= 0)
        close(control->out);
    for (size_t i = 0; control->told != NULL && i < PORTS; i++)
        free(control->told[i].user_sums);
    free(control->told);
    ss_lines_free(&control->lines);
    ss_wipe(control->read, sizeof control->read);
    free(control);
}
