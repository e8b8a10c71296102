/* Limits and users. What changes the process is done in a child. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/process.h"
#include "sys/rights.h"

/* The child's exit code. */
static int in_child(int (*body)(void))
{
    pid_t child = fork();
    int how = 0;

    assert_true(child >= 0);
    if (child == 0)
        _exit(body());
    assert_int_equal(waitpid(child, &how, 0), child);
    return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

static void there_is_a_processor(void **state)
{
    (void)state;
    assert_true(ss_process_cpu_count() >= 1);
}

static int raise_to_hard(void)
{
    struct rlimit limit;
    uint32_t now;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_max = limit.rlim_max > 500 ? 500 : limit.rlim_max;
    limit.rlim_cur = 100;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 1;
    if (ss_process_raise_descriptors(0, &now) != SS_OK || now != limit.rlim_max)
        return 2;
    if (ss_process_raise_descriptors(300, &now) != SS_OK || now != 300)
        return 3;
    getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur == 300 && limit.rlim_max == 300 ? 0 : 4;
}

static void descriptors_go_to_the_hard_limit_or_to_what_is_asked(void **state)
{
    (void)state;
    assert_int_equal(in_child(raise_to_hard), 0);
}

static void a_user_that_is_none(void **state)
{
    const char *error_text;
    (void)state;

    assert_int_equal(ss_process_switch_user("nosuchuser", 0, &error_text), SS_ERR_NOT_FOUND);
    assert_int_equal(ss_process_switch_user("4294967295", 0, &error_text), SS_ERR_NOT_FOUND);
    assert_int_equal(ss_process_switch_user("65534x", 0, &error_text), SS_ERR_NOT_FOUND);
    assert_int_equal(ss_process_switch_user("", 0, &error_text), SS_ERR_NOT_FOUND);
}

/* The sets of capabilities that hold, as the system writes them. */
static bool has_only(uint64_t capabilities)
{
    static const char *const sets[] = {"CapInh:", "CapPrm:", "CapEff:", "CapAmb:"};
    FILE *file = fopen("/proc/self/status", "r");
    unsigned good = 0;
    char line[256];

    if (file == NULL)
        return true; /* a system without them */
    while (fgets(line, sizeof line, file) != NULL)
        for (unsigned i = 0; i < 4; i++)
            if (strncmp(line, sets[i], strlen(sets[i])) == 0 &&
                strtoull(line + strlen(sets[i]), NULL, 16) == (i == 1 || i == 2 ? capabilities : 0))
                good++;
    fclose(file);
    return good == 4;
}

static int become(const char *user, unsigned rights, uint64_t capabilities)
{
    const char *error_text;

    if (ss_process_switch_user(user, rights, &error_text) != SS_OK)
        return 1;
    if (getuid() != 65534 || geteuid() != 65534 || getgid() != 65534 || ss_process_is_root())
        return 2;
    if (!has_only(capabilities))
        return 4;
    return setuid(0) == 0 ? 3 : 0;
}

static int become_by_name(void)
{
    return become("nobody", 0, 0);
}

static int become_by_number(void)
{
    return become("65534", 0, 0);
}

/* 10: CAP_NET_BIND_SERVICE, 13: CAP_NET_RAW. */
static int become_with_rights(void)
{
    if (become("nobody", SS_RIGHT_FOREIGN_ADDRESS | SS_RIGHT_LOW_PORT,
               UINT64_C(1) << 10 | UINT64_C(1) << 13) != 0)
        return 1;
    /* Another right of root's, which must have gone with the user. */
    return chroot("/") == 0 ? 2 : 0;
}

static int become_root_without_right(void)
{
    const char *error_text = NULL;

    return ss_process_switch_user("root", 0, &error_text) == SS_ERR_PERMISSION && error_text != NULL
               ? 0
               : 1;
}

/* Some containers give root less than these. */
static bool holds_rights(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    uint64_t needed = UINT64_C(1) << 10 | UINT64_C(1) << 13, held = 0;
    char line[256];

    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "CapEff:", 7) == 0)
            held = strtoull(line + 7, NULL, 16);
    if (file != NULL)
        fclose(file);
    return (held & needed) == needed;
}

static void a_user_by_name_and_by_number(void **state)
{
    (void)state;

    if (geteuid() == 0) {
        assert_int_equal(in_child(become_by_name), 0);
        assert_int_equal(in_child(become_by_number), 0);
        if (holds_rights())
            assert_int_equal(in_child(become_with_rights), 0);
    } else {
        assert_int_equal(in_child(become_root_without_right), 0);
    }
}

int process_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_is_a_processor),
        cmocka_unit_test(descriptors_go_to_the_hard_limit_or_to_what_is_asked),
        cmocka_unit_test(a_user_that_is_none),
        cmocka_unit_test(a_user_by_name_and_by_number),
    };

    return cmocka_run_group_tests_name("sys: process", tests, NULL, NULL);
}
