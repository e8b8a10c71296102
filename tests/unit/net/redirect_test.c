/* Where traffic was going: what can be seen of it without rules, on loopback. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <poll.h>

#include "net/redirect.h"
#include "net/socket.h"
#include "udp_support.h"

static bool have_ipv6(void)
{
    const struct ss_addr addr = address("::1", 0);
    int fd;

    if (ss_udp_open(&fd, &addr, &(struct ss_udp_socket_options){0}, NULL) != SS_OK)
        return false;
    ss_socket_close(fd);
    return true;
}

static bool is_local(const char *host)
{
    const struct ss_addr addr = address(host, 0);

    return ss_redirect_is_local(&addr.ip);
}

static void addresses_of_this_machine(void **state)
{
    (void)state;
    assert_true(is_local("127.0.0.1"));
    assert_true(is_local("127.255.1.2"));
    assert_false(is_local("192.0.2.1"));
    assert_false(is_local("224.0.0.1"));
    assert_false(is_local("255.255.255.255"));
    assert_false(is_local("2001:db8::1"));
    assert_false(is_local("fe80::1"));
    if (have_ipv6())
        assert_true(is_local("::1"));
}

/* What a connection to `host` says, to a listener at `listen`. */
static void connection_says(const char *listen, const char *host)
{
    const struct ss_addr at = address(listen, 0);
    const char *error_text = "";
    struct ss_addr bound, to, peer, original;
    struct sockaddr_storage storage;
    struct pollfd waiting = {.events = POLLIN};
    int dialling, accepted;
    socklen_t len;

    assert_int_equal(
        ss_socket_listen(&waiting.fd, &at, &(struct ss_listen_options){.backlog = 1}, &error_text),
        SS_OK);
    ss_socket_local(waiting.fd, &bound);
    to = address(host, bound.port);
    assert_int_equal(ss_socket_for_dial(&dialling, to.ip.family, &(struct ss_dial_options){0}),
                     SS_OK);
    len = ss_addr_to_sockaddr(&to, &storage);
    (void)connect(dialling, (const struct sockaddr *)&storage, len);
    assert_int_equal(poll(&waiting, 1, 10000), 1);
    assert_int_equal(ss_socket_accept(waiting.fd, &accepted, &peer), SS_OK);
    ss_redirect_original(accepted, &original);
    assert_true(ss_ip_equal(&original.ip, &to.ip));
    assert_int_equal(original.port, to.port);
    ss_socket_close(accepted);
    ss_socket_close(dialling);
    ss_socket_close(waiting.fd);
}

static void a_connection_that_was_not_redirected(void **state)
{
    (void)state;
    connection_says("127.0.0.1", "127.0.0.1");
    connection_says("0.0.0.0", "127.0.0.2");
    if (!have_ipv6())
        return;
    connection_says("::1", "::1");
    connection_says("::", "::1");
    connection_says("::", "127.0.0.3");
}

/* With both families in turn, and IPv4 at a socket for both. */
static const struct pair_kind kinds[] = {
    {"127.0.0.1", "127.0.0.1", "127.0.0.1"},
    {"0.0.0.0", "127.0.0.2", "127.0.0.1"},
    {"::1", "::1", "::1"},
    {"::", "::1", "::1"},
    {"::", "127.0.0.3", "127.0.0.1"},
};

static void datagram_says(const struct pair_kind *kind, bool asked)
{
    static const uint8_t bytes[] = "a datagram";
    struct pair pair;

    pair_open(&pair, kind, &(struct ss_udp_socket_options){.wants_original = asked});
    pair_send(&pair, (struct ss_view){bytes, sizeof bytes});
    ss_udp_flush(pair.outbox);
    assert_int_equal(pair_receive(&pair), 1);
    if (asked) {
        struct ss_ip to = address(kind->to, 0).ip;

        assert_true(ss_ip_equal(&pair.got[0].original.ip, &to));
        assert_int_equal(pair.got[0].original.port, pair.to.port);
    } else {
        assert_int_equal(pair.got[0].original.ip.family, SS_FAMILY_NONE);
    }
    pair_close(&pair);
}

static void ipv4_datagrams_tell_where_they_were_going(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++)
        datagram_says(&kinds[i], true);
}

static void ipv6_datagrams_too(void **state)
{
    (void)state;
    for (size_t i = 2; i < sizeof kinds / sizeof kinds[0]; i++)
        datagram_says(&kinds[i], true);
}

static void nothing_is_told_that_was_not_asked(void **state)
{
    (void)state;
    datagram_says(&kinds[0], false);
}

int redirect_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_of_this_machine),
        cmocka_unit_test(a_connection_that_was_not_redirected),
        cmocka_unit_test(ipv4_datagrams_tell_where_they_were_going),
        cmocka_unit_test(ipv6_datagrams_too),
        cmocka_unit_test(nothing_is_told_that_was_not_asked),
    };

    return cmocka_run_group_tests_name("net: redirect", tests, NULL, NULL);
}
