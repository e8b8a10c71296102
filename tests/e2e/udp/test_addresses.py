"""R15, R16, R79: which addresses datagrams leave from, arrive from, and are taken at."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from support import case, ports, shadow, udp, udp_case  # noqa: E402
from support.udp_case import better  # noqa: E402


class OnePort(udp_case.UdpCase):
    """R15: one outgoing port for all destinations, answers from anybody under his own name."""

    def check(self, client, hosts):
        first, second = (self.udp_target(udp.tell, host=host) for host in hosts)
        origin, answer = client.exchange(first.address, b"one")
        self.assertEqual(origin, first.address)
        source, rest = udp.told(answer)
        self.assertEqual(rest, b"one")
        origin, answer = client.exchange(second.address, b"two")
        self.assertEqual(origin, second.address)
        self.assertEqual(udp.told(answer)[0], source)

        third = self.source("127.0.0.9")
        third.sendto(b"unasked", source)
        self.assertEqual(client.receive(), (third.getsockname(), b"unasked"))
        # And it stays the same port.
        self.assertEqual(udp.told(client.exchange(first.address, b"")[1])[0], source)

    @better("it has a socket for each destination")
    def test_local(self):
        server, local = self.chain()
        self.check(self.associate(local), ("127.0.0.1", "127.0.0.5"))

    @better("it has a socket for each destination")
    def test_server(self):
        self.check(self.prober(self.server()), ("127.0.0.1", "127.0.0.5"))

    @better("it has a socket for each destination")
    def test_two_clients_have_two_ports(self):
        target = self.udp_target(udp.tell)
        server, local = self.chain()
        clients = [self.associate(local) for _ in range(2)]
        sources = [udp.told(client.exchange(target.address, b"")[1])[0] for client in clients]
        self.assertNotEqual(*sources)
        for client, source in zip(clients, sources):
            self.assertEqual(udp.told(client.exchange(target.address, b"")[1])[0], source)
            third = self.source("127.0.0.9")
            third.sendto(b"for one", source)
            self.assertEqual(client.receive(), (third.getsockname(), b"for one"))

    @better("it has a socket for each destination")
    def test_both_families(self):
        """A client that talks to both is one association; each answer names its sender."""
        self.need_ipv6()
        server, local = self.chain()
        client = self.associate(local)
        four, six = self.udp_target(udp.tell), self.udp_target(udp.tell, host="::1")
        sources = []
        for target in (four, six, four, six):
            origin, answer = client.exchange(target.address, b"x")
            self.assertEqual(origin, target.address)
            sources.append(udp.told(answer)[0])
        self.assertEqual(sources[:2], sources[2:])

    @better("it does not see through the form")
    def test_mapped_address_is_ipv4(self):
        """::ffff:127.0.0.1 reaches the IPv4 target, and the answer bears the plain address."""
        server = self.server()
        client = self.prober(server)
        target = self.udp_target()
        client.send(("::ffff:127.0.0.1", target.port), b"mapped")
        self.assertEqual(client.receive(), (target.address, b"mapped"))


class Outgoing(udp_case.UdpCase):
    """R16: the bind address acts on datagrams as on connections."""

    def test_server(self):
        server = self.server("-b", "127.0.0.2")
        target = self.udp_target(udp.tell)
        _, answer = self.prober(server).exchange(target.address, b"")
        self.assertEqual(udp.told(answer)[0][0], "127.0.0.2")

    @better("it has no such option")
    def test_clients(self):
        upstream = self.upstream()
        where = ["--outbound-bind-addr", "127.0.0.3"]
        tunnel = self.tunnel(upstream.port, ("192.0.2.1", 53), *where)
        local = self.local(upstream.port, *where)
        self.client(tunnel).send(b"x")
        upstream.receive()
        self.assertEqual(upstream.client[0], "127.0.0.3")
        self.associate(local).send(("192.0.2.1", 53), b"y")
        self.assertEqual(upstream.receive()[1], b"y")
        self.assertEqual(upstream.client[0], "127.0.0.3")


class Listening(udp_case.UdpCase):
    """R79: the addresses of ss-server and the families that they serve."""

    def setUp(self):
        super().setUp()
        self.need_ipv6()
        self.echo = self.udp_target()
        self.port = ports.free_port()

    def start(self, *addresses, mode="-u"):
        arguments = [part for address in addresses for part in ("-s", address)]
        server = self.program("ss-server", mode, *arguments, "-p", self.port, "-k", case.PASSWORD,
                              "-m", shadow.METHOD)
        server.port = self.port
        if mode == "-u":
            server.await_listening(self.port)
        return self.await_udp(server)

    def serves(self, host):
        """Whether a client gets its echo over this address, and from this address."""
        client = self.closing(udp.Prober((host, self.port), case.PASSWORD, timeout=0.5))
        client.socket.connect((host, self.port))
        for _ in range(2):
            try:
                client.socket.send(udp.seal(case.PASSWORD, self.echo.address, b"hi"))
                return udp.unseal(case.PASSWORD, client.socket.recv(2000)) == (
                    self.echo.address, b"hi")
            except ConnectionRefusedError:
                return False
            except OSError:
                continue
        return False

    def assert_serves(self, four, six):
        found = [self.serves(host) for host in ("127.0.0.1", "127.0.0.2", "::1")]
        self.assertEqual(found, [four, four, six])

    @better("the second address may not be bound")
    def test_both_wildcards(self):
        server = self.start("::", "0.0.0.0")
        self.assert_serves(True, True)
        self.assertEqual(len(server.log_lines("udp server listening at")), 2)

    @better("the second address may not be bound")
    def test_both_wildcards_the_other_way_round(self):
        server = self.start("0.0.0.0", "::")
        self.assert_serves(True, True)
        self.assertEqual(len(server.log_lines("udp server listening at")), 2)

    @better("for UDP it serves IPv6 only, and answers from another address")
    def test_ipv6_wildcard_alone_serves_both(self):
        self.start("::")
        self.assert_serves(True, True)

    @better("it answers from another address")
    def test_no_address_is_ipv4(self):
        self.start()
        self.assert_serves(True, False)

    def test_certain_address(self):
        self.start("127.0.0.1")
        self.assertEqual([self.serves(host) for host in ("127.0.0.1", "127.0.0.2")],
                         [True, False])

    def test_udp_only(self):
        self.start("127.0.0.1", mode="-U")
        self.assertTrue(self.serves("127.0.0.1"))

    @better("both serve the port")
    def test_port_in_use_by_another(self):
        """A second server on the port takes no datagram of the first."""
        self.start("127.0.0.1")
        second = self.program("ss-server", "-U", "-s", "127.0.0.1", "-p", self.port, "-k",
                              case.PASSWORD, "-m", shadow.METHOD)
        self.assertEqual(second.wait_end(), 255)
        self._programs.remove(second)
        self.assertIn("Address already in use", second.log)
        self.assertTrue(self.serves("127.0.0.1"))


if __name__ == "__main__":
    udp_case.main()
