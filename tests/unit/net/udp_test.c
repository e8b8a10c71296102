/* Datagrams through the batches: all of them, whole, with their addresses. */
#include "net/udp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/socket.h"
#include "udp_support.h"

enum { IPV4, IPV6, IPV4_TO_BOTH, IPV6_TO_BOTH, IPV4_FROM_BOTH };

static const struct pair_kind kinds[] = {
    [IPV4] = {"127.0.0.1", "127.0.0.1", "127.0.0.1"},    [IPV6] = {"::1", "::1", "::1"},
    [IPV4_TO_BOTH] = {"::", "127.0.0.1", "127.0.0.1"},   [IPV6_TO_BOTH] = {"::", "::1", "::1"},
    [IPV4_FROM_BOTH] = {"127.0.0.1", "127.0.0.1", "::"},
};

static const struct ss_udp_socket_options no_options = {0};
static const struct ss_udp_socket_options telling = {.wants_local = true};

static uint8_t payload[SS_UDP_BATCH * 2][SS_UDP_PAYLOAD_MAX + 100];

/* The sender's address as the receiver is to see it; a socket bound to :: has none of its own. */
static void assert_from_sender(const struct pair *pair, const struct ss_datagram *datagram)
{
    assert_int_equal(datagram->peer.port, pair->sender_addr.port);
    if (ss_ip_is_any(&pair->sender_addr.ip))
        assert_true(ss_ip_equal(&datagram->peer.ip, &pair->to.ip));
    else
        assert_true(ss_ip_equal(&datagram->peer.ip, &pair->sender_addr.ip));
}

/* Receives `count` datagrams of which number i is `len` bytes filled with seed i. */
static void expect_filled(struct pair *pair, unsigned count, size_t len)
{
    unsigned seen = 0;

    while (seen < count) {
        size_t got = pair_receive(pair);

        for (size_t i = 0; i < got; i++) {
            assert_int_equal(pair->got[i].bytes.len, len);
            assert_true(is_filled(pair->got[i].bytes.ptr, len, seen));
            assert_from_sender(pair, &pair->got[i]);
            assert_int_equal(pair->got[i].local.family, SS_FAMILY_NONE);
            seen++;
        }
    }
    assert_int_equal(seen, count);
}

static void send_filled(struct pair *pair, unsigned count, size_t len)
{
    for (unsigned i = 0; i < count; i++) {
        fill(payload[i], len, i);
        pair_send(pair, (struct ss_view){payload[i], len});
    }
    ss_udp_flush(pair->outbox);
}

static void batches_of_every_size_arrive_in_order(void **state)
{
    const struct pair_kind *kind = *state;
    struct pair pair;

    pair_open(&pair, kind, &no_options);
    for (unsigned count = 1; count <= SS_UDP_BATCH; count++) {
        send_filled(&pair, count, 20 * count);
        expect_filled(&pair, count, 20 * count);
    }
    assert_true(pair_is_quiet(&pair));
    assert_int_equal(ss_udp_dropped(pair.outbox), 0);
    pair_close(&pair);
}

static void datagrams_of_every_size_arrive_whole(void **state)
{
    static const size_t sizes[] = {0,    1,    2,     511,   512,   1279,  1280, 1400,  1472,
                                   1473, 3583, 3584,  3585,  4095,  4096,  8191, 16384, 32767,
                                   8192, 9000, 32768, 60000, 65000, 65506, 65507};
    const struct pair_kind *kind = *state;
    struct pair pair;

    pair_open(&pair, kind, &no_options);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        send_filled(&pair, 1, sizes[i]);
        expect_filled(&pair, 1, sizes[i]);
    }
    assert_int_equal(ss_udp_dropped(pair.outbox), 0);
    pair_close(&pair);
}

static void nothing_is_received_when_nothing_waits(void **state)
{
    struct pair pair;

    pair_open(&pair, *state, &no_options);
    assert_int_equal(ss_udp_receive(pair.inbox, pair.receiver, pair.got), 0);
    ss_udp_flush(pair.outbox);
    assert_true(pair_is_quiet(&pair));
    pair_close(&pair);
}

