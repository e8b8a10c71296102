"""R11, R12: associations have an idle time, a greatest number and a small price."""

import os
import resource
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from support import proc, targets, udp, udp_case, wait  # noqa: E402
from support.udp_case import better  # noqa: E402

SOURCES = 5000
AT_ONCE = 50
IDLE_S = 10  # the least that -t gives an association
IDLE_COUNT = 1000
IDLE_BYTES = 8 << 20


class Burst(udp_case.UdpCase):
    LIMIT = 1024

    def exchange_from_many(self, entry, count, request):
        """A datagram from each of `count` sources, some at once; returns how many are answered."""
        answered = 0
        used = set()
        while len(used) < count:
            sources = [udp.make_socket(timeout=2) for _ in range(AT_ONCE)]
            for source in sources:
                source.sendto(request, entry)
                used.add(source.getsockname())
            for source in sources:
                try:
                    source.recv(100)
                    answered += 1
                except socket.timeout:
                    pass
                source.close()
        return answered

    def assert_bounded(self, running):
        for program in running:
            self.assertLessEqual(proc.descriptors(program.pid), self.LIMIT)

    def assert_tcp_works(self, port, count):
        echo = self.target(targets.echo)
        held = [self.connect(port, echo.address) for _ in range(count)]
        for conn in held:
            self.assert_echoes(conn)
        for conn in held:
            conn.close()

    def run_burst(self, entry, frame, running, local):
        """5,000 sources, TCP right after them, and every descriptor back an idle time later."""
        # What a program opens on its first use and keeps.
        self.assert_tcp_works(local.port, 2)
        first = udp.make_socket()
        self.addCleanup(first.close)
        first.sendto(frame, entry)
        first.recv(100)
        wait.until(lambda: not any(proc.tcp_connections(p.pid) for p in running
                                   if p is not local), 10)
        before = {program: proc.descriptors(program.pid) for program in running}

        answered = self.exchange_from_many(entry, SOURCES, frame)
        self.assert_bounded(running)
        if not self.classic:
            self.assertGreater(answered, SOURCES * 0.99)
        # The newest has a place; so has TCP.
        last = udp.make_socket()
        self.addCleanup(last.close)
        last.sendto(frame, entry)
        self.assertTrue(last.recv(100))
        self.assert_tcp_works(local.port, 20)
        self.assert_bounded(running)
        for program, count in before.items():
            wait.until(lambda: proc.descriptors(program.pid) <= count, 3 * IDLE_S,
                       "%s: the descriptors' return to %d" % (program.name, count))

    def test_local_and_server(self):
        server = self.server("-t", IDLE_S, descriptors=self.LIMIT)
        local = self.local(server, "-t", IDLE_S, descriptors=self.LIMIT)
        target = self.udp_target(keep=False)
        client = self.associate(local)
        self.run_burst(client.relay, udp.frame(target.address, b"x"), [server, local], local)

    def test_tunnel_and_server(self):
        server = self.server("-t", IDLE_S, descriptors=self.LIMIT)
        target = self.udp_target(keep=False)
        tunnel = self.tunnel(server, target.address, "-t", IDLE_S, descriptors=self.LIMIT)
        local = self.local(server)
        self.run_burst(("127.0.0.1", tunnel.port), b"x", [server, tunnel], local)


class Limit(udp_case.UdpCase):
    @better("its table has a size of its own")
    def test_the_oldest_makes_way(self):
        """With --max-associations 8 there are never more sockets, and the latest used stay."""
        target = self.udp_target(udp.tell)
        server = self.server()
        tunnel = self.tunnel(server, target.address, "--max-associations", 8)
        idle = len(proc.udp_ports(tunnel.pid))
        clients = [self.client(tunnel) for _ in range(20)]
        keeper = clients[0].exchange(b"")
        ports = []
        for client in clients[1:]:
            ports.append(client.exchange(b""))
            self.assertLessEqual(len(proc.udp_ports(tunnel.pid)), idle + 8 + 1)
            # Used in between, the first one is never the oldest.
            self.assertEqual(clients[0].exchange(b""), keeper)
        self.assertEqual([client.exchange(b"") for client in clients[-7:]], ports[-7:])
        self.assertNotEqual(clients[1].exchange(b""), ports[0])

    @better("its table has a size of its own")
    def test_server(self):
        target = self.udp_target()
        server = self.server("--max-associations", 8)
        idle = len(proc.udp_ports(server.pid))
        for _ in range(20):
            self.assert_relays(self.prober(server), target)
            self.assertLessEqual(len(proc.udp_ports(server.pid)), idle + 8 + 1)

    def test_idle_time(self):
        """Quiet for less than the idle time it stays, traffic re-arms it, then it goes."""
        target = self.udp_target(udp.tell)
        server = self.server("-t", IDLE_S)
        client = self.prober(server)
        idle = len(proc.udp_ports(server.pid))
        first = client.exchange(target.address, b"")
        self.assertEqual(len(proc.udp_ports(server.pid)), idle + 1)
        for _ in range(3):
            with self.assertRaises(wait.Timeout):  # the quiet span is what is tested
                wait.until(lambda: len(proc.udp_ports(server.pid)) == idle, IDLE_S * 0.6)
            self.assertEqual(client.exchange(target.address, b""), first)
        wait.until(lambda: len(proc.udp_ports(server.pid)) == idle, 3 * IDLE_S,
                   "the association's end")
        self.assert_relays_anew(client, target)

    def assert_relays_anew(self, client, target):
        origin, answer = client.exchange(target.address, b"again")
        self.assertEqual((origin, udp.told(answer)[1]), (target.address, b"again"))


class Memory(udp_case.UdpCase):
    @better("its table is smaller")
    def test_idle_associations(self):
        """R12: 1,000 cost less than 8 MB in each program."""
        self.need_descriptors(3 * IDLE_COUNT)
        if self.sanitized:
            self.skipTest("a sanitizer has memory of its own")
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if hard != resource.RLIM_INFINITY and hard < 8 * IDLE_COUNT:
            self.skipTest("a quarter of %d descriptors is too few" % hard)
        most = ["--max-associations", 2 * IDLE_COUNT]
        how = {"descriptors": 8 * IDLE_COUNT}
        target = self.udp_target(keep=False)
        server = self.server(*most, **how)
        local = self.local(server, *most, **how)
        tunnel = self.tunnel(server, target.address, *most, **how)
        running = [server, local, tunnel]
        client = self.associate(local)
        pairs = [(client.relay, udp.frame(target.address, b"x" * 1200)),
                 (("127.0.0.1", tunnel.port), b"x" * 1200)]

        def use(count):
            for _ in range(count):
                for entry, request in pairs:
                    source = self.source()
                    source.sendto(request, entry)
                    self.assertGreaterEqual(len(source.recv(2000)), 1200)

        use(1)
        before = {program: proc.private_bytes(program.pid) for program in running}
        # By descriptors: the kernel's list of sockets may skip some while others come and go.
        sockets = {program: proc.descriptors(program.pid) for program in running}
        use(IDLE_COUNT)
        for program in running:
            count = proc.descriptors(program.pid) - sockets[program]
            grown = proc.private_bytes(program.pid) - before[program]
            print("%s: %d associations more, %d KiB private" % (program.name, count, grown >> 10))
            self.assertGreaterEqual(count, IDLE_COUNT)
            self.assertLess(grown, IDLE_BYTES, program.name)


if __name__ == "__main__":
    udp_case.main()
