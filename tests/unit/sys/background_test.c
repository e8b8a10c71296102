/* Going to the background. A test stands in for the shell, a child of it for the program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/process.h"

static char folder[] = "/tmp/ss-background-XXXXXX";
static char pid_path[64];

static int make_folder(void **state)
{
    (void)state;
    alarm(60); /* a fault here shows as waiting for ever */
    if (mkdtemp(folder) == NULL)
        return 1;
    snprintf(pid_path, sizeof pid_path, "%s/p.pid", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    alarm(0);
    unlink(pid_path);
    return rmdir(folder);
}

static bool root_is_closed;

/* Stands in front of the library's, so that the way to the root directory can be closed. */
int chdir(const char *path)
{
    if (root_is_closed && strcmp(path, "/") == 0) {
        errno = EACCES;
        return -1;
    }
    return (int)syscall(SYS_chdir, path);
}

static bool streams_are_null(void)
{
    struct stat null, stream;

    if (stat("/dev/null", &null) != 0)
        return false;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &stream) != 0 || stream.st_rdev != null.st_rdev)
            return false;
    return true;
}

/* How the program in the background ends. */
enum ending { ENDS_AT_ONCE, ENDS_OUT_OF_ROOT, SERVES, SERVES_WELL };

struct program {
    int exit_code; /* of what the shell started */
    int hold;      /* closing it ends the one in the background */
    int gone;      /* at its end when that one has gone */
};

/* The end that `gone` was made with is open in all of them, and closed by their exit. */
static _Noreturn void act(const char *path, enum ending ending, int hold)
{
    struct ss_background background;
    const char *error_text = "";
    int exit_code = 99;
    char byte;

    root_is_closed = ending == ENDS_OUT_OF_ROOT;
    switch (ss_background_enter(&background, path, &error_text, &exit_code)) {
    case SS_BACKGROUND_FAILED:
        _exit(255);
    case SS_BACKGROUND_PARENT:
        _exit(exit_code);
    case SS_BACKGROUND_CHILD:
        break;
    }
    if (ending == ENDS_AT_ONCE)
        _exit(7);
    if (ending == ENDS_OUT_OF_ROOT)
        _exit(streams_are_null() ? 8 : 9);
    ss_background_ready(&background);
    if (read(hold, &byte, 1) == 0 && ending == SERVES_WELL)
        ss_background_leave(&background);
    _exit(0);
}

/* Starts one and waits for what the shell would wait for. */
static struct program start(const char *path, enum ending ending)
{
    int hold[2], gone[2], how = 0;
    struct program program;
    pid_t child;

    assert_int_equal(pipe(hold), 0);
    assert_int_equal(pipe(gone), 0);
    fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(hold[1]);
        close(gone[0]);
        act(path, ending, hold[0]);
    }
    close(hold[0]);
    close(gone[1]);
    assert_int_equal(waitpid(child, &how, 0), child);
    program.exit_code = WIFEXITED(how) ? WEXITSTATUS(how) : -1;
    program.hold = hold[1];
    program.gone = gone[0];
    return program;
}

/* Descriptors of a process that ends close one after the other: that of the lock may be the last.
 */
