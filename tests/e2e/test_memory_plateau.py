"""R05: memory reaches a plateau under many short connections and falls back after a burst."""

import contextlib
import os
import selectors
import socket
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, proc, socks, targets, wait  # noqa: E402

REQUEST = b"GET / HTTP/1.0\r\nHost: plateau.test\r\n\r\n"
ANSWER = b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"
MIB = 1 << 20
CONNECTIONS = int(os.environ.get("SS_TEST_CONNECTIONS", "100000"))
AT_ONCE = 16


class Web:
    """Answers each request and closes, thousands a second, in one thread."""

    def __init__(self):
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(4096)
        self.address = self.listener.getsockname()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        selector = selectors.DefaultSelector()
        selector.register(self.listener, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is self.listener:
                    conn, _ = self.listener.accept()
                    selector.register(conn, selectors.EVENT_READ)
                    continue
                conn = key.fileobj
                try:
                    if conn.recv(4096):
                        conn.sendall(ANSWER)
                except OSError:
                    pass
                selector.unregister(conn)
                conn.close()


def short_connections(port, target, count):
    """`count` requests, AT_ONCE in flight; each checks its answer."""
    out = socks.GREETING + socks.request(*target) + REQUEST
    wanted = b"\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00" + ANSWER

    def some(share):
        for _ in range(share):
            conn = socket.create_connection(("127.0.0.1", port), 20)
            conn.sendall(out)
            got = socks.receive_all(conn)
            conn.close()
            # The reply's address is the program's choice; the answer is not.
            if len(got) < len(wanted) or not got.endswith(ANSWER):
                failures.append(got)
                return

    failures = []
    threads = [threading.Thread(target=some, args=(count // AT_ONCE,)) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise AssertionError("an answer is wrong: %r" % failures[0])


class MemoryPlateau(case.Case):
    def setUp(self):
        super().setUp()
        if self.sanitized:
            raise unittest.SkipTest("memory says nothing in a sanitizer build")

    def test_short_connections(self):
        web = Web()
        # With small generations the salt memory is full before the first sample.
        small = ["--salt-memory", "1000"] if CONNECTIONS < 100000 else ["--salt-memory", "10000"]
        server, local = self.chain(small, small)
        samples = []
        for _ in range(10):
            short_connections(local.port, web.address, CONNECTIONS // 10)
            samples.append([proc.private_bytes(program.pid) for program in (server, local)])
        text = "\n".join("%.2f %.2f MiB" % (a / MIB, b / MIB) for a, b in samples)
        for first, last in zip(samples[0], samples[-1]):
            self.assertLessEqual(last, first + 2 * MIB, text)
        self.assertGreaterEqual(server.traffic()["total"], CONNECTIONS // AT_ONCE // 10 * AT_ONCE * 10)

    def test_falls_back_after_a_burst(self):
        """60 connections whose clients do not read what comes; then none."""
        server, local = self.chain()

        def pushes(conn):
            block = bytes(1 << 16)
            while True:
                conn.sendall(block)

        pusher = self.target(pushes)
        with contextlib.closing(socks.connect(local.port, pusher.address)) as conn:
            socks.receive(conn, 8 * MIB)  # warms up
        running = (server, local)
        for program in running:
            program.await_no_sessions()
        before = [proc.private_bytes(program.pid) for program in running]
        conns = [socks.connect(local.port, pusher.address, timeout=30) for _ in range(60)]
        wait.until(lambda: pusher.accepted == 61, 30)

        def stuck():
            totals = [program.traffic() for program in running]
            time.sleep(0.5)  # a span without a byte
            return totals == [program.traffic() for program in running]

        wait.until(stuck, 60, "full buffers")
        peak = [proc.private_bytes(program.pid) for program in running]
        self.assertGreater(max(top - start for top, start in zip(peak, before)), 2 * MIB,
                           "nothing waited in the programs, so that nothing was tested")
        for conn in conns:
            conn.close()
        for program in running:
            program.await_no_sessions(20)
        for program, start, top in zip(running, before, peak):
            wait.until(lambda: proc.private_bytes(program.pid) <= start + 2 * MIB, 10,
                       "%s: memory after the burst (%.1f, %.1f MiB before and at the peak)" % (
                           program.name, start / MIB, top / MIB))


if __name__ == "__main__":
    case.main()
