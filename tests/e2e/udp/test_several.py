"""Several upstream servers for datagrams: one that is silent or not there is left for another."""

import os
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from support import case, netns, proc, servers, socks, targets, timing, udp, wait  # noqa: E402
from support import filter as packet_filter  # noqa: E402

EVERY_S = 0.1
SILENT_S = 3


def setUpModule():
    netns.enter()


class Several(servers.Case):
    def setUp(self):
        super().setUp()
        self.target = udp.Target()
        self.addCleanup(self.target.close)

    def server_of(self, number, *arguments, **how):
        server = super().server_of(number, "-u", *arguments, **how)
        wait.until(lambda: server.port in proc.udp_ports(server.pid), 10, "the UDP port")
        return server

    def local_with(self, entries, *arguments, **settings):
        local = super().local_with(entries, *arguments, mode="tcp_and_udp", **settings)
        wait.until(lambda: local.port in proc.udp_ports(local.pid), 10, "the UDP port")
        return local

    def associate(self, local):
        made = udp.Associate(local.port, timeout=EVERY_S)
        self.addCleanup(made.close)
        return made

    def await_answer(self, client, seconds=20):
        """Sends a datagram every tenth of a second until one comes back; the seconds it took."""
        start = time.monotonic()
        number = 0
        while time.monotonic() < start + seconds:
            number += 1
            try:
                client.exchange(self.target.address, b"number %d" % number)
                return time.monotonic() - start
            except socket.timeout:
                pass
        self.fail("no answer within %g s" % seconds)

    def filter(self):
        made = packet_filter.Filter()
        self.addCleanup(made.close)
        return made

    def test_each_is_spoken_to_in_its_own_way(self):
        several = [self.server_of(number) for number in range(4)]
        local = self.local_with(self.entries(several), balance="random")
        for _ in range(40):
            self.await_answer(self.associate(local))
        found = self.summary(local)
        for server in several:
            self.assertGreater(found[server.port]["udp_chosen"], 0, found)
            self.assertEqual(found[server.port]["udp_failures"], 0, found)

    def test_one_that_is_not_there(self):
        """Its machine says so: the second datagram goes to another."""
        several = [self.server_of(number) for number in range(2)]
        local = self.local_with(self.entries(several))
        several[0].stop()
        self.assertLess(self.await_answer(self.associate(local)), SILENT_S)
        for _ in range(3):
            self.assertLess(self.await_answer(self.associate(local)), SILENT_S)
        found = self.summary(local)
        self.assertGreater(found[several[0].port]["udp_failures"], 0, found)
        self.assertTrue(local.log_lines("[udp] server"), local.log)
        self.assertLess(proc.cpu_share(local.pid, 1), 0.1)

    def test_one_that_is_silent(self):
        drop = self.filter()
        several = [self.server_of(number) for number in range(2)]
        drop.drop(several[0].port, "udp")
        local = self.local_with(self.entries(several))
        self.await_answer(self.associate(local))
        # It is known now; who comes next does not wait.
        for _ in range(3):
            self.assertLess(self.await_answer(self.associate(local)), SILENT_S)
        found = self.summary(local)
        self.assertGreater(found[several[0].port]["udp_failures"], 0, found)
        self.assertFalse(found[several[0].port]["avoided"], "TCP goes on there")
        echo = targets.Target(targets.echo)
        self.addCleanup(echo.close)
        with socks.connect(local.port, echo.address) as conn:
            self.assert_echoes(conn)

    def test_one_that_falls_silent(self):
        """An association that was answered goes to another as well, and its client notices no more
        than lost datagrams."""
        drop = self.filter()
        several = [self.server_of(number) for number in range(2)]
        local = self.local_with(self.entries(several))
        client = self.associate(local)
        self.await_answer(client)
        drop.drop(several[0].port, "udp")
        self.await_answer(client)
        drop.let(several[0].port, "udp")
        self.await_answer(client)

    def test_the_only_one_is_kept(self):
        drop = self.filter()
        server = self.server_of(1)
        local = self.local_with(self.entries([server]))
        drop.drop(server.port, "udp")
        client = self.associate(local)

        def unanswered():
            client.send(self.target.address, b"lost")
            return time.monotonic() > until

        until = time.monotonic() + 2 * SILENT_S
        wait.until(unanswered, 3 * SILENT_S)
        drop.let(server.port, "udp")
        self.assertLess(self.await_answer(client), SILENT_S)
        self.assertLess(timing.seconds_of(lambda: self.await_answer(self.associate(local))),
                        SILENT_S)

    def test_weight_0_for_udp(self):
        several = [self.server_of(number) for number in range(2)]
        entries = self.entries(several)
        entries[0]["udp_weight"] = 0
        local = self.local_with(entries)
        for _ in range(4):
            self.await_answer(self.associate(local))
        self.assertEqual(several[0].traffic()["received"], 0)


if __name__ == "__main__":
    case.main()
