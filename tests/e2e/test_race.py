"""Addresses of both families are raced (RFC 8305): one that is broken costs a quarter of a second. In
a namespace."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, counting, dns_stub, netns, ports, proc, servers, shadow  # noqa: E402
from support import socks, timing, wait  # noqa: E402
from support import filter as packet_filter  # noqa: E402

NAME = "both.test"
STAGGER_S = 0.25
PROMPT_S = 1.5
SYN_SENT = "02"


def setUpModule():
    netns.enter()


class Race(servers.Case):
    def setUp(self):
        super().setUp()
        if not ports.have_ipv6():
            self.skipTest("no IPv6 here")
        self.drop = packet_filter.Filter()
        self.addCleanup(self.drop.close)
        self.stub = dns_stub.Stub({NAME: ["127.0.0.1", "::1"]}, ttl=60)
        self.addCleanup(self.stub.close)

    def both(self):
        """A counting target at one port of either family: (IPv4's, IPv6's)."""
        port = ports.free_port()
        made = [counting.Target(host=host, port=port) for host in ("127.0.0.1", "::1")]
        for target in made:
            self.addCleanup(target.close)
        return made

    def exchange(self, server, port):
        conn = shadow.Connection(server.port, case.PASSWORD, timeout=20)
        self.addCleanup(conn.close)
        request = counting.fresh_request()
        conn.request((NAME, port), request)
        self.assertEqual(conn.receive(counting.SIZE), request)

    def started(self, *arguments):
        return self.server("-m", shadow.METHOD, "-d", self.stub.nameserver, *arguments)

    def test_the_preferred_family_is_used_when_it_works(self):
        ipv4, ipv6 = self.both()
        for arguments, used, other in (((), ipv4, ipv6), (("-6",), ipv6, ipv4)):
            server = self.started(*arguments)
            before = sum(other.seen.values())
            for _ in range(5):
                self.exchange(server, ipv4.port)
            self.assertEqual(sum(other.seen.values()), before)
            self.assertGreaterEqual(sum(used.seen.values()), 5)

    def test_a_family_that_is_broken(self):
        ipv4, ipv6 = self.both()
        server = self.started("-6")
        self.drop.drop(ipv6.port, family="ipv6")

        def ask():
            self.exchange(server, ipv4.port)

        self.assertGreaterEqual(timing.seconds_of(ask), 0.9 * STAGGER_S)
        timing.within(self, PROMPT_S, ask)
        self.assertEqual(sum(ipv6.seen.values()), 0)
        self.assertEqual(ipv4.twice(), [])

    def test_a_family_that_is_slow(self):
        """What is sent goes to the one that was first, and to nobody else."""
        ipv4, ipv6 = self.both()
        server = self.started("-6")
        for _ in range(5):
            self.drop.drop(ipv6.port, family="ipv6")
            self.exchange(server, ipv4.port)
            self.drop.let(ipv6.port, family="ipv6")
        self.assertEqual(sum(ipv4.seen.values()), 5)
        self.assertEqual(sum(ipv6.seen.values()), 0)

    def test_a_family_that_refuses(self):
        """The other is tried at once."""
        port = ports.free_port()
        ipv4 = counting.Target(port=port)
        self.addCleanup(ipv4.close)
        server = self.started("-6")
        self.exchange(server, port)
        start = time.monotonic()
        for _ in range(8):
            self.exchange(server, port)
        self.assertLess(time.monotonic() - start, 8 * STAGGER_S)

    def test_a_server_by_a_name_of_both(self):
        """A client's way to its server; the address that works goes first from then on."""
        target = counting.Target()
        self.addCleanup(target.close)
        server = self.server_of(0, host="::")
        entry = {**self.entries([server])[0], "server": NAME}
        local = self.local_with([entry], "-6", dns=self.stub.nameserver)
        self.drop.drop(server.port, family="ipv6")

        def ask(count):
            for _ in range(count):
                self.assertTrue(counting.ask(local.port, target.address))

        timing.within(self, PROMPT_S, lambda: ask(1))
        timing.within(self, PROMPT_S, lambda: ask(20))
        self.drop.let(server.port, family="ipv6")
        self.drop.drop(server.port, family="ipv4")
        timing.within(self, PROMPT_S, lambda: ask(1))
        self.assertEqual(target.twice(), [])

    def test_a_client_that_leaves_during_a_race(self):
        """Nothing is left of its attempts, at the latest when the time to connect is over."""
        ipv4, ipv6 = self.both()
        server = self.started("-6", "-t", 3)
        self.drop.drop(ipv6.port, family="ipv6")
        self.drop.drop(ipv4.port, family="ipv4")
        held = []
        for _ in range(20):
            conn = shadow.Connection(server.port, case.PASSWORD, timeout=20)
            conn.request((NAME, ipv4.port), b"hello")
            held.append(conn)
        wait.until(lambda: len([1 for state, _, remote in proc.tcp_sockets(server.pid)
                                if state == SYN_SENT and remote == ipv4.port]) == 40, 10,
                   "two attempts each")
        for conn in held:
            socks.reset(conn.socket)
        server.await_no_sessions(10)
        self.assertEqual(sum(ipv4.seen.values()) + sum(ipv6.seen.values()), 0)


if __name__ == "__main__":
    case.main()
