/* The program's side of the helper. */
#include "sys/helper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "sys/helper_internal.h"

#define BUFFER   262144
#define LOWEST   3    /* of descriptors that the helper may close */
#define AWAIT_MS 4000 /* the helper gives up before */

struct ss_helper {
    int fd;
    pid_t pid;
    bool gone;
    struct ss_notice *queue; /* notices that were taken in by requests */
    size_t from, count, room;
};

/* All but the three streams and `kept`. */
static void close_others(int kept)
{
    long limit = sysconf(_SC_OPEN_MAX);

#ifdef __linux__
    if (close_range(LOWEST, (unsigned)kept - 1, 0) == 0 &&
        close_range((unsigned)kept + 1, ~0u, 0) == 0)
        return;
#endif
    for (int fd = LOWEST; fd < (limit > 0 && limit < 1 << 20 ? (int)limit : 1 << 20); fd++)
        if (fd != kept)
            close(fd);
}

/* So that none of what is opened later gets the number of a stream. */
static void open_streams(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd < LOWEST);
    if (fd >= 0)
        close(fd);
}

static void free_paths(char **paths, size_t count)
{
    for (size_t i = 0; paths != NULL && i < count; i++)
        free(paths[i]);
    free(paths);
}

static char **copy_paths(const struct ss_helper_options *options)
{
    char **paths = calloc(options->path_count + 1, sizeof *paths);

    for (size_t i = 0; paths != NULL && i < options->path_count; i++) {
        paths[i] = strdup(options->paths[i]);
        if (paths[i] == NULL) {
            free_paths(paths, i);
            return NULL;
        }
    }
    return paths;
}

/* In the helper: its socket gets a number above the streams, and everything else is closed. */
static _Noreturn void enter(int fd, const struct ss_helper_options *options, char **paths,
                            char *user)
{
    if (options->forget != NULL)
        options->forget(options->owner);
    open_streams();
    if (fd == LOWEST) {
        /* Then there would be nothing below it to close. */
        int moved = fcntl(fd, F_DUPFD_CLOEXEC, LOWEST + 1);

        if (moved < 0)
            _exit(1);
        fd = moved;
    }
    close_others(fd);
    ss_helper_run(fd, paths, options->path_count, user);
}

static pid_t fork_quietly(void)
{
    sigset_t all, before;
    pid_t pid;

    /* A signal that comes before the child has its own dispositions waits until it has. */
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid = fork();
    if (pid != 0)
        sigprocmask(SIG_SETMASK, &before, NULL);
    return pid;
}

enum ss_status ss_helper_start(struct ss_helper **out, const struct ss_helper_options *options)
{
    struct ss_helper *helper = calloc(1, sizeof *helper);
    char **paths = copy_paths(options);
    char *user = options->user != NULL ? strdup(options->user) : NULL;
    enum ss_status status = SS_ERR_MEMORY;
    int ends[2] = {-1, -1}, size = BUFFER;

    *out = NULL;
    if (helper == NULL || paths == NULL || (options->user != NULL && user == NULL) ||
        options->path_count > SS_HELPER_PATHS_MAX)
        goto done;
    status = SS_ERR_IO;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) {
        ss_log_error("socketpair: %s", strerror(errno));
        goto done;
    }
    for (int i = 0; i < 2; i++) {
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
        setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    }
    helper->pid = fork_quietly();
    if (helper->pid == 0)
        enter(ends[1], options, paths, user);
    if (helper->pid < 0) {
        ss_log_error("fork: %s", strerror(errno));
        goto done;
    }
    helper->fd = ends[0];
    ends[0] = -1;
    *out = helper;
    helper = NULL;
    status = SS_OK;
done:
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
    free_paths(paths, options->path_count);
    free(user);
    free(helper);
    return status;
}

/* What comes over the wire, as far as it makes sense. */
static enum ss_wire_result receive(struct ss_helper *helper, struct ss_notice *notice)
{
    struct ss_helper_notice wire;
    int descriptors[SS_WIRE_DESCRIPTORS_MAX];
    size_t len = 0, count = 0;
    enum ss_wire_result result = SS_WIRE_GONE;

