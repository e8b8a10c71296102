"""R72: a datagram that comes twice is relayed once, without consequence for its sender."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from support import case, udp, udp_case  # noqa: E402

ORIGIN = ("192.0.2.1", 53)
LINES_MAX = 20  # of some hundred copies


class Doubled(udp_case.UdpCase):
    def check_server(self, times):
        target = self.udp_target()
        server = self.server()
        client = self.prober(server)
        wanted = []
        for first in range(0, 50, 5):
            # Copies come together and among others, but no more than a socket holds.
            payloads = [b"datagram %d" % number for number in range(first, first + 5)]
            packets = [udp.seal(case.PASSWORD, target.address, payload) for payload in payloads]
            for packet in packets:
                for _ in range(times):
                    client.send_raw(packet)
            for packet in packets:
                client.send_raw(packet)
            self.assertEqual([client.receive()[1] for _ in payloads], payloads)
            wanted += payloads
        # The sender goes on as if nothing had been.
        self.assert_relays(client, target, b"afterwards")
        self.assertEqual(target.payloads(), wanted + [b"afterwards"])
        if not self.classic:
            self.assert_quiet_log(server)

    def assert_quiet_log(self, program):
        lines = [line for line in program.log_lines()
                 if "repeat" in line.lower() or "replay" in line.lower()]
        self.assertLessEqual(len(lines), LINES_MAX, program.log)

    def test_server_twice(self):
        self.check_server(2)

    def test_server_ten_times(self):
        self.check_server(10)

    def test_server_from_another_address(self):
        """A copy that somebody else sends later is dropped, and its sender gets no answer."""
        target = self.udp_target()
        server = self.server()
        client, other = self.prober(server), self.prober(server, source="127.0.0.9")
        packet = udp.seal(case.PASSWORD, target.address, b"once")
        client.send_raw(packet)
        self.assertEqual(client.receive(), (target.address, b"once"))
        other.send_raw(packet)
        self.assert_relays(other, target, b"its own")
        self.assertEqual(target.payloads(), [b"once", b"its own"])

    def test_server_gets_its_own_answer_back(self):
        """What the server sealed itself does not open doors when it is sent back."""
        target = self.udp_target()
        server = self.server()
        client = self.prober(server)
        client.send(target.address, b"question")
        answer = client.socket.recv(2000)
        client.send_raw(answer)
        self.assert_relays(client, target, b"afterwards")
        self.assertEqual(target.payloads(), [b"question", b"afterwards"])

    def check_client(self, client, upstream, times):
        client.send(ORIGIN, b"question") if isinstance(client, udp.Associate) else \
            client.send(b"question")
        self.assertEqual(upstream.receive(), (ORIGIN, b"question"))
        for number in range(20):
            packet = udp.seal(case.PASSWORD, ORIGIN, b"answer %d" % number)
            for _ in range(times):
                upstream.answer_raw(packet)
        upstream.answer(ORIGIN, b"the last")
        got = [client.receive() for _ in range(21)]
        if isinstance(client, udp.Associate):
            self.assertEqual({origin for origin, _ in got}, {ORIGIN})
            got = [payload for _, payload in got]
        self.assertEqual(got, [b"answer %d" % number for number in range(20)] + [b"the last"])

    def test_tunnel(self):
        upstream = self.upstream()
        tunnel = self.tunnel(upstream.port, ORIGIN)
        self.check_client(self.client(tunnel), upstream, 2)
        self.check_client(self.client(tunnel), upstream, 10)

    def test_local(self):
        upstream = self.upstream()
        local = self.local(upstream.port)
        self.check_client(self.associate(local), upstream, 2)
        self.check_client(self.associate(local), upstream, 10)


if __name__ == "__main__":
    udp_case.main()
