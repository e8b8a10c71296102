/* Ports and users that a manager adds, changes and removes, with sessions open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#if defined __GLIBC__
#include <malloc.h>
#endif

#include "rig.h"
#include "service/generation.h"
#include "service/ports.h"

static unsigned workers = 1;

#define METHOD "2022-blake3-aes-128-gcm"
#define KEY_A  "AAECAwQFBgcICQoLDA0ODw=="
#define KEY_B  "ERECAwQFBgcICQoLDA0ODw=="
#define KEY_C  "ISECAwQFBgcICQoLDA0ODw=="
#define KEY_D  "MSECAwQFBgcICQoLDA0ODw=="

/* An engine with ports, beside the one that it was made with. */
struct fixture {
    struct rig_engine rig;
    struct rig_options options;
    struct ss_config config;
    struct ss_shared shared;
    struct ss_reaper reaper;
    struct ss_service *service;
    struct ss_ports *ports;
    struct rig_target target, second;
    struct rig_udp_echo echo;
    uint16_t port; /* a free one */
    char error[SS_PORTS_ERROR_MAX];
};

static struct fixture *start(void)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    char *words[] = {(char *)(uintptr_t) "ss-server", (char *)(uintptr_t) "--control-stdio", NULL};
    int exit_code;

    assert_non_null(fixture);
    fixture->options = rig_defaults();
    fixture->options.method = METHOD;
    fixture->options.engine.workers = workers;
    fixture->options.udp = true;
    rig_target_start(&fixture->target, rig_serve_echo);
    rig_target_start(&fixture->second, rig_serve_echo);
    rig_udp_echo_start(&fixture->echo);
    rig_server_start(&fixture->rig, &fixture->options);
    assert_true(ss_config_read(&fixture->config, SS_PROGRAM_SERVER, 2, words, NULL, &exit_code));
    fixture->service = ss_service_new(&fixture->config, &fixture->shared, NULL, &fixture->reaper);
    assert_true(ss_service_make_profiles(fixture->service, NULL));
    fixture->ports = ss_ports_new(fixture->rig.engine, fixture->service, NULL);
    assert_non_null(fixture->ports);
    fixture->port = rig_free_port();
    return fixture;
}

static void close_all(struct rig_engine *rig, void *argument)
{
    (void)rig;
    ss_ports_remove_all(argument);
}

static void stop(struct fixture *fixture)
{
    rig_call(&fixture->rig, close_all, fixture->ports);
    rig_stop(&fixture->rig);
    ss_ports_free(fixture->ports);
    ss_service_release(fixture->service);
    ss_shared_clear(&fixture->shared);
    rig_udp_echo_stop(&fixture->echo);
    rig_target_stop(&fixture->target);
    rig_target_stop(&fixture->second);
    free(fixture);
}

/* A description of a port on 127.0.0.1. */
struct wanted {
    struct fixture *fixture;
    struct ss_port_spec spec;
    struct ss_endpoint address;
    struct ss_config_identity users[4];
    enum ss_status status;
};

static char *text(const char *literal)
{
    return (char *)(uintptr_t)literal;
}

static void set(struct rig_engine *rig, void *argument)
{
    struct wanted *wanted = argument;

    (void)rig;
    wanted->status = ss_ports_set(wanted->fixture->ports, &wanted->spec, wanted->fixture->error);
}

static struct wanted *want(struct fixture *fixture, const char *password, size_t users)
{
    static struct wanted wanted;
    static const char *const keys[] = {KEY_A, KEY_B, KEY_C};
    static const char *const names[] = {"ann", "bob", "cid"};

    memset(&wanted, 0, sizeof wanted);
    wanted.fixture = fixture;
    strcpy(wanted.address.host, "127.0.0.1");
    wanted.address.port = fixture->port;
    for (size_t i = 0; i < users; i++) {
        wanted.users[i].name = text(names[i]);
        wanted.users[i].password = text(keys[i]);
    }
    wanted.spec = (struct ss_port_spec){.port = fixture->port,
                                        .server = {.addresses = &wanted.address,
                                                   .address_count = 1,
                                                   .method = text(METHOD),
                                                   .password = text(password),
                                                   .mode = SS_MODE_TCP_AND_UDP,
                                                   .mode_given = true,
                                                   .identities = wanted.users,
                                                   .identity_count = users}};
    return &wanted;
}

