/* The helper: children, files and ports. /bin/sh plays the children. */
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
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/helper.h"
#include "sys/helper_internal.h"
#include "sys/process.h"

#define WAIT_MS 20000

static struct ss_helper *begin_with(const char *const *paths, size_t count, const char *user)
{
    const struct ss_helper_options options = {.paths = paths, .path_count = count, .user = user};
    struct ss_helper *helper;

    alarm(120); /* a fault here shows as waiting for ever */
    assert_int_equal(ss_helper_start(&helper, &options), SS_OK);
    return helper;
}

static struct ss_helper *begin(void)
{
    return begin_with(NULL, 0, NULL);
}

static struct ss_notice await(struct ss_helper *helper, enum ss_notice_kind kind, uint32_t id)
{
    struct ss_notice notice;

    assert_int_equal(ss_helper_wait(helper, &notice, WAIT_MS), SS_OK);
    assert_int_equal(notice.kind, kind);
    assert_int_equal(notice.id, id);
    return notice;
}

/* A shell with this script, whose output comes out of *out (where that is not NULL). */
static void shell(struct ss_helper *helper, uint32_t id, const char *script, int *out, bool keep)
{
    const char *const argv[] = {"name", "-c", script, "zero", "one two", NULL};
    const char *const environment[] = {"SS_SAID=a\\=b;c d", "SS_GONE", NULL};
    struct ss_child_options options = {.argv = argv,
                                       .file = "/bin/sh",
                                       .directory = "/tmp",
                                       .environment = environment,
                                       .descriptors = {-1, -1, -1},
                                       .keep = keep};
    int ends[2] = {-1, -1};

    if (out != NULL) {
        assert_int_equal(pipe(ends), 0);
        fcntl(ends[0], F_SETFD, FD_CLOEXEC);
        options.descriptors[1] = ends[1];
        *out = ends[0];
    }
    assert_int_equal(ss_helper_start_child(helper, id, &options), SS_OK);
    if (out != NULL)
        close(ends[1]);
    assert_int_equal(await(helper, SS_NOTICE_STARTED, id).error, 0);
}

/* All of it until its end, which comes when nobody has it open any more. */
static char *read_to_end(int fd)
{
    static char text[4096];
    size_t used = 0;
    ssize_t got;

    while ((got = read(fd, text + used, sizeof text - 1 - used)) > 0)
        used += (size_t)got;
    assert_int_equal(got, 0);
    text[used] = '\0';
    close(fd);
    return text;
}

static char *read_line(int fd)
{
    static char text[256];
    size_t used = 0;

    while (used + 1 < sizeof text && read(fd, text + used, 1) == 1 && text[used] != '\n')
        used++;
    text[used] = '\0';
    return text;
}

static void a_child_gets_what_it_is_given(void **state)
{
    struct ss_helper *helper;
    struct ss_notice notice;
    int out;

    (void)state;
    setenv("SS_GONE", "there", 1);
    helper = begin();
    shell(helper, 7,
          "echo \"$0 $# $1 [$SS_SAID] [${SS_GONE-unset}] $(pwd)\"; ls /proc/self/fd | wc -l; "
          "cat; exit 3",
          &out, false);
    /* ls has its folder open beside the three. */
    assert_string_equal(read_to_end(out), "zero 1 one two [a\\=b;c d] [unset] /tmp\n4\n");
    notice = await(helper, SS_NOTICE_ENDED, 7);
    assert_int_equal(notice.exit_code, 3);
    assert_int_equal(notice.signal, 0);
    ss_helper_end(helper);
}

