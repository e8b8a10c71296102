"""Names that no name server answers, asked for by clients that leave, do not stop other names."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, dns_stub, proc, shadow, socks, targets, wait  # noqa: E402

LOOKUPS = 1500


class Silent:
    """The names that get no answer."""

    def __contains__(self, name):
        return name.endswith(".hole.test")


class LookupFlood(case.Case):
    def test_good_names_are_found(self):
        stub = dns_stub.Stub({"good.test": ["127.0.0.1"]})
        self.addCleanup(stub.close)
        stub.silent = Silent()
        echo = self.target(targets.echo)
        server = self.server("-m", shadow.METHOD, "-d", stub.nameserver)

        def exchange():
            conn = shadow.Connection(server.port, case.PASSWORD, timeout=10)
            with conn.socket:
                conn.request(("good.test", echo.port), b"hello")
                self.assertEqual(conn.receive(5), b"hello")

        exchange()
        server.await_no_sessions()
        before = proc.descriptors(server.pid)
        for number in range(LOOKUPS):
            conn = shadow.Connection(server.port, case.PASSWORD)
            conn.request(("x%d.hole.test" % number, 80), b"x")
            socks.reset(conn.socket)
        for _ in range(5):
            exchange()
        server.await_no_sessions()
        # Sockets of the resolver, if anything: its own number of them for each worker.
        wait.until(lambda: proc.descriptors(server.pid) <= before + 8 * case.settings.workers, 10,
                   "the descriptors' return")
        self.assertEqual(server.log_lines(" ERROR: "), [])


if __name__ == "__main__":
    case.main()