static enum ss_status set_port(struct fixture *fixture, const char *password, size_t users)
{
    struct wanted *wanted = want(fixture, password, users);

    rig_call(&fixture->rig, set, wanted);
    return wanted->status;
}

static void connect_client(struct rig_engine *local, struct fixture *fixture, const char *password)
{
    struct rig_options options = fixture->options;

    options.password = password;
    rig_local_start(local, &options, fixture->port);
}

static void echo(int fd)
{
    char bytes[] = "to and fro";

    rig_send(fd, bytes, sizeof bytes);
    rig_receive(fd, bytes, sizeof bytes);
}

static void echo_datagram(int fd, uint16_t port, const struct fixture *fixture)
{
    uint8_t bytes[64] = {
        0, 0, 0, 1, 127, 0, 0, 1, (uint8_t)(fixture->echo.port >> 8), (uint8_t)fixture->echo.port};

    rig_udp_send(fd, port, bytes, 11);
    assert_int_equal(rig_udp_receive(fd, bytes, sizeof bytes, NULL), 11);
}

/* Anything of ss_ports_*, on loop 0. */
struct call {
    struct fixture *fixture;
    uint16_t port;
    const char *name, *password;
    enum ss_status status;
    struct ss_port_view view;
    struct ss_port_user_view user;
    bool found;
};

static void remove_port(struct rig_engine *rig, void *argument)
{
    struct call *call = argument;

    (void)rig;
    call->status = ss_ports_remove(call->fixture->ports, call->port);
}

static void set_user(struct rig_engine *rig, void *argument)
{
    struct call *call = argument;
    struct ss_config_identity user = {.name = text(call->name), .password = text(call->password)};

    (void)rig;
    call->status = ss_ports_set_user(call->fixture->ports, call->port, &user, call->fixture->error);
}

static void remove_user(struct rig_engine *rig, void *argument)
{
    struct call *call = argument;

    (void)rig;
    call->status = ss_ports_remove_user(call->fixture->ports, call->port, call->name);
}

static void end_sessions(struct rig_engine *rig, void *argument)
{
    struct call *call = argument;

    (void)rig;
    call->status = ss_ports_end_sessions(call->fixture->ports, call->port, call->name);
}

static void view(struct rig_engine *rig, void *argument)
{
    struct call *call = argument;

    (void)rig;
    call->found = ss_ports_find(call->fixture->ports, call->port, &call->view);
}

static void view_user(struct rig_engine *rig, void *argument)
{
    struct call *call = argument;

    (void)rig;
    call->found = false;
    for (size_t i = 0;
         !call->found && ss_ports_user_at(call->fixture->ports, call->port, i, &call->user); i++)
        call->found = strcmp(call->user.name, call->name) == 0;
}

static struct call make(struct fixture *fixture,
                        void (*function)(struct rig_engine *rig, void *argument), const char *name,
                        const char *password)
{
    struct call call = {
        .fixture = fixture, .port = fixture->port, .name = name, .password = password};

    rig_call(&fixture->rig, function, &call);
    return call;
}

