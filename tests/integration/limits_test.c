/* Limits of a port, through two engines: what passes, what waits, what ends. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "rig.h"

#define STREAMS 4
#define KIB     1024u
#define MIB     (1024u * KIB)

static unsigned workers = 1;

struct chain {
    struct rig_engine server, local;
    struct rig_target targets[STREAMS];
    struct ss_limiter limiter;
};

/* As much as is taken. */
static void serve_without_end(int fd)
{
    static const char bytes[64 * KIB];

    while (send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) > 0)
        continue;
}

static void chain_start(struct chain *chain, const struct ss_limits *limits, rig_serve_fn *serve,
                        bool udp)
{
    struct rig_options options = rig_defaults();

    memset(chain, 0, sizeof *chain);
    ss_limiter_set(&chain->limiter, limits, (int64_t)time(NULL));
    options.engine.workers = workers;
    options.udp = udp;
    options.limiter = &chain->limiter;
    for (int i = 0; i < STREAMS; i++)
        rig_target_start(&chain->targets[i], serve);
    rig_server_start(&chain->server, &options);
    options.limiter = NULL;
    rig_local_start(&chain->local, &options, chain->server.port);
}

static void chain_stop(struct chain *chain)
{
    rig_stop(&chain->local);
    rig_stop(&chain->server);
    for (int i = 0; i < STREAMS; i++)
        rig_target_stop(&chain->targets[i]);
    assert_int_equal(atomic_load(&chain->limiter.connections), 0);
}

struct reader {
    pthread_t thread;
    int fd;
    uint64_t until_ms; /* of uv_hrtime; 0: to the end */
    uint64_t got;
};

static void *read_all(void *argument)
{
    struct reader *reader = argument;
    char *bytes = malloc(64 * KIB);
    ssize_t count;

    while ((reader->until_ms == 0 || uv_hrtime() / 1000000 < reader->until_ms) &&
           (count = recv(reader->fd, bytes, 64 * KIB, 0)) > 0)
        reader->got += (uint64_t)count;
    free(bytes);
    return NULL;
}

static void read_streams(struct chain *chain, struct reader readers[STREAMS], uint64_t for_ms)
{
    for (int i = 0; i < STREAMS; i++) {
        readers[i].got = 0;
        readers[i].until_ms = for_ms != 0 ? uv_hrtime() / 1000000 + for_ms : 0;
        if (readers[i].fd == 0)
            readers[i].fd = rig_socks_connect(chain->local.port, chain->targets[i].port);
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_all, &readers[i]), 0);
    }
    for (int i = 0; i < STREAMS; i++)
        assert_int_equal(pthread_join(readers[i].thread, NULL), 0);
}

static void close_streams(struct reader readers[STREAMS])
{
    for (int i = 0; i < STREAMS; i++)
        close(readers[i].fd);
}

static uint64_t sum_of(const struct reader readers[STREAMS])
{
    uint64_t sum = 0;

    for (int i = 0; i < STREAMS; i++)
        sum += readers[i].got;
    return sum;
}

static void a_quota_ends_all_its_sessions(void **state)
{
    const struct ss_limits limits = {.quota = 10 * MIB}, raised = {.quota = 12 * MIB};
    struct reader readers[STREAMS] = {0};
    struct chain chain;
    uint64_t first;
    (void)state;

    chain_start(&chain, &limits, serve_without_end, false);
    read_streams(&chain, readers, 0);
    close_streams(readers);
    first = sum_of(readers);
    /* What was granted and not delivered when the others ended is all that may be missing. */
    assert_in_range(first, 10 * MIB - STREAMS * 512 * KIB, 10 * MIB + STREAMS * 64 * KIB);
    assert_int_equal(ss_limiter_reason(&chain.limiter, (int64_t)time(NULL)), SS_LIMIT_QUOTA);

    /* A new one is refused after its request, by its end and without a byte. */
    readers[0].fd = rig_socks_connect(chain.local.port, chain.targets[0].port);
    rig_receive_end(readers[0].fd);
    close(readers[0].fd);

    ss_limiter_set(&chain.limiter, &raised, (int64_t)time(NULL));
    memset(readers, 0, sizeof readers);
    read_streams(&chain, readers, 0);
    close_streams(readers);
    assert_in_range(sum_of(readers), MIB, 2 * MIB + STREAMS * 64 * KIB);
    chain_stop(&chain);
}

static void an_upload_ends_at_the_quota_as_well(void **state)
{
    const struct ss_limits limits = {.quota = MIB};
    struct chain chain;
    char *bytes = calloc(1, 64 * KIB);
    uint64_t got = 0;
    ssize_t sent;
    int fd;
    (void)state;

    chain_start(&chain, &limits, rig_serve_echo, false);
    fd = rig_socks_connect(chain.local.port, chain.targets[0].port);
    do {
        ssize_t count;

        sent = send(fd, bytes, 16 * KIB, MSG_NOSIGNAL);
        for (ssize_t back = 0; back < sent; back += count) {
            count = recv(fd, bytes, 16 * KIB, 0);
            if (count <= 0) {
                sent = 0;
                break;
            }
            got += (uint64_t)count;
        }
    } while (sent > 0);
    /* Both ways count: what went up came down. */
    assert_in_range(got, MIB / 2 - 64 * KIB, MIB / 2 + 64 * KIB);
    close(fd);
    free(bytes);
    chain_stop(&chain);
}

