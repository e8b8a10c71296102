/*
 * One line a message: " 2026-01-31 12:00:00 INFO: text". INFO and DEBUG go to stdout, WARN and
 * ERROR to stderr, each flushed; or all to a sink that the service sets (syslog). Thread-safe.
 */
#ifndef SS_BASE_LOG_H
#define SS_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum ss_log_level { SS_LOG_ERROR, SS_LOG_WARN, SS_LOG_INFO, SS_LOG_DEBUG };

/* Gets each line that passes the level, without prefix and line end. Control bytes in a message are
 * shown as `?`, and a line is cut at 1,024 bytes. */
typedef void ss_log_sink_fn(enum ss_log_level level, const char *text);

void ss_log_set_level(enum ss_log_level level);
enum ss_log_level ss_log_get_level(void);

/* NULL: back to stdout and stderr. */
void ss_log_set_sink(ss_log_sink_fn *sink);

/* Off under a journal that stamps lines itself. Default on. */
void ss_log_set_timestamps(bool on);

void ss_log(enum ss_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define ss_log_error(...) ss_log(SS_LOG_ERROR, __VA_ARGS__)
#define ss_log_warn(...)  ss_log(SS_LOG_WARN, __VA_ARGS__)
#define ss_log_info(...)  ss_log(SS_LOG_INFO, __VA_ARGS__)
/* Costs a comparison when it is not shown. */
#define ss_log_debug(...)                       \
    do {                                        \
        if (ss_log_get_level() >= SS_LOG_DEBUG) \
            ss_log(SS_LOG_DEBUG, __VA_ARGS__);  \
    } while (0)

/*
 * Holds a kind of message to a few lines a minute (10, then one a minute that says how many were
 * left out). Zero-initialised, one for each kind; thread-safe, and `now_ms` is passed in.
 */
struct ss_log_limit {
    uint64_t window_start_ms;
    uint32_t shown;
    uint32_t hidden;
};

/* As ss_log, within the limit. */
void ss_log_limited(struct ss_log_limit *limit, uint64_t now_ms, enum ss_log_level level,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