static void a_port_comes_serves_and_goes(void **state)
{
    struct fixture *fixture = start();
    struct rig_engine local;
    uint16_t own, port;
    int fd, udp = rig_udp_open(&own), control;
    struct call call;
    (void)state;

    assert_int_equal(make(fixture, remove_port, NULL, NULL).status, SS_ERR_NOT_FOUND);
    assert_int_equal(set_port(fixture, KEY_D, 0), SS_OK);
    connect_client(&local, fixture, KEY_D);
    fd = rig_socks_connect(local.port, fixture->target.port);
    control = rig_socks_associate(local.port, &port);
    echo(fd);
    echo_datagram(udp, port, fixture);
    call = make(fixture, view, NULL, NULL);
    assert_true(call.found && !call.view.has_users && call.view.mode == SS_MODE_TCP_AND_UDP);
    assert_string_equal(call.view.method, METHOD);
    assert_int_equal(call.view.traffic.sessions_opened, 1);
    assert_int_equal(call.view.traffic.rx_bytes, 11 + 1);

    /* The same again changes nothing. */
    assert_int_equal(set_port(fixture, KEY_D, 0), SS_OK);
    echo(fd);
    echo_datagram(udp, port, fixture);
    assert_int_equal(make(fixture, view, NULL, NULL).view.traffic.rx_bytes, 22 + 2);

    assert_int_equal(make(fixture, remove_port, NULL, NULL).status, SS_OK);
    assert_int_equal(rig_receive_end(fd), -1);
    assert_false(make(fixture, view, NULL, NULL).found);
    assert_int_equal(set_port(fixture, KEY_D, 0), SS_OK);
    close(fd);
    fd = rig_socks_connect(local.port, fixture->target.port);
    echo(fd);
    close(fd);
    close(udp);
    close(control);
    rig_stop(&local);
    stop(fixture);
}

static void another_key_ends_the_sessions_of_the_one_before(void **state)
{
    struct fixture *fixture = start();
    struct rig_engine before, after;
    int fd;
    (void)state;

    assert_int_equal(set_port(fixture, KEY_D, 0), SS_OK);
    connect_client(&before, fixture, KEY_D);
    connect_client(&after, fixture, KEY_A);
    fd = rig_socks_connect(before.port, fixture->target.port);
    echo(fd);
    assert_int_equal(set_port(fixture, KEY_A, 0), SS_OK);
    assert_int_equal(rig_receive_end(fd), -1);
    close(fd);
    fd = rig_socks_connect(after.port, fixture->target.port);
    echo(fd);
    close(fd);
    rig_stop(&before);
    rig_stop(&after);
    stop(fixture);
}

static void what_can_not_be_leaves_all_as_it_was(void **state)
{
    struct fixture *fixture = start();
    struct wanted *wanted;
    struct rig_engine local;
    int fd;
    (void)state;

    assert_int_equal(set_port(fixture, KEY_D, 0), SS_OK);
    connect_client(&local, fixture, KEY_D);
    fd = rig_socks_connect(local.port, fixture->target.port);
    echo(fd);

    assert_int_equal(set_port(fixture, "short", 0), SS_ERR_KEY);
    assert_non_null(strstr(fixture->error, "needs a key of 16 bytes"));
    assert_null(strstr(fixture->error, "short"));
    wanted = want(fixture, KEY_D, 0);
    wanted->spec.server.method = text("no-such-method");
    rig_call(&fixture->rig, set, wanted);
    assert_int_equal(wanted->status, SS_ERR_ARGUMENT);
    assert_non_null(strstr(fixture->error, "no-such-method"));
    wanted = want(fixture, KEY_D, 0);
    wanted->address.port++;
    rig_call(&fixture->rig, set, wanted);
    assert_int_equal(wanted->status, SS_ERR_ARGUMENT);
    wanted = want(fixture, KEY_D, 0);
    strcpy(wanted->address.host, "192.0.2.1");
    rig_call(&fixture->rig, set, wanted);
    assert_int_equal(wanted->status, SS_ERR_UNREACHABLE);
    assert_non_null(strstr(fixture->error, "192.0.2.1"));
    wanted = want(fixture, KEY_D, 2);
    wanted->users[1].password = wanted->users[0].password;
    rig_call(&fixture->rig, set, wanted);
    assert_int_equal(wanted->status, SS_ERR_KEY);
    assert_non_null(strstr(fixture->error, "bob"));

    wanted = want(fixture, KEY_D, 0);
    wanted->spec.port = wanted->address.port = fixture->rig.port; /* is taken */
    rig_call(&fixture->rig, set, wanted);
    assert_int_equal(wanted->status, SS_ERR_IN_USE);
    assert_int_equal(ss_ports_count(fixture->ports), 1);
    echo(fd);
    close(fd);
    rig_stop(&local);
    stop(fixture);
}

