"""R01: at the limit of descriptors a program stops accepting, quietly, and goes on by itself."""

import contextlib
import os
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, proc, socks, targets, wait  # noqa: E402
from support.case import settings  # noqa: E402

LIMIT = 64
HELD = 100
HOLD_S = 10


class DescriptorLimit(case.Case):
    def hold(self, port):
        """Connections that say nothing; some are in the listener's queue only."""
        held = []
        for _ in range(HELD):
            conn = socket.socket()
            conn.setblocking(False)
            conn.connect_ex(("127.0.0.1", port))
            self.addCleanup(conn.close)
            held.append(conn)
        return held

    def assert_calm_while_held(self, program, echoing):
        lines = len(program.log_lines())
        start = time.monotonic()
        used = proc.cpu_seconds(program.pid)
        count = 0
        while time.monotonic() - start < HOLD_S:
            self.assert_echoes(echoing, b"still served %d" % count)
            count += 1
            time.sleep(0.2)  # paces the hold; nothing is waited for
        span = time.monotonic() - start
        share = (proc.cpu_seconds(program.pid) - used) / span
        self.assertLess(share, 0.15 if self.sanitized else 0.05, "CPU while at the limit")
        self.assertLessEqual(len(program.log_lines()) - lines, span + 1, program.log)
        self.assertLessEqual(proc.descriptors(program.pid), LIMIT)

    def test_server(self):
        echo = self.target(targets.echo)
        server = self.server(descriptors=LIMIT)
        local = self.local(server)
        echoing = self.connect(local, echo.address)
        self.assert_echoes(echoing)

        held = self.hold(server.port)
        self.assert_calm_while_held(server, echoing)
        for conn in held[:50]:
            conn.close()
        with contextlib.closing(socks.connect(local.port, echo.address)) as conn:
            self.assert_echoes(conn)
        self.assert_echoes(echoing)

    def test_local(self):
        echo = self.target(targets.echo)
        server = self.server()
        local = self.local(server, descriptors=LIMIT)
        echoing = self.connect(local, echo.address)
        self.assert_echoes(echoing)

        held = self.hold(local.port)
        self.assert_calm_while_held(local, echoing)
        # A session is worth two descriptors, so that fewer than half of 100 fit: what waits in the
        # queue when 50 close takes their places. The rest goes too, but for a few.
        for conn in held[:96]:
            conn.close()
        with contextlib.closing(socks.connect(local.port, echo.address)) as conn:
            self.assert_echoes(conn)
        self.assert_echoes(echoing)

    def test_sessions_up_to_the_limit_then_more(self):
        """Whole sessions fill the budget; one more works as soon as one has ended."""
        echo = self.target(targets.echo)
        server = self.server(descriptors=LIMIT)
        local = self.local(server)
        served = []
        waiting = None
        while waiting is None:
            self.assertLess(len(served), LIMIT, "more sessions than descriptors")
            conn = self.connect(local, echo.address)
            conn.sendall(b"hello")
            conn.settimeout(2 if not self.sanitized else 5)
            try:
                self.assertEqual(socks.receive(conn, 5), b"hello")
                served.append(conn)
            except socket.timeout:
                waiting = conn
        self.assertGreaterEqual(len(served), 4 if settings.workers == 1 else 2)
        self.assertLess(proc.cpu_share(server.pid, 1), 0.05)
        served.pop(0).close()
        waiting.settimeout(10)
        self.assertEqual(socks.receive(waiting, 5), b"hello")
        for conn in served:
            self.assert_echoes(conn)

    def test_descriptors_come_back(self):
        echo = self.target(targets.echo)
        server, local = self.chain()

        def burst():
            conns = [socks.connect(local.port, echo.address) for _ in range(30)]
            for conn in conns:
                self.assert_echoes(conn)
            for conn in conns:
                conn.close()

        # A first one opens what each worker opens on its first session and keeps.
        burst()
        wait.until(lambda: not proc.tcp_connections(server.pid), 10)
        before = proc.descriptors(server.pid)
        burst()
        wait.until(lambda: proc.descriptors(server.pid) <= before, 10, "the descriptors' return")


if __name__ == "__main__":
    case.main()
