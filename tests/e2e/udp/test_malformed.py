"""R13, R14: what no peer should send is ignored without an answer, and never ends a program."""

import os
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from support import case, dns_stub, ports, proc, socks, udp, udp_case, wait  # noqa: E402
from support.udp_case import better  # noqa: E402

SIZES = (0, 1, 2, 3, 6, 7, 15, 16, 17, 31, 32, 33, 47, 48, 49, 50, 54, 55, 56, 1400, 65507)
ORIGIN = ("192.0.2.1", 53)
METHODS = ("aes-128-gcm", "aes-192-gcm", "aes-256-gcm", "chacha20-ietf-poly1305",
           "xchacha20-ietf-poly1305")


def garbage(size):
    return [os.urandom(size) for _ in range(3)] + [bytes(size)]


class Malformed(udp_case.UdpCase):
    def pour(self, send, barrier):
        """Random datagrams of all sizes, with a good one behind each few: a socket that is full
        drops good ones too."""
        for size in SIZES:
            for packet in garbage(size):
                send(packet)
                if size > 10000:
                    barrier()
            barrier()

    def test_server(self):
        """Every method."""
        target = self.udp_target(keep=False)
        for method in METHODS:
            with self.subTest(method):
                port, entry = ports.free_port(), ports.free_port()
                common = ["-u", "-s", "127.0.0.1", "-p", port, "-k", case.PASSWORD, "-m", method]
                running = [self.program("ss-server", *common),
                           self.program("ss-local", *common, "-l", entry)]
                for program, at in zip(running, (port, entry)):
                    program.port = at
                    self.await_udp(program.await_listening(at))
                client = self.associate(entry)
                self.assert_relays(client, target)
                sockets = len(proc.udp_ports(running[0].pid))
                source = self.source()
                self.pour(lambda packet: source.sendto(packet, ("127.0.0.1", port)),
                          lambda: self.assert_relays(client, target))
                self.assertFalse(self.has_come(source))
                self.assertEqual(len(proc.udp_ports(running[0].pid)), sockets)

    def has_come(self, sock):
        sock.setblocking(False)
        try:
            sock.recv(1, socket.MSG_PEEK)
            return True
        except BlockingIOError:
            return False
        finally:
            sock.settimeout(udp.PATIENCE_S)

    def test_server_takes_no_flipped_bit(self):
        target = self.udp_target()
        server = self.server()
        client = self.prober(server)
        good = udp.seal(case.PASSWORD, target.address, b"payload")
        for at in range(len(good)):
            bad = bytearray(good)
            bad[at] ^= 1 << at % 8
            client.send_raw(bytes(bad))
        for end in range(len(good)):
            client.send_raw(good[:end])
        client.send_raw(good + b"\0")
        self.assert_relays(client, target, b"a good one")
        self.assertEqual(target.payloads(), [b"a good one"])

    def test_server_drops_sealed_nonsense(self):
        """Rightly sealed, but with no address in it, or one that is cut or malformed."""
        target = self.udp_target()
        server = self.server()
        client = self.prober(server)
        address = socks.address(*target.address)
        plain = [b"", b"\0", b"\1", b"\3", b"\4", b"\2" + address[1:] + b"x", b"\xff" * 40,
                 b"\3\0\0\x35", b"\3\x05a\0b.c\0\x35x", b"\3\xff" + b"a" * 255 + b"\0\x35x",
                 b"\3\x07no name\0\x35x", b"\4" + bytes(16), address[:3]]
        plain += [address[:end] for end in range(len(address))]
        plain += [socks.address("127.0.0.1", 0) + b"port 0", socks.address("::1", 0) + b"port 0",
                  socks.address("0.0.0.0", target.port) + b"", socks.address("255.255.255.255", 9),
                  socks.address("224.0.0.1", 9) + b"x", socks.address("::ffff:255.255.255.255", 9)]
        for body in plain:
            client.send_raw(udp.seal_plain(case.PASSWORD, body))
        origin, answer = self.exchange_until(client, target, b"a good one")
        self.assertEqual(origin, target.address)

    def exchange_until(self, client, target, payload):
        """The answer to `payload`, behind others that may be right to come (to 0.0.0.0)."""
        client.send(target.address, payload)
        while True:
            origin, answer = client.receive()
            if answer == payload:
                return origin, answer

    @better("its own check of the length reads past short ones")
    def test_replies_to_clients(self):
        """Random bytes from the server's address: to ss-tunnel and ss-local."""
        upstream = self.upstream()
        tunnel = self.tunnel(upstream.port, ORIGIN)
        local = self.local(upstream.port)
        for client, send, wanted in (
                (self.client(tunnel), lambda client: client.send(b"question"), b"answer"),
                (self.associate(local), lambda client: client.send(ORIGIN, b"question"),
                 (ORIGIN, b"answer"))):
            send(client)
            self.assertEqual(upstream.receive(), (ORIGIN, b"question"))

            def barrier():
                upstream.answer(ORIGIN, b"answer")
                self.assertEqual(client.receive(), wanted)

            self.pour(upstream.answer_raw, barrier)
            self.assertFalse(self.has_come(client.socket))

    @better("it aborts")
    def test_datagrams_to_local(self):
        """Short and random ones, fragments, bad addresses, from a client that may send."""
        target = self.udp_target()
        server, local = self.chain()
        client = self.associate(local)
        good = udp.frame(target.address, b"")

        def send(packet):
            client.socket.sendto(packet, client.relay)

        self.pour(send, lambda: self.assert_relays(client, target, b"a good one"))
        for end in range(len(good)):
            send(good[:end])
        for fragment in (1, 2, 127, 128, 255):
            send(udp.frame(target.address, b"x", fragment))
        for address in (b"\3\0\0\x35x", b"\2\1\2\3\4\0\x35x", b"\3\5a\0b.c\0\x35x"):
            send(b"\0\0\0" + address)
        self.assert_relays(client, target, b"a good one")
        self.assertEqual(set(target.payloads()), {b"a good one"})
        self.assertFalse(self.has_come(client.socket))

    def test_datagrams_to_tunnel(self):
        """Everything is a payload there, the empty one as well."""
        target = self.udp_target()
        server = self.server()
        tunnel = self.tunnel(server, target.address)
        client = self.client(tunnel)
        for size in SIZES[:-2]:
            payload = os.urandom(size)
            self.assertEqual(client.exchange(payload), payload)
        client.send(os.urandom(65507))
        self.assertEqual(client.exchange(b"after it"), b"after it")


