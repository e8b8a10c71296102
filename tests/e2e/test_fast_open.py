"""R80: TCP Fast Open never makes a connection fail. In a network namespace of its own."""

import contextlib
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, netns, socks, targets  # noqa: E402


def setUpModule():
    netns.enter()


class FastOpen(case.Case):
    def start(self):
        self.echo = self.target(targets.echo)
        server, local = self.chain(["--fast-open"], ["--fast-open"])
        return server, local

    def exchange(self, local, count=5, keeper=None):
        for number in range(count):
            conn = socks.connect(local.port, self.echo.address, first=b"first %d" % number)
            (keeper.callback if keeper else self.addCleanup)(conn.close)
            self.assertEqual(socks.receive(conn, 7), b"first %d" % number)
            self.assert_echoes(conn)

    def test_every_setting_of_the_kernel(self):
        for value in (0, 1, 2, 3):
            with self.subTest(tcp_fastopen=value):
                netns.sysctl("net.ipv4.tcp_fastopen", value)
                server, local = self.start()
                self.exchange(local)
                self.assertLess(len(local.log_lines("fast open is not")), 2)
                server.stop()
                local.stop()

    def test_data_travels_with_the_syn(self):
        netns.sysctl("net.ipv4.tcp_fastopen", 3)
        server, local = self.start()
        before = netns.counters("TcpExt")
        self.exchange(local)
        after = netns.counters("TcpExt")
        # The first connection fetches the cookie, those after it use it.
        self.assertGreaterEqual(
            after["TCPFastOpenPassive"] - before["TCPFastOpenPassive"], 3, local.log)

    def test_server_first_protocol(self):
        """With no data to send along, the connection is still opened."""
        netns.sysctl("net.ipv4.tcp_fastopen", 3)
        server, local = self.start()
        greeter = self.target(targets.greeter(b"220 ready\r\n"))
        for _ in range(3):
            conn = socks.connect(local.port, greeter.address)
            self.addCleanup(conn.close)
            self.assertEqual(socks.receive(conn, 11), b"220 ready\r\n")

    def test_firewall_drops_a_syn_with_data(self):
        """The same attempt goes on with an ordinary handshake."""
        if not shutil.which("nft"):
            raise unittest.SkipTest("nft is not there")
        netns.sysctl("net.ipv4.tcp_fastopen", 3)
        server, local = self.start()
        self.exchange(local, 2)  # the cookie is known from here on
        rules = "\n".join((
            "table inet probe {", "chain input {", "type filter hook input priority 0;",
            "tcp dport %d tcp flags & (syn | ack) == syn meta length > 90 counter drop"
            % server.port, "}", "}", ""))
        if subprocess.run(["nft", "-f", "-"], input=rules, text=True).returncode:
            raise unittest.SkipTest("nft cannot filter here")
        try:
            self.exchange(local, 2)
            seen = subprocess.run(["nft", "list", "table", "inet", "probe"], capture_output=True,
                                  text=True).stdout
            self.assertNotIn("packets 0 ", seen, "no SYN with data was there to drop")
        finally:
            subprocess.run(["nft", "delete", "table", "inet", "probe"], check=True)

    def test_server_is_not_there(self):
        netns.sysctl("net.ipv4.tcp_fastopen", 3)
        server, local = self.start()
        with contextlib.ExitStack() as before:
            self.exchange(local, 2, before)
        server.stop()
        conn = socks.connect(local.port, self.echo.address, first=b"x")
        self.addCleanup(conn.close)
        try:
            self.assertEqual(conn.recv(1), b"")
        except ConnectionResetError:
            pass
        conn.close()
        local.await_no_sessions()


if __name__ == "__main__":
    case.main()
