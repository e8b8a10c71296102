"""R79: the addresses that ss-server listens on, and the families they serve (TCP)."""

import contextlib
import os
import socket
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, ports, shadow, socks, targets  # noqa: E402


class Listen(case.Case):
    def setUp(self):
        super().setUp()
        if not ports.have_ipv6():
            raise unittest.SkipTest("no IPv6 on this machine")
        self.echo = self.target(targets.echo)
        self.port = ports.free_port()

    def start(self, *addresses, options=()):
        arguments = [part for address in addresses for part in ("-s", address)] + list(options)
        server = self.program("ss-server", *arguments, "-p", self.port, "-k", case.PASSWORD,
                              "-m", shadow.METHOD)
        return server.await_listening(self.port)

    def serves(self, host):
        """Whether a correct client gets its echo over this address."""
        try:
            conn = socket.create_connection((host, self.port), 5)
        except ConnectionRefusedError:
            return False
        with contextlib.closing(conn):
            conn.sendall(shadow.first_packet(case.PASSWORD, self.echo.address, b"hi"))
            opener = shadow.Opener(case.PASSWORD)
            plain = b""
            while len(plain) < 2:
                data = conn.recv(1000)
                self.assertTrue(data)
                plain += opener.feed(data)
            return plain == b"hi"

    def assert_serves(self, four, six):
        self.assertEqual((self.serves("127.0.0.1"), self.serves("::1")), (four, six))

    def test_both_wildcards(self):
        server = self.start("::", "0.0.0.0")
        self.assert_serves(True, True)
        self.assertEqual(len(server.log_lines("listening at")), 2)

    def test_both_wildcards_the_other_way_round(self):
        server = self.start("0.0.0.0", "::")
        self.assert_serves(True, True)
        self.assertEqual(len(server.log_lines("listening at")), 2)

    def test_ipv6_wildcard_alone_serves_both(self):
        server = self.start("::")
        self.assert_serves(True, True)
        self.assertTrue(server.log_lines("[::]:%d" % self.port), server.log)

    def test_ipv6_wildcard_for_ipv6_only(self):
        self.start("::", options=["--ipv6-only"])
        self.assert_serves(False, True)
        # Another may have the port for IPv4.
        socket.create_server(("0.0.0.0", self.port)).close()

    def test_no_address_is_ipv4(self):
        server = self.start()
        self.assert_serves(True, False)
        self.assertTrue(server.log_lines("0.0.0.0:%d" % self.port), server.log)

    def test_ipv6_wildcard_with_a_certain_ipv4_address(self):
        self.start("::", "127.0.0.1")
        self.assert_serves(True, True)

    def test_certain_addresses(self):
        self.start("127.0.0.1", "::1")
        self.assert_serves(True, True)

    def test_one_family_only(self):
        self.start("::1")
        self.assert_serves(False, True)

    def test_several_addresses_with_ports_of_their_own(self):
        other = ports.free_port()
        server = self.program("ss-server", "-s", "127.0.0.1", "-s", "127.0.0.1:%d" % other, "-s",
                              "[::1]:%d" % other, "-p", self.port, "-k", case.PASSWORD, "-m",
                              shadow.METHOD)
        server.await_listening(self.port, other)
        self.assert_serves(True, False)
        self.port = other
        self.assert_serves(True, True)

    def test_port_in_use_is_fatal(self):
        """A second instance is refused, also with several workers."""
        self.start("127.0.0.1")
        second = self.program("ss-server", "-s", "127.0.0.1", "-p", self.port, "-k", case.PASSWORD,
                              "-m", shadow.METHOD)
        self.assertEqual(second.wait_end(), 255)
        self._programs.remove(second)
        self.assertIn("Address already in use", second.log)
        self.assert_serves(True, False)


class Targets(case.Case):
    def test_ipv6_target_and_name(self):
        if not ports.have_ipv6():
            raise unittest.SkipTest("no IPv6 on this machine")
        server, local = self.chain()
        six = self.target(targets.echo, host="::1")
        conn = socks.connect(local.port, ("::1", six.port))
        self.addCleanup(conn.close)
        self.assert_echoes(conn)

    def test_localhost(self):
        server, local = self.chain()
        echo = self.target(targets.echo)
        conn = socks.connect(local.port, ("localhost", echo.port))
        self.addCleanup(conn.close)
        self.assert_echoes(conn)


if __name__ == "__main__":
    case.main()
