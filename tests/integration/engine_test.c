/* Sessions through two engines on loopback: what comes in goes out, and ends as it should. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "rig.h"

static unsigned workers = 1;

struct chain {
    struct rig_engine server, local;
    struct rig_target target;
    struct rig_options options;
};

static void chain_start(struct chain *chain, rig_serve_fn *serve)
{
    chain->options.engine.workers = workers;
    rig_target_start(&chain->target, serve);
    rig_server_start(&chain->server, &chain->options);
    rig_local_start(&chain->local, &chain->options, chain->server.port);
}

static void chain_stop(struct chain *chain)
{
    rig_stop(&chain->local);
    rig_stop(&chain->server);
    rig_target_stop(&chain->target);
}

static void echo_once(const struct chain *chain, size_t len)
{
    int fd = rig_socks_connect(chain->local.port, chain->target.port);
    uint8_t *sent = malloc(len + 1);
    uint8_t *got = malloc(len + 1);

    for (size_t i = 0; i < len; i++)
        sent[i] = (uint8_t)(i * 31 + i / 251);
    rig_send(fd, sent, len);
    rig_receive(fd, got, len);
    assert_memory_equal(sent, got, len);
    shutdown(fd, SHUT_WR);
    assert_int_equal(rig_receive_end(fd), 0);
    close(fd);
    free(sent);
    free(got);
}

static void payloads_of_every_size_come_back(void **state)
{
    static const size_t sizes[] = {0, 1, 2, 100, 1400, 16382, 16383, 16384, 16385, 65535, 200000};
    struct chain chain = {.options = rig_defaults()};
    (void)state;

    chain_start(&chain, rig_serve_echo);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        echo_once(&chain, sizes[i]);
    chain_stop(&chain);
}

static void many_sessions_one_after_the_other(void **state)
{
    struct chain chain = {.options = rig_defaults()};
    struct ss_traffic traffic;
    (void)state;

    chain_start(&chain, rig_serve_echo);
    for (int i = 0; i < 500; i++)
        echo_once(&chain, 100);
    rig_wait_until(ss_engine_sessions(chain.server.engine) == 0);
    ss_engine_traffic(chain.server.engine, &traffic);
    assert_int_equal(traffic.sessions_opened, 500);
    assert_int_equal(traffic.rx_bytes, 50000);
    assert_int_equal(traffic.tx_bytes, 50000);
    chain_stop(&chain);
}

/* Reads all, says nothing until the client has ended, then answers with 1 MiB. */
static void serve_after_fin(int fd)
{
    static char bytes[65536];

    while (recv(fd, bytes, sizeof bytes, 0) > 0) {
    }
    memset(bytes, 'x', sizeof bytes);
    for (int i = 0; i < 16; i++)
        send(fd, bytes, sizeof bytes, MSG_NOSIGNAL);
}

static void an_answer_comes_after_the_client_has_ended(void **state)
{
    struct chain chain = {.options = rig_defaults()};
    char *answer = malloc(1 << 20);
    int fd;
    (void)state;

    chain_start(&chain, serve_after_fin);
    fd = rig_socks_connect(chain.local.port, chain.target.port);
    rig_send(fd, "request", 7);
    shutdown(fd, SHUT_WR);
    rig_receive(fd, answer, 1 << 20);
    assert_int_equal(rig_receive_end(fd), 0);
    close(fd);
    rig_wait_until(ss_engine_sessions(chain.server.engine) == 0);
    rig_wait_until(ss_engine_sessions(chain.local.engine) == 0);
    chain_stop(&chain);
    free(answer);
}

static void serve_first(int fd)
{
    char byte;

    send(fd, "220 hello", 9, MSG_NOSIGNAL);
    (void)!recv(fd, &byte, 1, 0);
}

static void a_target_may_speak_first(void **state)
{
    struct chain chain = {.options = rig_defaults()};
    char got[9];
    int fd;
    (void)state;

    chain_start(&chain, serve_first);
    fd = rig_socks_connect(chain.local.port, chain.target.port);
    rig_receive(fd, got, sizeof got);
    assert_memory_equal(got, "220 hello", 9);
    close(fd);
    chain_stop(&chain);
}