static void what_can_not_be_executed_is_told(void **state)
{
    static const struct {
        const char *file, *search;
        int error;
    } cases[] = {
        {"/nonexistent/file", NULL, ENOENT}, {"nosuchprogram", "/bin:/usr/bin", ENOENT},
        {"nosuchprogram", "", ENOENT},       {"/etc/passwd", NULL, EACCES},
        {"etc", "/:/bin", EACCES},           {"", "/bin", ENOENT},
        {"sh", "/nonexistent:/bin", 0},      {"./sh", "/bin", ENOENT},
    };
    struct ss_helper *helper = begin();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const argv[] = {"x", "-c", "exit 5", NULL};
        const struct ss_child_options options = {.argv = argv,
                                                 .file = cases[i].file,
                                                 .search = cases[i].search,
                                                 .directory = "/nonexistent",
                                                 .descriptors = {-1, -1, -1}};
        uint32_t id = (uint32_t)i;

        assert_int_equal(ss_helper_start_child(helper, id, &options), SS_OK);
        assert_int_equal(await(helper, SS_NOTICE_STARTED, id).error, cases[i].error);
        if (cases[i].error == 0)
            assert_int_equal(await(helper, SS_NOTICE_ENDED, id).exit_code, 5);
    }
    ss_helper_end(helper);
}

static void dispositions_and_mask_are_those_of_a_shell(void **state)
{
    struct ss_helper *helper;
    sigset_t all, before;
    int out;
    char *text;

    (void)state;
    signal(SIGUSR2, SIG_IGN);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    helper = begin();
    sigprocmask(SIG_SETMASK, &before, NULL);
    signal(SIGUSR2, SIG_DFL);
    shell(helper, 1, "exec grep -E '^Sig(Blk|Ign)' /proc/self/status", &out, false);
    text = read_to_end(out);
    assert_non_null(strstr(text, "SigBlk:\t0000000000000000"));
    assert_non_null(strstr(text, "SigIgn:\t0000000000000000"));
    ss_helper_end(helper);
}

static void a_stopped_child_is_ended_by_term_and_then_by_kill(void **state)
{
    struct ss_helper *helper = begin();
    struct ss_notice notice;
    int out;

    (void)state;
    shell(helper, 1, "echo; exec sleep 1000", &out, false);
    read_line(out);
    assert_int_equal(ss_helper_stop_child(helper, 1), SS_OK);
    notice = await(helper, SS_NOTICE_ENDED, 1);
    assert_int_equal(notice.signal, SIGTERM);
    close(out);

    shell(helper, 2, "trap '' TERM; echo; while :; do sleep 1000; done", &out, false);
    read_line(out);
    assert_int_equal(ss_helper_stop_child(helper, 2), SS_OK);
    assert_int_equal(ss_helper_stop_child(helper, 2), SS_OK);
    notice = await(helper, SS_NOTICE_ENDED, 2);
    assert_int_equal(notice.signal, SIGKILL);
    assert_true(notice.ran_ms >= 900);
    assert_int_equal(ss_helper_stop_child(helper, 2), SS_OK);
    assert_string_equal(read_to_end(out), "");
    ss_helper_end(helper);
}

static void the_rest_of_a_group_ends_with_its_leader(void **state)
{
    struct ss_helper *helper = begin();
    int out;

    (void)state;
    /* The pipe's end comes when the one left behind is gone, which would be long after. */
    shell(helper, 1, "sleep 1000 & exit 4", &out, false);
    assert_int_equal(await(helper, SS_NOTICE_ENDED, 1).exit_code, 4);
    assert_string_equal(read_to_end(out), "");
    /* One that does not heed SIGTERM, too. */
    shell(helper, 1, "trap '' TERM; sleep 1000 & exit 6", &out, false);
    assert_int_equal(await(helper, SS_NOTICE_ENDED, 1).exit_code, 6);
    assert_string_equal(read_to_end(out), "");
    ss_helper_end(helper);
}

