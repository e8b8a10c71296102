"""Bytes that need no cipher go from socket to socket inside the kernel, whole and in order."""

import contextlib
import hashlib
import json
import os
import socket
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import acl, case, ends, ports, proc, socks, targets, wait  # noqa: E402
from support.case import settings  # noqa: E402
from support.readers import Reader, slow, whole  # noqa: E402
from support.stopped import stopped  # noqa: E402

MIB = 1 << 20
LARGE = os.urandom(64 * MIB)
SOME = LARGE[:8 * MIB]


def digest(text):
    return hashlib.sha256(text).hexdigest()


def read_bytes(program):
    """What the program has read by itself, of sockets and the pipe; what is spliced isn't there."""
    with open("/proc/%d/io" % program.pid) as file:
        return int(next(file).split()[1])


class Ways:
    """The tests, for each way that splices; `relays` are what the bytes pass."""

    def setUp(self):
        super().setUp()
        self.peers = self.target(targets.idle, keep=True)

    def begin(self, **how):
        """A client's connection and the target's end of it, both slow to give up."""
        local, self.relays = self.make(**how)
        conn = self.connect(local, self.peers.address, first=b"hello")
        wait.until(lambda: self.peers.connections, 10, "the connection")
        peer = self.peers.connections[-1]
        for end in (conn, peer):
            end.settimeout(60)
        self.assertEqual(targets.read_exactly(peer, 5), b"hello")
        return conn, peer

    def test_both_ways_at_once_with_slow_readers(self):
        conn, peer = self.begin()
        readers = [Reader(end, slow) for end in (conn, peer)]
        senders = [threading.Thread(target=end.sendall, args=(LARGE,), daemon=True)
                   for end in (conn, peer)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join(100)
        for end in (conn, peer):
            end.shutdown(socket.SHUT_WR)
        for reader in readers:
            self.assertEqual(reader.result(), whole(LARGE))

    def transfer(self, conn, peer):
        """SOME up, its end, and SOME back after that."""
        up = Reader(peer)
        conn.sendall(SOME)
        conn.shutdown(socket.SHUT_WR)
        self.assertEqual(up.result(), whole(SOME))
        down = Reader(conn)
        peer.sendall(SOME)
        peer.shutdown(socket.SHUT_WR)
        self.assertEqual(down.result(), whole(SOME))

    def test_is_spliced(self):
        conn, peer = self.begin()
        before = [read_bytes(program) for program in self.relays]
        self.transfer(conn, peer)
        for program, start in zip(self.relays, before):
            self.assertLess(read_bytes(program) - start, len(SOME), "half of it at most is read")
            program.await_log("splice: a pipe of")

    def assert_works_with_fault(self, fault, are_read):
        shim = os.path.join(settings.build, "lib", "libss_splice_fault.so")
        if not os.path.exists(shim):
            raise unittest.SkipTest("%s is not built" % shim)
        if self.sanitized:
            raise unittest.SkipTest("a sanitizer wants to be loaded first")
        conn, peer = self.begin(env={"LD_PRELOAD": shim, "SS_SPLICE_FAULT": fault})
        before = [read_bytes(program) for program in self.relays]
        self.transfer(conn, peer)
        for program, start in zip(self.relays, before):
            if are_read:
                self.assertGreaterEqual(read_bytes(program) - start, 2 * len(SOME))

    def test_without_it_for_the_source(self):
        self.assert_works_with_fault("source", True)

    def test_without_it_for_the_sink(self):
        self.assert_works_with_fault("sink", True)

    def test_without_a_pipe_of_use(self):
        self.assert_works_with_fault("pipe", True)

    def test_reset_of_the_source(self):
        """A reset comes behind what was sent before it."""
        conn, peer = self.begin()
        reader = Reader(conn, slow)
        peer.sendall(SOME)
        ends.await_acknowledged(peer)
        socks.reset(peer)
        self.assertEqual(reader.result(), whole(SOME, ends.RESET))

    def test_reset_of_the_sink(self):
        """The source is told, though it is not read; the pipe is clean for the next."""
        conn, peer = self.begin()
        sent = threading.Event()

        def send():
            with contextlib.suppress(OSError):
                peer.sendall(LARGE)
            sent.set()

        threading.Thread(target=send, daemon=True).start()
        targets.read_exactly(conn, 2 * MIB)
        socks.reset(conn)
        self.assertTrue(sent.wait(30), "the source is not told")
        local = self.relays[0]
        conn = self.connect(local, self.peers.address, first=b"hello")
        wait.until(lambda: len(self.peers.connections) == 2, 10, "another connection")
        peer = self.peers.connections[-1]
        targets.read_exactly(peer, 5)
        self.transfer(conn, peer)

    def test_urgent_data(self):
        """It stops a splice, and no end comes before what is behind it; nor does anything spin."""
        conn, peer = self.begin()
        part = SOME[:50000]
        down = Reader(conn)
        for _ in range(20):
            peer.sendall(part)
        wait.until(lambda: down.count == 20 * len(part), 20, "what is before it")
        with stopped(self.relays[-1]):
            peer.sendall(part)
            peer.send(b"!", socket.MSG_OOB)
            peer.sendall(part)
        wait.until(lambda: down.count == 22 * len(part), 20, "what is behind it")
        self.assertLess(proc.cpu_share(self.relays[-1].pid, 1), 0.3)
        with stopped(self.relays[-1]):
            peer.sendall(part)
            peer.send(b"!", socket.MSG_OOB)
            peer.sendall(part)
            peer.shutdown(socket.SHUT_WR)
            ends.await_acknowledged(peer)
        self.assertEqual(down.result(), whole(24 * part))


class Bypassed(Ways, case.Case):
    def make(self, **how):
        rules = acl.write("[bypass_all]\n")
        local = self.local(ports.free_port(), "--acl", rules, "--log-level", "debug", **how)
        return local, [local]


class Plain(Ways, case.Case):
    def make(self, **how):
        server = self.server("-m", "none", "--log-level", "debug", **how)
        local = self.local(server, "-m", "none", "--log-level", "debug", **how)
        return local, [local, server]

    def test_payload_behind_the_header(self):
        """It comes with the header, as much as the kernel takes, and more behind it."""
        target = self.target(targets.digest)
        server = self.server("-m", "none")
        for cut in (0, 1, 100, 20000, 300000):
            conn = socks.dial("127.0.0.1", server.port, 30)
            self.addCleanup(conn.close)
            head = socks.address("127.0.0.1", target.port)
            conn.sendall(head + SOME[:cut])
            conn.sendall(SOME[cut:])
            conn.shutdown(socket.SHUT_WR)
            self.assertEqual(socks.receive_all(conn), hashlib.sha256(SOME).digest(), cut)

    def test_rate(self):
        """Time is what is tested, with a wide margin."""
        rate = 2 * MIB
        port = ports.free_port()
        entry = {"server": "127.0.0.1", "server_port": port, "method": "none",
                 "password": case.PASSWORD, "rate": rate}
        path = acl.write(json.dumps({"servers": [entry]}), "limits.json")
        self.program("ss-server", "-c", path).await_listening(port)
        local = self.local(port, "-m", "none")
        target = self.target(targets.source(1 << 30))
        conn = self.connect(local, target.address)
        reader = Reader(conn)
        time.sleep(1)
        before, start = reader.count, time.monotonic()
        time.sleep(4)
        got, span = reader.count - before, time.monotonic() - start
        self.assertGreater(got, rate * span / 3)
        self.assertLess(got, rate * span * 1.5)


if __name__ == "__main__":
    case.main()
