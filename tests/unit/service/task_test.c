/* Whole programs, as far as they get without a socket: what they are asked for, and exit codes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "service/service.h"

static char folder[] = "/tmp/ss-task-XXXXXX";
static char config_path[64];

static int make_folder(void **state)
{
    (void)state;
    alarm(60); /* a program that serves shows as waiting for ever */
    if (mkdtemp(folder) == NULL)
        return 1;
    snprintf(config_path, sizeof config_path, "%s/c.json", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    alarm(0);
    unlink(config_path);
    return rmdir(folder);
}

/* The exit code, with the texts left out. `task` may be NULL. */
static int run(enum ss_program program, const char *json, const char *task)
{
    char words[4][80] = {"program", "-c", "", ""};
    char *argv[] = {words[0], words[1], words[2], task != NULL ? words[3] : NULL, NULL};
    FILE *file = fopen(config_path, "w");
    int how = 0;
    pid_t child;

    assert_non_null(file);
    fputs(json, file);
    assert_int_equal(fclose(file), 0);
    snprintf(words[2], sizeof words[2], "%s", config_path);
    snprintf(words[3], sizeof words[3], "%s", task != NULL ? task : "");
    fflush(stdout);
    child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_WRONLY);

        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        _exit(ss_service_main(program, task != NULL ? 4 : 3, argv));
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    return WEXITSTATUS(how);
}

#define KEYS "\"password\":\"x\",\"method\":\"aes-128-gcm\""

static void what_does_not_start_does_not_pass_the_check(void **state)
{
    static const struct {
        enum ss_program program;
        const char *json;
    } cases[] = {
        {SS_PROGRAM_LOCAL,
         "{\"servers\":[{\"server\":\"192.0.2.1\",\"server_port\":1,\"mode\":\"tcp_only\"," KEYS
         "}],\"local_port\":1080,\"mode\":\"tcp_and_udp\"}"},
        {SS_PROGRAM_LOCAL,
         "{\"servers\":[{\"server\":\"192.0.2.1\",\"server_port\":1,\"mode\":\"udp_only\"," KEYS
         "}],\"locals\":[{\"local_port\":1080,\"mode\":\"tcp_only\"}]}"},
        {SS_PROGRAM_TUNNEL,
         "{\"servers\":[{\"server\":\"192.0.2.1\",\"server_port\":1,\"mode\":\"tcp_only\"," KEYS
         "}],\"locals\":[{\"local_port\":1080,\"mode\":\"udp_only\",\"protocol\":\"tunnel\","
         "\"forward_address\":\"192.0.2.2\",\"forward_port\":53}]}"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(run(cases[i].program, cases[i].json, NULL), 255);
        assert_int_equal(run(cases[i].program, cases[i].json, "--check-config"), 255);
    }
}

static void what_starts_passes_the_check(void **state)
{
    (void)state;

    /* The name is left to the start: a check asks nobody. */
    assert_int_equal(run(SS_PROGRAM_SERVER,
                         "{\"server\":\"nosuch.invalid\",\"server_port\":1," KEYS "}",
                         "--check-config"),
                     0);
    assert_int_equal(run(SS_PROGRAM_LOCAL,
                         "{\"servers\":[{\"server\":\"192.0.2.1\",\"server_port\":1,"
                         "\"mode\":\"tcp_only\"," KEYS "},{\"server\":\"192.0.2.2\","
                         "\"server_port\":1,\"mode\":\"udp_only\"," KEYS "}],"
                         "\"local_port\":1080,\"mode\":\"tcp_and_udp\"}",
                         "--check-config"),
                     0);
}

int task_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_start_does_not_pass_the_check),
        cmocka_unit_test(what_starts_passes_the_check),
    };

    return cmocka_run_group_tests_name("tasks", tests, make_folder, remove_folder);
}
