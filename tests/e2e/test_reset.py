"""A reset is passed on as a reset, behind all that was sent before it; stopping resets, too."""

import hashlib
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, ends, shadow, socks, targets, wait  # noqa: E402
from support.stopped import stopped  # noqa: E402

ROUNDS = 10
PART = b"what came before the reset" * 40
LARGE = os.urandom(6 << 20)


class Reset(case.Case):
    def setUp(self):
        super().setUp()
        self.peers = self.target(targets.idle, keep=True)

    def accepted(self):
        """The latest connection of the target (or of what stands for a server)."""
        self.count = getattr(self, "count", 0) + 1
        wait.until(lambda: len(self.peers.connections) == self.count, 10, "the connection")
        return self.peers.connections[-1]

    def direct(self, server):
        """A client of the server that has its target's end, and the latter."""
        conn = shadow.Connection(server.port, case.PASSWORD)
        self.addCleanup(conn.close)
        conn.request(self.peers.address, b"hello")
        peer = self.accepted()
        targets.read_exactly(peer, 5)
        return conn, peer

    def behind_local(self, local):
        """A client of ss-local, and the server's end with what it seals with."""
        conn = self.connect(local, ("127.0.0.1", 9), first=b"hello")
        peer = self.accepted()
        peer.recv(1000)
        return conn, peer, shadow.Sealer(case.PASSWORD)

    def assert_ends_with_reset(self, conn, expected=b""):
        text, end = ends.read_to_end(conn)
        self.assertEqual((text, end), (expected, ends.RESET))

    def test_after_all_has_arrived(self):
        server, local = self.chain()
        for _ in range(ROUNDS):
            conn = self.connect(local, self.peers.address, first=b"hello")
            peer = self.accepted()
            peer.sendall(PART)
            self.assertEqual(socks.receive(conn, len(PART)), PART)
            socks.reset(peer)
            self.assert_ends_with_reset(conn)

    def test_with_the_last_bytes_on_their_way(self):
        """The pause is what makes reading stop and begin again in between."""
        server, local = self.chain()
        for _ in range(ROUNDS):
            conn = self.connect(local, self.peers.address, first=b"hello")
            peer = self.accepted()
            peer.sendall(PART)
            time.sleep(0.05)  # neither at once nor after the client has read: what is tested
            socks.reset(peer)
            self.assert_ends_with_reset(conn, PART)

    def test_server_sees_bytes_and_reset_at_once(self):
        server = self.server("-m", shadow.METHOD)
        for _ in range(ROUNDS):
            conn, peer = self.direct(server)
            with stopped(server):
                peer.sendall(PART)
                ends.await_acknowledged(peer)
                socks.reset(peer)
                ends.await_reset_arrived(server, self.peers.port)
            wire, end = ends.read_to_end(conn.socket)
            self.assertEqual((conn.opener.feed(wire), end), (PART, ends.RESET))

    def test_local_sees_bytes_and_reset_at_once(self):
        local = self.local(self.peers.port, "-m", shadow.METHOD)
        for _ in range(ROUNDS):
            conn, peer, sealer = self.behind_local(local)
            with stopped(local):
                peer.sendall(sealer.salt + sealer.chunk(PART))
                ends.await_acknowledged(peer)
                socks.reset(peer)
                ends.await_reset_arrived(local, self.peers.port)
            self.assert_ends_with_reset(conn, PART)

    def test_server_writes_into_the_reset(self):
        """Its own write meets the error, and reading then shows a mere end."""
        server = self.server("-m", shadow.METHOD)
        for _ in range(ROUNDS):
            conn, peer = self.direct(server)
            peer.sendall(b"part")
            self.assertEqual(conn.receive(4), b"part")
            with stopped(server):
                conn.send(b"more of the upload")
                ends.await_acknowledged(conn.socket)
                socks.reset(peer)
                ends.await_reset_arrived(server, self.peers.port)
            self.assert_ends_with_reset(conn.socket)

    def test_local_writes_into_the_reset(self):
        local = self.local(self.peers.port, "-m", shadow.METHOD)
        for _ in range(ROUNDS):
            conn, peer, sealer = self.behind_local(local)
            peer.sendall(sealer.salt + sealer.chunk(b"part"))
            self.assertEqual(socks.receive(conn, 4), b"part")
            with stopped(local):
                conn.sendall(b"more of the upload")
                ends.await_acknowledged(conn)
                socks.reset(peer)
                ends.await_reset_arrived(local, self.peers.port)
            self.assert_ends_with_reset(conn)


class MuchBeforeIt(case.Case):
    """Megabytes are on their way, of which the resetting side knows that they left."""

    def send_and_reset(self, conn, reset):
        conn.settimeout(30)
        conn.sendall(LARGE)
        ends.await_acknowledged(conn)
        reset.set()
        socks.reset(conn)

    def read_behind(self, conn, reset):
        """Reads slowly until the reset is sent, then the rest: digest, what was left, the end."""
        conn.settimeout(30)
        early = []
        while not reset.is_set():
            early.append(conn.recv(1 << 16))
            time.sleep(0.005)  # slow, so that much is still on its way then
        rest, end = ends.read_to_end(conn)
        return hashlib.sha256(b"".join(early) + rest).digest(), len(rest) > 0, end

    EXPECTED = (hashlib.sha256(LARGE).digest(), True, ends.RESET)

    def test_download(self):
        reset = threading.Event()
        target = self.target(lambda conn: self.send_and_reset(conn, reset))
        server, local = self.chain()
        conn = self.connect(local, target.address, first=b"hello")
        self.assertEqual(self.read_behind(conn, reset), self.EXPECTED)

    def test_upload(self):
        reset = threading.Event()
        target = self.target(lambda conn: self.read_behind(conn, reset))
        server, local = self.chain()
        conn = self.connect(local, target.address)
        self.send_and_reset(conn, reset)
        self.assertEqual(wait.until(lambda: target.results, 30), [self.EXPECTED])


class Stopping(case.Case):
    def endless(self, conn):
        while True:
            conn.sendall(bytes(1 << 16))
            time.sleep(0.01)  # a stream under way, not a race for the processor

    def assert_stopping_resets(self, which):
        target = self.target(self.endless)
        running = self.chain()
        conns = [self.connect(running[1], target.address) for _ in range(10)]
        for conn in conns:
            self.assertEqual(len(conn.recv(1)), 1)
        self.assertEqual(running[which].stop(), 0)
        self.assertEqual([ends.read_to_end(conn)[1] for conn in conns], [ends.RESET] * 10)

    def test_server(self):
        self.assert_stopping_resets(0)

    def test_local(self):
        self.assert_stopping_resets(1)


if __name__ == "__main__":
    case.main()
