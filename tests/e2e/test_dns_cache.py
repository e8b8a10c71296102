"""Answers are kept for their time, and one question serves all who wait for its answer."""

import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, dns_case, dns_stub, targets, wait  # noqa: E402

BOTH = 2  # questions for a name: A and AAAA


class Cache(dns_case.DnsCase):
    def test_many_connections_one_question(self):
        stub = self.stub({"echo.test": ["127.0.0.1"]}, ttl=60)
        server = self.asking(stub)
        for number in range(20):
            self.exchange(server, "Echo.Test" if number % 2 else "echo.test.")
        # Each worker has a resolver of its own.
        self.assertLessEqual(stub.count("echo.test"), BOTH * case.settings.workers)

    def test_all_who_wait_get_one_answer(self):
        stub = self.stub({"echo.test": ["127.0.0.1"]})
        stub.delays["echo.test"] = 0.7
        server = self.asking(stub)
        conns = [self.request(server, "echo.test") for _ in range(50)]
        for conn in conns:
            self.assertEqual(conn.receive(5), b"hello")
        self.assertLessEqual(stub.count("echo.test"), BOTH * case.settings.workers)

    def test_time_to_live(self):
        """R22: an address that moves is found when the answer's time is over, and not before."""
        stub = self.stub({"echo.test": ["127.0.0.1"]}, ttl=2)
        server = self.asking(stub, "--workers", 1)
        start = time.monotonic()
        self.exchange(server, "echo.test")
        moved = targets.Target(targets.greeter(b"moved", keep_echo=False), host="127.0.0.2",
                               port=self.echo.port)
        self.addCleanup(moved.close)
        stub.records["echo.test"] = ["127.0.0.2"]

        def answer():
            conn = self.request(server, "echo.test")
            try:
                return conn.receive(5)
            finally:
                conn.close()

        self.assertEqual(answer(), b"hello")
        wait.until(lambda: answer() == b"moved", 10, "the move's being noticed")
        self.assertGreaterEqual(time.monotonic() - start, 1.9)

    def test_no_such_name(self):
        """A "no" is kept as its SOA says, and the name is found when it exists at last."""
        stub = self.stub({}, ttl=60)
        stub.negative_ttl = 2
        server = self.asking(stub, "--workers", 1)
        for _ in range(5):
            self.assert_ends(self.request(server, "late.test"))
        self.assertEqual(stub.count("late.test"), BOTH)
        stub.records["late.test"] = ["127.0.0.1"]

        def found():
            conn = self.request(server, "late.test")
            try:
                return conn.receive(5) == b"hello"
            except OSError:
                return False
            finally:
                conn.close()

        wait.until(found, 10, "the new name")
        self.assertEqual(stub.count("late.test"), 2 * BOTH)

    def test_max_dns_queries(self):
        """So many names are asked for at once and no more, and all are answered."""
        names = ["n%d.test" % number for number in range(20)]
        stub = self.stub({name: ["127.0.0.1"] for name in names})
        server = self.asking(stub, "--max-dns-queries", 2 * case.settings.workers)
        lock, out, most = threading.Lock(), set(), [0]
        answer = stub._answer

        def counted(question, name, kind, end):
            with lock:
                out.add(name)
                most[0] = max(most[0], len(out))
            return answer(question, name, kind, end)

        send = stub._send

        def sent(sock, reply, client):
            with lock:
                out.discard(dns_stub._question(reply)[0])
            send(sock, reply, client)

        stub._answer, stub._send = counted, sent
        for name in names:
            stub.delays[name] = 0.1
        conns = [self.request(server, name) for name in names]
        for conn in conns:
            self.assertEqual(conn.receive(5), b"hello")
        self.assertLessEqual(most[0], 2 * case.settings.workers)


if __name__ == "__main__":
    case.main()
