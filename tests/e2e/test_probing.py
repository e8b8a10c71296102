"""R73, R74, R75, R78: ss-server before a client has proved that it knows the key."""

import errno
import fcntl
import os
import select
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, proc, shadow, socks, targets, wait  # noqa: E402

SIOCOUTQ = 0x5411


class Probing(case.Case):
    def setUp(self):
        super().setUp()
        self.echo = self.target(targets.echo)
        self.born = {}  # before it connected: its server cannot have begun to count earlier
        self.ended = {}

    def start(self, *arguments):
        return self.server("-m", shadow.METHOD, *arguments)

    def probe(self, server, data=b""):
        born = time.monotonic()
        conn = socket.create_connection(("127.0.0.1", server.port), 10)
        self.addCleanup(conn.close)
        self.born[conn] = born
        if data:
            conn.sendall(data)
        return conn

    def assert_works_directly(self, server):
        conn = shadow.Connection(server.port, case.PASSWORD)
        conn.request(self.echo.address, b"still there?")
        self.assertEqual(conn.receive(12), b"still there?")
        conn.close()

    def taken(self, conn):
        """Whether the peer's kernel has acknowledged all that was sent."""
        return struct.unpack("i", fcntl.ioctl(conn, SIOCOUTQ, bytes(4)))[0] == 0

    def endings(self, conns, seconds, enough=None):
        """How each connection ends within the time: "data", "fin", "reset" or None.

        Returns sooner when all have ended, or `enough`.
        """
        enough = len(conns) if enough is None else enough
        found = {}
        poll = select.poll()
        by_number = {}
        for conn in conns:
            conn.setblocking(False)
            by_number[conn.fileno()] = conn
            poll.register(conn, select.POLLIN)
        deadline = time.monotonic() + seconds
        while by_number and len(found) < enough and time.monotonic() < deadline:
            for number, _ in poll.poll(max(1, (deadline - time.monotonic()) * 1000)):
                conn = by_number.pop(number)
                self.ended[conn] = time.monotonic()
                poll.unregister(number)
                try:
                    found[conn] = "data" if conn.recv(1) else "fin"
                except OSError as error:
                    found[conn] = "reset" if error.errno == errno.ECONNRESET else str(error)
        return [found.get(conn) for conn in conns]

    def assert_fin_at_deadline(self, conns, timeout):
        """No answer and no close before; then a FIN. Each is judged by its own age, so that it
        does not matter how long it took to make them all."""
        self.assertEqual(set(self.endings(conns, 3 * timeout)), {"fin"})
        for conn in conns:
            self.assertGreater(self.ended[conn] - self.born[conn], 0.75 * timeout)

    def recorded(self, payload=b"a recorded request"):
        return shadow.first_packet(case.PASSWORD, self.echo.address, payload)

    def test_no_ban(self):
        """R73: 1,000 bad handshakes from an address, then a correct one from there."""
        server = self.start()
        for _ in range(1000):
            conn = socket.create_connection(("127.0.0.1", server.port), 10)
            conn.sendall(os.urandom(100))
            conn.close()
        self.assert_works_directly(server)
        server.await_no_sessions()

    def test_reaction_does_not_depend_on_the_bytes(self):
        """R74: no answer and no close for any start; at the deadline a FIN for all."""
        timeout = 4
        server = self.start("--handshake-timeout", timeout)
        packet = self.recorded()
        first = self.probe(server, packet)
        self.assertEqual(self.endings([first], 5), ["data"])  # it was good, once
        first.close()

        probes = []
        for count in list(range(0, 120)) + [200, 299, 300, 500, 999, 1000]:
            probes.append(self.probe(server, os.urandom(count)))
        probes.append(self.probe(server, packet))  # replayed whole
        for cut in (1, 31, 32, 33, 49, 50, 51, len(packet) - 1):
            probes.append(self.probe(server, packet[:cut]))
        for place in (0, 31, 32, 49, 50, len(packet) - 1):
            changed = bytearray(self.recorded())
            changed[place] ^= 1
            probes.append(self.probe(server, bytes(changed)))
        probes.append(self.probe(server, self.recorded()[:32] + os.urandom(1000)))
        probes.append(self.probe(server, os.urandom(100000)))

        self.assert_fin_at_deadline(probes, timeout)
        for conn in probes:
            self.assertTrue(self.taken(conn), "not all bytes are read")
        server.await_no_sessions()

    def test_bytes_one_by_one(self):
        """R74: 1 to 300 random bytes, each for itself; no answer and no close."""
        server = self.start("--handshake-timeout", "60")
        conn = self.probe(server)
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for value in os.urandom(300):
            conn.sendall(bytes([value]))
            readable, _, _ = select.select([conn], [], [], 0.003)
            self.assertEqual(readable, [])
        self.assertEqual(self.endings([conn], 1), [None])

    def test_server_reads_on_after_a_failure(self):
        """R74: however much comes after a bad start is read, in bounded memory, and dropped."""
        server = self.start("--handshake-timeout", "60")
        before = proc.private_bytes(server.pid)
        conn = self.probe(server)
        block = os.urandom(1 << 20)
        for _ in range(32):
            conn.sendall(block)
        wait.until(lambda: self.taken(conn), 20, "the server's reading")
        if not self.sanitized:
            self.assertLess(proc.private_bytes(server.pid) - before, 4 << 20)
        self.assertEqual(self.endings([conn], 0.5), [None])

    def test_deadline_is_absolute(self):
        """R74: bytes that keep coming do not move the deadline, and the close is a FIN."""
        server = self.start("--handshake-timeout", "3")
        for bad_start in (b"", os.urandom(200)):
            begin = time.monotonic()
            conn = self.probe(server, bad_start)
            while True:
                try:
                    conn.sendall(b"x")
                except OSError:
                    self.fail("reset while sending, after %g s" % (time.monotonic() - begin))
                if select.select([conn], [], [], 0.2)[0]:
                    break
                self.assertLess(time.monotonic() - begin, 12)
            self.assertEqual(conn.recv(1), b"")
            self.assertGreater(time.monotonic() - begin, 2.5)
            conn.close()

    def test_peers_end_frees_the_slot(self):
        """R74, R78: after a bad start a FIN or RST of the peer is the end of it."""
        server = self.start("--handshake-timeout", "60")
        for ending in ("fin", "rst"):
            conns = [self.probe(server, os.urandom(80)) for _ in range(20)]
            wait.until(lambda: server.traffic()["open"] == 20, 10)
            for conn in conns:
                conn.close() if ending == "fin" else socks.reset(conn)
            server.await_no_sessions()

    def test_replay_is_refused_also_later(self):
        """R74: what was recorded is no use after its session has ended."""
        server = self.start("--handshake-timeout", "60")
        packets = [self.recorded() for _ in range(5)]
        for packet in packets:
            conn = self.probe(server, packet)
            self.assertEqual(self.endings([conn], 5), ["data"])
            conn.close()
        server.await_no_sessions()
        again = [self.probe(server, packet) for packet in packets]
        self.assertEqual(self.endings(again, 1), [None] * 5)
        self.assertEqual(self.echo.accepted, 5)

    def test_header_cut_over_two_chunks(self):
        """R75: at each byte, with each type of address."""
        server = self.start()
        for address in (socks.address(*self.echo.address),
                        socks.address("localhost", self.echo.port)):
            for at in range(1, len(address)):
                sealer = shadow.Sealer(case.PASSWORD)
                wire = sealer.salt + sealer.chunk(address[:at]) + sealer.chunk(address[at:] + b"hi")
                conn = self.probe(server, wire)
                opener = shadow.Opener(case.PASSWORD)
                plain = b""
                while len(plain) < 2:
                    data = conn.recv(1000)
                    self.assertTrue(data, "closed for a header cut at %d" % at)
                    plain += opener.feed(data)
                self.assertEqual(plain, b"hi")
                conn.close()

    def test_header_in_chunks_of_one_byte_and_segments_of_one_byte(self):
        """R75"""
        server = self.start()
        address = socks.address(*self.echo.address)
        sealer = shadow.Sealer(case.PASSWORD)
        wire = sealer.salt + b"".join(sealer.chunk(bytes([value])) for value in address + b"hi")
        conn = self.probe(server)
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for value in wire:
            conn.sendall(bytes([value]))
        opener = shadow.Opener(case.PASSWORD)
        plain = b""
        while len(plain) < 2:
            data = conn.recv(1000)
            self.assertTrue(data)
            plain += opener.feed(data)
        self.assertEqual(plain, b"hi")

    def test_header_with_payload_in_one_chunk(self):
        """R75: header + 16,000 bytes; also as much as a chunk can hold."""
        server = self.start()
        for size in (16000, shadow.CHUNK_MAX - 7):
            payload = os.urandom(size)
            conn = shadow.Connection(server.port, case.PASSWORD)
            self.addCleanup(conn.close)
            conn.request(self.echo.address, payload)
            self.assertEqual(conn.receive(size), payload)

    def test_bad_headers_look_like_any_failure(self):
        """Authentic, but no address: as silent as a wrong key."""
        server = self.start("--handshake-timeout", "4")
        probes = []
        for header in (b"\x00" * 7, b"\x02" * 20, b"\x03\x00\x00\x50", b"\x03\x05a\x00bcd\x00\x50",
                       b"\x11\x7f\x00\x00\x01\x00\x50"):
            sealer = shadow.Sealer(case.PASSWORD)
            probes.append(self.probe(server, sealer.salt + sealer.chunk(header)))
        for length in (b"\x00\x00", b"\x40\x00", b"\xff\xff"):
            sealer = shadow.Sealer(case.PASSWORD)
            probes.append(self.probe(server, sealer.salt + sealer._seal(length) + bytes(100)))
        self.assert_fin_at_deadline(probes, 4)

    def test_closed_at_once(self):
        """R78: 500 connects closed at once are freed at once."""
        server = self.start("--handshake-timeout", "60", "--log-level", "debug")
        for _ in range(500):
            socket.create_connection(("127.0.0.1", server.port), 10).close()
        wait.until(lambda: server.traffic()["total"] == 500, 20)
        server.await_no_sessions()
        self.assertGreaterEqual(len(server.log_lines("DEBUG")), 500, "each is worth a debug line")

    def test_silent(self):
        """R78: 500 silent ones are closed at the time-out."""
        server = self.start("--handshake-timeout", "3", "--log-level", "debug")
        silent = [self.probe(server) for _ in range(500)]
        self.assert_fin_at_deadline(silent, 3)
        server.await_no_sessions()
        self.assertGreaterEqual(len(server.log_lines("DEBUG")), 500, "each is worth a debug line")

    def test_closed_and_silent_log_nothing_at_the_normal_level(self):
        """R78"""
        server = self.start("--handshake-timeout", "2")
        lines = len(server.log_lines())
        for _ in range(100):
            socket.create_connection(("127.0.0.1", server.port), 10).close()
        silent = [self.probe(server) for _ in range(100)]
        self.assertEqual(set(self.endings(silent, 10)), {"fin"})
        self.assertEqual(server.log_lines()[lines:], [])

    def test_unauthenticated_hold_half_of_the_pool(self):
        """Silent connections never keep a correct client out: the oldest of them is closed."""
        server = self.start("--max-connections", "40", "--handshake-timeout", "60")
        good = shadow.Connection(server.port, case.PASSWORD)
        self.addCleanup(good.close)
        good.request(self.echo.address, b"first")
        self.assertEqual(good.receive(5), b"first")
        silent = [self.probe(server) for _ in range(100)]
        self.assert_works_directly(server)
        # 20 may be unproven, and the latest client was for a moment. Each worker has its share and
        # its own oldest; which of several worker's go depends on how connections were spread.
        alone = case.settings.workers == 1
        endings = self.endings(silent, 20, enough=81 if alone else 80)
        self.assertEqual(set(endings), {"fin", None})
        time.sleep(0.5)  # the span in which no more must go
        held = [conn for conn in silent if conn not in self.ended]
        held = [conn for conn, end in zip(held, self.endings(held, 0.1)) if end is None]
        self.assertTrue(10 <= len(held) <= 20, "%d are held" % len(held))
        if alone:
            self.assertEqual(held, silent[81:])
        self.assertEqual(held[-1], silent[-1])
        good.send(b"again")
        self.assertEqual(good.receive(5), b"again")


class ManyAtOnce(case.Case):
    def test_good_and_bad_together(self):
        """R73: correct clients work while bad ones knock."""
        echo = self.target(targets.echo)
        server = self.server("-m", shadow.METHOD)
        stop = threading.Event()

        def knock():
            while not stop.is_set():
                with socket.create_connection(("127.0.0.1", server.port), 10) as conn:
                    conn.sendall(os.urandom(90))

        knockers = [threading.Thread(target=knock) for _ in range(4)]
        for thread in knockers:
            thread.start()
        try:
            for number in range(100):
                conn = shadow.Connection(server.port, case.PASSWORD)
                conn.request(echo.address, b"%05d" % number)
                self.assertEqual(conn.receive(5), b"%05d" % number)
                conn.close()
        finally:
            stop.set()
            for thread in knockers:
                thread.join()
        server.await_no_sessions()


if __name__ == "__main__":
    case.main()