static void a_rate_holds_and_is_shared(void **state)
{
    const struct ss_limits limits = {.rate = 4 * MIB};
    struct reader readers[STREAMS] = {0};
    struct chain chain;
    uint64_t least = UINT64_MAX, most = 0;
    (void)state;

    chain_start(&chain, &limits, serve_without_end, false);
    read_streams(&chain, readers, 500); /* the bucket's own contents */
    read_streams(&chain, readers, 4000);
    /* Time is the behaviour here: a wide margin, for a machine that others use. */
    assert_in_range(sum_of(readers), 4 * 4 * MIB / 3, 4 * 4 * MIB * 4 / 3);
    for (int i = 0; i < STREAMS; i++) {
        if (readers[i].got < least)
            least = readers[i].got;
        if (readers[i].got > most)
            most = readers[i].got;
    }
    assert_true(least > most / 3);
    close_streams(readers);
    chain_stop(&chain);
}

static void connections_above_the_number_are_refused(void **state)
{
    const struct ss_limits limits = {.max_connections = 2};
    struct chain chain;
    int fds[3];
    char byte = 'x';
    (void)state;

    chain_start(&chain, &limits, rig_serve_echo, false);
    for (int i = 0; i < 2; i++) {
        fds[i] = rig_socks_connect(chain.local.port, chain.targets[i].port);
        rig_send(fds[i], &byte, 1);
        rig_receive(fds[i], &byte, 1);
    }
    fds[2] = rig_socks_connect(chain.local.port, chain.targets[2].port);
    rig_receive_end(fds[2]);
    close(fds[2]);
    close(fds[0]);
    rig_wait_until(atomic_load(&chain.limiter.connections) == 1);
    fds[2] = rig_socks_connect(chain.local.port, chain.targets[2].port);
    rig_send(fds[2], &byte, 1);
    rig_receive(fds[2], &byte, 1);
    close(fds[2]);
    close(fds[1]);
    chain_stop(&chain);
}

static void an_expired_port_serves_nobody(void **state)
{
    const struct ss_limits limits = {.expires_s = 1000}, later = {.expires_s = INT64_MAX};
    struct chain chain;
    char byte = 'x';
    int fd;
    (void)state;

    chain_start(&chain, &limits, rig_serve_echo, false);
    fd = rig_socks_connect(chain.local.port, chain.targets[0].port);
    rig_receive_end(fd);
    close(fd);
    ss_limiter_set(&chain.limiter, &later, (int64_t)time(NULL));
    fd = rig_socks_connect(chain.local.port, chain.targets[0].port);
    rig_send(fd, &byte, 1);
    rig_receive(fd, &byte, 1);
    /* The end comes while the session is there. */
    ss_limiter_set(&chain.limiter, &limits, (int64_t)time(NULL));
    rig_send(fd, &byte, 1);
    rig_receive_end(fd);
    close(fd);
    chain_stop(&chain);
}

static void datagrams_above_the_quota_are_dropped(void **state)
{
    const struct ss_limits limits = {.quota = 2500};
    struct rig_udp_echo echo;
    uint8_t datagram[10 + 1000] = {0, 0, 0, 1, 127, 0, 0, 1}, got[2000];
    struct chain chain;
    uint16_t own, relay;
    int control, fd;
    (void)state;

    chain_start(&chain, &limits, rig_serve_echo, true);
    rig_udp_echo_start(&echo);
    datagram[8] = (uint8_t)(echo.port >> 8);
    datagram[9] = (uint8_t)echo.port;
    control = rig_socks_associate(chain.local.port, &relay);
    fd = rig_udp_open(&own);
    rig_udp_send(fd, relay, datagram, sizeof datagram);
    assert_int_equal(rig_udp_receive(fd, got, sizeof got, NULL), sizeof datagram);
    rig_udp_send(fd, relay, datagram, sizeof datagram); /* 1,000 more would be 3,000 */
    assert_true(rig_is_silent(fd, 300));
    rig_udp_send(fd, relay, datagram, 10 + 200);
    assert_int_equal(rig_udp_receive(fd, got, sizeof got, NULL), 10 + 200);
    rig_udp_send(fd, relay, datagram, 10 + 200);
    assert_true(rig_is_silent(fd, 300));
    close(fd);
    close(control);
    chain_stop(&chain);
    rig_udp_echo_stop(&echo);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quota_ends_all_its_sessions),
        cmocka_unit_test(an_upload_ends_at_the_quota_as_well),
        cmocka_unit_test(a_rate_holds_and_is_shared),
        cmocka_unit_test(connections_above_the_number_are_refused),
        cmocka_unit_test(an_expired_port_serves_nobody),
        cmocka_unit_test(datagrams_above_the_quota_are_dropped),
    };

    if (!rig_begin(argc, argv, &workers))
        return 1;
    return rig_end(cmocka_run_group_tests(tests, NULL, NULL));
}
