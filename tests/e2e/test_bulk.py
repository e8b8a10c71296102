"""Sealed bytes in bulk: whole and in order, however they are taken, and with their end behind them."""

import base64
import os
import socket
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, ends, socks, targets, wait  # noqa: E402
from support.readers import Reader, stuttering, whole  # noqa: E402
from support.stopped import stopped  # noqa: E402

MIB = 1 << 20
READ = 256 * 1024  # what the relay reads at most
BULK = os.urandom(12 * MIB)
WARM = BULK[:8 * MIB]

METHODS = {"aes-256-gcm": case.PASSWORD, "chacha20-ietf-poly1305": case.PASSWORD,
           "2022-blake3-aes-128-gcm": base64.b64encode(os.urandom(16)).decode(),
           "2022-blake3-chacha20-poly1305": base64.b64encode(os.urandom(32)).decode()}


class Bulk(case.Case):
    def begin(self, method):
        """ss-server and ss-local under the method, and a target that does nothing by itself."""
        words = ["-m", method, "-k", METHODS[method]]
        self.server_of_chain, self.local_of_chain = self.chain(words, words)
        self.peers = self.target(targets.idle, keep=True)

    def pair(self):
        """A client's connection and the target's end of it."""
        count = len(self.peers.connections)
        conn = self.connect(self.local_of_chain, self.peers.address, first=b"hello")
        wait.until(lambda: len(self.peers.connections) > count, 10, "the connection")
        peer = self.peers.connections[-1]
        for end in (conn, peer):
            end.settimeout(60)
        self.assertEqual(targets.read_exactly(peer, 5), b"hello")
        return conn, peer

    def send(self, conn, text):
        def run():
            conn.sendall(text)
            conn.shutdown(socket.SHUT_WR)

        threading.Thread(target=run, daemon=True).start()

    def test_stuttering_readers_both_ways_at_once(self):
        for method in METHODS:
            with self.subTest(method):
                self.begin(method)
                pair = self.pair()
                for end in pair:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
                readers = [Reader(end, stuttering) for end in pair]
                for end in pair:
                    self.send(end, BULK)
                for reader in readers:
                    self.assertEqual(reader.result(), whole(BULK))

    def test_several_at_once(self):
        """Each gives way to the others, and one that says little is served among them."""
        for method in METHODS:
            with self.subTest(method):
                self.begin(method)
                talk, peer = self.pair()
                pairs = [self.pair() for _ in range(6)]
                readers = [Reader(conn) for conn, _ in pairs]
                for _, sender in pairs:
                    self.send(sender, BULK)
                for _ in range(20):
                    talk.sendall(b"question")
                    self.assertEqual(targets.read_exactly(peer, 8), b"question")
                    peer.sendall(b"answer")
                    self.assertEqual(targets.read_exactly(talk, 6), b"answer")
                for reader in readers:
                    self.assertEqual(reader.result(), whole(BULK))

    def test_end_behind_reads_that_are_full(self):
        """Where the relay's turn ends after so many of them, the end is what is left to be told of."""
        self.begin("aes-256-gcm")
        for reads in (1, 3, 4, 5):
            for end in (ends.FIN, ends.RESET):
                with self.subTest(reads=reads, end=end):
                    conn, peer = self.pair()
                    reader = Reader(conn)
                    peer.sendall(WARM)  # so that the kernel takes much at once
                    wait.until(lambda: reader.count == len(WARM), 30, "the first bytes")
                    text = BULK[:reads * READ]
                    with stopped(self.server_of_chain):
                        peer.settimeout(2)
                        try:
                            peer.sendall(text)
                            ends.await_acknowledged(peer, 5)
                        except (TimeoutError, AssertionError):
                            self.skipTest("the kernel does not take %d bytes" % len(text))
                        if end == ends.FIN:
                            peer.shutdown(socket.SHUT_WR)
                        else:
                            socks.reset(peer)
                    if end == ends.FIN:
                        conn.shutdown(socket.SHUT_WR)
                    self.assertEqual(reader.result(20), whole(WARM + text, end))


if __name__ == "__main__":
    case.main()
