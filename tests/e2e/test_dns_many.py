"""R23: a thousand look-ups at once all succeed; and names without end cost no memory without end."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, dns_case, proc, shadow, socks, targets, wait  # noqa: E402

MIB = 1 << 20
AT_ONCE = 1000
DESCRIPTORS = 8192
FLOOD = int(os.environ.get("SS_TEST_NAMES", "10000"))
WARM = FLOOD // 4  # more than the cache holds


class Many(dns_case.DnsCase):
    def test_a_thousand_at_once(self):
        loop = targets.EchoLoop()
        stub = self.stub({"*.many.test": ["127.0.0.1"]}, ttl=60)
        server = self.asking(stub, "-t", 60, descriptors=DESCRIPTORS)
        conns = [self.request(server, "n%d.many.test" % number, loop.port, timeout=60)
                 for number in range(AT_ONCE)]
        for number, conn in enumerate(conns):
            self.assertEqual(conn.receive(5), b"hello", "connection %d" % number)
        self.assertGreater(proc.descriptors(server.pid), 2 * AT_ONCE)
        self.assertEqual(server.log_lines(" ERROR: "), [])
        # With all their descriptors in use, a resolver's socket is one above 1,024.
        self.exchange(server, "after.many.test")

    def test_flood_of_names(self):
        """10,000 names: found ones, missing ones, and ones whose clients do not wait."""
        if self.sanitized:
            raise unittest.SkipTest("memory says nothing in a sanitizer build")
        stub = self.stub({"*.many.test": ["127.0.0.1"]}, ttl=3600)
        stub.negative_ttl = 60
        server = self.asking(stub)

        def some(first, last):
            for number in range(first, last):
                kind = number % 4
                name = "n%d.%s.test" % (number, "many" if kind else "none")
                conn = shadow.Connection(server.port, case.PASSWORD)
                conn.request((name, self.echo.port), b"hello")
                if kind == 1:
                    socks.reset(conn.socket)
                    continue
                with conn.socket:
                    self.assertEqual(conn.receive(5), b"hello" if kind else b"")
            server.await_no_sessions()

        some(0, WARM)
        before = proc.private_bytes(server.pid)
        some(WARM, FLOOD)
        after = proc.private_bytes(server.pid)
        self.assertLessEqual(after, before + MIB, "%.2f -> %.2f MiB" % (before / MIB, after / MIB))
        wait.until(lambda: not proc.udp_ports(server.pid), 15, "the end of the look-ups")


if __name__ == "__main__":
    case.main()
