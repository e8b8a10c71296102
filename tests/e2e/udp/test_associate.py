"""R28, R29: the life of UDP ASSOCIATE, what its reply says, and from whom datagrams are taken."""

import json
import os
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from support import case, ports, proc, programs, socks, udp, udp_case, wait  # noqa: E402
from support.case import settings  # noqa: E402
from support.udp_case import better  # noqa: E402


class Life(udp_case.UdpCase):
    """R28."""

    def assert_still_open(self, client):
        client.conn.setblocking(False)
        with self.assertRaises(BlockingIOError):
            client.conn.recv(1)

    def test_control_connection_waits(self):
        target = self.udp_target()
        server, local = self.chain()
        client = self.associate(local)
        time.sleep(3)  # the silence is what is tested
        self.assert_still_open(client)
        self.assert_relays(client, target)

    @better("anybody may send at any time")
    def test_its_end_is_the_end(self):
        """What is sent after the control connection was closed is not relayed."""
        target = self.udp_target()
        server, local = self.chain()
        client = self.associate(local)
        self.assert_relays(client, target, b"before")
        idle = len(proc.udp_ports(local.pid))
        client.close_control()
        wait.until(lambda: not proc.tcp_connections(local.pid), 10)
        wait.until(lambda: len(proc.udp_ports(local.pid)) < idle, 10, "the socket's end")
        client.send(target.address, b"after")
        # Another client's datagram, taken later by the same socket, is relayed.
        other = self.associate(local, source="127.0.0.2")
        self.assert_relays(other, target, b"of another")
        self.assertEqual(target.payloads(), [b"before", b"of another"])

    @better("it closes the control connection after its own time")
    def test_no_idle_timeout_while_datagrams_flow(self):
        target = self.udp_target()
        server = self.server()
        local = self.local(server, "-t", 2, "--tcp-idle-timeout", 2)
        client = self.associate(local)
        for _ in range(12):
            self.assert_relays(client, target)
            time.sleep(0.5)  # paces the traffic
        self.assert_still_open(client)
        self.assert_relays(client, target)

    @better("it closes the control connection after its own time")
    def test_no_idle_timeout_in_silence(self):
        target = self.udp_target()
        server = self.server()
        local = self.local(server, "-t", 2, "--tcp-idle-timeout", 1)
        client = self.associate(local)
        time.sleep(3)  # the silence is what is tested
        self.assert_still_open(client)
        self.assert_relays(client, target)

    def test_reset_and_many(self):
        """Control connections that are reset, at any step, leave nothing behind."""
        target = self.udp_target()
        server, local = self.chain()
        self.assert_relays(self.associate(local), target)
        before = len(proc.tcp_connections(local.pid))
        for number in range(60):
            client = udp.Associate(local.port)
            client.send(target.address, b"x")
            if number % 3 == 0:
                client.receive()
            socks.reset(client.conn)
            client.close()
        wait.until(lambda: len(proc.tcp_connections(local.pid)) <= before, 10)
        self.assert_relays(self.associate(local), target)

    @better("bytes on it are an error to it")
    def test_bytes_on_the_control_connection_are_ignored(self):
        target = self.udp_target()
        server, local = self.chain()
        client = self.associate(local)
        client.conn.sendall(b"what is this?" * 1000)
        self.assert_relays(client, target)
        self.assert_still_open(client)


class Reply(udp_case.UdpCase):
    """R29."""

    def check(self, listen, reached, request):
        target = self.udp_target()
        server = self.server()
        local = self.local(server, "-b", listen)
        client = self.associate((reached, local.port), request=request)
        self.assertEqual(client.relay, (reached, local.port))
        # A connected socket takes answers from that address and no other.
        client.socket.connect(client.relay)
        client.socket.send(udp.frame(target.address, b"hello"))
        self.assertEqual(udp.unframe(client.socket.recv(100)), (target.address, b"hello"))

    def test_ipv4(self):
        self.check("127.0.0.1", "127.0.0.1", ("0.0.0.0", 0))

    @better("it answers from another address")
    def test_ipv4_wildcard(self):
        self.check("0.0.0.0", "127.0.0.2", ("0.0.0.0", 0))

    def test_ipv4_with_ipv6_request(self):
        self.check("127.0.0.1", "127.0.0.1", ("::", 0))

    @better("its reply has no IPv6 address")
    def test_ipv6_wildcard_by_ipv6(self):
        self.need_ipv6()
        self.check("::", "::1", ("::", 0))

    @better("its reply has no IPv6 address")
    def test_ipv6_wildcard_by_ipv4(self):
        self.need_ipv6()
        self.check("::", "127.0.0.2", ("0.0.0.0", 0))

    @better("its reply has no IPv6 address")
    def test_ipv6(self):
        self.need_ipv6()
        self.check("::1", "::1", ("0.0.0.0", 0))


