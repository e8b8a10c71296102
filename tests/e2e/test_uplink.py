"""R25: the uplink gets another address and route; what is new works at once, without a restart.

ss-local is at the near end of a link, its servers, their targets and its name server beyond the far
end, at an address that is reached by another way after the change.
"""

import os
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, counting, dns_stub, proc, servers, timing, udp, veth  # noqa: E402
from support import wait  # noqa: E402

BEYOND = "203.0.113.1"
OTHER_NEAR, OTHER_FAR = "198.51.100.1", "198.51.100.2"
NAME = "server.test"
PROMPT_S = 3

link = None


def setUpModule():
    global link
    link = veth.Link()
    veth._run("ip", "address", "add", BEYOND + "/32", "dev", "lo", namespace=link.far)
    veth._run("ip", "address", "add", OTHER_FAR + "/24", "dev", veth.FAR_NAME, namespace=link.far)
    veth._run("ip", "route", "add", BEYOND, "via", veth.FAR)


def change(address, gateway):
    """Down, another address, another way, and up again."""
    veth._run("ip", "link", "set", veth.NEAR_NAME, "down")
    veth._run("ip", "address", "flush", "dev", veth.NEAR_NAME)
    veth._run("ip", "address", "add", address + "/24", "dev", veth.NEAR_NAME)
    veth._run("ip", "link", "set", veth.NEAR_NAME, "up")
    veth._run("ip", "route", "add", BEYOND, "via", gateway)


class Uplink(servers.Case):
    def setUp(self):
        super().setUp()
        with link.far_end():
            self.stub = dns_stub.Stub({NAME: [BEYOND]}, host=BEYOND)
            self.target = counting.Target(host=BEYOND)
            self.echo = udp.Target(host=BEYOND)
            self.several = [self.far_server(number) for number in range(2)]
        for thing in (self.stub, self.target, self.echo):
            self.addCleanup(thing.close)

    def far_server(self, number):
        server = self.server_of(number, "-u", host=BEYOND, prepare=link.prepare)
        wait.until(lambda: server.port in proc.udp_ports(server.pid), 10, "the UDP port")
        return server

    def assert_all_works(self, local):
        for _ in range(5):
            self.assertTrue(counting.ask(local.port, self.target.address))
        client = udp.Associate(local.port, timeout=0.3)
        self.addCleanup(client.close)

        def answered():
            try:
                return client.exchange(self.echo.address, b"is it there?")
            except socket.timeout:
                return None

        wait.until(answered, PROMPT_S, "a datagram's answer")

    def start(self):
        entries = [{**entry, "server": name} for entry, name in
                   zip(self.entries(self.several), (NAME, BEYOND))]
        local = self.local_with(entries, dns=self.stub.nameserver, mode="tcp_and_udp",
                                how={"prepare": None})
        wait.until(lambda: local.port in proc.udp_ports(local.pid), 10, "the UDP port")
        return local

    def test_another_address_and_route(self):
        local = self.start()
        self.assert_all_works(local)
        old = self.connect(local, self.target.address)
        for address, gateway in ((OTHER_NEAR, OTHER_FAR), (veth.NEAR, veth.FAR)):
            change(address, gateway)
            timing.within(self, PROMPT_S, lambda: self.assert_all_works(local))
        old.close()
        self.assertEqual(self.target.twice(), [])

    def test_an_uplink_that_was_away(self):
        """Requests fail meanwhile; nothing that is remembered of that hinders those after it."""
        local = self.start()
        self.assert_all_works(local)
        veth._run("ip", "link", "set", veth.NEAR_NAME, "down")
        for _ in range(6):
            with self.assertRaises((OSError, AssertionError)):
                self.assertTrue(counting.ask(local.port, self.target.address, timeout=2))
        change(OTHER_NEAR, OTHER_FAR)
        timing.within(self, PROMPT_S, lambda: self.assert_all_works(local))
        change(veth.NEAR, veth.FAR)
        self.assertEqual(self.target.twice(), [])


if __name__ == "__main__":
    case.main()
