"""The base of the end-to-end tests of UDP.

    python3 test_something.py --bin build/bin --workers 2 [unittest's own options and names]
    python3 test_something.py --bin /usr/bin --classic

With --classic the programs are those of the classic suite; what it is known to lack is skipped.
"""

import functools
import socket
import sys
import unittest

from . import case, ports, proc, programs, udp, wait
from .case import settings

_classic = False


def better(reason):
    """Marks a test of what the classic suite is known not to do."""

    def mark(test):
        @functools.wraps(test)
        def run(self, *arguments):
            if _classic:
                raise unittest.SkipTest("the classic suite: " + reason)
            return test(self, *arguments)

        return run

    return mark


class UdpCase(case.Case):
    """Programs with -u; clients and targets that are closed when the test ends."""

    @property
    def classic(self):
        return _classic

    def program(self, name, *arguments, **how):
        if not _classic:
            return super().program(name, *arguments, **how)
        started = programs.Program([programs.find(settings.bin, name), *arguments], **how)
        self._programs.append(started)
        return started

    def server(self, *arguments, **how):
        return self.await_udp(super().server("-u", *arguments, **how))

    def local(self, server, *arguments, **how):
        return self.await_udp(super().local(server, "-u", *arguments, **how))

    def tunnel(self, server, target, *arguments, **how):
        return self.await_udp(super().tunnel(server, target, "-u", *arguments, **how))

    def await_udp(self, program):
        wait.until(lambda: program.port in proc.udp_ports(program.pid), 10,
                   "%s: its UDP port" % program.name)
        return program

    def closing(self, thing):
        self.addCleanup(thing.close)
        return thing

    def udp_target(self, handler=udp.echo, **how):
        return self.closing(udp.Target(handler, **how))

    def associate(self, local, **how):
        return self.closing(udp.Associate(getattr(local, "port", local), **how))

    def client(self, tunnel, **how):
        return self.closing(udp.Client(getattr(tunnel, "port", tunnel), **how))

    def prober(self, server, **how):
        return self.closing(udp.Prober(getattr(server, "port", server), case.PASSWORD, **how))

    def upstream(self, **how):
        return self.closing(udp.Upstream(case.PASSWORD, **how))

    def source(self, host="127.0.0.1", port=0):
        return self.closing(udp.make_socket(host, port))

    def need_ipv6(self):
        if not ports.have_ipv6():
            raise unittest.SkipTest("no IPv6 on this machine")

    def need_descriptors(self, count):
        if not udp.allow_descriptors(count):
            raise unittest.SkipTest("no right to %d descriptors" % count)

    def assert_relays(self, client, target, payload=b"a datagram"):
        """An echo target answers, and the answer names it."""
        self.assertEqual(client.exchange(target.address, payload), (target.address, payload))

    def assert_silent(self, sock, seconds=0.3):
        """Nothing is waiting at a socket and nothing comes for a moment."""
        sock.settimeout(seconds)
        try:
            data, source = sock.recvfrom(1 << 16)
        except socket.timeout:
            return
        finally:
            sock.settimeout(udp.PATIENCE_S)
        self.fail("%d bytes came from %s" % (len(data), source))


def main():
    global _classic
    if "--classic" in sys.argv:
        sys.argv.remove("--classic")
        _classic = True
    case.main()
