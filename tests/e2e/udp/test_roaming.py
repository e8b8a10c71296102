"""A client of the 2022 edition that moves: replies follow the latest address that a valid packet of
its session came from, and nothing else moves them."""

import base64
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from support import packets, ports, proc, programs, udp_case  # noqa: E402

AES = ("2022-blake3-aes-128-gcm", "2022-blake3-aes-256-gcm")
METHODS = (*AES, "2022-blake3-chacha20-poly1305", "2022-blake3-chacha8-poly1305")


def key(method):
    return base64.b64encode(os.urandom(16 if "-128-" in method else 32)).decode()


class Roaming(udp_case.UdpCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = programs.scratch_directory()

    def server_of(self, members):
        port = ports.free_port()
        path = os.path.join(self.folder, "%d.json" % port)
        with open(path, "w") as file:
            json.dump({"server": "127.0.0.1", "server_port": port, "mode": "udp_only", **members},
                      file)
        server = self.program("ss-server", "-c", path)
        server.port = port
        return self.await_udp(server)

    def check(self, server, method, chain, opens=True):
        """A server that passes on can't read what is behind the headers."""
        session = packets.session(method, chain)
        entry = ("127.0.0.1", server.port)
        target = self.udp_target()
        places = [self.source(), self.source(), self.source("127.0.0.2"), self.source("127.0.0.2")]
        sent = []

        def send(place, number, payload):
            sent.append(session.seal(target.address, payload, number=number))
            place.sendto(sent[-1], entry)

        def assert_at(place, payload):
            data, source = place.recvfrom(1 << 16)
            self.assertEqual(source, entry)
            self.assertEqual(session.open(data), (target.address, payload))

        def told(payload):
            """The target says something by itself."""
            target.socket.sendto(payload, target.sources()[0])

        # Another port, another address, back again; the numbers come in any order.
        for number, place in zip((5, 6, 4, 900, 8, 7, 901, 3), places + places):
            payload = b"packet %d" % number
            send(place, number, payload)
            assert_at(place, payload)
            told(b"late for %d" % number)
            assert_at(place, b"late for %d" % number)
        self.assertEqual(len(set(target.sources())), 1)

        # From elsewhere: what came before, what was changed on the way, what has the wrong time.
        last, seen = place, target.count
        thief = self.source("127.0.0.3")
        bad = list(sent)
        for packet in sent + [session.seal(target.address, b"spoilt", number=1000)]:
            bad.append(bytes([packet[0] ^ 128]) + packet[1:])
            if opens:
                bad.append(packet[:-1] + bytes([packet[-1] ^ 1]))
        if opens:
            bad += [datagram for _, datagram in session.bad(target.address)]
        for round_ in range(2):
            for packet in bad:
                thief.sendto(packet, entry)
            # The first may overtake what was sent before it, at another socket; the second not.
            told(b"first of round %d" % round_)
            assert_at(last, b"first of round %d" % round_)
            told(b"second of round %d" % round_)
            assert_at(last, b"second of round %d" % round_)
        self.assertEqual(target.count, seen)
        for place in [*places, thief]:
            self.assert_silent(place, 0.05)

    def test_every_method(self):
        for method in METHODS:
            with self.subTest(method=method):
                password = key(method)
                self.check(self.server_of({"method": method, "password": password}), method,
                           password)

    def test_users(self):
        for method in AES:
            with self.subTest(method=method):
                server_key, users = key(method), [key(method) for _ in range(3)]
                server = self.server_of({"method": method, "password": server_key, "users": [
                    {"name": "user %d" % number, "password": password}
                    for number, password in enumerate(users)]})
                for password in users[1:]:
                    self.check(server, method, ":".join((server_key, password)))

    def relay_of(self, method):
        """A server that passes on to another one, and the keys of a client."""
        front, back, user = (key(method) for _ in range(3))
        server = self.server_of({"method": method, "password": back,
                                 "users": [{"name": "user", "password": user}]})
        relay = self.server_of({"method": method, "password": front, "users": [
            {"name": "on", "password": back, "server": "127.0.0.1",
             "server_port": server.port}]})
        return relay, ":".join((front, back, user))

    def test_through_a_relay(self):
        """The client of a relay moves, too; the server behind it sees one address."""
        relay, chain = self.relay_of(AES[0])
        self.check(relay, AES[0], chain, opens=False)

    def test_a_relay_passes_back_from_the_next_server_alone(self):
        relay, chain = self.relay_of(AES[1])
        session = packets.session(AES[1], chain)
        target = self.udp_target()
        client, stranger = self.source(), self.source()

        def exchange(payload):
            client.sendto(session.seal(target.address, payload), ("127.0.0.1", relay.port))
            data, source = client.recvfrom(1 << 16)
            self.assertEqual((source, session.open(data)),
                             (("127.0.0.1", relay.port), (target.address, payload)))

        exchange(b"one")
        (entry,) = proc.udp_ports(relay.pid) - {relay.port}
        for number in range(20):
            stranger.sendto(b"noise %d" % number, ("127.0.0.1", entry))
        exchange(b"two")
        exchange(b"three")
        self.assert_silent(client, 0.05)


if __name__ == "__main__":
    udp_case.main()