    if (!helper->gone)
        result = ss_wire_receive(helper->fd, &wire, sizeof wire, &len, descriptors, &count);
    if (result == SS_WIRE_OK && (len != sizeof wire || count > 1)) {
        for (size_t i = 0; i < count; i++)
            close(descriptors[i]);
        result = SS_WIRE_GONE;
    }
    if (result == SS_WIRE_GONE)
        helper->gone = true;
    if (result == SS_WIRE_OK)
        *notice = (struct ss_notice){.kind = (enum ss_notice_kind)wire.kind,
                                     .id = wire.id,
                                     .error = wire.error,
                                     .descriptor = count != 0 ? descriptors[0] : -1,
                                     .pid = wire.pid,
                                     .exit_code = wire.exit_code,
                                     .signal = wire.signal,
                                     .ran_ms = wire.ran_ms};
    return result;
}

static enum ss_status enqueue(struct ss_helper *helper, const struct ss_notice *notice)
{
    if (helper->from + helper->count == helper->room) {
        size_t room = helper->room != 0 ? helper->room * 2 : 16;
        struct ss_notice *grown = realloc(helper->queue, room * sizeof *grown);

        if (grown == NULL)
            return SS_ERR_MEMORY;
        helper->queue = grown;
        helper->room = room;
    }
    helper->queue[helper->from + helper->count++] = *notice;
    return SS_OK;
}

/* Waits until there is room for a request; what comes meanwhile is taken in, or neither end would
 * ever have room. */
static enum ss_status make_room(struct ss_helper *helper)
{
    struct pollfd waited = {.fd = helper->fd, .events = POLLIN | POLLOUT};
    struct ss_notice notice;
    enum ss_wire_result result;

    if (poll(&waited, 1, -1) < 0 && errno != EINTR)
        return SS_ERR_IO;
    while ((result = receive(helper, &notice)) == SS_WIRE_OK) {
        enum ss_status status = enqueue(helper, &notice);

        if (status != SS_OK)
            return status;
    }
    return result == SS_WIRE_GONE ? SS_ERR_RESET : SS_OK;
}

static enum ss_status ask(struct ss_helper *helper, const struct ss_helper_request *request,
                          const char *text, const int *descriptors, size_t count)
{
    while (true) {
        enum ss_status status;

        switch (ss_wire_send(helper->fd, request, sizeof *request, text, request->text_len,
                             descriptors, count, false)) {
        case SS_WIRE_OK:
            return SS_OK;
        case SS_WIRE_GONE:
            return SS_ERR_RESET; /* reading tells of it, after the last notices */
        case SS_WIRE_NONE:
            status = make_room(helper);
            if (status != SS_OK)
                return status;
        }
    }
}

/* Those that are there; *mask tells for which streams. */
static size_t gather(int gathered[3], const int descriptors[3], uint32_t *mask)
{
    size_t count = 0;

    *mask = 0;
    for (unsigned i = 0; i < 3; i++) {
        if (descriptors[i] >= 0) {
            gathered[count++] = descriptors[i];
            *mask |= 1u << i;
        }
    }
    return count;
}

/* A text with its NUL, where it fits. */
static bool put(char *text, struct ss_helper_request *request, const char *one)
{
    size_t len = strlen(one) + 1;

    if (len > SS_HELPER_TEXT_MAX - request->text_len)
        return false;
    memcpy(text + request->text_len, one, len);
    request->text_len += (uint32_t)len;
    return true;
}

static bool put_texts(char *text, struct ss_helper_request *request,
                      const struct ss_child_options *options)
{
    const char *const last[] = {options->file, options->search, options->directory};

    for (const char *const *one = options->argv; *one != NULL; one++) {
        if (!put(text, request, *one))
            return false;
        request->argc++;
    }
    for (const char *const *one = options->environment; one != NULL && *one != NULL; one++) {
        if (!put(text, request, *one))
            return false;
        request->envc++;
    }
    for (unsigned i = 0; i < 3; i++) {
        if (last[i] == NULL)
            continue;
        if (!put(text, request, last[i]))
            return false;
        request->given |= 1u << i;
    }
    return request->argc != 0;
}

enum ss_status ss_helper_start_child(struct ss_helper *helper, uint32_t id,
                                     const struct ss_child_options *options)
{
    struct ss_helper_request request = {
        .kind = SS_REQUEST_START, .id = id, .keep = options->keep, .leaves = options->leaves};
    char *text = malloc(SS_HELPER_TEXT_MAX);
    volatile char *p = text;
    enum ss_status status = SS_ERR_ARGUMENT;
    int gathered[3];
    size_t count;

    if (text == NULL)
        return SS_ERR_MEMORY;
    count = gather(gathered, options->descriptors, &request.descriptors);
    if (put_texts(text, &request, options))
        status = ask(helper, &request, text, gathered, count);
    for (size_t i = 0; i < request.text_len; i++)
        p[i] = '\0';
    free(text);
    return status;
}