static void a_kept_child_can_be_started_again(void **state)
{
    struct ss_helper *helper = begin();
    const int none[3] = {-1, -1, -1};
    int ends[2], wired[3] = {-1, -1, -1};

    (void)state;
    assert_int_equal(ss_helper_start_again(helper, 9, none), SS_OK);
    assert_int_equal(await(helper, SS_NOTICE_STARTED, 9).error, ESRCH);
    shell(helper, 9, "echo again; exit 1", NULL, true);
    assert_int_equal(await(helper, SS_NOTICE_ENDED, 9).exit_code, 1);
    assert_int_equal(pipe(ends), 0);
    wired[1] = ends[1];
    assert_int_equal(ss_helper_start_again(helper, 9, wired), SS_OK);
    close(ends[1]);
    assert_int_equal(await(helper, SS_NOTICE_STARTED, 9).error, 0);
    assert_string_equal(read_to_end(ends[0]), "again\n");
    assert_int_equal(await(helper, SS_NOTICE_ENDED, 9).exit_code, 1);
    assert_int_equal(ss_helper_forget_child(helper, 9), SS_OK);
    assert_int_equal(ss_helper_start_again(helper, 9, none), SS_OK);
    assert_int_equal(await(helper, SS_NOTICE_STARTED, 9).error, ESRCH);
    ss_helper_end(helper);
}

static void a_number_in_use_is_refused(void **state)
{
    struct ss_helper *helper = begin();
    const char *const argv[] = {"/bin/true", NULL};
    const struct ss_child_options options = {.argv = argv, .descriptors = {-1, -1, -1}};

    (void)state;
    shell(helper, 1, "exec sleep 1000", NULL, false);
    assert_int_equal(ss_helper_start_child(helper, 1, &options), SS_OK);
    assert_int_equal(await(helper, SS_NOTICE_STARTED, 1).error, EEXIST);
    ss_helper_end(helper);
}

static void texts_that_are_too_long_are_refused_here(void **state)
{
    struct ss_helper *helper = begin();
    char *large = malloc(SS_HELPER_TEXT_MAX);
    const char *argv[] = {"/bin/true", large, NULL};
    struct ss_child_options options = {.argv = argv, .descriptors = {-1, -1, -1}};

    (void)state;
    memset(large, 'x', SS_HELPER_TEXT_MAX - 1);
    large[SS_HELPER_TEXT_MAX - 1] = '\0';
    assert_int_equal(ss_helper_start_child(helper, 1, &options), SS_ERR_ARGUMENT);
    large[SS_HELPER_TEXT_MAX - 1 - sizeof "/bin/true"] = '\0';
    assert_int_equal(ss_helper_start_child(helper, 1, &options), SS_OK);
    assert_int_equal(await(helper, SS_NOTICE_STARTED, 1).error, 0);
    assert_int_equal(await(helper, SS_NOTICE_ENDED, 1).exit_code, 0);
    argv[0] = NULL;
    assert_int_equal(ss_helper_start_child(helper, 1, &options), SS_ERR_ARGUMENT);
    free(large);
    ss_helper_end(helper);
}

/* Far more notices than fit into the socket, none of them read until the last request is made. */
static void many_children_do_not_hold_each_other_up(void **state)
{
    enum { MANY = 600 };
    struct ss_helper *helper = begin();
    const char *const argv[] = {"/bin/true", NULL};
    const struct ss_child_options options = {.argv = argv, .descriptors = {-1, -1, -1}};
    unsigned started = 0, ended = 0;

    (void)state;
    for (uint32_t i = 0; i < MANY; i++)
        assert_int_equal(ss_helper_start_child(helper, i, &options), SS_OK);
    while (ended < MANY) {
        struct ss_notice notice;

        assert_int_equal(ss_helper_wait(helper, &notice, WAIT_MS), SS_OK);
        assert_int_equal(notice.error, 0);
        if (notice.kind == SS_NOTICE_STARTED)
            started++;
        else
            ended++;
    }
    assert_int_equal(started, MANY);
    ss_helper_end(helper);
}

