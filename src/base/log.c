/* Writes log lines: one system call each, from a buffer on the stack. */
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <pthread.h>
#include <unistd.h>

#define LINE_MAX_LEN    1024 /* with prefix and line end; what is longer is cut */
#define LIMIT_WINDOW_MS 60000
#define LIMIT_LINES     10

static atomic_int current_level = SS_LOG_INFO;
static atomic_bool with_timestamps = true;
static _Atomic(ss_log_sink_fn *) current_sink;

/* Whether stderr is a terminal is asked once, and counts for stdout too, as it always has. */
enum { COLOUR_UNKNOWN, COLOUR_ON, COLOUR_OFF };
static atomic_int colour;

static const struct {
    const char *name;
    const char *colour;
    int descriptor;
} levels[] = {
    [SS_LOG_ERROR] = {"ERROR", "\033[01;35m", STDERR_FILENO},
    [SS_LOG_WARN] = {"WARN", "\033[01;33m", STDERR_FILENO},
    [SS_LOG_INFO] = {"INFO", "\033[01;32m", STDOUT_FILENO},
    [SS_LOG_DEBUG] = {"DEBUG", "\033[01;34m", STDOUT_FILENO},
};

void ss_log_set_level(enum ss_log_level level)
{
    atomic_store_explicit(&current_level, (int)level, memory_order_relaxed);
}

enum ss_log_level ss_log_get_level(void)
{
    return (enum ss_log_level)atomic_load_explicit(&current_level, memory_order_relaxed);
}

void ss_log_set_sink(ss_log_sink_fn *sink)
{
    atomic_store(&current_sink, sink);
}

void ss_log_set_timestamps(bool on)
{
    atomic_store(&with_timestamps, on);
}

static bool colour_wanted(void)
{
    int wanted = atomic_load(&colour);

    if (wanted == COLOUR_UNKNOWN) {
        wanted = isatty(STDERR_FILENO) ? COLOUR_ON : COLOUR_OFF;
        atomic_store(&colour, wanted);
    }
    return wanted == COLOUR_ON;
}

/* Appends what fits to a text of *len bytes. The NUL needs a byte of its own. */
static void append(char *text, size_t cap, size_t *len, const char *more)
{
    size_t more_len = strlen(more);

    if (more_len > cap - 1 - *len)
        more_len = cap - 1 - *len;
    memcpy(text + *len, more, more_len);
    *len += more_len;
    text[*len] = '\0';
}

static void append_time(char *text, size_t cap, size_t *len)
{
    char stamp[32];
    time_t now = time(NULL);
    struct tm local;

    if (localtime_r(&now, &local) != NULL &&
        strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S ", &local) != 0)
        append(text, cap, len, stamp);
}

/* A name or a file may hold anything: a line end or an escape would forge lines or drive the
 * terminal. */
static void hide_controls(char *text)
{
    for (; *text != '\0'; text++)
        if (((unsigned char)*text < ' ' && *text != '\t') || *text == 0x7f)
            *text = '?';
}

/* A pipe or terminal that takes nothing now loses the line: a log must not stop the relay. */
static void write_all(int descriptor, const char *bytes, size_t len)
{
    struct pollfd room = {.fd = descriptor, .events = POLLOUT};

    if (poll(&room, 1, 0) == 0)
        return;
    while (len > 0) {
        ssize_t written = write(descriptor, bytes, len);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return;
        bytes += written;
        len -= (size_t)written;
    }
}

/* `hidden`: how many lines of the kind were left out before this one. */
__attribute__((format(printf, 2, 0))) static void emit(enum ss_log_level level, const char *format,
                                                       va_list arguments, uint32_t hidden)
{
    const int saved_errno = errno; /* a caller may still want to look at it */
    ss_log_sink_fn *sink = atomic_load(&current_sink);
    char line[LINE_MAX_LEN + 1]; /* and a NUL */
    size_t cap = LINE_MAX_LEN;   /* the line end always fits */
    size_t len = 0;
    size_t text_at;
    bool coloured = sink == NULL && colour_wanted();

    if (sink == NULL) {
        if (coloured)
            append(line, cap, &len, levels[level].colour);
        append(line, cap, &len, " ");
        if (atomic_load(&with_timestamps))
            append_time(line, cap, &len);
        append(line, cap, &len, levels[level].name);
        append(line, cap, &len, ": ");
        if (coloured)
            append(line, cap, &len, "\033[0m");
    }

    text_at = len;
    line[len] = '\0';
    if (hidden > 0) {
        char count[48];

        snprintf(count, sizeof count, "(%lu more of these left out) ", (unsigned long)hidden);
        append(line, cap, &len, count);
    }
    errno = saved_errno;
    (void)vsnprintf(line + len, cap - len, format, arguments);
    hide_controls(line + text_at);

    if (sink != NULL) {
        sink(level, line + text_at);
    } else {
        len = strlen(line);
        line[len++] = '\n';
        write_all(levels[level].descriptor, line, len);
    }
    errno = saved_errno;
}

void ss_log(enum ss_log_level level, const char *format, ...)
{
    va_list arguments;

    if (level > ss_log_get_level())
        return;
    va_start(arguments, format);
    emit(level, format, arguments, 0);
    va_end(arguments);
}

/*
 * Whether one more line may be shown now. Ten in a window; a window that follows one with hidden
 * lines has shown its share when it has said how many those were.
 */
static bool limit_allows(struct ss_log_limit *limit, uint64_t now_ms, uint32_t *hidden)
{
    /* One lock for all kinds: it is held for a few instructions. */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    bool allowed;

    *hidden = 0;
    pthread_mutex_lock(&lock);
    /* Loops read their clocks at different moments, so `now_ms` may lie before the start. */
    if (limit->shown == 0 ||
        (now_ms > limit->window_start_ms && now_ms - limit->window_start_ms >= LIMIT_WINDOW_MS)) {
        *hidden = limit->hidden;
        limit->window_start_ms = now_ms;
        limit->shown = limit->hidden > 0 ? LIMIT_LINES - 1 : 0;
        limit->hidden = 0;
    }
    allowed = limit->shown < LIMIT_LINES;
    if (allowed)
        limit->shown++;
    else if (limit->hidden < UINT32_MAX)
        limit->hidden++;
    pthread_mutex_unlock(&lock);
    return allowed;
}

void ss_log_limited(struct ss_log_limit *limit, uint64_t now_ms, enum ss_log_level level,
                    const char *format, ...)
{
    va_list arguments;
    uint32_t hidden;

    if (level > ss_log_get_level() || !limit_allows(limit, now_ms, &hidden))
        return;
    va_start(arguments, format);
    emit(level, format, arguments, hidden);
    va_end(arguments);
}