static void a_full_outbox_flushes_itself(void **state)
{
    struct pair pair;

    pair_open(&pair, *state, &no_options);
    send_filled(&pair, 2 * SS_UDP_BATCH, 100);
    expect_filled(&pair, 2 * SS_UDP_BATCH, 100);
    pair_close(&pair);
}

/* Neighbours of one length go and come as one message; nobody is to notice. */
static void joined_datagrams_keep_their_boundaries(void **state)
{
    struct pair pair;
    unsigned random = 1;

    pair_open(&pair, *state, &no_options);
    for (size_t len = 1; len <= 1472; len += len < 40 ? 1 : 17) {
        send_filled(&pair, 24, len);
        expect_filled(&pair, 24, len);
    }
    for (unsigned round = 0; round < 200; round++) {
        size_t lens[SS_UDP_BATCH];
        unsigned seen = 0;

        for (unsigned i = 0; i < SS_UDP_BATCH; i++) {
            random = random * 1103515245 + 12345;
            lens[i] = (random >> 16) % 4 != 0 && i != 0 ? lens[i - 1] : (random >> 18) % 1473;
            fill(payload[i], lens[i], i);
            pair_send(&pair, (struct ss_view){payload[i], lens[i]});
        }
        ss_udp_flush(pair.outbox);
        while (seen < SS_UDP_BATCH) {
            size_t got = pair_receive(&pair);

            for (size_t i = 0; i < got; i++, seen++) {
                assert_int_equal(pair.got[i].bytes.len, lens[seen]);
                assert_true(is_filled(pair.got[i].bytes.ptr, lens[seen], seen));
                assert_from_sender(&pair, &pair.got[i]);
                /* The room around it is its own, whatever its neighbours were. */
                memset(pair.got[i].bytes.ptr - SS_UDP_HEADROOM, 0xee, SS_UDP_HEADROOM);
                memset(pair.got[i].bytes.ptr + lens[seen], 0xee, SS_UDP_TAILROOM);
            }
        }
    }
    assert_int_equal(ss_udp_dropped(pair.outbox), 0);
    pair_close(&pair);
}

static void an_outbox_serves_several_sockets_in_turn(void **state)
{
    struct ss_addr any = address("127.0.0.1", 0);
    struct pair pair;
    uint16_t ports[3];
    int senders[3];

    (void)state;
    pair_open(&pair, &kinds[IPV4], &no_options);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ss_udp_open(&senders[i], &any, &no_options, NULL), SS_OK);
        ports[i] = port_of(senders[i]);
    }
    for (uint8_t i = 0; i < 30; i++) {
        payload[i][0] = i;
        ss_udp_send(pair.outbox, senders[i / 2 % 3], SS_FAMILY_IPV4, &pair.to, NO_ADDRESS,
                    (struct ss_view){payload[i], 1});
    }
    ss_udp_flush(pair.outbox);
    for (uint8_t seen = 0; seen < 30;) {
        size_t got = pair_receive(&pair);

        for (size_t i = 0; i < got; i++, seen++) {
            assert_int_equal(pair.got[i].bytes.ptr[0], seen);
            assert_int_equal(pair.got[i].peer.port, ports[seen / 2 % 3]);
        }
    }
    for (int i = 0; i < 3; i++)
        ss_socket_close(senders[i]);
    pair_close(&pair);
}

