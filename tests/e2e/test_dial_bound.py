"""Dialling has an end, however many addresses there are; a slow one makes way for the next."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, dns_stub, ends, hole, ports, shadow, socks  # noqa: E402
from support import targets, timing, wait  # noqa: E402

TIMEOUT = 2
ATTEMPT = 2  # how long one of several addresses is tried
HOLES = ["127.0.77.%d" % number for number in range(1, 17)]
GOOD = "127.0.77.100"


class DialBound(case.Case):
    def setUp(self):
        super().setUp()
        self.stub = dns_stub.Stub({"holes.test": HOLES, "second.test": [HOLES[0], GOOD]}, ttl=60)
        self.addCleanup(self.stub.close)

    def hole(self, host, port=0):
        made = hole.Hole(host, port)
        self.addCleanup(made.close)
        return made.port

    def request(self, server, target, payload=b"hello"):
        conn = shadow.Connection(server.port, case.PASSWORD, timeout=100)
        self.addCleanup(conn.close)
        conn.request(target, payload)
        return conn

    def test_sixteen_addresses_that_do_not_answer(self):
        """The time to connect is that of all of them."""
        port = self.hole("0.0.0.0")
        server = self.server("-m", shadow.METHOD, "-t", TIMEOUT, "-d", self.stub.nameserver)

        def told():
            text, _ = ends.read_to_end(self.request(server, ("holes.test", port)).socket)
            self.assertEqual(text, b"")

        timing.within(self, 3 * TIMEOUT, told)
        server.await_no_sessions()

    def test_client_that_leaves_meanwhile(self):
        """Its session is not held longer than the time to connect."""
        port = self.hole("0.0.0.0")
        server = self.server("-m", shadow.METHOD, "-t", TIMEOUT, "-d", self.stub.nameserver)

        def leave():
            for payload in (b"", b"hello"):
                total = server.traffic()["total"]
                conn = self.request(server, ("holes.test", port), payload)
                wait.until(lambda: server.traffic()["total"] > total, 10, "accepting")
                socks.reset(conn.socket)
            server.await_no_sessions(60)

        timing.within(self, 3 * TIMEOUT, leave)

    def test_second_address_answers(self):
        echo = self.target(targets.echo, host=GOOD)
        self.hole(HOLES[0], echo.port)
        server = self.server("-m", shadow.METHOD, "-t", 60, "-d", self.stub.nameserver)

        def exchange():
            conn = self.request(server, ("second.test", echo.port))
            self.assertEqual(conn.receive(5), b"hello")

        timing.within(self, 3 * ATTEMPT, exchange)

    def test_second_server_answers(self):
        echo = self.target(targets.echo)
        server = self.server()
        port = ports.free_port()
        local = self.program(
            "ss-local", "-s", "127.0.0.1:%d" % self.hole("127.0.0.1"), "-s",
            "127.0.0.1:%d" % server.port, "-p", "1", "-l", port, "-k", case.PASSWORD,
            "-m", case.settings.method, "-t", 60)
        local.port = port
        local.await_listening(port)

        def exchanges():
            for _ in range(2):  # one of the two begins with the hole
                conn = self.connect(local, echo.address, first=b"hello", timeout=100)
                self.assertEqual(socks.receive(conn, 5), b"hello")

        timing.within(self, 3 * ATTEMPT, exchanges)


if __name__ == "__main__":
    case.main()