static void *send_much(void *argument)
{
    static char bytes[1 << 16];
    int fd = *(int *)argument;

    for (int i = 0; i < 64; i++)
        rig_send(fd, bytes, sizeof bytes);
    shutdown(fd, SHUT_WR);
    return NULL;
}

static void a_slow_reader_holds_the_sender_back_and_gets_all(void **state)
{
    struct chain chain = {.options = rig_defaults()};
    struct ss_traffic traffic;
    pthread_t sender;
    uint64_t before = 0;
    size_t left = 64u << 16;
    static char bytes[1 << 16];
    int small = 65536;
    int fd;
    (void)state;

    chain_start(&chain, rig_serve_echo);
    fd = rig_socks_connect(chain.local.port, chain.target.port);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    assert_int_equal(pthread_create(&sender, NULL, send_much, &fd), 0);
    /* Nobody reads: the relay comes to a stand, then moves again. */
    do {
        ss_engine_traffic(chain.local.engine, &traffic);
        if (traffic.tx_bytes != 0 && traffic.tx_bytes == before)
            break;
        before = traffic.tx_bytes;
        usleep(200000);
    } while (true);
    while (left != 0) {
        size_t part = left < sizeof bytes ? left : sizeof bytes;

        rig_receive(fd, bytes, part);
        left -= part;
    }
    assert_int_equal(rig_receive_end(fd), 0);
    pthread_join(sender, NULL);
    close(fd);
    chain_stop(&chain);
}

static void a_refusing_target_ends_its_own_session(void **state)
{
    struct chain chain = {.options = rig_defaults()};
    uint16_t closed_port;
    int fd;
    (void)state;

    chain_start(&chain, rig_serve_echo);
    {
        struct rig_target gone;

        rig_target_start(&gone, rig_serve_echo);
        closed_port = gone.port;
        rig_target_stop(&gone);
    }
    fd = rig_socks_connect(chain.local.port, closed_port);
    rig_send(fd, "x", 1);
    (void)rig_receive_end(fd);
    close(fd);
    echo_once(&chain, 10);
    chain_stop(&chain);
}

static void an_unreachable_server_ends_the_session(void **state)
{
    struct rig_options options = rig_defaults();
    struct rig_engine local;
    struct rig_target gone;
    int fd;
    (void)state;

    rig_target_start(&gone, rig_serve_echo);
    rig_target_stop(&gone);
    options.engine.workers = workers;
    rig_local_start(&local, &options, gone.port);
    fd = rig_socks_connect(local.port, 9);
    (void)rig_receive_end(fd);
    close(fd);
    rig_wait_until(ss_engine_sessions(local.engine) == 0);
    rig_stop(&local);
}

static const char *another_key(void)
{
    return ss_method_find(rig_method)->key_len == 16
               ? "ERECAwQFBgcICQoLDA0ODw=="
               : "ERECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
}

/* Methods of 2017: no answer and no end; of 2022: a reset at once. */
static void a_wrong_key_gets_nothing(void **state)
{
    struct chain chain = {.options = rig_defaults()};
    struct rig_options other = rig_defaults();
    struct rig_engine stranger;
    int fd;
    (void)state;

    chain_start(&chain, rig_serve_echo);
    other.password = rig_method_is_2022() ? another_key() : "not it";
    rig_local_start(&stranger, &other, chain.server.port);
    fd = rig_socks_connect(stranger.port, chain.target.port);
    rig_send(fd, "hello", 5);
    if (rig_method_is_2022())
        assert_int_equal(rig_receive_end(fd), -1);
    else
        assert_true(rig_is_silent(fd, 500));
    close(fd);
    echo_once(&chain, 10); /* nobody was banned */
    rig_stop(&stranger);
    chain_stop(&chain);
}

/* With FIN, or with RST under the methods of 2022, whatever was sent. */
static void a_silent_connection_is_closed_at_its_deadline(void **state)
{
    struct rig_options options = rig_defaults();
    struct rig_engine server;
    char junk[300];
    int silent, failed;
    (void)state;

    options.engine.workers = workers;
    options.engine.handshake_timeout_ms = 400;
    rig_server_start(&server, &options);
    memset(junk, 'j', sizeof junk);
    silent = rig_connect(server.port);
    failed = rig_connect(server.port);
    rig_send(failed, junk, sizeof junk);
    assert_true(rig_is_silent(silent, 100));
    assert_int_equal(rig_receive_end(silent), rig_method_is_2022() ? -1 : 0);
    assert_int_equal(rig_receive_end(failed), rig_method_is_2022() ? -1 : 0);
    close(silent);
    close(failed);
    rig_stop(&server);
}