/* A client that reaches a wildcard listener by an address sees the answer come from that one. */
static void a_wildcard_listener_answers_from_the_address_that_was_used(void **state)
{
    static const struct pair_kind wildcards[] = {
        {"0.0.0.0", "127.0.0.2", "127.0.0.1"},
        {"0.0.0.0", "127.0.0.1", "127.0.0.1"},
        {"::", "127.0.0.3", "127.0.0.1"},
        {"::", "::1", "::1"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof wildcards / sizeof wildcards[0]; i++) {
        enum ss_family family = strchr(wildcards[i].listen, ':') ? SS_FAMILY_IPV6 : SS_FAMILY_IPV4;
        struct pair pair;

        pair_open(&pair, &wildcards[i], &telling);
        send_filled(&pair, 1, 10);
        assert_int_equal(pair_receive(&pair), 1);
        assert_from_sender(&pair, &pair.got[0]);
        assert_true(ss_ip_equal(&pair.got[0].local, &pair.to.ip));

        struct ss_datagram question = pair.got[0];

        ss_udp_send(pair.outbox, pair.receiver, family, &question.peer, &question.local,
                    (struct ss_view){question.bytes.ptr, question.bytes.len});
        ss_udp_flush(pair.outbox);
        wait_readable(pair.sender);
        assert_int_equal(ss_udp_receive(pair.inbox, pair.sender, pair.got), 1);
        assert_true(ss_ip_equal(&pair.got[0].peer.ip, &pair.to.ip));
        assert_int_equal(pair.got[0].peer.port, pair.to.port);
        pair_close(&pair);
    }
}

/* A batch in which every third datagram can't be sent, for the reason that `spoil` makes. */
static void expect_others_to_arrive(struct pair *pair, const struct ss_addr *bad_to, size_t bad_len)
{
    uint64_t before = ss_udp_dropped(pair->outbox);
    unsigned bad = 0;

    for (uint8_t i = 0; i < 30; i++) {
        bool is_bad = i % 3 == 0 || i == 29;

        payload[i][0] = i;
        bad += is_bad;
        ss_udp_send(pair->outbox, pair->sender, pair->sender_family, is_bad ? bad_to : &pair->to,
                    NO_ADDRESS, (struct ss_view){payload[i], is_bad ? bad_len : 5});
    }
    ss_udp_flush(pair->outbox);
    for (uint8_t next = 1; next < 29;) {
        size_t got = pair_receive(pair);

        for (size_t i = 0; i < got; i++) {
            assert_int_equal(pair->got[i].bytes.len, 5);
            assert_int_equal(pair->got[i].bytes.ptr[0], next);
            next = (uint8_t)(next + (next % 3 == 1 ? 1 : 2));
        }
    }
    assert_true(pair_is_quiet(pair));
    assert_int_equal(ss_udp_dropped(pair->outbox) - before, bad);
}

static void a_datagram_that_fails_costs_no_other(void **state)
{
    struct ss_addr of_other_family = address("::1", 53);
    struct ss_addr broadcast = address("255.255.255.255", 53); /* refused without SO_BROADCAST */
    struct ss_addr none = {.port = 53};
    struct pair pair;

    (void)state;
    pair_open(&pair, &kinds[IPV4], &no_options);
    expect_others_to_arrive(&pair, &of_other_family, 5);
    expect_others_to_arrive(&pair, &broadcast, 5);
    expect_others_to_arrive(&pair, &none, 5);
    expect_others_to_arrive(&pair, &pair.to, SS_UDP_PAYLOAD_MAX + 1);
    pair_close(&pair);
}

static void an_ipv4_peer_of_an_ipv6_only_socket_costs_no_other(void **state)
{
    const struct ss_udp_socket_options only = {.ipv6_only = true};
    struct ss_addr of_other_family = address("127.0.0.1", 53);
    struct ss_addr any = address("::1", 0);
    struct pair pair;

    (void)state;
    pair_open(&pair, &kinds[IPV6], &no_options);
    ss_socket_close(pair.sender);
    assert_int_equal(ss_udp_open(&pair.sender, &any, &only, NULL), SS_OK);
    expect_others_to_arrive(&pair, &of_other_family, 5);
    pair_close(&pair);
}

/* The kernel tells a connected socket of the unreachable port; it is no reason to miss what comes
 * after. */
static void errors_of_earlier_sends_are_swallowed(void **state)
{
    struct sockaddr_storage storage;
    struct ss_addr own, closed;
    struct pair pair;
    socklen_t len;
    int other;

    (void)state;
    pair_open(&pair, &kinds[IPV4], &no_options);
    ss_socket_local(pair.sender, &closed);
    ss_socket_local(pair.receiver, &own);
    ss_socket_close(pair.sender);
    pair.sender = -1;
    len = ss_addr_to_sockaddr(&closed, &storage);
    assert_int_equal(connect(pair.receiver, (const struct sockaddr *)&storage, len), 0);

    assert_int_equal(send(pair.receiver, "x", 1, 0), 1);
    wait_readable(pair.receiver);
    assert_int_equal(ss_udp_receive(pair.inbox, pair.receiver, pair.got), 0);

    assert_int_equal(send(pair.receiver, "x", 1, 0), 1);
    wait_readable(pair.receiver);
    assert_int_equal(ss_udp_open(&other, &closed, &no_options, NULL), SS_OK);
    ss_udp_send(pair.outbox, other, SS_FAMILY_IPV4, &own, NO_ADDRESS,
                (struct ss_view){(const uint8_t *)"yes", 3});
    ss_udp_flush(pair.outbox);
    assert_int_equal(pair_receive(&pair), 1);
    assert_memory_equal(pair.got[0].bytes.ptr, "yes", 3);
    ss_socket_close(other);
    pair_close(&pair);
}

static void a_port_is_bound_once_unless_it_is_to_be_shared(void **state)
{
    const struct ss_udp_socket_options sharing = {.reuse_port = true};
    struct ss_addr addr = address("127.0.0.1", 0);
    const char *error_text = NULL;
    int first, second;

    (void)state;
    assert_int_equal(ss_udp_open(&first, &addr, &no_options, &error_text), SS_OK);
    addr.port = port_of(first);
    assert_int_equal(ss_udp_open(&second, &addr, &no_options, &error_text), SS_ERR_IN_USE);
    assert_int_equal(second, -1);
    assert_string_equal(error_text, strerror(EADDRINUSE));
    ss_socket_close(first);

    assert_int_equal(ss_udp_open(&first, &addr, &sharing, NULL), SS_OK);
    assert_int_equal(ss_udp_open(&second, &addr, &sharing, NULL), SS_OK);
    ss_socket_close(first);
    ss_socket_close(second);
}

static void what_cannot_be_bound_is_told(void **state)
{
    const struct ss_udp_socket_options no_device = {.interface = "no-such-device",
                                                    .interface_required = true};
    struct ss_addr addr = address("192.0.2.1", 0); /* set aside for documents, so not ours */
    struct ss_addr loopback = address("127.0.0.1", 0);
    struct ss_addr none = {.port = 1};
    const char *error_text = NULL;
    int fd;

    (void)state;
    assert_int_equal(ss_udp_open(&fd, &addr, &no_options, &error_text), SS_ERR_UNREACHABLE);
    assert_string_equal(error_text, strerror(EADDRNOTAVAIL));
    assert_int_equal(ss_udp_open(&fd, &none, &no_options, &error_text), SS_ERR_UNSUPPORTED);
    assert_int_equal(fd, -1);
    error_text = NULL;
    assert_int_not_equal(ss_udp_open(&fd, &loopback, &no_device, &error_text), SS_OK);
    assert_non_null(error_text);
    assert_int_equal(fd, -1);
}

static void an_ipv6_only_listener_leaves_ipv4_to_another(void **state)
{
    const struct ss_udp_socket_options only = {.ipv6_only = true};
    struct ss_addr six = address("::", 0);
    struct ss_addr four = address("0.0.0.0", 0);
    int first, second;

    (void)state;
    if (ss_udp_open(&first, &six, &only, NULL) != SS_OK)
        skip();
    four.port = port_of(first);
    assert_int_equal(ss_udp_open(&second, &four, &no_options, NULL), SS_OK);
    ss_socket_close(first);
    ss_socket_close(second);

    assert_int_equal(ss_udp_open(&first, &six, &no_options, NULL), SS_OK);
    four.port = port_of(first);
    assert_int_equal(ss_udp_open(&second, &four, &no_options, NULL), SS_ERR_IN_USE);
    ss_socket_close(first);
}

static void sockets_have_the_options_asked_for(void **state)
{
    const struct ss_udp_socket_options fixed = {
        .dont_fragment = true, .sndbuf = 30000, .rcvbuf = 20000};
    struct ss_addr addr = address("127.0.0.1", 0);
    int fd, value;
    socklen_t len = sizeof value;

    (void)state;
    assert_int_equal(ss_udp_open(&fd, &addr, &fixed, NULL), SS_OK);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    /* The kernel doubles what it is asked for. */
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &value, &len), 0);
    assert_in_range(value, 30000, 60000);
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &value, &len), 0);
    assert_in_range(value, 20000, 40000);