static void files_are_opened_again_by_number(void **state)
{
    const char *const paths[] = {"/etc/passwd", "/nonexistent/file"};
    struct ss_helper *helper = begin_with(paths, 2, NULL);
    struct ss_notice notice;
    char byte;

    (void)state;
    assert_int_equal(ss_helper_open(helper, 3, 0), SS_OK);
    notice = await(helper, SS_NOTICE_OPENED, 3);
    assert_int_equal(notice.error, 0);
    assert_int_equal(read(notice.descriptor, &byte, 1), 1);
    assert_true((fcntl(notice.descriptor, F_GETFD) & FD_CLOEXEC) != 0);
    close(notice.descriptor);
    assert_int_equal(ss_helper_open(helper, 4, 1), SS_OK);
    assert_int_equal(await(helper, SS_NOTICE_OPENED, 4).error, ENOENT);
    assert_int_equal(ss_helper_open(helper, 5, 2), SS_OK);
    notice = await(helper, SS_NOTICE_OPENED, 5);
    assert_int_equal(notice.error, EINVAL);
    assert_int_equal(notice.descriptor, -1);
    ss_helper_end(helper);
}

static void ports_are_bound(void **state)
{
    struct ss_helper *helper = begin();
    struct ss_bind_options options = {
        .address = {.ip = {.family = SS_FAMILY_IPV4, .bytes = {127, 0, 0, 1}}}};

    (void)state;
    for (uint32_t udp = 0; udp <= 1; udp++) {
        struct sockaddr_in bound;
        socklen_t len = sizeof bound;
        struct ss_notice notice;

        options.udp = udp != 0;
        options.address.port = 0;
        assert_int_equal(ss_helper_bind(helper, udp, &options), SS_OK);
        notice = await(helper, SS_NOTICE_BOUND, udp);
        assert_int_equal(notice.error, 0);
        assert_int_equal(getsockname(notice.descriptor, (struct sockaddr *)&bound, &len), 0);
        assert_int_equal(ntohl(bound.sin_addr.s_addr), INADDR_LOOPBACK);
        assert_true(bound.sin_port != 0);
        if (!options.udp)
            assert_int_equal(listen(notice.descriptor, 1), 0);
        /* The helper has closed its own, so the port is free with ours. */
        options.address.port = ntohs(bound.sin_port);
        assert_int_equal(ss_helper_bind(helper, 2, &options), SS_OK);
        assert_int_equal(await(helper, SS_NOTICE_BOUND, 2).error, EADDRINUSE);
        close(notice.descriptor);
        assert_int_equal(ss_helper_bind(helper, 2, &options), SS_OK);
        notice = await(helper, SS_NOTICE_BOUND, 2);
        assert_int_equal(notice.error, 0);
        close(notice.descriptor);
    }
    options.address.ip.family = SS_FAMILY_NONE;
    assert_int_equal(ss_helper_bind(helper, 2, &options), SS_OK);
    assert_int_equal(await(helper, SS_NOTICE_BOUND, 2).error, EAFNOSUPPORT);
    ss_helper_end(helper);
}

static void after_the_seal_new_children_have_lost_the_rights(void **state)
{
    const int none[3] = {-1, -1, -1};
    struct ss_helper *helper;
    int out;

    (void)state;
    if (!ss_process_is_root())
        skip();
    helper = begin_with(NULL, 0, "nobody");
    shell(helper, 1, "test $(id -u) = 0", NULL, true);
    assert_int_equal(await(helper, SS_NOTICE_ENDED, 1).exit_code, 0);
    assert_int_equal(ss_helper_seal(helper), SS_OK);
    assert_int_equal(ss_helper_start_again(helper, 1, none), SS_OK);
    assert_int_equal(await(helper, SS_NOTICE_STARTED, 1).error, 0);
    assert_int_equal(await(helper, SS_NOTICE_ENDED, 1).exit_code, 0);
    shell(helper, 2, "id -un", &out, false);
    assert_string_equal(read_to_end(out), "nobody\n");
    assert_int_equal(await(helper, SS_NOTICE_ENDED, 2).exit_code, 0);
    /* A number that was forgotten is a new one. */
    assert_int_equal(ss_helper_forget_child(helper, 1), SS_OK);
    shell(helper, 1, "id -un", &out, true);
    assert_string_equal(read_to_end(out), "nobody\n");
    ss_helper_end(helper);
}

