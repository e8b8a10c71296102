/* Datagrams through two engines on loopback. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "crypto/random.h"
#include "rig.h"

static unsigned workers = 1;

struct chain {
    struct rig_engine server, client;
    struct rig_udp_echo echo;
    struct rig_options options;
};

static void chain_begin(struct chain *chain)
{
    chain->options.engine.workers = workers;
    chain->options.udp = true;
    rig_udp_echo_start(&chain->echo);
    rig_server_start(&chain->server, &chain->options);
}

static void chain_with_local(struct chain *chain)
{
    chain_begin(chain);
    rig_local_start(&chain->client, &chain->options, chain->server.port);
}

static void chain_with_tunnel(struct chain *chain)
{
    chain_begin(chain);
    rig_tunnel_start(&chain->client, &chain->options, chain->server.port, chain->echo.port);
}

static void chain_stop(struct chain *chain)
{
    rig_stop(&chain->client);
    rig_stop(&chain->server);
    rig_udp_echo_stop(&chain->echo);
}

/* Puts the SOCKS5 header for 127.0.0.1:port in front; returns its length. */
static size_t put_header(uint8_t *out, uint16_t port)
{
    const uint8_t header[] = {0, 0, 0, 1, 127, 0, 0, 1, (uint8_t)(port >> 8), (uint8_t)port};

    memcpy(out, header, sizeof header);
    return sizeof header;
}

static void fill(uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)(i * 7 + len);
}

static void datagrams_of_many_sizes_come_back_through_a_tunnel(void **state)
{
    static const size_t sizes[] = {0, 1, 100, 1200, 1400, 1472, 4000, 60000, 65000};
    static uint8_t sent[65536], got[65536];
    struct chain chain = {.options = rig_defaults()};
    uint16_t port, from;
    int fd = rig_udp_open(&port);
    (void)state;

    chain_with_tunnel(&chain);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        fill(sent, sizes[i]);
        rig_udp_send(fd, chain.client.port, sent, sizes[i]);
        assert_int_equal(rig_udp_receive(fd, got, sizeof got, &from), sizes[i]);
        assert_memory_equal(sent, got, sizes[i]);
        assert_int_equal(from, chain.client.port);
    }
    close(fd);
    chain_stop(&chain);
}

static void datagrams_come_back_through_an_associate(void **state)
{
    static uint8_t sent[65536], got[65536];
    struct chain chain = {.options = rig_defaults()};
    struct ss_traffic traffic;
    uint16_t own, port;
    int fd = rig_udp_open(&own);
    int control;
    (void)state;

    chain_with_local(&chain);
    control = rig_socks_associate(chain.client.port, &port);
    assert_int_equal(port, chain.client.port);
    for (size_t len = 0; len <= 60000; len = len * 3 + 1) {
        size_t head = put_header(sent, chain.echo.port);

        fill(sent + head, len);
        rig_udp_send(fd, port, sent, head + len);
        assert_int_equal(rig_udp_receive(fd, got, sizeof got, NULL), head + len);
        assert_memory_equal(sent, got, head + len);
    }
    ss_engine_traffic(chain.server.engine, &traffic);
    assert_int_equal(traffic.associations_opened, 1);
    assert_true(traffic.rx_datagrams == traffic.tx_datagrams && traffic.rx_datagrams > 5);
    close(control);
    close(fd);
    chain_stop(&chain);
}

static void an_association_ends_with_its_connection(void **state)
{
    struct chain chain = {.options = rig_defaults()};
    struct ss_traffic traffic;
    uint8_t bytes[64];
    uint16_t own, port;
    int fd = rig_udp_open(&own);
    size_t head;
    int control;
    (void)state;

    chain_with_local(&chain);
    head = put_header(bytes, chain.echo.port);
    rig_udp_send(fd, chain.client.port, bytes, head + 4); /* nobody has asked yet */
    assert_true(rig_is_silent(fd, 200));

    control = rig_socks_associate(chain.client.port, &port);
    rig_udp_send(fd, port, bytes, head + 4);
    rig_udp_receive(fd, bytes, sizeof bytes, NULL);
    close(control);
    do {
        ss_engine_traffic(chain.client.engine, &traffic);
        rig_pause();
    } while (traffic.associations_closed == 0);
    rig_udp_send(fd, port, bytes, head + 4);
    assert_true(rig_is_silent(fd, 200));
    close(fd);
    chain_stop(&chain);
}

static void another_clients_end_leaves_an_association_alone(void **state)
{
    struct chain chain = {.options = rig_defaults()};
    uint8_t bytes[64];
    uint16_t own, port;
    int fd = rig_udp_open(&own);
    int first, second;
    uint16_t seen = 0;
    (void)state;

    chain_with_local(&chain);
    first = rig_socks_associate(chain.client.port, &port);
    second = rig_socks_associate(chain.client.port, &port);
    for (int round = 0; round < 2; round++) {
        rig_udp_send(fd, port, bytes, put_header(bytes, chain.echo.port) + 1);
        rig_udp_receive(fd, bytes, sizeof bytes, NULL);
        if (round == 0) {
            seen = chain.echo.last_from;
            close(second);
            rig_wait_until(ss_engine_sessions(chain.client.engine) == 1);
        }
    }
    assert_int_equal(chain.echo.last_from, seen);
    close(first);
    close(fd);
    chain_stop(&chain);
}

