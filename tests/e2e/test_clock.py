"""The 2022 edition and clocks: by how much they differ is said, and a clock that is set to and fro
lets nothing in twice. The server runs with a clock that the test sets."""

import base64
import os
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, packets, proc, programs, starts, targets, udp_case, wait  # noqa: E402

METHODS = ("2022-blake3-aes-128-gcm", "2022-blake3-chacha20-poly1305")
SET_BACK = "the clock was set back: new "


class Clock(udp_case.UdpCase):
    def begin(self, method):
        shim = os.path.join(case.settings.build, "lib", "libss_clock_shift.so")
        if not os.path.exists(shim):
            self.skipTest("no shim on this system")
        if self.sanitized:
            self.skipTest("a sanitizer wants to be the first library")
        self.shift_file = os.path.join(programs.scratch_directory(), "shift")
        self.set_clock(0)
        self.key = base64.b64encode(os.urandom(16 if "-128-" in method else 32)).decode()
        self.method = method
        self.server_ = self.server("-m", method, "-k", self.key, "--udp-timeout", 1, env={
            "LD_PRELOAD": shim, "SS_CLOCK_SHIFT_FILE": self.shift_file})
        self.echo, self.datagrams = self.target(targets.echo), self.udp_target()
        self.start = starts.of(method, self.key)

    def set_clock(self, seconds):
        """Of the server: further than the real one by so much."""
        self.shift = seconds
        with open(self.shift_file + ".new", "w") as file:
            file.write("%d\n" % seconds)
        os.replace(self.shift_file + ".new", self.shift_file)

    def request(self, shift):
        """The first bytes of a client whose clock is shifted."""
        return self.start.start(self.echo.address, b"payload", now=int(time.time()) + shift)

    def serves(self, request):
        with socket.create_connection(("127.0.0.1", self.server_.port), 10) as conn:
            conn.sendall(request)
            try:
                return conn.recv(1) != b""
            except ConnectionResetError:
                return False

    def datagram(self, shift):
        """The first one of a new session."""
        return packets.session(self.method, self.key).seal(
            self.datagrams.address, b"payload", now=int(time.time()) + shift)

    def relays(self, datagram):
        """Whether the target gets it. The answer to what is sent behind it, of a session that goes on
        and with a payload that is longer, tells that the server has looked at it."""
        before = self.datagrams.count
        client = self.source()
        for sent in (datagram, self.steady.seal(self.datagrams.address, bytes(1000),
                                                now=int(time.time()) + self.shift)):
            client.sendto(sent, ("127.0.0.1", self.server_.port))
        while len(client.recv(1 << 16)) < 1000:
            pass
        return self.datagrams.count == before + 2

    def test_the_difference_is_said(self):
        for method in METHODS:
            with self.subTest(method=method):
                self.begin(method)
                for shift in (-29, 29):
                    self.assertTrue(self.serves(self.request(shift)))
                for shift in (-40, 40, 3600):
                    line = "127.0.0.1: the clocks differ by %d s, and 30 s are allowed" % shift
                    before = len(self.server_.log_lines(line))
                    self.assertFalse(self.serves(self.request(shift)))
                    self.server_.await_log(line, count=before + 1)
                    client = self.source()
                    client.sendto(self.datagram(shift), ("127.0.0.1", self.server_.port))
                    self.server_.await_log(line, count=before + 2)
                self.assertEqual(self.datagrams.count, 0)

    def test_connections_when_the_clock_is_set_back(self):
        for method in METHODS:
            with self.subTest(method=method):
                self.begin(method)
                first = self.request(0)
                self.assertTrue(self.serves(first))
                # By five seconds, and by an hour which then passes.
                for shift in (-5, -3600, 0):
                    self.set_clock(shift)
                    self.assertTrue(self.serves(self.request(shift)))
                    self.assertFalse(self.serves(first))
                self.assertFalse(self.server_.log_lines(SET_BACK))
                # The first is forgotten, and the clock goes back to where its stamp is good.
                self.set_clock(100)
                self.assertTrue(self.serves(self.request(100)))
                self.set_clock(10)
                self.assertFalse(self.serves(first))
                self.assertFalse(self.serves(self.request(10)))
                self.server_.await_log(SET_BACK + "connections")
                self.set_clock(60)
                self.assertTrue(self.serves(self.request(60)))

    def test_datagrams_when_the_clock_is_set_back(self):
        for method in METHODS:
            with self.subTest(method=method):
                self.begin(method)
                self.steady = packets.session(self.method, self.key)
                first = self.datagram(0)
                self.assertTrue(self.relays(first))
                for shift in (-5, -3600, 0):
                    self.set_clock(shift)
                    self.assertTrue(self.relays(self.datagram(shift)))
                    self.assertFalse(self.relays(first))
                self.assertFalse(self.server_.log_lines(SET_BACK))
                # No association holds any session now, and they are forgotten but for one.
                wait.until(lambda: len(proc.udp_ports(self.server_.pid)) == 1, 10)
                self.set_clock(100)
                self.assertTrue(self.relays(self.datagram(100)))
                self.set_clock(10)
                self.assertFalse(self.relays(first))
                self.assertFalse(self.relays(self.datagram(10)))
                self.server_.await_log(SET_BACK + "UDP sessions")
                self.set_clock(60)
                self.assertTrue(self.relays(self.datagram(60)))


if __name__ == "__main__":
    udp_case.main()
