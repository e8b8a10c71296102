/* Private folders and files, and the file of records: all of a record or none, one process at a
 * time, and nothing through a link. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/private_file.h"

static char folder[64], path[128], other[128];
static const char *error_text;

static int make(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/ss-private-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/file", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    return 0;
}

static int clear(void **state)
{
    (void)state;
    (void)unlink(path);
    (void)unlink(other);
    (void)rmdir(other);
    return rmdir(folder);
}

static unsigned mode_of(const char *name)
{
    struct stat about;

    assert_int_equal(lstat(name, &about), 0);
    return about.st_mode & 07777;
}

static void assert_content(const char *name, const char *expected)
{
    char text[256];
    FILE *file = fopen(name, "r");
    size_t len;

    assert_non_null(file);
    len = fread(text, 1, sizeof text - 1, file);
    text[len] = '\0';
    fclose(file);
    assert_string_equal(text, expected);
}

static void a_folder_is_the_users_own(void **state)
{
    mode_t before = umask(0);
    (void)state;

    assert_int_equal(ss_private_folder(other, true, &error_text), SS_OK);
    assert_int_equal(mode_of(other), 0700);
    assert_int_equal(ss_private_folder(other, true, &error_text), SS_OK);
    assert_int_equal(rmdir(other), 0);
    assert_int_equal(symlink(folder, other), 0);
    assert_int_equal(ss_private_folder(other, false, &error_text), SS_OK);
    assert_int_equal(ss_private_folder(other, true, &error_text), SS_ERR_PERMISSION);
    assert_int_equal(unlink(other), 0);
    fclose(fopen(other, "w"));
    assert_int_equal(ss_private_folder(other, false, &error_text), SS_ERR_NOT_FOUND);
    umask(before);
}

static void a_file_takes_the_place_of_what_is_there(void **state)
{
    mode_t before = umask(0);
    (void)state;

    assert_int_equal(ss_private_write(path, "one", 3, &error_text), SS_OK);
    assert_int_equal(mode_of(path), 0600);
    assert_content(path, "one");
    /* A link is replaced, and what it leads to is left alone. */
    assert_int_equal(ss_private_write(other, "kept", 4, &error_text), SS_OK);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(other, path), 0);
    assert_int_equal(ss_private_write(path, "two", 3, &error_text), SS_OK);
    assert_content(path, "two");
    assert_content(other, "kept");
    assert_int_equal(mode_of(path), 0600);
    umask(before);
}

static void records_stand_behind_each_other(void **state)
{
    struct ss_journal journal = {.fd = -1};
    char *text;
    (void)state;

    assert_int_equal(ss_journal_open(&journal, path, &error_text), SS_OK);
    assert_int_equal(mode_of(path), 0600);
    assert_int_equal(ss_journal_append(&journal, "a\n", 2, &error_text), SS_OK);
    assert_int_equal(ss_journal_append(&journal, "b\n", 2, &error_text), SS_OK);
    ss_journal_close(&journal);
    assert_int_equal(ss_journal_open(&journal, path, &error_text), SS_OK);
    assert_int_equal(journal.size, 4);
    assert_int_equal(ss_journal_append(&journal, "c\n", 2, &error_text), SS_OK);
    assert_int_equal(ss_journal_read(&journal, &text, 100, &error_text), SS_OK);
    assert_string_equal(text, "a\nb\nc\n");
    free(text);
    assert_int_equal(ss_journal_read(&journal, &text, 5, &error_text), SS_ERR_LIMIT);
    assert_int_equal(ss_journal_replace(&journal, "new\n", 4, &error_text), SS_OK);
    assert_int_equal(ss_journal_append(&journal, "d\n", 2, &error_text), SS_OK);
    assert_content(path, "new\nd\n");
    assert_int_equal(mode_of(path), 0600);
    ss_journal_close(&journal);
    ss_journal_close(&journal);
}

static void one_process_has_it_at_a_time(void **state)
{
    struct ss_journal first = {.fd = -1}, second = {.fd = -1};
    (void)state;

    assert_int_equal(ss_journal_open(&first, path, &error_text), SS_OK);
    assert_int_equal(ss_journal_open(&second, path, &error_text), SS_ERR_IN_USE);
    /* Also once it is another file. */
    assert_int_equal(ss_journal_replace(&first, "x\n", 2, &error_text), SS_OK);
    assert_int_equal(ss_journal_open(&second, path, &error_text), SS_ERR_IN_USE);
    ss_journal_close(&first);
    assert_int_equal(ss_journal_open(&second, path, &error_text), SS_OK);
    ss_journal_close(&second);
}

static void what_is_no_plain_file_is_refused(void **state)
{
    struct ss_journal journal = {.fd = -1};
    (void)state;

    assert_int_equal(ss_private_write(other, "", 0, &error_text), SS_OK);
    assert_int_equal(symlink(other, path), 0);
    assert_int_equal(ss_journal_open(&journal, path, &error_text), SS_ERR_PERMISSION);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_not_equal(ss_journal_open(&journal, path, &error_text), SS_OK);
    assert_int_equal(journal.fd, -1);
    assert_int_not_equal(ss_journal_append(&journal, "a", 1, &error_text), SS_OK);
}

/* In a process of its own, for the limit stays. */
static int append_beyond_a_limit(void)
{
    const struct rlimit limit = {10, 10};
    struct ss_journal journal = {.fd = -1};

    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        return 1;
    if (ss_journal_open(&journal, path, &error_text) != SS_OK ||
        ss_journal_append(&journal, "1234567\n", 8, &error_text) != SS_OK)
        return 2;
    if (ss_journal_append(&journal, "89abcdef\n", 9, &error_text) == SS_OK || journal.size != 8)
        return 3;
    if (ss_journal_replace(&journal, "0123456789abcdef\n", 17, &error_text) == SS_OK)
        return 4;
    return ss_journal_append(&journal, "x\n", 2, &error_text) == SS_OK ? 0 : 5;
}

static void a_record_that_does_not_fit_leaves_no_part(void **state)
{
    char beside[160];
    int how = 0;
    pid_t child;
    (void)state;

    fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(append_beyond_a_limit());
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
    assert_content(path, "1234567\nx\n");
    snprintf(beside, sizeof beside, "%s.new", path);
    assert_int_not_equal(access(beside, F_OK), 0);
}

int private_file_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_folder_is_the_users_own, make, clear),
        cmocka_unit_test_setup_teardown(a_file_takes_the_place_of_what_is_there, make, clear),
        cmocka_unit_test_setup_teardown(records_stand_behind_each_other, make, clear),
        cmocka_unit_test_setup_teardown(one_process_has_it_at_a_time, make, clear),
        cmocka_unit_test_setup_teardown(what_is_no_plain_file_is_refused, make, clear),
        cmocka_unit_test_setup_teardown(a_record_that_does_not_fit_leaves_no_part, make, clear),
    };

    return cmocka_run_group_tests_name("sys: private files", tests, NULL, NULL);
}
