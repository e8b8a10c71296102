"""Silent connections, on whichever worker they are, do not shut clients out."""

import os
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, shadow, targets, wait  # noqa: E402

PAIRS = 30
CLIENTS = 30


class Unproven(case.Case):
    def setUp(self):
        super().setUp()
        self.echo = self.target(targets.echo)
        self.server_ = self.server("-m", shadow.METHOD, "--max-connections", 2 * PAIRS,
                                   "--handshake-timeout", 60)
        self.total = 0

    def arrives(self, conn):
        """Until the server has the connection, which says nothing so far."""
        self.addCleanup(conn.close)
        self.total += 1
        wait.until(lambda: self.server_.traffic()["total"] >= self.total, 10, "accepting")
        return conn

    def silent(self):
        return self.arrives(socket.create_connection(("127.0.0.1", self.server_.port), 10))

    def client(self):
        conn = shadow.Connection(self.server_.port, case.PASSWORD)
        self.addCleanup(conn.close)
        return conn

    def exchange(self, conn):
        conn.request(self.echo.address, b"hello")
        try:
            return conn.receive(5)
        except ConnectionResetError:
            return "reset"

    def test_silent_ones_on_one_worker(self):
        """Alternating, so that one worker has those that work and the other the silent ones."""
        working = []
        for _ in range(PAIRS):
            working.append(self.client())
            self.arrives(working[-1].socket)
            self.assertEqual(self.exchange(working[-1]), b"hello")
            self.silent()
        for conn in working[-5:]:
            conn.close()
        del working[-5:]
        wait.until(lambda: self.server_.traffic()["open"] <= 2 * PAIRS - 5, 10)

        answers = []
        for _ in range(CLIENTS):
            conn = self.client()
            self.arrives(conn.socket)  # silent until then, as any client is that is far away
            answers.append(self.exchange(conn))
            conn.close()
        self.assertEqual(answers, [b"hello"] * CLIENTS)
        for conn in working:
            conn.send(b"still there")
            self.assertEqual(conn.receive(11), b"still there")

    def test_newcomer_is_not_the_one_that_goes(self):
        """However many silent ones came before it."""
        for _ in range(2 * PAIRS):
            self.silent()
        answers = []
        for _ in range(CLIENTS):
            conn = self.client()
            self.arrives(conn.socket)
            answers.append(self.exchange(conn))
            conn.close()
            self.silent()
        self.assertEqual(answers, [b"hello"] * CLIENTS)


if __name__ == "__main__":
    case.main()