class Admission(udp_case.UdpCase):
    def refused_then_served(self, sock, relay, target, served):
        """A datagram by `sock` is not relayed; one of `served`, sent later, is."""
        sock.sendto(udp.frame(target.address, b"refused"), relay)
        self.assert_relays(served, target, b"served")
        self.assertEqual(target.payloads(), [b"served"])

    @better("anybody may send at any time")
    def test_only_with_a_control_connection(self):
        target = self.udp_target()
        server, local = self.chain()
        served = self.associate(local, source="127.0.0.2")
        self.refused_then_served(self.source("127.0.0.1"), served.relay, target, served)

    @better("anybody may send at any time")
    def test_narrowed_by_port(self):
        target = self.udp_target()
        server, local = self.chain()
        served = self.associate(local, request="own")
        self.refused_then_served(self.source("127.0.0.1"), served.relay, target, served)

    @better("anybody may send at any time")
    def test_any_port_of_the_address(self):
        """Without a port in the request every socket of that host is served, each with answers."""
        target = self.udp_target()
        server, local = self.chain()
        client = self.associate(local)
        other = self.source("127.0.0.1")
        self.assertEqual(client.exchange(target.address, b"own"), (target.address, b"own"))
        self.assertEqual(client.exchange(target.address, b"other", other),
                         (target.address, b"other"))

    @better("it has no such option")
    def test_udp_open(self):
        target = self.udp_target()
        server = self.server()
        local = self.local(server, "--udp-open")
        sock = self.source()
        sock.sendto(udp.frame(target.address, b"openly"), ("127.0.0.1", local.port))
        self.assertEqual(udp.unframe(sock.recv(100)), (target.address, b"openly"))

    def test_udp_only(self):
        """-U has no control connections, so it is open."""
        target = self.udp_target()
        server = self.server()
        port = ports.free_port()
        local = self.program("ss-local", "-U", "-s", "127.0.0.1", "-p", server.port, "-l", port,
                             "-k", case.PASSWORD, "-m", settings.method)
        local.port = port
        self.await_udp(local)
        sock = self.source()
        sock.sendto(udp.frame(target.address, b"openly"), ("127.0.0.1", port))
        self.assertEqual(udp.unframe(sock.recv(100)), (target.address, b"openly"))
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), 5)

    @better("it has no login")
    def test_login(self):
        target = self.udp_target()
        server = self.server()
        port = ports.free_port()
        path = os.path.join(programs.scratch_directory(), "local.json")
        with open(path, "w") as file:
            json.dump({"server": "127.0.0.1", "server_port": server.port, "local_port": port,
                       "local_address": "127.0.0.1", "password": case.PASSWORD,
                       "method": settings.method, "mode": "tcp_and_udp",
                       "socks5_auth": {"password": {"users": [
                           {"user_name": "who", "password": "secret"}]}}}, file)
        local = self.program("ss-local", "-c", path)
        local.port = port
        self.await_udp(local.await_listening(port))
        with self.assertRaises(ConnectionError):
            udp.Associate(port, source="127.0.0.3")
        with self.assertRaises(ConnectionError):
            udp.Associate(port, source="127.0.0.3", login=("who", "wrong"))
        served = self.associate(local, login=("who", "secret"))
        self.refused_then_served(self.source("127.0.0.3"), served.relay, target, served)


if __name__ == "__main__":
    udp_case.main()
