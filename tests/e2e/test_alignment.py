"""R88: names of odd and even length put every field at every alignment.

What it is for is the sanitizer build, whose alignment check then has something to see.
"""

import contextlib
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, dns_stub, socks, targets  # noqa: E402


class Alignment(case.Case):
    def test_names_of_every_length(self):
        suffix = ".test"
        names = ["a" * length + suffix for length in range(1, 20)]
        names += [".".join(["b" * 60] * 3) + "." + "c" * length + suffix for length in (40, 41, 63)]
        stub = dns_stub.Stub({name: ["127.0.0.1"] for name in names})
        self.addCleanup(stub.close)
        echo = self.target(targets.echo)
        server, local = self.chain(["-d", stub.nameserver])
        for name in names:
            with self.subTest(length=len(name)):
                with contextlib.closing(
                        socks.connect(local.port, (name, echo.port), first=b"odd")) as conn:
                    self.assertEqual(socks.receive(conn, 3), b"odd")
        self.assertTrue({name for name, _, _ in stub.queries} >= set(names))

    def test_payloads_of_every_small_size(self):
        echo = self.target(targets.echo)
        server, local = self.chain()
        conn = self.connect(local, echo.address)
        for size in list(range(1, 70)) + [16382, 16383, 16384]:
            self.assert_echoes(conn, os.urandom(size))


if __name__ == "__main__":
    case.main()