static void users_come_change_and_go(void **state)
{
    struct fixture *fixture = start();
    struct rig_engine ann, bob;
    struct call call;
    int fds[2];
    (void)state;

    assert_int_equal(set_port(fixture, KEY_D, 1), SS_OK);
    connect_client(&ann, fixture, KEY_D ":" KEY_A);
    connect_client(&bob, fixture, KEY_D ":" KEY_B);
    fds[0] = rig_socks_connect(ann.port, fixture->target.port);
    echo(fds[0]);
    assert_int_equal(make(fixture, set_user, "bob", KEY_B).status, SS_OK);
    fds[1] = rig_socks_connect(bob.port, fixture->second.port);
    echo(fds[1]);
    echo(fds[0]);
    call = make(fixture, view_user, "bob", NULL);
    assert_true(call.found);
    assert_int_equal(call.user.rx_bytes, 11);
    assert_int_equal(call.user.sessions, 1);

    assert_int_equal(make(fixture, set_user, "bob", KEY_A).status, SS_ERR_KEY); /* ann's */
    assert_non_null(strstr(fixture->error, "bob"));
    assert_int_equal(make(fixture, set_user, "bob", "").status, SS_ERR_KEY);
    echo(fds[1]);
    assert_int_equal(make(fixture, set_user, "bob", KEY_C).status, SS_OK);
    assert_int_equal(rig_receive_end(fds[1]), -1);
    echo(fds[0]);
    call = make(fixture, view_user, "bob", NULL);
    assert_int_equal(call.user.rx_bytes, 22); /* goes on counting */
    assert_int_equal(make(fixture, view, NULL, NULL).view.user_count, 2);

    assert_int_equal(make(fixture, end_sessions, "ann", NULL).status, SS_OK);
    assert_int_equal(rig_receive_end(fds[0]), -1);
    close(fds[0]);
    fds[0] = rig_socks_connect(ann.port, fixture->target.port);
    echo(fds[0]);
    assert_int_equal(make(fixture, end_sessions, "nobody", NULL).status, SS_ERR_NOT_FOUND);
    assert_int_equal(make(fixture, end_sessions, NULL, NULL).status, SS_OK);
    assert_int_equal(rig_receive_end(fds[0]), -1);

    assert_int_equal(make(fixture, remove_user, "nobody", NULL).status, SS_ERR_NOT_FOUND);
    assert_int_equal(make(fixture, remove_user, "bob", NULL).status, SS_OK);
    assert_int_equal(make(fixture, remove_user, "ann", NULL).status, SS_OK);
    call = make(fixture, view, NULL, NULL);
    assert_true(call.view.has_users && call.view.user_count == 0);
    close(fds[0]);
    fds[0] = rig_socks_connect(ann.port, fixture->target.port);
    rig_send(fds[0], "x", 1);
    assert_int_equal(rig_receive_end(fds[0]), -1); /* nobody is served */
    close(fds[0]);
    close(fds[1]);
    rig_stop(&ann);
    rig_stop(&bob);
    stop(fixture);
}

/* The bare key is nobody's once there are users. */
static void the_first_user_makes_it_a_port_of_users(void **state)
{
    struct fixture *fixture = start();
    struct rig_engine bare, ann;
    int fd;
    (void)state;

    assert_int_equal(set_port(fixture, KEY_D, 0), SS_OK);
    connect_client(&bare, fixture, KEY_D);
    connect_client(&ann, fixture, KEY_D ":" KEY_A);
    fd = rig_socks_connect(bare.port, fixture->target.port);
    echo(fd);
    assert_int_equal(make(fixture, set_user, "ann", KEY_A).status, SS_OK);
    assert_int_equal(rig_receive_end(fd), -1);
    close(fd);
    fd = rig_socks_connect(ann.port, fixture->target.port);
    echo(fd);
    close(fd);
    rig_stop(&bare);
    rig_stop(&ann);
    stop(fixture);
}