/* With one that has left its group, and its session, and is an orphan. */
#define LEAVES "setsid sh -c 'trap \"\" TERM; echo $$; exec sleep 1000' & wait"

static void the_end_of_the_program_is_the_end_of_all(void **state)
{
    int out[2], gone[2];
    pid_t program;

    (void)state;
    assert_int_equal(pipe(out), 0);
    assert_int_equal(pipe(gone), 0);
    fcntl(gone[1], F_SETFD, FD_CLOEXEC);
    program = fork();
    if (program == 0) {
        const char *const argv[] = {"sh", "-c", LEAVES, NULL};
        const struct ss_child_options options = {
            .argv = argv, .file = "/bin/sh", .descriptors = {-1, out[1], gone[1]}};
        struct ss_helper *helper = begin();

        if (ss_helper_start_child(helper, 1, &options) != SS_OK)
            _exit(1);
        close(out[1]);
        close(gone[1]);
        while (true)
            pause();
    }
    close(out[1]);
    close(gone[1]);
    assert_true(read_line(out[0])[0] != '\0');
    assert_int_equal(kill(program, SIGKILL), 0);
    assert_int_equal(waitpid(program, NULL, 0), program);
    /* The pipe's other end is open in each of the children. */
    assert_int_equal(poll(&(struct pollfd){.fd = gone[0], .events = POLLIN}, 1, 2000), 1);
    close(out[0]);
    close(gone[0]);
}

static void an_orderly_end_waits_for_all(void **state)
{
    struct ss_helper *helper = begin();
    char path[272];
    int out;

    (void)state;
    shell(helper, 1, LEAVES, &out, false);
    snprintf(path, sizeof path, "/proc/%s", read_line(out));
    assert_int_equal(access(path, F_OK), 0);
    ss_helper_end(helper);
    assert_int_equal(access(path, F_OK), -1);
    close(out);
}

static void a_helper_that_is_gone_is_told(void **state)
{
    struct ss_helper *helper = begin();
    struct ss_notice notice;
    pid_t pid = 0;
    int out;

    (void)state;
    shell(helper, 1, "echo $PPID; exec sleep 1000", &out, false);
    pid = (pid_t)strtol(read_line(out), NULL, 10);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(ss_helper_wait(helper, &notice, WAIT_MS), SS_ERR_RESET);
    assert_int_equal(ss_helper_stop_child(helper, 1), SS_ERR_RESET);
    assert_string_equal(read_to_end(out), ""); /* and the child with it */
    ss_helper_end(helper);
}

static void the_helper_does_not_heed_signals_for_the_program(void **state)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE};
    struct ss_helper *helper = begin();
    int out;
    pid_t pid;

    (void)state;
    shell(helper, 1, "echo $PPID; exec sleep 1000", &out, false);
    pid = (pid_t)strtol(read_line(out), NULL, 10);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        assert_int_equal(kill(pid, numbers[i]), 0);
    shell(helper, 2, "exit 0", NULL, false);
    assert_int_equal(await(helper, SS_NOTICE_ENDED, 2).exit_code, 0);
    close(out);
    ss_helper_end(helper);
}

static int told; /* the pipe through which the helper tells that it has wiped */

static void wipe(void *owner)
{
    memset(owner, 0, 6);
    if (write(told, "w", 1) != 1)
        _exit(1);
}

static void secrets_are_wiped_in_the_helper_alone(void **state)
{
    char secret[] = "secret", byte;
    const struct ss_helper_options options = {.forget = wipe, .owner = secret};
    struct ss_helper *helper;
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    told = ends[1];
    assert_int_equal(ss_helper_start(&helper, &options), SS_OK);
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_string_equal(secret, "secret");
    assert_int_equal(read(ends[0], &byte, 1), 0); /* the helper keeps no descriptor */
    close(ends[0]);
    ss_helper_end(helper);
}

