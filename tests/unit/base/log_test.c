/* Log lines: their form, where they go, and how many. */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the standard streams got while they were caught: each write is a message of its own. */
struct caught {
    int saved[2]; /* of stdout and stderr */
    int ours[2];  /* where their bytes come out */
    char text[2048];
};

static void catch_output(struct caught *caught)
{
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        int pair[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
        caught->ours[i] = pair[0];
        caught->saved[i] = dup(i + 1);
        assert_true(caught->saved[i] >= 0);
        assert_int_equal(dup2(pair[1], i + 1), i + 1);
        close(pair[1]);
    }
}

static void restore_output(struct caught *caught)
{
    for (int i = 0; i < 2; i++) {
        dup2(caught->saved[i], i + 1);
        close(caught->saved[i]);
        close(caught->ours[i]);
    }
}

/* The next write to `stream` (1 or 2), or NULL when there was none. */
static const char *next_write(struct caught *caught, int stream)
{
    ssize_t len = recv(caught->ours[stream - 1], caught->text, sizeof caught->text - 1, 0);

    if (len <= 0)
        return NULL;
    caught->text[len] = '\0';
    return caught->text;
}

static int restore_defaults(void **state)
{
    (void)state;
    ss_log_set_level(SS_LOG_INFO);
    ss_log_set_sink(NULL);
    ss_log_set_timestamps(true);
    return 0;
}

/* First in the group: whether there is colour is decided with the first line of a process. */
static void lines_are_coloured_on_a_terminal(void **state)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    char text[512];
    size_t len = 0;
    ssize_t got;
    pid_t child;

    (void)state;
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        skip();
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);

        dup2(terminal, STDOUT_FILENO);
        dup2(terminal, STDERR_FILENO);
        ss_log_set_timestamps(false);
        ss_log_info("fine");
        ss_log_error("bad");
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    while (len < sizeof text - 1 && (got = read(master, text + len, sizeof text - 1 - len)) > 0) {
        len += (size_t)got;
        text[len] = '\0';
        if (strstr(text, "bad\r\n") != NULL)
            break;
    }
    text[len] = '\0';
    close(master);
    assert_string_equal(text, "\033[01;32m INFO: \033[0mfine\r\n\033[01;35m ERROR: \033[0mbad\r\n");
}

static void a_line_has_a_blank_the_local_time_and_the_level(void **state)
{
    struct caught caught;
    char before[64], after[64];
    time_t now;
    struct tm local;
    const char *line;

    (void)state;
    setenv("TZ", "XYZ-05:30", 1);
    tzset();
    catch_output(&caught);
    now = time(NULL);
    strftime(before, sizeof before, " %Y-%m-%d %H:%M:%S INFO: port 80\n",
             localtime_r(&now, &local));
    ss_log_info("port %d", 80);
    now = time(NULL);
    strftime(after, sizeof after, " %Y-%m-%d %H:%M:%S INFO: port 80\n", localtime_r(&now, &local));
    line = next_write(&caught, 1);
    restore_output(&caught);
    unsetenv("TZ");
    tzset();
    assert_non_null(line);
    if (strcmp(line, before) != 0)
        assert_string_equal(line, after);
}

static void each_level_has_its_stream_and_one_write_a_line(void **state)
{
    struct caught caught;

    (void)state;
    ss_log_set_timestamps(false);
    ss_log_set_level(SS_LOG_DEBUG);
    catch_output(&caught);
    ss_log_error("e");
    ss_log_warn("w");
    ss_log_info("i");
    ss_log_debug("d");
    assert_string_equal(next_write(&caught, 2), " ERROR: e\n");
    assert_string_equal(next_write(&caught, 2), " WARN: w\n");
    assert_string_equal(next_write(&caught, 1), " INFO: i\n");
    assert_string_equal(next_write(&caught, 1), " DEBUG: d\n");
    assert_null(next_write(&caught, 1));
    assert_null(next_write(&caught, 2));
    restore_output(&caught);
}