enum ss_status ss_helper_start_again(struct ss_helper *helper, uint32_t id,
                                     const int descriptors[3])
{
    struct ss_helper_request request = {.kind = SS_REQUEST_START_AGAIN, .id = id};
    int gathered[3];
    size_t count = gather(gathered, descriptors, &request.descriptors);

    return ask(helper, &request, NULL, gathered, count);
}

static enum ss_status ask_plainly(struct ss_helper *helper, enum ss_request_kind kind, uint32_t id)
{
    const struct ss_helper_request request = {.kind = kind, .id = id};

    return ask(helper, &request, NULL, NULL, 0);
}

enum ss_status ss_helper_seal(struct ss_helper *helper)
{
    return ask_plainly(helper, SS_REQUEST_SEAL, 0);
}

enum ss_status ss_helper_stop_child(struct ss_helper *helper, uint32_t id)
{
    return ask_plainly(helper, SS_REQUEST_STOP, id);
}

enum ss_status ss_helper_forget_child(struct ss_helper *helper, uint32_t id)
{
    return ask_plainly(helper, SS_REQUEST_FORGET, id);
}

enum ss_status ss_helper_open(struct ss_helper *helper, uint32_t id, size_t index)
{
    const struct ss_helper_request request = {
        .kind = SS_REQUEST_OPEN, .id = id, .index = (uint32_t)index};

    return ask(helper, &request, NULL, NULL, 0);
}

enum ss_status ss_helper_bind(struct ss_helper *helper, uint32_t id,
                              const struct ss_bind_options *options)
{
    const struct ss_helper_request request = {
        .kind = SS_REQUEST_BIND,
        .id = id,
        .bind = (options->udp ? SS_BIND_UDP : 0) | (options->ipv6_only ? SS_BIND_IPV6_ONLY : 0) |
                (options->reuse_port ? SS_BIND_REUSE_PORT : 0) |
                (options->mptcp ? SS_BIND_MPTCP : 0),
        .address = options->address};

    return ask(helper, &request, NULL, NULL, 0);
}

int ss_helper_descriptor(const struct ss_helper *helper)
{
    return helper->fd;
}

enum ss_status ss_helper_read(struct ss_helper *helper, struct ss_notice *notice)
{
    if (helper->count != 0) {
        *notice = helper->queue[helper->from++];
        if (--helper->count == 0)
            helper->from = 0;
        return SS_OK;
    }
    switch (receive(helper, notice)) {
    case SS_WIRE_OK:
        return SS_OK;
    case SS_WIRE_NONE:
        return SS_NEED_INPUT;
    default:
        return SS_ERR_RESET;
    }
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

enum ss_status ss_helper_wait(struct ss_helper *helper, struct ss_notice *notice,
                              uint32_t timeout_ms)
{
    uint64_t end = now_ms() + timeout_ms;

    while (true) {
        struct pollfd waited = {.fd = helper->fd, .events = POLLIN};
        enum ss_status status = ss_helper_read(helper, notice);
        uint64_t now = now_ms();

        if (status != SS_NEED_INPUT)
            return status;
        if (now >= end)
            return SS_ERR_TIMEOUT;
        if (poll(&waited, 1, (int)(end - now)) < 0 && errno != EINTR)
            return SS_ERR_IO;
    }
}

void ss_helper_end(struct ss_helper *helper)
{
    uint64_t end = now_ms() + AWAIT_MS;
    struct ss_notice notice;

    if (helper == NULL)
        return;
    /* Our end stays open for a while: its other end closes when the helper has ended. */
    shutdown(helper->fd, SHUT_WR);
    while (!helper->gone && now_ms() < end) {
        if (ss_helper_wait(helper, &notice, (uint32_t)(end - now_ms())) == SS_OK &&
            notice.descriptor >= 0)
            close(notice.descriptor);
    }
    /* It may have more rights than we have left; then it is not waited for any longer. */
    if (helper->gone || kill(helper->pid, SIGKILL) == 0)
        while (waitpid(helper->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    close(helper->fd);
    free(helper->queue);
    free(helper);
}