static void await_unlocked(void)
{
    int fd = open(pid_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* it may be a pipe */

    if (fd < 0)
        return;
    assert_int_equal(flock(fd, LOCK_EX), 0);
    close(fd);
}

static void end(struct program *program)
{
    char byte;

    close(program->hold);
    assert_int_equal(read(program->gone, &byte, 1), 0); /* waits for its end */
    close(program->gone);
    await_unlocked();
}

static pid_t pid_in_file(void)
{
    char text[64] = "";
    FILE *file = fopen(pid_path, "r");

    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    assert_null(strchr(text, '\n'));
    return (pid_t)atol(text);
}

static void the_file_has_the_number_and_goes_at_an_orderly_end(void **state)
{
    struct program program = start(pid_path, SERVES_WELL);
    pid_t pid;
    (void)state;

    assert_int_equal(program.exit_code, 0);
    pid = pid_in_file();
    assert_int_equal(kill(pid, 0), 0);
    assert_int_equal(getsid(pid), pid);
    end(&program);
    assert_int_not_equal(access(pid_path, F_OK), 0);
}

static void a_stale_file_is_replaced(void **state)
{
    struct program program;
    FILE *file = fopen(pid_path, "w");
    (void)state;

    assert_non_null(file);
    fprintf(file, "99999999999\nolder text\n");
    fclose(file);
    program = start(pid_path, SERVES);
    assert_int_equal(program.exit_code, 0);
    assert_int_equal(kill(pid_in_file(), SIGKILL), 0);
    end(&program);
    assert_int_equal(access(pid_path, F_OK), 0);

    program = start(pid_path, SERVES_WELL);
    assert_int_equal(program.exit_code, 0);
    end(&program);
}

static void a_file_of_a_process_that_runs_is_not(void **state)
{
    struct program first = start(pid_path, SERVES_WELL), second;
    pid_t pid = pid_in_file();
    (void)state;

    second = start(pid_path, SERVES_WELL);
    assert_int_equal(second.exit_code, 255);
    assert_int_equal(pid_in_file(), pid);
    end(&first); /* which has the lock that the end of either waits for */
    end(&second);
}

static void who_started_it_learns_that_it_did_not_serve(void **state)
{
    struct program program = start(pid_path, ENDS_AT_ONCE);
    (void)state;

    assert_int_equal(program.exit_code, 7);
    end(&program);
    assert_int_not_equal(access(pid_path, F_OK), 0);
}

static void the_streams_go_though_the_folder_does_not(void **state)
{
    struct program program = start(pid_path, ENDS_OUT_OF_ROOT);
    (void)state;

    assert_int_equal(program.exit_code, 8);
    end(&program);
}

static void a_pipe_that_nobody_reads_is_not_waited_for(void **state)
{
    struct program program;
    (void)state;

    assert_int_equal(mkfifo(pid_path, 0600), 0);
    program = start(pid_path, SERVES);
    assert_int_equal(program.exit_code, 255);
    end(&program);
    assert_int_equal(unlink(pid_path), 0);
}

static void a_file_that_can_not_be_written_starts_nothing(void **state)
{
    struct program program = start("/nosuch/folder/p.pid", SERVES);
    (void)state;

    assert_int_equal(program.exit_code, 255);
    end(&program);
}

static void a_relative_path_is_that_of_the_start(void **state)
{
    char before[256];
    struct program program;
    (void)state;

    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    program = start("p.pid", SERVES_WELL);
    assert_int_equal(chdir(before), 0);
    assert_int_equal(program.exit_code, 0);
    assert_int_equal(kill(pid_in_file(), 0), 0);
    end(&program);
    assert_int_not_equal(access(pid_path, F_OK), 0);
}

static void a_device_serves_as_no_file(void **state)
{
    struct program one = start("/dev/null", SERVES_WELL), other = start("/dev/null", SERVES_WELL);
    struct stat about;
    (void)state;

    assert_int_equal(one.exit_code, 0);
    assert_int_equal(other.exit_code, 0);
    end(&other); /* the later one first: it holds what the other waits for */
    end(&one);
    assert_int_equal(stat("/dev/null", &about), 0);
    assert_true(S_ISCHR(about.st_mode));
}

int background_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_has_the_number_and_goes_at_an_orderly_end),
        cmocka_unit_test(a_stale_file_is_replaced),
        cmocka_unit_test(a_file_of_a_process_that_runs_is_not),
        cmocka_unit_test(who_started_it_learns_that_it_did_not_serve),
        cmocka_unit_test(the_streams_go_though_the_folder_does_not),
        cmocka_unit_test(a_pipe_that_nobody_reads_is_not_waited_for),
        cmocka_unit_test(a_file_that_can_not_be_written_starts_nothing),
        cmocka_unit_test(a_relative_path_is_that_of_the_start),
        cmocka_unit_test(a_device_serves_as_no_file),
    };

    return cmocka_run_group_tests_name("sys: background", tests, make_folder, remove_folder);
}
