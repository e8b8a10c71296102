"""R67: any name that a resolver takes may be asked for, and nothing else reaches a name server."""

import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, dns_case, shadow  # noqa: E402

LONG = ".".join("l" * count for count in (62, 61, 61, 61)) + ".test"
GOOD = ("a_b.test", "1x.test", "x.test", "x.test.", "CAPITALS.Test", "-dash-.test", "123.test",
        "_dmarc.x.test", "xn--bcher-kva.test", "a" * 63 + ".test", LONG)
BAD = (b"a\0b.test", b"a b.test", b"a..test", b".test", b"a\\.test", b"a\tb.test", b"\xffa.test",
       b"a" * 64 + b".test", b"n.test\n")


class Names(dns_case.DnsCase):
    def test_good(self):
        self.assertEqual(len(LONG), 253)
        stub = self.stub({name.rstrip(".").lower(): ["127.0.0.1"] for name in GOOD})
        server = self.asking(stub)
        for name in GOOD:
            with self.subTest(name=name):
                self.exchange(server, name)

    def test_bad(self):
        stub = self.stub({"*.test": ["127.0.0.1"]})
        server = self.asking(stub)
        for name in BAD:
            with self.subTest(name=name):
                conn = shadow.Connection(server.port, case.PASSWORD)
                self.addCleanup(conn.close)
                header = b"\x03" + bytes([len(name)]) + name + struct.pack(">H", self.echo.port)
                conn.send(header + b"hello")
                # What is malformed is swallowed in silence; what is no name ends the connection.
                conn.socket.settimeout(0.3)
                try:
                    self.assertEqual(conn.socket.recv(1), b"")
                except (TimeoutError, ConnectionResetError):
                    pass
        self.exchange(server, "good.test")
        self.assertEqual({name for name, _, _ in stub.queries}, {"good.test"})

    def test_at_home(self):
        """localhost and what ends in it is this host, whatever a name server would say."""
        stub = self.stub({"localhost": ["192.0.2.1"], "a.localhost": ["192.0.2.1"]})
        server = self.asking(stub)
        for name in ("localhost", "a.localhost", "LocalHost."):
            self.exchange(server, name)
        self.exchange(server, "127.0.0.1")
        self.assertEqual(stub.queries, [])


if __name__ == "__main__":
    case.main()