#ifdef IP_MTU_DISCOVER
    assert_int_equal(getsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &value, &len), 0);
    assert_int_equal(value, IP_PMTUDISC_DO);
    ss_socket_close(fd);
    assert_int_equal(ss_udp_open(&fd, &addr, &no_options, NULL), SS_OK);
    assert_int_equal(getsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &value, &len), 0);
    assert_int_equal(value, IP_PMTUDISC_DONT);
#endif
    ss_socket_close(fd);
}

#ifdef IPV6_MTU_DISCOVER
static void a_socket_for_both_families_fragments_alike_in_both(void **state)
{
    const struct ss_udp_socket_options fixed = {.dont_fragment = true};
    struct ss_addr addr = address("::", 0);
    int fd, value;
    socklen_t len = sizeof value;

    (void)state;
    for (int forbidden = 0; forbidden < 2; forbidden++) {
        if (ss_udp_open(&fd, &addr, forbidden ? &fixed : &no_options, NULL) != SS_OK)
            skip();
        assert_int_equal(getsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &value, &len), 0);
        assert_int_equal(value, forbidden ? IP_PMTUDISC_DO : IP_PMTUDISC_DONT);
        assert_int_equal(getsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &value, &len), 0);
        assert_int_equal(value, forbidden ? IPV6_PMTUDISC_DO : IPV6_PMTUDISC_DONT);
        ss_socket_close(fd);
    }
}
#endif