static void what_is_below_the_level_is_not_shown(void **state)
{
    struct caught caught;

    (void)state;
    ss_log_set_timestamps(false);
    catch_output(&caught);
    for (int level = SS_LOG_ERROR; level <= SS_LOG_DEBUG; level++) {
        ss_log_set_level((enum ss_log_level)level);
        assert_int_equal(ss_log_get_level(), level);
        for (int of = SS_LOG_ERROR; of <= SS_LOG_DEBUG; of++) {
            ss_log((enum ss_log_level)of, "x");
            assert_int_equal(next_write(&caught, of <= SS_LOG_WARN ? 2 : 1) != NULL, of <= level);
        }
    }
    restore_output(&caught);
}

static void a_long_line_is_cut_and_still_ends(void **state)
{
    struct caught caught;
    char text[1500];
    const char *line;

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    catch_output(&caught);
    for (size_t len = 980; len < sizeof text; len++) {
        ss_log_error("%s", text + sizeof text - 1 - len);
        line = next_write(&caught, 2);
        assert_non_null(line);
        assert_true(strlen(line) <= 1024);
        assert_true(strlen(line) == 1024 ||
                    strlen(line) == len + strlen(" 2026-01-31 12:00:00 ERROR: \n"));
        assert_int_equal(line[strlen(line) - 1], '\n');
        assert_null(next_write(&caught, 2));
    }
    restore_output(&caught);
}

static void control_bytes_forge_no_line_and_no_colour(void **state)
{
    struct caught caught;

    (void)state;
    ss_log_set_timestamps(false);
    catch_output(&caught);
    ss_log_info("a\n INFO: b\r\033[31m\x7f\tc \xc3\xbc");
    assert_string_equal(next_write(&caught, 1), " INFO: a? INFO: b??[31m?\tc \xc3\xbc\n");
    restore_output(&caught);
}

static void errno_is_left_alone_and_may_be_printed(void **state)
{
    struct caught caught;

    (void)state;
    ss_log_set_timestamps(false);
    catch_output(&caught);
    errno = ENOENT;
    ss_log_info("%m");
    assert_int_equal(errno, ENOENT);
    assert_string_equal(next_write(&caught, 1), " INFO: No such file or directory\n");
    restore_output(&caught);
}

static char sink_text[2048];
static enum ss_log_level sink_level;

static void sink(enum ss_log_level level, const char *text)
{
    sink_level = level;
    snprintf(sink_text, sizeof sink_text, "%s", text);
}

static void a_sink_gets_the_bare_text_instead(void **state)
{
    struct caught caught;

    (void)state;
    catch_output(&caught);
    ss_log_set_sink(sink);
    ss_log_warn("number %d\n", 7);
    assert_int_equal(sink_level, SS_LOG_WARN);
    assert_string_equal(sink_text, "number 7?");
    sink_text[0] = '\0';
    ss_log_debug("not shown");
    assert_string_equal(sink_text, "");
    assert_null(next_write(&caught, 1));
    assert_null(next_write(&caught, 2));
    ss_log_set_sink(NULL);
    ss_log_info("back");
    assert_non_null(next_write(&caught, 1));
    restore_output(&caught);
}

static void a_stream_that_is_gone_or_full_does_no_harm(void **state)
{
    struct caught caught;
    const char *line;
    int lines = 0;

    (void)state;
    catch_output(&caught);
    for (int i = 0; i < 5000; i++) /* nobody reads, and it does not block */
        ss_log_info("line %d", i);
    while ((line = next_write(&caught, 1)) != NULL) {
        assert_int_equal(line[strlen(line) - 1], '\n');
        lines++;
    }
    assert_in_range(lines, 1, 4999);
    close(STDOUT_FILENO);
    errno = 0;
    ss_log_info("to nowhere");
    assert_int_equal(errno, 0);
    restore_output(&caught);
}

static struct ss_log_limit shared_limit;

static void *log_many(void *unused)
{
    (void)unused;
    for (int i = 0; i < 500; i++)
        ss_log_limited(&shared_limit, 1000, SS_LOG_INFO, "%s",
                       "0123456789012345678901234567890123");
    return NULL;
}