static void the_unproven_hold_at_most_half_of_the_places(void **state)
{
    struct chain chain = {.options = rig_defaults()};
    int silent[16];
    (void)state;

    chain.options.engine.max_connections = 16;
    chain_start(&chain, rig_serve_echo);
    for (int i = 0; i < 16; i++) {
        silent[i] = rig_connect(chain.server.port);
        /* one after the other, so that the order of accepting is ours */
        rig_wait_until(ss_engine_sessions(chain.server.engine) >= (i < 8 ? i + 1u : 8u));
    }
    rig_wait_until(ss_engine_sessions(chain.server.engine) <= 8);
    assert_int_equal(rig_receive_end(silent[0]), rig_method_is_2022() ? -1 : 0); /* the oldest */
    assert_true(rig_is_silent(silent[15], 50));
    for (int i = 0; i < 20; i++)
        echo_once(&chain, 100); /* clients still get in */
    for (int i = 0; i < 16; i++)
        close(silent[i]);
    chain_stop(&chain);
}

static void a_full_listener_goes_on_when_a_place_is_free(void **state)
{
    struct chain chain = {.options = rig_defaults()};
    int fds[12];
    char byte;
    (void)state;

    chain.options.engine.max_connections = 8;
    chain_start(&chain, rig_serve_echo);
    (void)byte;
    for (int i = 0; i < 12; i++)
        fds[i] = rig_connect(chain.local.port);
    rig_wait_until(ss_engine_sessions(chain.local.engine) >= 4);
    for (int i = 0; i < 12; i++)
        close(fds[i]);
    echo_once(&chain, 1000);
    chain_stop(&chain);
}

static void stopping_ends_what_is_open(void **state)
{
    struct chain chain = {.options = rig_defaults()};
    int fds[20];
    (void)state;

    chain_start(&chain, serve_first);
    for (int i = 0; i < 20; i++)
        fds[i] = rig_socks_connect(chain.local.port, chain.target.port);
    rig_stop(&chain.local);
    rig_stop(&chain.server);
    for (int i = 0; i < 20; i++)
        close(fds[i]);
    rig_target_stop(&chain.target);
}

static void an_idle_session_ends_and_traffic_keeps_one_open(void **state)
{
    struct chain chain = {.options = rig_defaults()};
    char byte = 'b';
    int fd;
    (void)state;

    chain.options.engine.tcp_idle_timeout_ms = 600;
    chain_start(&chain, rig_serve_echo);
    fd = rig_socks_connect(chain.local.port, chain.target.port);
    for (int i = 0; i < 8; i++) { /* 1.6 s in all */
        rig_send(fd, &byte, 1);
        rig_receive(fd, &byte, 1);
        usleep(200000);
    }
    (void)rig_receive_end(fd);
    close(fd);
    chain_stop(&chain);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payloads_of_every_size_come_back),
        cmocka_unit_test(many_sessions_one_after_the_other),
        cmocka_unit_test(an_answer_comes_after_the_client_has_ended),
        cmocka_unit_test(a_target_may_speak_first),
        cmocka_unit_test(a_slow_reader_holds_the_sender_back_and_gets_all),
        cmocka_unit_test(a_refusing_target_ends_its_own_session),
        cmocka_unit_test(an_unreachable_server_ends_the_session),
        cmocka_unit_test(a_wrong_key_gets_nothing),
        cmocka_unit_test(a_silent_connection_is_closed_at_its_deadline),
        cmocka_unit_test(the_unproven_hold_at_most_half_of_the_places),
        cmocka_unit_test(a_full_listener_goes_on_when_a_place_is_free),
        cmocka_unit_test(stopping_ends_what_is_open),
        cmocka_unit_test(an_idle_session_ends_and_traffic_keeps_one_open),
    };

    if (!rig_begin(argc, argv, &workers))
        return 1;
    return rig_end(cmocka_run_group_tests(tests, NULL, NULL));
}
