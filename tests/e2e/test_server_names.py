"""Upstream servers by name: several addresses, records that change, name servers that fail (R22, R86).

The name's addresses are 127.0.78.x, so that one port can refuse at one of them and serve at another.
"""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, counting, dns_stub, hole, proc, servers  # noqa: E402
from support import timing, udp, wait  # noqa: E402

FIRST, SECOND, THIRD = "127.0.78.1", "127.0.78.2", "127.0.78.3"
NAME = "server.test"
PROMPT_S = 2


class ServerNames(servers.Case):
    def setUp(self):
        super().setUp()
        self.target = counting.Target()
        self.addCleanup(self.target.close)

    def stub(self, *addresses, **how):
        made = dns_stub.Stub({NAME: addresses} if addresses else {}, **how)
        self.addCleanup(made.close)
        return made

    def named(self, server, name=NAME, **more):
        return [{**entry, "server": name, **more} for entry in self.entries([server])]

    def local_by(self, stub, entries, **settings):
        return self.local_with(entries, dns=stub.nameserver, **settings)

    def ask(self, local, count=1):
        for _ in range(count):
            self.assertTrue(counting.ask(local.port, self.target.address))
        self.assertEqual(self.target.twice(), [])

    def test_the_first_address_refuses_and_then_the_record_changes(self):
        """R22: the next address for the same request, and the new one without a restart."""
        server = self.server_of(0, host=SECOND)
        stub = self.stub(FIRST, SECOND)
        local = self.local_by(stub, self.named(server))
        self.ask(local, 5)
        self.server_of(0, port=server.port, host=THIRD)
        server.stop()
        stub.records[NAME] = [THIRD]
        timing.within(self, PROMPT_S, lambda: self.ask(local, 5))

    def test_the_first_address_is_silent(self):
        """It costs the first connection a quarter of a second, and no other."""
        server = self.server_of(0, host=SECOND)
        gone = hole.Hole(FIRST, server.port)
        self.addCleanup(gone.close)
        local = self.local_by(self.stub(FIRST, SECOND), self.named(server))
        timing.within(self, PROMPT_S, lambda: self.ask(local))
        timing.within(self, PROMPT_S, lambda: self.ask(local, 20))

    def test_a_name_server_that_is_down_at_the_start(self):
        """R86: said as ever, tried again, and nothing waits for it."""
        server = self.server_of(0, host=FIRST)
        stub = self.stub(FIRST)
        stub.codes[NAME] = dns_stub.SERVFAIL
        other = self.server_of(1)
        local = self.local_by(stub, self.named(server))
        with_another = self.local_by(stub, self.named(server) + self.entries([other]))
        for program in (local, with_another):
            program.await_log("getaddrinfo: %s" % NAME)
            program.await_log("failed to resolve the provided hostname")
        timing.within(self, PROMPT_S, lambda: self.ask(with_another, 5))
        del stub.codes[NAME]
        local.await_log("%s is resolved now: %s" % (NAME, FIRST), 30)
        self.ask(local, 5)

    def test_a_name_that_nobody_knows(self):
        """The pauses between tries grow."""
        server = self.server_of(0, host=FIRST)
        stub = self.stub(FIRST)
        stub.codes[NAME] = dns_stub.NXDOMAIN
        local = self.local_by(stub, self.named(server))
        local.await_log("failed to resolve", 20, count=3)
        self.assertLessEqual(len(local.log_lines("failed to resolve")), 4)
        self.assertLess(proc.cpu_share(local.pid, 1), 0.1)

    def test_an_outage_of_the_name_server(self):
        """The last known addresses go on to serve, TCP and UDP, and quickly."""
        server = self.server_of(0, "-u", host=FIRST)
        wait.until(lambda: server.port in proc.udp_ports(server.pid), 10, "the UDP port")
        stub = self.stub(FIRST)  # a time to live of 0: each look-up asks
        local = self.local_by(stub, self.named(server), mode="tcp_and_udp")
        self.ask(local, 2)
        stub.silent.add(NAME)
        timing.within(self, PROMPT_S, lambda: self.ask(local, 3))
        echo = udp.Target()
        self.addCleanup(echo.close)
        client = udp.Associate(local.port, timeout=0.3)
        self.addCleanup(client.close)

        def answered():
            try:
                return client.exchange(echo.address, b"still there?")
            except TimeoutError:
                return None

        wait.until(answered, 5, "a datagram's answer")
        stub.silent.clear()
        stub.codes[NAME] = dns_stub.SERVFAIL
        timing.within(self, PROMPT_S, lambda: self.ask(local, 3))

    def test_a_moved_server_is_found_over_udp(self):
        server = self.server_of(0, "-u", host=FIRST)
        wait.until(lambda: server.port in proc.udp_ports(server.pid), 10, "the UDP port")
        stub = self.stub(FIRST)
        local = self.local_by(stub, self.named(server), mode="tcp_and_udp")
        echo = udp.Target()
        self.addCleanup(echo.close)
        for address in (FIRST, SECOND):
            client = udp.Associate(local.port)
            self.addCleanup(client.close)
            client.exchange(echo.address, b"at " + address.encode())
            if address == FIRST:
                server.stop()
                moved = self.server_of(0, "-u", port=server.port, host=SECOND)
                wait.until(lambda: moved.port in proc.udp_ports(moved.pid), 10, "the UDP port")
                stub.records[NAME] = [SECOND]

    def test_a_slow_name_server(self):
        """While nothing is known of the first server another is dialled."""
        server, other = self.server_of(0, host=FIRST), self.server_of(1)
        stub = self.stub(FIRST)
        stub.silent.add(NAME)
        local = self.local_by(stub, self.named(server) + self.entries([other]))
        start = time.monotonic()
        self.ask(local)
        self.assertLess(time.monotonic() - start, PROMPT_S)


if __name__ == "__main__":
    case.main()
