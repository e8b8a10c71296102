"""Places and descriptors: one that is free is given, and a small limit still serves."""

import os
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, ends, proc, shadow, socks, targets  # noqa: E402
from support.stopped import stopped  # noqa: E402

CONNECTIONS = 40


class Places(case.Case):
    def client(self, server, target, timeout=10):
        conn = shadow.Connection(server.port, case.PASSWORD, timeout)
        self.addCleanup(conn.close)
        conn.request(target.address, b"hello")
        return conn

    def answer(self, conn):
        try:
            return conn.receive(5)
        except OSError as error:
            return type(error).__name__

    def test_many_leave_and_many_come_at_once(self):
        """90 of 100 places are taken; in one round of events 50 are left and 24 asked for.

        24 may be unproven even if all of them come to one worker of two.
        """
        echo = self.target(targets.echo)
        server = self.server("-m", shadow.METHOD, "--max-connections", 100)
        held = []
        for _ in range(90):
            held.append(self.client(server, echo))
            self.assertEqual(self.answer(held[-1]), b"hello")
        with stopped(server):
            for conn in held[:50]:
                socks.reset(conn.socket)
            fresh = [self.client(server, echo) for _ in range(24)]
            for conn in fresh:
                ends.await_acknowledged(conn.socket)
        self.assertEqual([self.answer(conn) for conn in fresh], [b"hello"] * 24)
        for conn in held[50:]:
            conn.send(b"still")
            self.assertEqual(self.answer(conn), b"still")

    def assert_serves_with(self, descriptors, at_once):
        """Eight workers are asked for, whatever the test's number is."""
        echo = self.target(targets.echo)
        server = self.server("-m", shadow.METHOD, "--workers", 8, "--log-level", "debug",
                             descriptors=descriptors)
        held = []
        most = 0
        for _ in range(CONNECTIONS):
            conn = self.client(server, echo, timeout=1 if len(held) >= at_once else 10)
            try:
                self.assertEqual(conn.receive(5), b"hello")
            except socket.timeout:  # it waits in the listener's queue until another has left
                most = len(held)
                for old in held:
                    old.close()
                held.clear()
                conn.socket.settimeout(10)
                self.assertEqual(conn.receive(5), b"hello")
            held.append(conn)
        self.assertGreaterEqual(most, at_once, "beside each other")
        self.assertLessEqual(proc.descriptors(server.pid), descriptors)
        self.assertEqual(server.log_lines("accept:"), [])
        self.assertEqual(server.log_lines(" ERROR: "), [])
        self.assertTrue(server.log_lines("workers are lowered from 8"), server.log)

    def test_64_descriptors(self):
        self.assert_serves_with(64, 8)

    def test_48_descriptors(self):
        self.assert_serves_with(48, 4)


if __name__ == "__main__":
    case.main()
