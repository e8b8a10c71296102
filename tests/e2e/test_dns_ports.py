"""R26: source ports of questions vary, and no UDP socket is open when nothing is being looked up."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, dns_case, proc, wait  # noqa: E402

LOOK_UPS = 20
WITHOUT_PAUSE, EVERY = 1000, 10


class Ports(dns_case.DnsCase):
    def test_over_time(self):
        stub = self.stub({"*.test": ["127.0.0.1"]})
        server = self.asking(stub)
        for number in range(LOOK_UPS):
            self.exchange(server, "n%d.test" % number)
            wait.until(lambda: not proc.udp_ports(server.pid), 10, "the end of the sockets")
        ports = [port for _, _, port in stub.queries]
        self.assertGreater(len(set(ports)), LOOK_UPS // 2)
        steps = {after - before for before, after in zip(ports[::2], ports[2::2])}
        self.assertGreater(len(steps), LOOK_UPS // 2, "the next port can be told from the last")

    def test_without_a_pause(self):
        """While something is always being looked up."""
        stub = self.stub({"*.many.test": ["127.0.0.1"]})
        slow = ["s%d.slow.test" % number for number in range(WITHOUT_PAUSE // EVERY)]
        stub.delays.update((name, 0.05) for name in slow)
        server = self.asking(stub, "--workers", 1)
        for number in range(WITHOUT_PAUSE):
            if number % EVERY == 0:
                self.request(server, slow[number // EVERY])
            self.exchange(server, "n%d.many.test" % number)
        ports = [port for _, _, port in stub.queries]
        self.assertGreater(len(set(ports)), 2)
        self.assertLessEqual(max(ports.count(port) for port in set(ports)), 400)

    def test_idle(self):
        stub = self.stub({"echo.test": ["127.0.0.1"]})
        server = self.asking(stub)
        self.assertEqual(proc.udp_ports(server.pid), set())
        conn = self.request(server, "echo.test")
        self.assertEqual(conn.receive(5), b"hello")
        wait.until(lambda: proc.udp_ports(server.pid) == set(), 10, "the end of the socket")


if __name__ == "__main__":
    case.main()
