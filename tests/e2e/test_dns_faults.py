"""R18, R24: answers that are none hurt their own connection, and that one not for long."""

import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, dns_case, dns_stub, proc, shadow, socks, targets, wait  # noqa: E402

COUNT = 50
BYTES, PAUSE_S = 100, 0.1  # of a download that is slow but must not stall
BOUND = 12  # questions in a row for one name while 50 connections wait for it, at the most

MANGLED = {
    "empty.test": lambda answer: b"",
    "short.test": lambda answer: answer[:7],
    "other-id.test": lambda answer: bytes([answer[0] ^ 0x55]) + answer[1:],
    "half.test": lambda answer: answer[: len(answer) - 3],
    "query.test": lambda answer: answer[:2] + bytes([answer[2] & 0x7F]) + answer[3:],
    "noise.test": lambda answer: answer[:2] + os.urandom(200),
}


class Faults(dns_case.DnsCase):
    def bad_stub(self):
        names = {name: ["127.0.0.1"] for name in MANGLED}
        stub = self.stub({"good.test": ["127.0.0.1"], **names})
        stub.codes.update({"bad.test": dns_stub.SERVFAIL, "refused.test": dns_stub.REFUSED})
        stub.silent.add("silent.test")
        stub.mangled.update(MANGLED)
        return stub

    def assert_only_these_fail(self, name):
        """50 connections to the name end in time, while a download goes on and others work."""
        stub = self.bad_stub()
        server = self.asking(stub)
        source = self.target(targets.dripper(BYTES, PAUSE_S))
        got = []

        def download():
            conn = shadow.Connection(server.port, case.PASSWORD, timeout=20 * PAUSE_S)
            with conn.socket:
                conn.request(("good.test", source.port), b"x")
                while len(got) < BYTES:
                    got.append(conn.receive(1))

        loading = threading.Thread(target=download)
        loading.start()
        conns = [self.request(server, name) for _ in range(COUNT)]
        self.exchange(server, "good.test")
        for conn in conns:
            self.assert_ends(conn)
        loading.join()
        self.assertEqual(len(b"".join(got)), BYTES)
        self.exchange(server, "good.test")
        server.await_no_sessions()
        # One try of each server in two rounds, for each family and worker: not one a connection.
        self.assertLess(stub.count(name), 4 * BOUND * case.settings.workers + 1)

    def test_servfail(self):
        self.assert_only_these_fail("bad.test")

    def test_refused(self):
        self.assert_only_these_fail("refused.test")

    def test_silent(self):
        self.assert_only_these_fail("silent.test")

    def test_malformed(self):
        stub = self.bad_stub()
        server = self.asking(stub)
        conns = [self.request(server, name) for name in MANGLED for _ in range(3)]
        self.exchange(server, "good.test")
        for conn in conns:
            self.assert_ends(conn)
        self.exchange(server, "good.test")

    def test_cpu_is_idle_meanwhile(self):
        stub = self.bad_stub()
        server = self.asking(stub)
        for name in ("silent.test", "bad.test", "noise.test"):
            for _ in range(20):
                self.request(server, name)
        self.await_queries(stub, "silent.test", 2)
        self.assertLess(proc.cpu_share(server.pid, 3), 0.2 if self.sanitized else 0.05)

    def test_down_and_up_again(self):
        """R24: the next look-up after the name server's return works."""
        stub = self.stub({"good.test": ["127.0.0.1"]})
        server = self.asking(stub)
        self.exchange(server, "good.test")
        stub.down()
        for _ in range(3):
            self.assert_ends(self.request(server, "good.test"))
        stub.up()

        def works():
            try:
                self.exchange(server, "good.test", timeout=3)
            except (AssertionError, OSError):  # an end, or nothing in time
                return False
            return True

        # Where the server was silent, not refusing, that is remembered for a second.
        wait.until(works, 3, "a look-up that works again")

    def test_another_server_answers(self):
        """One that is down, one that fails and one that is silent do not hide the one that works."""
        down, failing, silent = (self.stub({}) for _ in range(3))
        down.down()
        failing.codes["good.test"] = dns_stub.SERVFAIL
        silent.silent.add("good.test")
        good = self.stub({"good.test": ["127.0.0.1"]})
        self.exchange(self.asking("%s,%s,%s" % (down.nameserver, failing.nameserver,
                                                good.nameserver)), "good.test", timeout=3)
        self.exchange(self.asking("%s,%s" % (silent.nameserver, good.nameserver)), "good.test")

    def test_ipv6_nameserver(self):
        try:
            stub = self.stub({"good.test": ["127.0.0.1"]}, host="::1")
        except OSError:
            self.skipTest("no IPv6 loopback")
        self.assertTrue(stub.nameserver.startswith("[::1]:"))
        self.exchange(self.asking(stub), "good.test")

    def test_truncated(self):
        """An answer that is cut, or too long for a datagram, is fetched over TCP."""
        many = ["127.0.0.1"] + ["127.1.0.%d" % number for number in range(1, 60)]
        stub = self.stub({"cut.test": ["127.0.0.1"], "many.test": many})
        stub.cut.add("cut.test")
        server = self.asking(stub)
        self.exchange(server, "cut.test")
        self.exchange(server, "many.test")
        self.assertIn(("cut.test", dns_stub.A), stub.tcp_queries)
        self.assertIn(("many.test", dns_stub.A), stub.tcp_queries)

    def test_aliases(self):
        stub = self.stub({"end.test": ["127.0.0.1"]}, ttl=60)
        chain = ["a%d.test" % number for number in range(10)] + ["end.test"]
        stub.aliases.update(zip(chain, chain[1:]))
        stub.aliases.update({"nowhere.test": "gone.test"})
        server = self.asking(stub)
        self.exchange(server, "a0.test")
        self.exchange(server, "a7.test")
        self.assert_ends(self.request(server, "nowhere.test"))

    def test_answers_about_other_names_are_left_alone(self):
        """A record for good.test in the answer for bad.test does not become good.test's."""
        stub = self.stub({"good.test": ["127.0.0.1"], "evil.test": ["127.0.0.1"]}, ttl=60)

        def poisoned(answer):
            record = (b"\4good\4test\0\0\1\0\1" + (3600).to_bytes(4, "big") + b"\0\4" +
                      socks.address("127.0.0.9", 0)[1:5])
            return (answer[:6] + (int.from_bytes(answer[6:8], "big") + 1).to_bytes(2, "big") +
                    answer[8:] + record)

        stub.mangled["evil.test"] = poisoned
        server = self.asking(stub)
        for _ in range(2 * case.settings.workers):
            self.exchange(server, "evil.test")
            self.exchange(server, "good.test")
        self.assertGreaterEqual(stub.count("good.test"), 2)


if __name__ == "__main__":
    case.main()
