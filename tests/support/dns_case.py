"""What the tests of names share: an ss-server that asks a stub, and exchanges with named targets."""

import contextlib

from . import case, dns_stub, shadow, targets, wait

LOOK_UP_LIMIT_S = 12  # a connection whose name is not found has ended by then


class DnsCase(case.Case):
    def setUp(self):
        super().setUp()
        self.echo = self.target(targets.echo)

    def stub(self, records=None, **how):
        stub = dns_stub.Stub(records, **how)
        self.addCleanup(stub.close)
        return stub

    def asking(self, stub, *arguments, **how):
        """An ss-server that asks this stub, or a list of name servers as text."""
        nameservers = stub if isinstance(stub, str) else stub.nameserver
        return self.server("-m", shadow.METHOD, "-d", nameservers, *arguments, **how)

    def request(self, server, name, port=None, timeout=20):
        """A connection that has asked for the echo at a name, and sent a few bytes."""
        conn = shadow.Connection(server.port, case.PASSWORD, timeout=timeout)
        self.addCleanup(conn.close)
        conn.request((name, port or self.echo.port), b"hello")
        return conn

    def exchange(self, server, name, timeout=20):
        with contextlib.closing(self.request(server, name, timeout=timeout)) as conn:
            self.assertEqual(conn.receive(5), b"hello", "no echo of %s" % name)

    def assert_ends(self, conn):
        """The server closes, with nothing sent."""
        conn.socket.settimeout(LOOK_UP_LIMIT_S)
        try:
            self.assertEqual(conn.socket.recv(1), b"")
        except ConnectionResetError:
            pass

    def await_queries(self, stub, name, count):
        wait.until(lambda: stub.count(name) >= count, 10, "%d questions for %s" % (count, name))
