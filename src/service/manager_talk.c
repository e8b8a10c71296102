/* The conversation with the server of all ports: requests and answers, line by line, and telling a
 * fresh one of every port. */
#include "service/manager_child_internal.h"

#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include "base/log.h"
#include "control/lines.h"
#include "crypto/secret.h"

#define ANSWER_MS       5000 /* a request that takes longer ends the server */
#define COUNT_MS        5000 /* between two looks at the counters */
#define COUNTS_A_RECORD 6    /* of them, one goes to the state file where there are quotas */
#define RETRY_MS        200  /* ports that could not be listened on; doubled each time */
#define READ_MAX        65536

/* The conversation with one run of the server. */
struct ss_child_link {
    struct ss_manager *manager; /* NULL: it is over, and only the close callback is missing */
    uv_pipe_t pipe;
    struct ss_lines lines;
    char read[READ_MAX];
};

struct sending {
    uv_write_t request;
    char *text;
    size_t len;
};

/* -- the conversation ------------------------------------------------------------------------ */

static void on_link_closed(uv_handle_t *handle)
{
    struct ss_child_link *link = handle->data;

    ss_lines_free(&link->lines);
    ss_wipe(link, sizeof *link);
    free(link);
}

void ss_talk_close(struct ss_manager *manager)
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

bool ss_talk_ask(struct ss_manager *manager, enum ss_talk_purpose purpose, enum ss_wire_verb verb,
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
        (void)ss_talk_ask(manager, FOR_COUNTING, SS_WIRE_STATS, NULL);
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
            !ss_talk_ask(manager, FOR_RESTORING, SS_WIRE_ADD, &complete))
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

/* -- its beginning and end ------------------------------------------------------------------- */

bool ss_talk_open(struct ss_manager *manager, int fd)
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
        ss_talk_close(manager);
        return false;
    }
    return uv_read_start((uv_stream_t *)&link->pipe, on_alloc, on_read) == 0;
}

void ss_talk_drain(struct ss_manager *manager)
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

void ss_talk_fail(struct ss_manager *manager)
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