static void threads_share_a_limit_and_never_mix_lines(void **state)
{
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    struct caught caught;
    const char *line;
    int lines = 0;

    (void)state;
    ss_log_set_timestamps(false);
    catch_output(&caught);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, log_many, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    while ((line = next_write(&caught, 1)) != NULL) {
        assert_string_equal(line, " INFO: 0123456789012345678901234567890123\n");
        lines++;
    }
    restore_output(&caught);
    assert_int_equal(lines, 10);
    assert_int_equal(shared_limit.hidden, THREADS * 500 - 10);
}

/* How many of `count` lines at `now_ms` are shown. */
static int shown_of(int count, struct ss_log_limit *limit, uint64_t now_ms)
{
    int shown = 0;

    for (int i = 0; i < count; i++) {
        sink_text[0] = '\0';
        ss_log_limited(limit, now_ms, SS_LOG_INFO, "kind %d", 3);
        shown += sink_text[0] != '\0';
    }
    return shown;
}

static void a_kind_of_message_is_held_to_ten_a_minute_then_one(void **state)
{
    struct ss_log_limit limit = {0};

    (void)state;
    ss_log_set_sink(sink);
    assert_int_equal(shown_of(25, &limit, 5000), 10);
    assert_int_equal(shown_of(5, &limit, 64999), 0);
    assert_int_equal(shown_of(1, &limit, 65000), 1); /* the next minute: says how many */
    assert_string_equal(sink_text, "(20 more of these left out) kind 3");
    assert_int_equal(shown_of(7, &limit, 66000), 0);
    assert_int_equal(shown_of(1, &limit, 125000), 1);
    assert_string_equal(sink_text, "(7 more of these left out) kind 3");
    assert_int_equal(shown_of(30, &limit, 185000), 10); /* a minute without any: from the start */
    assert_string_equal(sink_text, "");
}

static void a_limit_counts_only_what_passes_the_level(void **state)
{
    struct ss_log_limit limit = {0};

    (void)state;
    ss_log_set_sink(sink);
    ss_log_set_level(SS_LOG_ERROR);
    assert_int_equal(shown_of(50, &limit, 0), 0);
    ss_log_set_level(SS_LOG_INFO);
    assert_int_equal(shown_of(50, &limit, 0), 10);
}

static void a_clock_that_lags_a_little_opens_no_new_minute(void **state)
{
    struct ss_log_limit limit = {0};

    (void)state;
    ss_log_set_sink(sink);
    assert_int_equal(shown_of(9, &limit, 10000), 9);
    assert_int_equal(shown_of(9, &limit, 9998), 1);
    assert_int_equal(shown_of(9, &limit, 0), 0);
}

int log_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(lines_are_coloured_on_a_terminal, restore_defaults),
        cmocka_unit_test_teardown(a_line_has_a_blank_the_local_time_and_the_level,
                                  restore_defaults),
        cmocka_unit_test_teardown(each_level_has_its_stream_and_one_write_a_line, restore_defaults),
        cmocka_unit_test_teardown(what_is_below_the_level_is_not_shown, restore_defaults),
        cmocka_unit_test_teardown(a_long_line_is_cut_and_still_ends, restore_defaults),
        cmocka_unit_test_teardown(control_bytes_forge_no_line_and_no_colour, restore_defaults),
        cmocka_unit_test_teardown(errno_is_left_alone_and_may_be_printed, restore_defaults),
        cmocka_unit_test_teardown(a_sink_gets_the_bare_text_instead, restore_defaults),
        cmocka_unit_test_teardown(a_stream_that_is_gone_or_full_does_no_harm, restore_defaults),
        cmocka_unit_test_teardown(threads_share_a_limit_and_never_mix_lines, restore_defaults),
        cmocka_unit_test_teardown(a_kind_of_message_is_held_to_ten_a_minute_then_one,
                                  restore_defaults),
        cmocka_unit_test_teardown(a_limit_counts_only_what_passes_the_level, restore_defaults),
        cmocka_unit_test_teardown(a_clock_that_lags_a_little_opens_no_new_minute, restore_defaults),
    };

    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
