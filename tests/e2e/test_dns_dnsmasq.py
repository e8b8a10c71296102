"""Names by a real name server, dnsmasq: families, aliases, times to live, and names that are not."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, dns, dns_case, ports, targets, wait  # noqa: E402

TTL = 2
ZONE = ("--local=/test/", "--log-queries", "--local-ttl=%d" % TTL,
        "--host-record=echo.test,127.0.0.1,::1", "--host-record=six.test,::1",
        "--host-record=four.test,127.0.0.1", "--cname=alias.test,echo.test",
        "--cname=second.test,alias.test")


class Dnsmasq(dns_case.DnsCase):
    def serve(self, *more, **how):
        found = dns.dnsmasq([], *ZONE, *more, **how)
        if found is None:
            self.skipTest("no dnsmasq on this machine")
        program, port = found
        self.addCleanup(program.kill)
        return program, port

    def asked(self, program, name):
        return len([line for line in program.log_lines("query[") if " %s from " % name in line])

    def test_names(self):
        _, port = self.serve()
        server = self.asking("127.0.0.1:%d" % port)
        for name in ("echo.test", "four.test", "alias.test", "second.test", "ECHO.test."):
            with self.subTest(name=name):
                self.exchange(server, name)
        for name in ("none.test", "elsewhere.example"):  # NXDOMAIN, REFUSED
            with self.subTest(name=name):
                self.assert_ends(self.request(server, name))

    def test_ipv6(self):
        if not ports.have_ipv6():
            self.skipTest("no IPv6 loopback")
        _, port = self.serve(addresses=("127.0.0.1", "::1"))
        six = targets.Target(targets.echo, host="::1")
        self.addCleanup(six.close)
        server = self.asking("[::1]:%d" % port)
        conn = self.request(server, "six.test", six.port)
        self.assertEqual(conn.receive(5), b"hello")

    def test_time_to_live(self):
        """One question while the answer holds; then the name is found where it has moved to."""
        program, port = self.serve("--host-record=moves.test,127.0.0.1")
        server = self.asking("127.0.0.1:%d" % port, "--workers", 1)
        start = time.monotonic()
        while time.monotonic() - start < TTL / 2:
            self.exchange(server, "moves.test")
        self.assertEqual(self.asked(program, "moves.test"), 2)
        program.kill()
        moved = targets.Target(targets.greeter(b"moved", keep_echo=False), host="127.0.0.2",
                               port=self.echo.port)
        self.addCleanup(moved.close)
        self.serve("--host-record=moves.test,127.0.0.2", port=port)

        def answer():
            conn = self.request(server, "moves.test")
            try:
                return conn.receive(5)
            finally:
                conn.close()

        wait.until(lambda: answer() == b"moved", 10 + TTL, "the move's being noticed")

    def test_no_such_name(self):
        program, port = self.serve()
        server = self.asking("127.0.0.1:%d" % port, "--workers", 1)
        start = time.monotonic()
        for _ in range(5):
            self.assert_ends(self.request(server, "none.test"))
        if time.monotonic() - start < 1:
            self.assertEqual(self.asked(program, "none.test"), 2)

    def test_many_records(self):
        """More than a datagram holds: dnsmasq cuts the answer, and gives it over TCP."""
        records = ["--host-record=many.test,127.1.%d.%d" % (number // 200, number % 200 + 1)
                   for number in range(150)]
        program, port = self.serve(*records, "--host-record=many.test,127.0.0.1")
        server = self.asking("127.0.0.1:%d" % port)
        # Whichever of them is tried: the whole of 127.0.0.0/8 is this host.
        target = targets.Target(targets.echo, host="0.0.0.0")
        self.addCleanup(target.close)
        conn = self.request(server, "many.test", target.port)
        self.assertEqual(conn.receive(5), b"hello")
        self.assertGreaterEqual(self.asked(program, "many.test"), 3)  # A twice, and AAAA

    def test_down_for_a_while(self):
        """R24, R86: a name server that comes back is asked with the next look-up."""
        program, port = self.serve()
        server = self.asking("127.0.0.1:%d" % port)
        program.kill()
        self.assert_ends(self.request(server, "echo.test"))
        self.serve(port=port)
        self.exchange(server, "echo.test", timeout=3)


if __name__ == "__main__":
    case.main()