class Families(udp_case.UdpCase):
    """R14: a target of a family that the bind address does not serve costs its datagram only."""

    def setUp(self):
        super().setUp()
        self.need_ipv6()
        self.stub = self.closing(dns_stub.Stub({"six.test": ["::1"], "four.test": ["127.0.0.1"]}))

    def refuse(self, bind, bad, good):
        server = self.server("-b", bind, "-d", self.stub.nameserver)
        client = self.prober(server)
        bad_target = self.udp_target(host=bad)
        good_target = self.udp_target(host=good)
        names = {"::1": "six.test", "127.0.0.1": "four.test"}
        for _ in range(3):
            client.send(bad_target.address, b"by address")
            client.send((names[bad], bad_target.port), b"by name")
        self.assert_relays(client, good_target)
        client.send((names[good], good_target.port), b"by name")
        self.assertEqual(client.receive(), (good_target.address, b"by name"))
        self.assertEqual(bad_target.count, 0)
        self.assert_silent(client.socket)

    @better("it sends from another address")
    def test_ipv4_only(self):
        self.refuse("127.0.0.1", "::1", "127.0.0.1")

    @better("it sends from another address")
    def test_ipv6_only(self):
        self.refuse("::1", "127.0.0.1", "::1")

    def test_name_that_is_not_there(self):
        server = self.server("-d", self.stub.nameserver)
        client = self.prober(server)
        target = self.udp_target()
        for name in ("gone.test", "a" * 63 + ".test", "-", ".", "x" * 255):
            client.send((name, target.port), b"to nobody")
        self.assert_relays(client, target)
        wait.until(lambda: any(query[0] == "gone.test" for query in list(self.stub.queries)), 10)
        self.assert_relays(client, target)
        self.assertEqual(target.count, 2)


if __name__ == "__main__":
    udp_case.main()
