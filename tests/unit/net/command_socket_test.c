/* The socket of a manager: bound once, asked and answered, and gone with its path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/command_socket.h"

static char folder[64], path[96], own_path[96];
static struct ss_command_address address;
static const char *error_text;

static int make(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/ss-command-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/m.sock", folder);
    snprintf(own_path, sizeof own_path, "%s/client", folder);
    address = (struct ss_command_address){.path = path};
    return 0;
}

static int clear(void **state)
{
    (void)state;
    (void)unlink(path);
    (void)unlink(own_path);
    return rmdir(folder);
}

/* Connected to the manager; bound to a path where it is to be answered. */
static int client(bool named)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX}, from = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

    assert_true(fd >= 0);
    snprintf(from.sun_path, sizeof from.sun_path, "%s", own_path);
    snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    if (named)
        assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static struct ss_view view(const char *text)
{
    return (struct ss_view){(const uint8_t *)text, strlen(text)};
}

static void a_path_has_its_mode_and_goes(void **state)
{
    static const struct {
        mode_t umask;
        int mode;
        unsigned expected;
    } cases[] = {{022, -1, 0755}, {077, -1, 0700}, {0, -1, 0755}, {077, 0660, 0660}, {0, 0, 0}};
    mode_t before = umask(0);
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ss_command_socket socket;
        struct stat about;

        umask(cases[i].umask);
        assert_int_equal(ss_command_open(&socket, &address, cases[i].mode, &error_text), SS_OK);
        assert_int_equal(stat(path, &about), 0);
        assert_int_equal(about.st_mode & 0777, cases[i].expected);
        assert_int_equal(umask(cases[i].umask), cases[i].umask); /* is as it was */
        ss_command_close(&socket, &address);
        ss_command_close(&socket, &address);
        assert_int_not_equal(access(path, F_OK), 0);
    }
    umask(before);
}

static void one_listens_at_a_path(void **state)
{
    struct ss_command_socket first, second;
    FILE *file = fopen(path, "w");
    (void)state;

    /* What nobody listens at makes way, whatever it is. */
    assert_non_null(file);
    fclose(file);
    assert_int_equal(ss_command_open(&first, &address, -1, &error_text), SS_OK);
    assert_int_equal(ss_command_open(&second, &address, -1, &error_text), SS_ERR_IN_USE);
    assert_int_equal(second.fd, -1);
    /* Killed, and its path left behind. */
    close(first.fd);
    assert_int_equal(ss_command_open(&second, &address, -1, &error_text), SS_OK);
    /* The path is another's now, and stays. */
    first.fd = dup(second.fd);
    ss_command_close(&first, &address);
    assert_int_equal(access(path, F_OK), 0);
    ss_command_close(&second, &address);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void a_path_that_is_too_long(void **state)
{
    char text[200];
    struct ss_command_address at = {.path = text};
    struct ss_command_socket socket;
    (void)state;

    memset(text, 'x', sizeof text - 1);
    text[0] = '/';
    text[sizeof text - 1] = '\0';
    assert_int_not_equal(ss_command_open(&socket, &at, -1, &error_text), SS_OK);
    assert_int_not_equal(ss_command_report(&at, view("stat: {}"), &error_text), SS_OK);
}

static void datagrams_come_and_go(void **state)
{
    struct ss_command_socket socket;
    struct ss_command_peer peer;
    char bytes[8], answer[32];
    size_t len;
    int named, nameless;
    (void)state;

    assert_int_equal(ss_command_open(&socket, &address, -1, &error_text), SS_OK);
    assert_int_equal(ss_command_receive(&socket, bytes, sizeof bytes, &len, &peer), SS_NEED_INPUT);
    named = client(true);
    nameless = client(false);
    assert_int_equal(send(named, "ping", 4, 0), 4);
    assert_int_equal(send(named, "", 0, 0), 0);
    assert_int_equal(send(named, "far too long", 12, 0), 12);
    assert_int_equal(send(nameless, "list", 4, 0), 4);

    assert_int_equal(ss_command_receive(&socket, bytes, sizeof bytes, &len, &peer), SS_OK);
    assert_int_equal(len, 4);
    assert_memory_equal(bytes, "ping", 4);
    assert_true(ss_command_peer_is_named(&peer));
    assert_int_equal(ss_command_answer(&socket, &peer, view("stat: {}"), &error_text), SS_OK);
    assert_int_equal(recv(named, answer, sizeof answer, 0), 8);
    assert_int_equal(ss_command_receive(&socket, bytes, sizeof bytes, &len, &peer), SS_OK);
    assert_int_equal(len, 0);
    assert_int_equal(ss_command_receive(&socket, bytes, sizeof bytes, &len, &peer), SS_OK);
    assert_true(len > sizeof bytes);
    assert_int_equal(ss_command_receive(&socket, bytes, sizeof bytes, &len, &peer), SS_OK);
    assert_false(ss_command_peer_is_named(&peer));
    close(named);
    close(nameless);
    ss_command_close(&socket, &address);
}

/* What one does not read keeps no other from a short answer. */
static void a_deaf_client_silences_nobody(void **state)
{
    static char longest[60000];
    struct ss_command_socket socket;
    struct ss_command_peer peer;
    char bytes[8];
    size_t len;
    int deaf, good, tries = 0;
    (void)state;

    memset(longest, 'x', sizeof longest - 1);
    assert_int_equal(ss_command_open(&socket, &address, -1, &error_text), SS_OK);
    deaf = client(true);
    assert_int_equal(send(deaf, "list", 4, 0), 4);
    assert_int_equal(ss_command_receive(&socket, bytes, sizeof bytes, &len, &peer), SS_OK);
    while (ss_command_answer(&socket, &peer, view(longest), &error_text) == SS_OK)
        assert_true(++tries < 1000);
    assert_int_equal(unlink(own_path), 0); /* it goes on under no name, and another has its path */
    good = client(true);
    assert_int_equal(ss_command_answer(&socket, &peer, view("short"), &error_text), SS_OK);
    assert_int_equal(recv(good, bytes, sizeof bytes, 0), 5);
    close(deaf);
    close(good);
    ss_command_close(&socket, &address);
}

static void a_report_arrives(void **state)
{
    struct ss_command_socket socket;
    struct ss_command_peer peer;
    char bytes[32];
    size_t len;
    (void)state;

    assert_int_not_equal(ss_command_report(&address, view("stat: {}"), &error_text), SS_OK);
    assert_int_equal(ss_command_open(&socket, &address, -1, &error_text), SS_OK);
    assert_int_equal(ss_command_report(&address, view("stat: {}"), &error_text), SS_OK);
    assert_int_equal(ss_command_receive(&socket, bytes, sizeof bytes, &len, &peer), SS_OK);
    assert_int_equal(len, 8);
    ss_command_close(&socket, &address);
}

int command_socket_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_path_has_its_mode_and_goes, make, clear),
        cmocka_unit_test_setup_teardown(one_listens_at_a_path, make, clear),
        cmocka_unit_test_setup_teardown(a_path_that_is_too_long, make, clear),
        cmocka_unit_test_setup_teardown(datagrams_come_and_go, make, clear),
        cmocka_unit_test_setup_teardown(a_deaf_client_silences_nobody, make, clear),
        cmocka_unit_test_setup_teardown(a_report_arrives, make, clear),
    };

    return cmocka_run_group_tests_name("net: command socket", tests, NULL, NULL);
}
