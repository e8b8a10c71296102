"""An incomplete chunk in front of a full read: whatever that opens to arrives. In a namespace."""

import os
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, ends, netns, shadow, socks, wait  # noqa: E402
from support.stopped import stopped  # noqa: E402

READ = 256 * 1024  # one read of the engine
TCP_FASTOPEN = getattr(socket, "TCP_FASTOPEN", 23)
CHUNK_EXTRA = 2 + 2 * shadow.TAG_LEN


def setUpModule():
    netns.enter()
    # A read that is full needs a receive buffer that holds more.
    netns.sysctl("net.ipv4.tcp_rmem", "4096 8388608 8388608")


class LargeRest(case.Case):
    def chunks_of(self, sealer, wire_len):
        """Chunks that are `wire_len` bytes when sealed, and what is in them."""
        count = -(-wire_len // (shadow.CHUNK_MAX + CHUNK_EXTRA))
        left = wire_len - count * CHUNK_EXTRA
        plain = [os.urandom(left // count + (number < left % count)) for number in range(count)]
        return b"".join(map(sealer.chunk, plain)), b"".join(plain)

    def assert_arrives(self, server, target, cut, more=0):
        """The first chunk comes but for `cut` bytes; then, at once, a read that is full."""
        conn = shadow.Connection(server.port, case.PASSWORD)
        self.addCleanup(conn.close)
        conn.socket.settimeout(20)
        sealer = conn.sealer
        header = socks.address(*target.address)
        plain = os.urandom(shadow.CHUNK_MAX - len(header))
        first = sealer.chunk(header + plain)
        wire, body = self.chunks_of(sealer, READ - cut + more)

        conn.socket.sendall(sealer.salt + first[:-cut])
        ends.await_acknowledged(conn.socket)
        # It is read once it is neither in the listener's queue nor in the socket.
        wait.until(lambda: server.traffic()["open"] == 1, 10, "accepting")
        wait.until(lambda: ends.unread(server, server.port) == 0, 10, "the server's reading")
        with stopped(server):
            conn.socket.sendall(first[-cut:] + wire)
            ends.await_acknowledged(conn.socket)
        conn.socket.shutdown(socket.SHUT_WR)
        text, end = self.result(target)
        self.assertEqual((len(text), end), (len(plain + body), ends.FIN))
        self.assertTrue(text == plain + body, "other bytes than were sent")
        server.await_no_sessions()

    def result(self, target):
        """What the target read; there is one connection at a time."""
        wait.until(lambda: target.results, 10, "the target's end")
        return target.results.pop()

    def assert_all_arrive(self, *arguments):
        target = self.target(ends.read_to_end)
        target.listener.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN, 100)
        server = self.server("-m", shadow.METHOD, *arguments)
        for _ in range(2):  # the first connection fetches the cookie of a fast open
            conn = shadow.Connection(server.port, case.PASSWORD)
            conn.request(target.address, b"x")
            conn.close()
            self.assertEqual(self.result(target), (b"x", ends.FIN))
            server.await_no_sessions()
        for cut, more in ((1, 0), (2, 0), (100, 0), (16000, 0), (1, 1), (1, 5000), (1, 200000)):
            with self.subTest(cut=cut, more=more):
                self.assert_arrives(server, target, cut, more)

    def test_plainly(self):
        self.assert_all_arrive()

    def test_where_the_kernel_takes_little(self):
        self.assert_all_arrive("--tcp-outgoing-sndbuf", 16384)

    def test_where_the_first_write_goes_with_the_syn(self):
        """The kernel takes no more of it than fits there."""
        netns.sysctl("net.ipv4.tcp_fastopen", 3)
        self.assert_all_arrive("--fast-open")


if __name__ == "__main__":
    case.main()
