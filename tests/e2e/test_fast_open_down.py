"""Fast open and a server that is not there: it costs one connection, not every other one.

With fast open connecting succeeds before anything is known of the server. In a namespace.
"""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, counting, hole, netns, ports, socks, targets, timing  # noqa: E402

TIMEOUT = 2
FIRST_FEW = 3


def setUpModule():
    netns.enter()
    netns.sysctl("net.ipv4.tcp_fastopen", 3)


class FastOpenDown(case.Case):
    def setUp(self):
        super().setUp()
        self.echo = self.target(targets.echo)

    def two_servers(self, *arguments):
        """Two servers, and an ss-local that changes between them."""
        servers = [self.server("--fast-open") for _ in range(2)]
        port = ports.free_port()
        local = self.program(
            "ss-local", "-s", "127.0.0.1:%d" % servers[0].port, "-s",
            "127.0.0.1:%d" % servers[1].port, "-p", "1", "-l", port, "-k", case.PASSWORD,
            "-m", case.settings.method, "--fast-open", *arguments)
        local.port = port
        return servers, local.await_listening(port)

    def works(self, local):
        try:
            conn = socks.connect(local.port, self.echo.address, first=b"hello")
            with conn:
                return socks.receive(conn, 5) == b"hello"
        except OSError:
            return False

    def fetch_cookies(self, local):
        """Of both servers; from here on first bytes go with the SYN."""
        self.assertEqual([self.works(local) for _ in range(6)], [True] * 6)
        before = netns.counters("TcpExt")["TCPFastOpenActive"]
        self.assertTrue(self.works(local))
        if netns.counters("TcpExt")["TCPFastOpenActive"] == before:
            raise unittest.SkipTest("this kernel does not fast open on the loopback interface")

    def black_hole(self, server):
        """In the server's place: what is sent to its port is lost."""
        server.stop()
        gone = hole.Hole(port=server.port)
        self.addCleanup(gone.close)

    def test_one_of_two_refuses(self):
        servers, local = self.two_servers()
        self.fetch_cookies(local)
        servers[0].stop()
        results = [self.works(local) for _ in range(20)]
        self.assertGreaterEqual(results[:FIRST_FEW].count(True), FIRST_FEW - 1, results)
        self.assertEqual(results[FIRST_FEW:], [True] * (20 - FIRST_FEW))

    def test_one_of_two_is_a_black_hole(self):
        servers, local = self.two_servers("-t", 6)
        self.fetch_cookies(local)
        self.black_hole(servers[1])
        results = [self.works(local) for _ in range(6)]
        self.assertGreaterEqual(results[:FIRST_FEW].count(True), FIRST_FEW - 1, results)
        self.assertEqual(results[FIRST_FEW:], [True] * (6 - FIRST_FEW))

    def test_nothing_is_sent_twice(self):
        """An attempt by fast open is not raced: its bytes may be with the server."""
        servers, local = self.two_servers("-t", 3)
        self.fetch_cookies(local)
        target = counting.Target()
        self.addCleanup(target.close)
        self.black_hole(servers[0])
        answered = 0
        for _ in range(12):
            try:
                answered += counting.ask(local.port, target.address)
            except OSError:
                pass
        self.assertGreaterEqual(answered, 12 - FIRST_FEW)
        self.assertEqual(target.twice(), [])

    def test_the_only_one_is_a_black_hole(self):
        """The client is told within the time that a connection may take."""
        server = self.server("--fast-open")
        local = self.local(server, "--fast-open", "-t", TIMEOUT)
        self.fetch_cookies(local)
        self.black_hole(server)

        def told():
            conn = socks.connect(local.port, self.echo.address, first=b"hello", timeout=60)
            self.addCleanup(conn.close)
            try:
                self.assertEqual(conn.recv(1), b"")
            except ConnectionResetError:
                pass

        timing.within(self, 3 * TIMEOUT, told)
        local.await_no_sessions()


if __name__ == "__main__":
    case.main()
