"""R10, R16: over a link of 1,500 bytes, and with outgoing datagrams bound to an interface."""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from support import netns, udp_case, veth  # noqa: E402
from support.udp_case import better  # noqa: E402

SIZES = (0, 1200, 1397, 1400, 1405, 1406, 1472, 1473, 4000, 9000, 60000)
# A datagram fits an MTU together with addresses, salt and tag, which are reckoned as 95 bytes.
MTU, FITTING = 1500, 1405

link = None


def setUpModule():
    global link
    link = veth.Link()


class Links(udp_case.UdpCase):
    def setUp(self):
        super().setUp()
        with link.far_end():
            self.far_target = self.udp_target(host=veth.FAR)
        self.near_target = self.udp_target()

    def far_chain(self, *arguments):
        """A server and a target at the far end, and a client program here."""
        server = self.server(*arguments, host=veth.FAR, prepare=link.prepare)
        return self.associate(self.local(server, *arguments, host=veth.FAR))

    def near_chain(self, *arguments):
        """Both programs here, and the target at the far end."""
        server = self.server(*arguments)
        return self.associate(self.local(server, *arguments))

    def fragments(self):
        return int(netns.counters("Ip")["FragCreates"])

    def assert_echoes_sizes(self, client, sizes):
        for size in sizes:
            payload = os.urandom(size)
            self.assertEqual(client.exchange(self.far_target.address, payload),
                             (self.far_target.address, payload))

    @better("it drops what is larger than its guess of the MTU")
    def test_large_to_the_server(self):
        client = self.far_chain()
        before = self.fragments()
        self.assert_echoes_sizes(client, SIZES)
        self.assertGreater(self.fragments(), before)

    @better("it drops what is larger than its guess of the MTU")
    def test_large_to_the_target(self):
        client = self.prober(self.server())
        before = self.fragments()
        self.assert_echoes_sizes(client, SIZES)
        self.assertGreater(self.fragments(), before)

    @better("its reckoning is another")
    def test_no_fragments_with_a_given_mtu(self):
        """What fits goes unfragmented; what does not is dropped in either program, both ways."""
        client = self.far_chain("--mtu", MTU)
        before = self.fragments()
        self.assert_echoes_sizes(client, (0, 1200, 1397, FITTING))
        client.send(self.far_target.address, bytes(FITTING + 1))
        client.send(self.far_target.address, bytes(9000))
        self.assert_echoes_sizes(client, (100,))
        self.assertEqual(self.fragments(), before)
        self.assertEqual(max(len(data) for data in self.far_target.payloads()), FITTING)

        with link.far_end():
            boaster = self.udp_target(
                lambda data, source: [bytes(FITTING + 1), bytes(9000), data], host=veth.FAR)
        self.assertEqual(client.exchange(boaster.address, b"small"), (boaster.address, b"small"))

    def assert_echoes_bursts(self, client):
        """Neighbours of one size may travel joined; they come one by one and unchanged."""
        dice = random.Random(7)
        bursts = [[size] * 32 for size in (1, 2, 100, 1200, 1400, 1418, 1419, 1472, 1473)]
        bursts += [[dice.choice((1, 700, 1200, 1200, 1200, 1472)) for _ in range(32)]
                   for _ in range(20)]
        every = list(range(1, 1473))
        for order in (every, dice.sample(every, len(every))):
            bursts += [order[at:at + 32] for at in range(0, len(order), 32)]
        for burst in bursts:
            payloads = [bytes([number]) + os.urandom(size - 1)
                        for number, size in enumerate(burst)]
            for payload in payloads:
                client.send(self.far_target.address, payload)
            answers = [client.receive()[1] for _ in payloads]
            self.assertEqual(answers, payloads)

    def without_offload(self):
        """Devices that segment nothing, and hand on nothing joined."""
        self.addCleanup(link.offload, True)
        link.offload(False)

    def test_bursts_to_the_server(self):
        self.assert_echoes_bursts(self.far_chain())

    def test_bursts_to_the_server_without_offload(self):
        self.without_offload()
        self.assert_echoes_bursts(self.far_chain())

    def test_bursts_to_the_target(self):
        self.assert_echoes_bursts(self.near_chain())

    def test_bursts_to_the_target_without_offload(self):
        self.without_offload()
        self.assert_echoes_bursts(self.near_chain())

    def test_interface_of_the_server(self):
        """Bound to the right interface it reaches a target there, bound to another it doesn't."""
        client = self.prober(self.server("-i", veth.NEAR_NAME))
        self.assert_relays(client, self.far_target)
        client.send(self.near_target.address, b"by the wrong one")
        self.assert_relays(client, self.far_target)
        self.assertEqual(self.near_target.count, 0)

        client = self.prober(self.server("-i", "lo"))
        self.assert_relays(client, self.near_target)
        self.assertEqual(self.far_target.count, 2)

    def test_interface_of_the_clients(self):
        server = self.server()
        self.assert_relays(self.associate(self.local(server, "-i", "lo")), self.near_target)
        client = self.client(self.tunnel(server, self.near_target.address, "-i", "lo"))
        self.assertEqual(client.exchange(b"hello"), b"hello")

        wrong = ["-i", veth.NEAR_NAME]
        by_local = self.associate(self.local(server, *wrong))
        by_local.send(self.near_target.address, b"by the wrong one")
        by_tunnel = self.client(self.tunnel(server, self.near_target.address, *wrong))
        by_tunnel.send(b"by the wrong one")
        self.assert_silent(by_local.socket)
        self.assert_silent(by_tunnel.socket)
        self.assertEqual(self.near_target.count, 2)


if __name__ == "__main__":
    udp_case.main()
