"""R02, R03: the idle time-out is the configured one, and traffic in either direction re-arms it."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, socks, targets, wait  # noqa: E402


class IdleTimeout(case.Case):
    def test_one_way_stream_is_not_cut(self):
        """R02: 30 bytes, one a second, with a time-out of 5 s and a client that says nothing."""
        target = self.target(targets.dripper(30, 1.0))
        server, local = self.chain(["--tcp-idle-timeout", "5"], ["--tcp-idle-timeout", "5"])
        conn = self.connect(local, target.address)
        conn.settimeout(15)
        self.assertEqual(socks.receive_all(conn), bytes(range(30)))

    def test_one_way_upload_is_not_cut(self):
        target = self.target(targets.sink)
        server, local = self.chain(["--tcp-idle-timeout", "3"], ["--tcp-idle-timeout", "3"])
        conn = self.connect(local, target.address)
        for _ in range(10):
            conn.sendall(b"x")
            time.sleep(1)  # the slow stream is what is tested
        conn.close()
        self.assertEqual(wait.until(lambda: target.results, 10), [10])

    def test_client_end_reaches_target_at_once(self):
        target = self.target(targets.sink)
        server, local = self.chain(["--tcp-idle-timeout", "5"], ["--tcp-idle-timeout", "5"])
        conn = self.connect(local, target.address)
        conn.sendall(b"12345")
        wait.until(lambda: target.accepted == 1, 10)
        conn.close()
        self.assertEqual(wait.until(lambda: target.results, 2, "the target's end"), [5])

    def test_timeout_is_the_configured_one(self):
        """R03: idle for 6 of 8 s it still echoes; idle for 12 s it has been closed."""
        target = self.target(targets.echo)
        server, local = self.chain(["--tcp-idle-timeout", "8"], ["--tcp-idle-timeout", "8"])
        conn = self.connect(local, target.address)
        self.assert_echoes(conn)
        time.sleep(6)  # the idle span is what is tested
        self.assert_echoes(conn)
        start = time.monotonic()
        conn.settimeout(12)
        self.assertEqual(self.end_of(conn), b"")
        self.assertGreater(time.monotonic() - start, 7)
        # Where the server was first, its end is a half-close for ss-local until the client ends too.
        conn.close()
        local.await_no_sessions(4)
        server.await_no_sessions(4)

    def test_each_side_has_its_own(self):
        """A short time-out on the one side only."""
        target = self.target(targets.echo)
        for server_s, local_s in ((2, 100), (100, 2)):
            server, local = self.chain(["--tcp-idle-timeout", server_s],
                                       ["--tcp-idle-timeout", local_s])
            conn = self.connect(local, target.address)
            self.assert_echoes(conn)
            start = time.monotonic()
            conn.settimeout(10)
            self.assertEqual(self.end_of(conn), b"")
            self.assertGreater(time.monotonic() - start, 1.5)

    def end_of(self, conn):
        try:
            return conn.recv(100)
        except ConnectionResetError:
            return b""


if __name__ == "__main__":
    case.main()