static void one_client_has_one_port_for_all_targets(void **state)
{
    struct chain chain = {.options = rig_defaults()};
    struct rig_udp_echo other;
    uint8_t bytes[64];
    uint16_t own, port;
    int fd = rig_udp_open(&own);
    int control, stranger;
    size_t head;
    uint16_t stranger_port;
    (void)state;

    chain_with_local(&chain);
    rig_udp_echo_start(&other);
    control = rig_socks_associate(chain.client.port, &port);
    head = put_header(bytes, chain.echo.port);
    rig_udp_send(fd, port, bytes, head + 1);
    rig_udp_receive(fd, bytes, sizeof bytes, NULL);
    head = put_header(bytes, other.port);
    rig_udp_send(fd, port, bytes, head + 1);
    rig_udp_receive(fd, bytes, sizeof bytes, NULL);
    assert_int_equal(chain.echo.last_from, other.last_from);

    /* Anybody may answer there, and is named. */
    stranger = rig_udp_open(&stranger_port);
    rig_udp_send(stranger, other.last_from, "hi", 2);
    assert_int_equal(rig_udp_receive(fd, bytes, sizeof bytes, NULL), 12);
    assert_int_equal(bytes[8] << 8 | bytes[9], stranger_port);
    assert_memory_equal(bytes + 10, "hi", 2);
    close(stranger);
    close(control);
    close(fd);
    rig_udp_echo_stop(&other);
    chain_stop(&chain);
}

static void the_oldest_association_makes_way(void **state)
{
    struct chain chain = {.options = rig_defaults()};
    struct ss_traffic traffic;
    int fds[64];
    uint8_t byte;
    uint16_t own;
    (void)state;

    chain.options.engine.max_associations = 16;
    chain_with_tunnel(&chain);
    for (int i = 0; i < 64; i++) {
        fds[i] = rig_udp_open(&own);
        byte = (uint8_t)i;
        rig_udp_send(fds[i], chain.client.port, &byte, 1);
        byte = 0xff;
        assert_int_equal(rig_udp_receive(fds[i], &byte, 1, NULL), 1);
        assert_int_equal(byte, i);
    }
    ss_engine_traffic(chain.client.engine, &traffic);
    assert_int_equal(traffic.associations_opened, 64);
    assert_int_equal(traffic.associations_closed, 64 - 16);
    for (int i = 0; i < 64; i++)
        close(fds[i]);
    chain_stop(&chain);
}

static void an_idle_association_ends(void **state)
{
    struct chain chain = {.options = rig_defaults()};
    struct ss_traffic traffic;
    uint8_t byte = 1;
    uint16_t own;
    int fd = rig_udp_open(&own);
    (void)state;

    chain.options.engine.udp_timeout_ms = 300;
    chain_with_tunnel(&chain);
    rig_udp_send(fd, chain.client.port, &byte, 1);
    rig_udp_receive(fd, &byte, 1, NULL);
    do {
        ss_engine_traffic(chain.client.engine, &traffic);
        rig_pause();
    } while (traffic.associations_closed == 0);
    rig_udp_send(fd, chain.client.port, &byte, 1); /* a new one takes its place */
    rig_udp_receive(fd, &byte, 1, NULL);
    close(fd);
    chain_stop(&chain);
}

static void junk_gets_no_answer(void **state)
{
    static const size_t sizes[] = {0, 1, 15, 16, 17, 31, 32, 33, 47, 48, 49, 50, 1000, 65507};
    static uint8_t junk[65536];
    struct chain chain = {.options = rig_defaults()};
    uint16_t own;
    int fd = rig_udp_open(&own);
    (void)state;

    chain_with_local(&chain);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        ss_random_bytes(junk, sizes[i]);
        rig_udp_send(fd, chain.server.port, junk, sizes[i]);
        rig_udp_send(fd, chain.client.port, junk, sizes[i]);
    }
    assert_true(rig_is_silent(fd, 300));
    close(fd);
    chain_stop(&chain);
}

static void bursts_come_back_in_order(void **state)
{
    struct chain chain = {.options = rig_defaults()};
    uint8_t bytes[1400];
    uint16_t own;
    int size = 4 << 20;
    int fd = rig_udp_open(&own);
    (void)state;

    chain_with_tunnel(&chain);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    for (uint8_t round = 0; round < 50; round++) {
        for (uint8_t i = 0; i < 60; i++) {
            memset(bytes, i, sizeof bytes);
            rig_udp_send(fd, chain.client.port, bytes, sizeof bytes);
        }
        for (uint8_t i = 0; i < 60; i++) {
            assert_int_equal(rig_udp_receive(fd, bytes, sizeof bytes, NULL), sizeof bytes);
            assert_int_equal(bytes[0], i);
            assert_int_equal(bytes[1399], i);
        }
    }
    close(fd);
    chain_stop(&chain);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(datagrams_of_many_sizes_come_back_through_a_tunnel),
        cmocka_unit_test(datagrams_come_back_through_an_associate),
        cmocka_unit_test(an_association_ends_with_its_connection),
        cmocka_unit_test(another_clients_end_leaves_an_association_alone),
        cmocka_unit_test(one_client_has_one_port_for_all_targets),
        cmocka_unit_test(the_oldest_association_makes_way),
        cmocka_unit_test(an_idle_association_ends),
        cmocka_unit_test(junk_gets_no_answer),
        cmocka_unit_test(bursts_come_back_in_order),
    };

    if (!rig_begin(argc, argv, &workers))
        return 1;
    return rig_end(cmocka_run_group_tests(tests, NULL, NULL));
}
