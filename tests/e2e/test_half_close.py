"""R04: the end of one side is passed on as an end; the other direction goes on until it ends too."""

import os
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, proc, shadow, socks, targets, wait  # noqa: E402

ANSWER = os.urandom(1 << 20)


class HalfClose(case.Case):
    def assert_no_sockets(self, *running, seconds):
        for program in running:
            wait.until(lambda: not proc.tcp_connections(program.pid), seconds,
                       "%s: the end of its sockets" % program.name)

    def test_answer_after_the_clients_end(self):
        """The target waits 2 s after the client's end and then answers 1 MiB."""
        target = self.target(targets.after_end(2, ANSWER))
        server, local = self.chain()
        conn = self.connect(local, target.address)
        conn.sendall(b"the request")
        conn.shutdown(socket.SHUT_WR)
        self.assertTrue(socks.receive_all(conn) == ANSWER, "the answer is not whole")
        conn.close()
        self.assertEqual(target.results, [len(b"the request")])
        self.assert_no_sockets(server, local, seconds=2)

    def test_upload_after_the_targets_end(self):
        def ends_then_counts(conn):
            conn.shutdown(socket.SHUT_WR)
            return targets.sink(conn)

        target = self.target(ends_then_counts)
        server, local = self.chain()
        conn = self.connect(local, target.address)
        self.assertEqual(socks.receive_all(conn), b"")
        conn.sendall(ANSWER)
        conn.close()
        self.assertEqual(wait.until(lambda: target.results, 10), [len(ANSWER)])
        self.assert_no_sockets(server, local, seconds=2)

    def test_end_comes_after_all_that_is_pending(self):
        """The target's end overtakes nothing when the client reads slowly."""
        size = 8 << 20
        target = self.target(targets.source(size))
        server, local = self.chain()
        conn = self.connect(local, target.address)
        wait.until(lambda: target.accepted, 10)
        total = 0
        while True:
            data = conn.recv(20000)
            if not data:
                break
            total += len(data)
        self.assertEqual(total, size)

    def test_half_open_session_ends_in_bounded_time(self):
        """One side ended, the other says nothing: both sockets go after half_open_timeout."""
        target = self.target(targets.idle, keep=True)
        server, local = self.chain(["--half-open-timeout", "3"], ["--half-open-timeout", "3"])
        conn = self.connect(local, target.address)
        conn.sendall(b"x")
        conn.shutdown(socket.SHUT_WR)
        wait.until(lambda: target.accepted, 10)
        self.assert_no_sockets(server, local, seconds=9)

    def test_no_socket_is_left_in_close_wait(self):
        target = self.target(targets.echo)
        server, local = self.chain(["--half-open-timeout", "3"], ["--half-open-timeout", "3"])
        for number in range(30):
            conn = socks.connect(local.port, target.address)
            self.assert_echoes(conn)
            if number % 3 == 0:
                conn.shutdown(socket.SHUT_WR)
                socks.receive_all(conn)
            if number % 3 == 1:
                socks.reset(conn)
            else:
                conn.close()
        self.assert_no_sockets(server, local, seconds=9)

    def test_end_inside_a_chunk_is_no_normal_end(self):
        """A stream that is cut inside a chunk must not look whole to the target."""
        got = []

        def note_end(conn):
            try:
                got.append(("end", targets.sink(conn)))
            except ConnectionResetError:
                got.append(("reset", None))

        target = self.target(note_end)
        server = self.server("-m", shadow.METHOD)
        conn = shadow.Connection(server.port, case.PASSWORD)
        self.addCleanup(conn.close)
        conn.request(target.address, b"whole")
        wait.until(lambda: target.accepted, 10)
        conn.socket.sendall(conn.sealer.chunk(b"cut" * 100)[:-1])
        conn.socket.shutdown(socket.SHUT_WR)
        wait.until(lambda: got, 10)
        self.assertEqual(got[0][0], "reset")


if __name__ == "__main__":
    case.main()
