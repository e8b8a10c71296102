"""Whoever takes bytes steadily, however slowly, is not cut; and a pause is no time-out of ours.

    python3 test_slow_reader.py --bin build/bin --full      also the upload that pauses for 35 s
"""

import os
import socket
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import borrowed, case, ends, shadow, targets, wait  # noqa: E402

FULL = "--full" in sys.argv
TIMEOUT = 2
SLOW_S = 4 * TIMEOUT
SIZE = 2 << 20
RATE = 30000  # bytes a second
SMALL = 16384  # bytes of a socket buffer, so that blocks take longer than the time-out to leave
TCP_USER_TIMEOUT = getattr(socket, "TCP_USER_TIMEOUT", 18)


def read_slowly(conn, seconds):
    """What comes at 30 kB a second, by the clock: on a busy machine each pause is longer, and as many
    bytes a turn would be so few that a small buffer's next window update comes after the time-out."""
    parts, count = [], 0
    start = time.monotonic()
    while time.monotonic() < start + seconds:
        due = int(RATE * (time.monotonic() - start)) - count
        if due > 0:
            data = conn.recv(due)
            if not data:
                break
            parts.append(data)
            count += len(data)
        time.sleep(0.1)  # the slowness is what is tested
    return b"".join(parts)


class SlowReader(case.Case):
    def client(self, port):
        """A socket with a small receive buffer, which must be set before it connects."""
        conn = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.addCleanup(conn.close)
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
        conn.settimeout(10)
        conn.connect(("127.0.0.1", port))
        return conn

    def answer(self, conn):
        """A target that has read all it was sent, so that its end is a FIN."""
        conn.recv(100)
        targets.source(SIZE)(conn)

    def download(self, server, half_closed, problems):
        target = self.target(self.answer)
        conn = self.client(server.port)
        conn.sendall(shadow.first_packet(case.PASSWORD, target.address, b"hi"))
        if half_closed:
            conn.shutdown(socket.SHUT_WR)
        opener = shadow.Opener(case.PASSWORD)
        try:
            slowly = read_slowly(conn, SLOW_S)
            rest, end = ends.read_to_end(conn)
        except OSError as error:
            problems.append("half closed: %s; %r" % (half_closed, error))
            return
        if len(opener.feed(slowly + rest)) != SIZE or not rest or end != ends.FIN:
            problems.append("half closed: %s; %d bytes came slowly, %d then, and %s"
                            % (half_closed, len(slowly), len(rest), end))

    def test_download(self):
        """With and without the client's end before it; neither time-out cuts the stream."""
        server = self.server("-m", shadow.METHOD, "--half-open-timeout", TIMEOUT,
                             "--tcp-idle-timeout", TIMEOUT, "--tcp-incoming-sndbuf", SMALL)
        problems = []
        readers = [threading.Thread(target=self.download, args=(server, half, problems))
                   for half in (False, True)]
        for thread in readers:
            thread.start()
        for thread in readers:
            thread.join()
        self.assertEqual(problems, [])

    def test_upload(self):
        """The same for a target that reads slowly, with all that the client sends at the end."""

        def reads_slowly(conn):
            slowly = read_slowly(conn, SLOW_S)
            rest, end = ends.read_to_end(conn)
            return len(slowly) + len(rest), len(rest) > 0, end

        target = targets.Target(reads_slowly, backlog=10)
        self.addCleanup(target.close)
        target.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
        server = self.server("-m", shadow.METHOD, "--half-open-timeout", TIMEOUT,
                             "--tcp-idle-timeout", TIMEOUT, "--tcp-outgoing-sndbuf", SMALL)
        conn = shadow.Connection(server.port, case.PASSWORD, timeout=SLOW_S + 20)
        self.addCleanup(conn.close)
        conn.request(target.address, bytes(SIZE))
        conn.socket.shutdown(socket.SHUT_WR)
        self.assertEqual(wait.until(lambda: target.results, SLOW_S + 20), [(SIZE, True, ends.FIN)])


class Pause(case.Case):
    def test_no_limit_for_unacknowledged_data(self):
        """The kernel would apply it to a closed window as well: to a target that pauses."""
        target = self.target(targets.echo)
        server, local = self.chain()
        conn = self.connect(local, target.address)
        self.assert_echoes(conn)
        for program in (server, local):
            with borrowed.tcp_sockets(program.pid) as found:
                self.assertEqual(len(found), 2, "a session has two sockets")
                for sock in found:
                    self.assertEqual(sock.getsockopt(socket.IPPROTO_TCP, TCP_USER_TIMEOUT), 0)

    @unittest.skipUnless(FULL, "takes 40 s; only with --full")
    def test_upload_that_pauses(self):
        """A target that reads nothing for 35 s, with more on its way than all buffers hold."""
        size = 64 << 20
        target = self.target(targets.idle, keep=True)
        server, local = self.chain()
        conn = self.connect(local, target.address)
        conn.settimeout(100)
        problems = []

        def upload():
            try:
                conn.sendall(bytes(size))
                conn.shutdown(socket.SHUT_WR)
            except OSError as error:
                problems.append(error)

        sender = threading.Thread(target=upload)
        sender.start()
        peer = wait.until(lambda: target.connections, 10)[0]
        time.sleep(35)  # the pause is what is tested
        self.assertTrue(sender.is_alive(), "all was sent, or failed, before the target read")
        peer.settimeout(20)
        self.assertEqual(targets.sink(peer), size)
        sender.join()
        self.assertEqual(problems, [])


if __name__ == "__main__":
    if FULL:
        sys.argv.remove("--full")
    case.main()
