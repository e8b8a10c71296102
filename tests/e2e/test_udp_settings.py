"""Settings of UDP, and many ports with methods and modes of their own, through the real programs."""

import json
import os
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, ports, proc, programs, socks, targets, udp, udp_case, wait  # noqa: E402

PASSWORD = case.PASSWORD


class Base(udp_case.UdpCase):
    def write(self, name, content):
        path = os.path.join(programs.scratch_directory(), name)
        with open(path, "w") as file:
            json.dump(content, file)
        return path

    def end(self, program, status):
        """A program that ends by itself, as is expected here."""
        self.assertEqual(program.wait_end(), status)
        self._programs.remove(program)

    def taken_port(self):
        """One whose UDP is ours already."""
        return self.source(port=ports.free_port()).getsockname()[1]


class Settings(Base):
    def test_the_advertised_address(self):
        """R29: UDP ASSOCIATE is answered with it, and with the port."""
        for address, family in (("192.0.2.7", socket.AF_INET), ("2001:db8::7", socket.AF_INET6)):
            local = self.local(self.server(), "--udp-advertised-address", address)
            with socks.dial("127.0.0.1", local.port) as conn:
                conn.sendall(b"\5\1\0")
                self.assertEqual(socks.receive(conn, 2), b"\5\0")
                conn.sendall(b"\5\3\0\1\0\0\0\0\0\0")
                size = 4 if family == socket.AF_INET else 16
                answer = socks.receive(conn, 4 + size + 2)
            self.assertEqual(answer[:4], b"\5\0\0" + (b"\1" if size == 4 else b"\4"))
            self.assertEqual(socket.inet_ntop(family, answer[4:-2]), address)
            self.assertEqual(int.from_bytes(answer[-2:], "big"), local.port)

    def exchange_without_associate(self, port, target):
        sock = self.source()
        sock.sendto(udp.frame(target.address, b"hello"), ("127.0.0.1", port))
        return sock

    def test_open(self):
        """With udp_open, and where there is no TCP, nobody has to ask."""
        target = self.udp_target()
        server = self.server()
        port = ports.free_port()
        upstream = ("-s", "127.0.0.1", "-p", server.port, "-l", port, "-k", PASSWORD, "-m",
                    case.settings.method)
        for more in (("-u", "--udp-open"), ("-U",)):
            local = self.program("ss-local", *upstream, *more)
            wait.until(lambda: port in proc.udp_ports(local.pid), 10)
            sock = self.exchange_without_associate(port, target)
            self.assertEqual(udp.unframe(sock.recv(1 << 16)), (target.address, b"hello"))
            self.assertEqual(proc.listening_ports(local.pid), set() if more == ("-U",) else {port})
            self.assertEqual(local.stop(), 0)
            self._programs.remove(local)

    def test_closed_by_default(self):
        target = self.udp_target()
        local = self.local(self.server())
        self.assert_silent(self.exchange_without_associate(local.port, target))
        self.assertEqual(target.payloads(), [])
        self.assert_relays(self.associate(local), target)

    def test_a_client_whose_udp_port_is_taken_goes_on_without(self):
        port = self.taken_port()
        local = super(udp_case.UdpCase, self).local(self.server(), "-u", port=port)
        self.assertTrue(local.log_lines("[udp] bind: Address already in use"), local.log)
        self.assertEqual(local.log_lines("udprelay enabled"), [])
        self.assert_works(local, self.target(targets.echo))

    def test_nothing_to_listen_on_is_fatal(self):
        port = self.taken_port()
        for program, more in (("ss-server", ()),
                              ("ss-local", ("-l", port)),
                              ("ss-tunnel", ("-l", port, "-L", "127.0.0.1:9"))):
            started = self.program(program, "-s", "127.0.0.1", "-p", port, "-k", PASSWORD, "-U",
                                   *more)
            self.end(started, 255)
            self.assertTrue(started.log_lines("failed to listen on any address"), started.log)

    def test_a_server_goes_on_with_what_it_has(self):
        port = self.taken_port()
        server = super(udp_case.UdpCase, self).server("-u", port=port)
        self.assertTrue(server.log_lines("[udp] bind: Address already in use"), server.log)
        self.assert_works(super(udp_case.UdpCase, self).local(server), self.target(targets.echo))

    def test_two_programs_do_not_share_a_port(self):
        server = self.server()
        second = self.program("ss-server", "-s", "127.0.0.1", "-p", server.port, "-k", PASSWORD,
                              "-U")
        self.end(second, 255)
        self.assertTrue(second.log_lines("[udp] bind: Address already in use"), second.log)

    def test_the_summary_counts_datagrams(self):
        target = self.udp_target()
        server, local = self.chain()
        client = self.associate(local)
        for _ in range(3):
            self.assert_relays(client, target, b"12345")
        for program in (server, local):
            self.assertEqual(program.traffic()["received"], 15)
            line = program.await_log("traffic: UDP")
            self.assertTrue(line.endswith("traffic: UDP associations 1 open, 1 total; "
                                          "received 3 datagrams, sent 3 datagrams"), line)
        without = super(udp_case.UdpCase, self).server()
        without.traffic()
        self.assertEqual(without.log_lines("traffic: UDP"), [])

    def test_a_tunnel_without_udp_says_so(self):
        tunnel = super(udp_case.UdpCase, self).tunnel(self.server(), ("127.0.0.1", 9))
        tunnel.await_log("UDP relay disabled")
        self.assertEqual(self.tunnel(self.server(), ("127.0.0.1", 9)).log_lines("disabled"), [])