/* Nobody sends such, so whoever does is not the program any more. */
static void a_message_that_is_no_request_ends_the_helper(void **state)
{
    static const struct ss_helper_request cases[] = {
        {.kind = 99},
        {.kind = UINT32_MAX},
        {.kind = SS_REQUEST_START, .text_len = 1},   /* which is not there */
        {.kind = SS_REQUEST_STOP, .descriptors = 1}, /* the same */
        {.kind = SS_REQUEST_START, .text_len = UINT32_MAX},
    };
    struct ss_notice notice;

    (void)state;
    for (size_t i = 0; i <= sizeof cases / sizeof cases[0]; i++) {
        struct ss_helper *helper = begin();
        bool whole = i < sizeof cases / sizeof cases[0];
        int out;

        shell(helper, 1, "echo; exec sleep 1000", &out, false);
        read_line(out);
        assert_true(send(ss_helper_descriptor(helper), &cases[whole ? i : 0],
                         whole ? sizeof cases[0] : sizeof cases[0] - 1, MSG_NOSIGNAL) > 0);
        assert_int_equal(ss_helper_wait(helper, &notice, WAIT_MS), SS_ERR_RESET);
        assert_string_equal(read_to_end(out), ""); /* the child has ended with it */
        ss_helper_end(helper);
    }
}

/* Whatever a message says of itself, only texts that are there are looked at. */
static void definitions_are_bounded_by_their_texts(void **state)
{
    static const struct {
        struct ss_helper_request request;
        bool good;
    } cases[] = {
        {{.text_len = 4, .argc = 2}, true},
        {{.text_len = 4, .argc = 1, .envc = 1}, true},
        {{.text_len = 4, .argc = 1, .given = SS_TEXT_SEARCH}, true},
        {{.text_len = 4, .argc = 0, .envc = 2}, false},
        {{.text_len = 4, .argc = 3}, false},
        {{.text_len = 4, .argc = 1}, false},
        {{.text_len = 4, .argc = 1, .given = SS_TEXT_SEARCH | SS_TEXT_FILE}, false},
        {{.text_len = 4, .argc = UINT32_MAX, .envc = 3}, false},
        {{.text_len = 3, .argc = 1}, false}, /* "a\0b", no end */
        {{.text_len = 0}, false},
        {{.text_len = SS_HELPER_TEXT_MAX + 1, .argc = 2}, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ss_definition *definition = ss_definition_new(&cases[i].request, "a\0b");

        assert_true((definition != NULL) == cases[i].good);
        ss_definition_free(definition);
    }
}

int helper_tests(void);
int helper_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_gets_what_it_is_given),
        cmocka_unit_test(what_can_not_be_executed_is_told),
        cmocka_unit_test(dispositions_and_mask_are_those_of_a_shell),
        cmocka_unit_test(a_stopped_child_is_ended_by_term_and_then_by_kill),
        cmocka_unit_test(the_rest_of_a_group_ends_with_its_leader),
        cmocka_unit_test(a_kept_child_can_be_started_again),
        cmocka_unit_test(a_number_in_use_is_refused),
        cmocka_unit_test(texts_that_are_too_long_are_refused_here),
        cmocka_unit_test(many_children_do_not_hold_each_other_up),
        cmocka_unit_test(files_are_opened_again_by_number),
        cmocka_unit_test(ports_are_bound),
        cmocka_unit_test(after_the_seal_new_children_have_lost_the_rights),
        cmocka_unit_test(the_end_of_the_program_is_the_end_of_all),
        cmocka_unit_test(an_orderly_end_waits_for_all),
        cmocka_unit_test(a_helper_that_is_gone_is_told),
        cmocka_unit_test(the_helper_does_not_heed_signals_for_the_program),
        cmocka_unit_test(secrets_are_wiped_in_the_helper_alone),
        cmocka_unit_test(a_message_that_is_no_request_ends_the_helper),
        cmocka_unit_test(definitions_are_bounded_by_their_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
