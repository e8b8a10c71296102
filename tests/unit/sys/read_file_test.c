/* Reading whole files: limits, and things that are no plain files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/read_file.h"

static char folder[] = "/tmp/ss-read-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    char path[64];
    (void)state;

    snprintf(path, sizeof path, "%s/file", folder);
    unlink(path);
    return rmdir(folder);
}

static const char *file_of(size_t len)
{
    static char path[64];
    FILE *file;

    snprintf(path, sizeof path, "%s/file", folder);
    file = fopen(path, "wb");
    assert_non_null(file);
    for (size_t i = 0; i < len; i++)
        fputc('a' + (int)(i % 26), file);
    assert_int_equal(fclose(file), 0);
    return path;
}

static void the_limit_is_the_last_size_that_is_read(void **state)
{
    static const size_t sizes[] = {0, 1, 99, 100};
    char *text;
    size_t len;
    (void)state;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_int_equal(ss_file_read(&text, &len, file_of(sizes[i]), 100), SS_OK);
        assert_int_equal(len, sizes[i]);
        assert_int_equal(strlen(text), len);
        free(text);
    }
    assert_int_equal(ss_file_read(&text, &len, file_of(101), 100), SS_ERR_LIMIT);
    assert_null(text);
}

static void what_is_no_file(void **state)
{
    char *text;
    size_t len;
    (void)state;

    assert_int_equal(ss_file_read(&text, &len, folder, 100), SS_ERR_ARGUMENT);
    assert_int_equal(ss_file_read(&text, &len, "/nosuch/file", 100), SS_ERR_NOT_FOUND);
    assert_int_equal(ss_file_read(&text, &len, "", 100), SS_ERR_NOT_FOUND);
    if (geteuid() != 0) {
        const char *path = file_of(1);

        assert_int_equal(chmod(path, 0), 0);
        assert_int_equal(ss_file_read(&text, &len, path, 100), SS_ERR_PERMISSION);
        unlink(path);
    }
}

/* As `-c <(command)` gives it. */
static void a_pipe_is_read_to_its_end(void **state)
{
    static const size_t sizes[] = {3, 65535, 65536, 200000};
    (void)state;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char command[64], path[32], *text;
        size_t len;
        FILE *pipe;

        snprintf(command, sizeof command, "head -c %zu /dev/zero | tr '\\0' x", sizes[i]);
        pipe = popen(command, "r");
        assert_non_null(pipe);
        snprintf(path, sizeof path, "/dev/fd/%d", fileno(pipe));
        assert_int_equal(ss_file_read(&text, &len, path, 200000), SS_OK);
        assert_int_equal(len, sizes[i]);
        assert_int_equal(strlen(text), len);
        free(text);
        pclose(pipe);

        pipe = popen(command, "r");
        assert_non_null(pipe);
        snprintf(path, sizeof path, "/dev/fd/%d", fileno(pipe));
        assert_int_equal(ss_file_read(&text, &len, path, sizes[i] - 1), SS_ERR_LIMIT);
        pclose(pipe);
    }
}

int read_file_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limit_is_the_last_size_that_is_read),
        cmocka_unit_test(what_is_no_file),
        cmocka_unit_test(a_pipe_is_read_to_its_end),
    };

    return cmocka_run_group_tests_name("sys: files", tests, make_folder, remove_folder);
}