class ManyPorts(Base):
    """One ss-server, each port with a method, password and mode of its own."""

    METHODS = ("aes-128-gcm", "aes-256-gcm", "chacha20-ietf-poly1305", "xchacha20-ietf-poly1305")
    MODES = ("tcp_only", "tcp_and_udp", "udp_only")

    def start(self):
        self.servers = [{"server": "127.0.0.1", "server_port": ports.free_port(), "method": method,
                         "password": "%s %s" % (method, mode), "mode": mode}
                        for method in self.METHODS for mode in self.MODES]
        server = self.program("ss-server", "-c", self.write("c.json", {"servers": self.servers}))
        tcp = {one["server_port"] for one in self.servers if one["mode"] != "udp_only"}
        server.await_listening(*tcp)
        server.await_log("tcp server listening", count=len(tcp))
        return server, tcp

    def test_each_has_its_own(self):
        server, tcp = self.start()
        wants_udp = {one["server_port"] for one in self.servers if one["mode"] != "tcp_only"}
        wait.until(lambda: wants_udp <= proc.udp_ports(server.pid), 10)
        self.assertEqual(proc.listening_ports(server.pid), tcp)
        self.assertFalse((tcp - wants_udp) & proc.udp_ports(server.pid))
        echo, target = self.target(targets.echo), self.udp_target()
        for one in self.servers:
            port = ports.free_port()
            local = self.program("ss-local", "-s", "127.0.0.1", "-p", one["server_port"], "-k",
                                 one["password"], "-m", one["method"], "-l", port, "-u")
            local.port = port
            self.await_udp(local.await_listening(port))
            if one["server_port"] in tcp:
                self.assert_works(local, echo)
            if one["server_port"] in wants_udp:
                self.assert_relays(self.associate(local), target)
            self.assertEqual(local.stop(), 0)
            self._programs.remove(local)

    def test_a_client_of_several_servers(self):
        """Each with its own method: TCP goes on to the next, UDP to the first that is for it."""
        server, _ = self.start()
        dead = {**self.servers[0], "server_port": ports.free_port(), "mode": "tcp_only"}
        port = ports.free_port()
        local = self.program("ss-local", "-c", self.write("c.json", {
            "servers": [dead, *(one for one in self.servers if one["mode"] != "udp_only")],
            "locals": [{"local_address": "127.0.0.1", "local_port": port,
                        "mode": "tcp_and_udp"}]}))
        local.port = port
        self.await_udp(local.await_listening(port))
        echo = self.target(targets.echo)
        for _ in range(3 * len(self.servers)):
            self.assert_works(local, echo)
        self.assert_relays(self.associate(local), self.udp_target())
        self.assertTrue(server.alive)


if __name__ == "__main__":
    udp_case.main()
