"""R06, R07: what a connection buffers is bounded, before and after its target is connected."""

import hashlib
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, dns_stub, proc, shadow, socks, targets, wait  # noqa: E402

MIB = 1 << 20


class Backpressure(case.Case):
    def read_slowly(self, conn, seconds):
        end = time.monotonic() + seconds
        count = 0
        while time.monotonic() < end:
            count += len(conn.recv(1000))
            time.sleep(0.1)  # 10 kB/s: the slowness is what is tested
        return count

    def grown(self, running, before):
        return [(proc.private_bytes(program.pid) - start) / MIB
                for program, start in zip(running, before)]

    def test_fast_target_slow_client(self):
        if self.sanitized:
            raise unittest.SkipTest("memory says nothing in a sanitizer build")
        target = self.target(targets.source(1 << 30))
        running = self.chain()
        before = [proc.private_bytes(program.pid) for program in running]
        conn = self.connect(running[1], target.address)
        self.read_slowly(conn, 30)
        for growth in self.grown(running, before):
            self.assertLess(growth, 8)

    def test_fast_client_slow_target(self):
        if self.sanitized:
            raise unittest.SkipTest("memory says nothing in a sanitizer build")
        target = self.target(lambda conn: self.read_slowly(conn, 10), keep=True)
        running = self.chain()
        before = [proc.private_bytes(program.pid) for program in running]
        conn = self.connect(running[1], target.address)
        conn.setblocking(False)
        sent = 0
        block = bytes(1 << 16)
        end = time.monotonic() + 5
        while time.monotonic() < end:
            try:
                sent += conn.send(block)
            except BlockingIOError:
                time.sleep(0.05)  # tries again until the span is over
        for growth in self.grown(running, before):
            self.assertLess(growth, 8)
        # What the kernel and we hold together; far from all that a client could push.
        self.assertLess(sent, 64 * MIB)


class BeforeTheTarget(case.Case):
    def setUp(self):
        super().setUp()
        self.stub = dns_stub.Stub({"late.test": ["127.0.0.1"]})
        self.addCleanup(self.stub.close)
        self.stub.delays["late.test"] = 1.0

    def test_data_before_the_answer_of_the_name_server(self):
        """16 KiB come with the header and 64 KiB more before the name is known."""
        target = self.target(targets.digest)
        server = self.server("-d", self.stub.nameserver, "-m", shadow.METHOD)
        for sizes in ((16384, 65536), (0, 1), (1, 0), (16383, 16384), (100000, 300000)):
            payload = [os.urandom(size) for size in sizes]
            conn = shadow.Connection(server.port, case.PASSWORD)
            self.addCleanup(conn.close)
            conn.socket.settimeout(20)
            head = socks.address("late.test", target.port)
            conn.send(head + payload[0])
            conn.send(payload[1])
            conn.socket.shutdown(1)
            self.assertEqual(conn.receive(32), hashlib.sha256(b"".join(payload)).digest(), sizes)

    def test_through_local(self):
        target = self.target(targets.digest)
        server, local = self.chain(["-d", self.stub.nameserver])
        payload = os.urandom(16384 + 65536)
        conn = socks.connect(local.port, ("late.test", target.port), first=payload[:16384])
        self.addCleanup(conn.close)
        conn.sendall(payload[16384:])
        conn.shutdown(1)
        conn.settimeout(20)
        self.assertEqual(socks.receive_all(conn), hashlib.sha256(payload).digest())

    def test_much_data_waits_with_the_client(self):
        """What does not fit the bound stays in the kernel and still arrives in order."""
        target = self.target(targets.digest)
        server, local = self.chain(["-d", self.stub.nameserver])
        payload = os.urandom(8 * MIB)
        conn = socks.connect(local.port, ("late.test", target.port))
        self.addCleanup(conn.close)
        conn.settimeout(30)
        conn.sendall(payload)
        conn.shutdown(1)
        self.assertEqual(socks.receive_all(conn), hashlib.sha256(payload).digest())

    def test_client_leaves_before_the_answer(self):
        target = self.target(targets.sink)
        server, local = self.chain(["-d", self.stub.nameserver])
        for number in range(20):
            conn = socks.connect(local.port, ("late.test", target.port), first=b"x" * 1000)
            if number % 2:
                socks.reset(conn)
            else:
                conn.close()
        wait.until(lambda: self.stub.queries, 5)
        server.await_no_sessions()
        local.await_no_sessions()


if __name__ == "__main__":
    case.main()