#define FOR_KIND(test, kind)                                               \
    {                                                                      \
#test " " #kind, test, NULL, NULL, (void *)(uintptr_t)&kinds[kind] \
    }

int udp_tests(void)
{
    const struct CMUnitTest tests[] = {
        FOR_KIND(batches_of_every_size_arrive_in_order, IPV4),
        FOR_KIND(batches_of_every_size_arrive_in_order, IPV6),
        FOR_KIND(batches_of_every_size_arrive_in_order, IPV4_TO_BOTH),
        FOR_KIND(batches_of_every_size_arrive_in_order, IPV6_TO_BOTH),
        FOR_KIND(batches_of_every_size_arrive_in_order, IPV4_FROM_BOTH),
        FOR_KIND(datagrams_of_every_size_arrive_whole, IPV4),
        FOR_KIND(datagrams_of_every_size_arrive_whole, IPV6),
        FOR_KIND(datagrams_of_every_size_arrive_whole, IPV4_TO_BOTH),
        FOR_KIND(datagrams_of_every_size_arrive_whole, IPV4_FROM_BOTH),
        FOR_KIND(nothing_is_received_when_nothing_waits, IPV4),
        FOR_KIND(a_full_outbox_flushes_itself, IPV4),
        FOR_KIND(a_full_outbox_flushes_itself, IPV6),
        FOR_KIND(joined_datagrams_keep_their_boundaries, IPV4),
        FOR_KIND(joined_datagrams_keep_their_boundaries, IPV6),
        FOR_KIND(joined_datagrams_keep_their_boundaries, IPV4_FROM_BOTH),
        cmocka_unit_test(an_outbox_serves_several_sockets_in_turn),
        cmocka_unit_test(a_wildcard_listener_answers_from_the_address_that_was_used),
        cmocka_unit_test(a_datagram_that_fails_costs_no_other),
        cmocka_unit_test(an_ipv4_peer_of_an_ipv6_only_socket_costs_no_other),
        cmocka_unit_test(errors_of_earlier_sends_are_swallowed),
        cmocka_unit_test(a_port_is_bound_once_unless_it_is_to_be_shared),
        cmocka_unit_test(what_cannot_be_bound_is_told),
        cmocka_unit_test(an_ipv6_only_listener_leaves_ipv4_to_another),
        cmocka_unit_test(sockets_have_the_options_asked_for),
#ifdef IPV6_MTU_DISCOVER
        cmocka_unit_test(a_socket_for_both_families_fragments_alike_in_both),
#endif
    };

    return cmocka_run_group_tests_name("udp", tests, NULL, NULL);
}