/* Bytes that the heap has given out; 0 where it does not say, or is not the system's. */
static size_t heap_in_use(void)
{
#if defined __GLIBC__ && !defined SS_SANITIZED
    return mallinfo2().uordblks;
#else
    return 0;
#endif
}

#define ROUNDS 50

struct cycles {
    struct fixture *fixture;
    struct wanted *wanted;
    uint16_t ports[8];
};

/* 40 ports and 200 users. */
static void cycle(struct rig_engine *rig, void *argument)
{
    struct cycles *cycles = argument;
    struct fixture *fixture = cycles->fixture;
    struct ss_config_identity user = {.name = text("bob"), .password = text(KEY_B)};
    struct ss_port_view before;

    (void)rig;
    for (int i = 0; i < 5; i++) {
        for (size_t p = 0; p < 8; p++) {
            cycles->wanted->spec.port = cycles->wanted->address.port = cycles->ports[p];
            assert_int_equal(ss_ports_set(fixture->ports, &cycles->wanted->spec, fixture->error),
                             SS_OK);
        }
        assert_int_equal(ss_ports_count(fixture->ports), 9);
        assert_true(ss_ports_find(fixture->ports, cycles->ports[i], &before));
        for (size_t p = 0; p < 8; p++)
            assert_int_equal(
                ss_ports_remove(fixture->ports, cycles->ports[(size_t)(i + (int)p) % 8]), SS_OK);
    }
    for (int i = 0; i < 200; i++) {
        user.password = text(i % 2 == 0 ? KEY_B : KEY_C);
        assert_int_equal(ss_ports_set_user(fixture->ports, fixture->port, &user, fixture->error),
                         SS_OK);
        if (i % 3 == 0)
            assert_int_equal(ss_ports_remove_user(fixture->ports, fixture->port, "bob"), SS_OK);
    }
}

/* While a session of another port and user goes on. */
static void many_cycles_leave_nothing_behind(void **state)
{
    struct fixture *fixture = start();
    struct cycles cycles = {.fixture = fixture};
    struct rig_engine ann;
    size_t in_use = 0;
    int fd;
    (void)state;

    assert_int_equal(set_port(fixture, KEY_D, 1), SS_OK);
    connect_client(&ann, fixture, KEY_D ":" KEY_A);
    fd = rig_socks_connect(ann.port, fixture->target.port);
    echo(fd);
    cycles.wanted = want(fixture, KEY_D, 1);
    /* An address of this process's own, where nobody else takes a port that is free just now. */
    snprintf(cycles.wanted->address.host, sizeof cycles.wanted->address.host, "127.%d.%d.1",
             1 + (int)getpid() / 250 % 250, 1 + (int)getpid() % 250);
    for (size_t p = 0; p < 8; p++)
        cycles.ports[p] = rig_free_port();
    for (int i = 0; i < ROUNDS; i++) {
        rig_call(&fixture->rig, cycle, &cycles);
        if (i == ROUNDS / 5) {
            echo(fd); /* the loops have turned since */
            in_use = heap_in_use();
        }
    }
    echo(fd);
    rig_wait_until(heap_in_use() <= in_use + 32768);
    close(fd);
    rig_stop(&ann);
    stop(fixture);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_port_comes_serves_and_goes),
        cmocka_unit_test(another_key_ends_the_sessions_of_the_one_before),
        cmocka_unit_test(what_can_not_be_leaves_all_as_it_was),
        cmocka_unit_test(users_come_change_and_go),
        cmocka_unit_test(the_first_user_makes_it_a_port_of_users),
        cmocka_unit_test(many_cycles_leave_nothing_behind),
    };

    if (!rig_begin(argc, argv, &workers))
        return 1;
    return rig_end(cmocka_run_group_tests(tests, NULL, NULL));
}
