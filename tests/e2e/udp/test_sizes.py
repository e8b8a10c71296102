"""R10: datagrams of any size that fits a UDP packet with our overhead, both ways."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from support import case, ports, udp, udp_case  # noqa: E402
from support.udp_case import better  # noqa: E402

SMALL = (0, 1, 2, 100, 512, 1200, 1300)
LARGE = (1397, 1398, 1399, 1400, 1452, 1472, 1473, 1500, 2000, 4000, 4096, 9000, 16384, 32768,
         60000)
# Behind the payload's 65,507 bytes there is room for salt, address and tag no more.
LARGEST = udp.PAYLOAD_MAX - 32 - 7 - 16


class Sizes(udp_case.UdpCase):
    def exchange_all(self, client, target, sizes):
        for size in sizes:
            payload = os.urandom(size)
            origin, answer = client.exchange(target.address, payload)
            self.assertEqual(origin, target.address)
            self.assertTrue(answer == payload, "%d bytes came as %d" % (size, len(answer)))

    def tunnel_all(self, client, sizes):
        for size in sizes:
            payload = os.urandom(size)
            answer = client.exchange(payload)
            self.assertTrue(answer == payload, "%d bytes came as %d" % (size, len(answer)))

    def test_local_small(self):
        server, local = self.chain()
        self.exchange_all(self.associate(local), self.udp_target(), SMALL)

    @better("it drops what is larger than its guess of the MTU")
    def test_local_large(self):
        server, local = self.chain()
        self.exchange_all(self.associate(local), self.udp_target(), LARGE + (LARGEST,))

    def test_tunnel_small(self):
        server = self.server()
        target = self.udp_target()
        self.tunnel_all(self.client(self.tunnel(server, target.address)), SMALL)

    @better("it drops what is larger than its guess of the MTU")
    def test_tunnel_large(self):
        server = self.server()
        target = self.udp_target()
        self.tunnel_all(self.client(self.tunnel(server, target.address)), LARGE + (LARGEST,))

    @better("it drops what is larger than its guess of the MTU")
    def test_ipv6(self):
        self.need_ipv6()
        server, local = self.chain()
        target = self.udp_target(host="::1")
        self.exchange_all(self.associate(local), target, SMALL + LARGE)

    @better("it ends, or answers nothing more")
    def test_too_large_costs_only_itself(self):
        """Neither a client's nor a target's datagram that cannot be sealed is fatal."""
        server, local = self.chain()
        target = self.udp_target()
        client = self.associate(local)
        # With the SOCKS5 header it is as large as a datagram can be; sealed it would be larger.
        client.send(target.address, bytes(udp.PAYLOAD_MAX - 10))
        self.assert_relays(client, target)
        self.assertEqual(target.count, 1)

        boaster = self.udp_target(lambda data, source: [bytes(udp.PAYLOAD_MAX), data])
        client.send(boaster.address, b"the small one")
        self.assertEqual(client.receive(), (boaster.address, b"the small one"))

    @better("it drops what is larger than its guess of the MTU")
    def test_the_limit_can_be_lowered(self):
        """With --mtu what is larger is dropped, and the rest goes on."""
        server, local = self.chain(["--mtu", "1300"], ["--mtu", "1300"])
        target = self.udp_target()
        client = self.associate(local)
        client.send(target.address, bytes(1400))
        self.exchange_all(client, target, (1, 1100))
        self.assertEqual([len(data) for data in target.payloads()], [1, 1100])


class Methods(udp_case.UdpCase):
    """Another size of salt: other places in the datagram."""

    METHODS = ("aes-128-gcm", "aes-192-gcm", "aes-256-gcm", "xchacha20-ietf-poly1305")

    @better("it drops what is larger than its guess of the MTU")
    def test_every_method(self):
        target = self.udp_target()
        for method in self.METHODS:
            with self.subTest(method):
                pair = {}
                upstream = ports.free_port()
                for name, arguments in (("ss-server", []), ("ss-local", ["-l", ports.free_port()])):
                    program = self.program(name, "-u", "-s", "127.0.0.1", "-p", upstream, "-k",
                                           case.PASSWORD, "-m", method, *arguments)
                    program.port = arguments[1] if arguments else upstream
                    pair[name] = self.await_udp(program.await_listening(program.port))
                client = self.associate(pair["ss-local"])
                for size in SMALL + LARGE:
                    payload = os.urandom(size)
                    self.assertEqual(client.exchange(target.address, payload),
                                     (target.address, payload))


if __name__ == "__main__":
    udp_case.main()
