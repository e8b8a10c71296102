"""R17: datagrams to a name wait for one look-up, in order, and the next ones need none."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from support import case, dns_stub, udp, udp_case, wait  # noqa: E402
from support.udp_case import better  # noqa: E402

COUNT = 20
DELAY_S = 0.3


class Names(udp_case.UdpCase):
    def setUp(self):
        super().setUp()
        self.stub = self.closing(dns_stub.Stub({"echo.test": ["127.0.0.1"]}, ttl=60))
        self.stub.delays["echo.test"] = DELAY_S
        self.target = self.udp_target()

    def queries(self):
        """Those seen so far; the second may be on its way when the first is answered."""
        def seen():
            return sorted(kind for name, kind, _ in self.stub.queries if name == "echo.test")
        wait.until(lambda: len(seen()) >= 2, 5, "a query for each family")
        return seen()

    def start(self):
        return self.server("-d", self.stub.nameserver)

    def burst(self, send, receive, first=0):
        payloads = [b"datagram %d" % number for number in range(first, first + COUNT)]
        for payload in payloads:
            send(payload)
        self.assertEqual([receive() for _ in payloads], payloads)

    @better("it drops what comes while a name is looked up, and looks up again")
    def test_server(self):
        client = self.prober(self.start())
        name = ("echo.test", self.target.port)

        def receive():
            origin, answer = client.receive()
            self.assertEqual(origin, self.target.address)
            return answer

        self.burst(lambda payload: client.send(name, payload), receive)
        self.assertEqual(self.queries(), [dns_stub.A, dns_stub.AAAA])
        self.burst(lambda payload: client.send(name, payload), receive, COUNT)
        self.assertEqual(self.queries(), [dns_stub.A, dns_stub.AAAA])

    @better("it drops what comes while a name is looked up, and looks up again")
    def test_tunnel(self):
        tunnel = self.tunnel(self.start(), ("echo.test", self.target.port))
        client = self.client(tunnel)
        self.burst(client.send, client.receive)
        self.burst(client.send, client.receive, COUNT)
        self.assertEqual(self.queries(), [dns_stub.A, dns_stub.AAAA])

    @better("it drops what comes while a name is looked up, and looks up again")
    def test_local(self):
        client = self.associate(self.local(self.start()))
        name = ("echo.test", self.target.port)
        self.burst(lambda payload: client.send(name, payload), lambda: client.receive()[1])
        self.assertEqual(self.queries(), [dns_stub.A, dns_stub.AAAA])

    @better("it drops what comes while a name is looked up")
    def test_several_names_at_once(self):
        """Each has its own wait: the quick one does not stand behind the slow one."""
        self.stub.records["quick.test"] = ["127.0.0.1"]
        client = self.prober(self.start())
        for number in range(5):
            client.send(("echo.test", self.target.port), b"slow %d" % number)
            client.send(("quick.test", self.target.port), b"quick %d" % number)
        got = [client.receive()[1] for _ in range(10)]
        for kind in (b"slow", b"quick"):
            self.assertEqual([text for text in got if text.startswith(kind)],
                             [b"%s %d" % (kind, number) for number in range(5)])
        self.assertTrue(got[0].startswith(b"quick"))

    @better("it waits with everything, or drops it")
    def test_others_do_not_wait(self):
        """A name that is not answered delays no datagram to another target."""
        self.stub.silent.add("silent.test")
        client = self.prober(self.start())
        for number in range(40):
            # So many that their bound is reached, but not more at once than a socket holds.
            for _ in range(25):
                client.send(("silent.test", self.target.port), bytes(1000))
            payload = b"on time %d" % number
            client.send(self.target.address, payload)
            self.assertEqual(client.receive(), (self.target.address, payload))

    def test_first_datagram_is_answered(self):
        client = self.prober(self.start())
        client.send(("echo.test", self.target.port), b"the first")
        self.assertEqual(client.receive(), (self.target.address, b"the first"))
        wait.until(lambda: self.queries(), 5)

    @better("its literals in the form of a name are looked up")
    def test_name_that_is_an_address(self):
        client = self.prober(self.start())
        literal = b"\x03\x09127.0.0.1" + self.target.port.to_bytes(2, "big")
        client.send_raw(udp.seal_plain(case.PASSWORD, literal + b"hi"))
        self.assertEqual(client.receive(), (self.target.address, b"hi"))
        self.assertEqual(self.stub.queries, [])


if __name__ == "__main__":
    udp_case.main()
