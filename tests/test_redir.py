"""ss-redir on a router: what it relays, by REDIRECT and TPROXY (R35 to R37).

    python3 tests/test_redir.py --bin build/bin --workers 2 [unittest's own options and names]

Three network namespaces (client, router, internet); rules by iptables and by nftables, IPv4 and IPv6,
TCP and UDP.
"""

import contextlib
import hashlib
import os
import socket
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import case, dns, netns, proc, programs, router, router_case  # noqa: E402
from support import socks, targets, udp, wait  # noqa: E402
from support.case import settings  # noqa: E402
from support.router_case import (ANSWERS_MAX, BODY, KINDS, RouterCase, associations,  # noqa: E402
                                 give_rights_up, nat, shared_socket)

rig = None


def setUpModule():
    global rig
    rig = router_case.make_rig()


class Redirected(RouterCase):
    """The rules of ss-nat, by either tool."""

    def test_downloads(self):
        self.internet()
        self.redir("-u")
        for kind in KINDS:
            with self.subTest(kind):
                self.rules(kind, "-u", "-6")
                four = self.tcp_target(router.checksum_of(BODY))
                self.assert_downloads(router.HOST, four)
                six = self.tcp_target(router.checksum_of(BODY), ipv6=True)
                self.assert_downloads(router.HOST6, six)
                self.assert_seen_from(router.HOST, router.SERVER_SOURCE)
                self.assert_seen_from(router.HOST6, router.SERVER_SOURCE6)
                nat("-f")
                self.assert_seen_from(router.HOST, router.CLIENT)
                self.assert_seen_from(router.HOST6, router.CLIENT6)

    def test_uploads(self):
        self.internet()
        self.redir()
        self.rules("nft", "-6")
        sent = os.urandom(BODY)
        for ipv6 in (False, True):
            target = self.tcp_target(targets.digest, ipv6)
            conn = self.dial((router.HOST6 if ipv6 else router.HOST, target.port))
            conn.sendall(sent)
            conn.shutdown(socket.SHUT_WR)
            self.assertEqual(socks.receive_all(conn), hashlib.sha256(sent).digest())

    def test_dns_and_datagrams(self):
        """A question is answered from where it was asked, whoever the client is."""
        self.internet()
        self.redir("-u")

        def name_server(data, _source):
            number = int.from_bytes(data[:2], "big")
            return (number.to_bytes(2, "big") + b"\x81\x80\0\1\0\1\0\0\0\0" + data[12:] +
                    b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x2d\1\2\3")

        with rig.inside(rig.internet):
            servers = [router.AnyHost(name_server, ipv6, 53) for ipv6 in (False, True)]
        for server in servers:
            self.addCleanup(server.close)
        for kind in KINDS:
            with self.subTest(kind):
                self.rules(kind, "-u", "-6")
                for ipv6 in (False, True):
                    client = self.udp_client(ipv6)
                    address = (router.HOST6 if ipv6 else router.HOST, 53)
                    for number in range(20):
                        client.sendto(dns.question(number, "n%d.test" % number), address)
                        answer, source = client.recvfrom(4096)
                        self.assertEqual(source[:2], address)
                        self.assertEqual(dns.read_answer(answer),
                                         (number, "n%d.test" % number, ["45.1.2.3"]))
                nat("-f")
        self.assertEqual(servers[0].sources, {router.SERVER_SOURCE})
        self.assertEqual(servers[1].sources, {router.SERVER_SOURCE6})

    def test_200_at_once(self):
        self.internet()
        redir = self.redir()
        self.rules("nft", "-6")
        four, six = self.tcp_target(targets.echo), self.tcp_target(targets.echo, True)
        conns = [self.dial((router.host6(n), six.port) if n % 2 else (router.host(n), four.port))
                 for n in range(200)]
        for number, conn in enumerate(conns):
            conn.sendall(b"%d" % number * 1000)
        for number, conn in enumerate(conns):
            self.assertEqual(socks.receive(conn, len(b"%d" % number) * 1000), b"%d" % number * 1000)
        for conn in conns:
            conn.close()
        redir.await_no_sessions()

    def test_many_destinations(self):
        """10,000 datagrams to 500 hosts: each answer from the host that was asked, and a bounded
        number of sockets."""
        self.internet()
        redir = self.redir("-u")
        self.rules("nft", "-u", "-6")
        target = self.udp_target()
        client = self.udp_client()
        before = proc.descriptors(redir.pid)
        most = 0
        for start in range(0, 10000, 50):
            sent = {}
            for number in range(start, start + 50):
                address = (router.host(number % 500), target.port)
                payload = b"%d" % number
                sent[address] = payload
                client.sendto(payload, address)
            while sent:
                data, source = client.recvfrom(4096)
                self.assertEqual(sent.pop(source), data)
            most = max(most, proc.descriptors(redir.pid) - before)
        # Without answers they go, so that they are in nobody's way.
        wait.until(lambda: proc.descriptors(redir.pid) <= before + 2, 60, "idle sockets to go")
        self.assertLessEqual(most, ANSWERS_MAX + 4)
        self.assertGreater(most, ANSWERS_MAX // 2)
        self.assertEqual(target.sources, {router.SERVER_SOURCE})

    def test_many_clients_and_many_destinations(self):
        """More of both than there is room for, all at once: memory and descriptors are bounded, and
        the last answers are right."""
        self.internet("--max-associations", "2000")
        redir = self.redir("-u", "--max-associations", "64")
        self.rules("nft", "-u", "-6")
        four, six = self.udp_target(), self.udp_target(ipv6=True)
        clients = [self.udp_client(n % 2 == 1) for n in range(200)]
        peak = 0
        for turn in range(40):
            for number, client in enumerate(clients):
                there = turn * 200 + number
                if number % 2:
                    client.sendto(b"%d" % there, (router.host6(there % 3000), six.port))
                else:
                    client.sendto(b"%d" % there, (router.host(there % 3000), four.port))
            peak = max(peak, proc.descriptors(redir.pid))
            if turn == 10:
                early = proc.private_bytes(redir.pid)
        self.assertLessEqual(peak, ANSWERS_MAX + 64 + 40)
        if not self.sanitized:
            self.assertLess(proc.private_bytes(redir.pid), early + (4 << 20))
        for ipv6, target in ((False, four), (True, six)):
            host = router.HOST6 if ipv6 else router.HOST
            self.await_echo(self.udp_client(ipv6), (host, target.port))

    def test_a_client_known_by_its_link(self):
        """A client with a link-local address: its answers find the link."""
        self.internet()
        self.redir("-u")
        self.rules("nft", "-u", "-6")
        rig.ip(rig.client, "address add fe80::77/64 dev eth0 nodad")
        self.addCleanup(rig.ip, rig.client, "address del fe80::77/64 dev eth0")
        with rig.inside(rig.client):
            index = socket.if_nametoindex("eth0")
            client = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
            client.bind(("fe80::77", 0, 0, index))
            client.settimeout(10)
            conn = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
            conn.bind(("fe80::77", 0, 0, index))
        self.addCleanup(client.close)
        self.addCleanup(conn.close)
        target = self.udp_target(ipv6=True)
        client.sendto(b"hello", (router.HOST6, target.port))
        data, source = client.recvfrom(100)
        self.assertEqual((data, source[:2]), (b"hello", (router.HOST6, target.port)))
        conn.settimeout(10)
        conn.connect((router.HOST6, self.tcp_target(targets.echo, True).port))
        self.assert_echoes(conn)

    def test_several_servers(self):
        """A server that is away is made up for by the other, TCP and UDP."""
        self.internet()
        redir = self.redir("-u", "-s", "45.0.0.77", "-s", "%s:9" % router.SERVER, "-t", "5")
        self.rules("nft", "-u", "-s", "45.0.0.77")
        echo, target = self.tcp_target(targets.echo), self.udp_target()
        for _ in range(10):
            self.assert_echoes(self.dial((router.HOST, echo.port)))
        self.await_echo(self.udp_client(), (router.HOST, target.port))
        self.assertTrue(redir.alive)

    def test_fragments(self):
        """Datagrams larger than the links are relayed whole."""
        self.internet()
        self.redir("-u")
        self.rules("nft", "-u", "-6")
        for ipv6 in (False, True):
            target = self.udp_target(ipv6=ipv6)
            client = self.udp_client(ipv6)
            for size in (0, 1, 1372, 1400, 1472, 1473, 4000, 9000, 60000):
                self.assert_echoes_from(client, (router.HOST6 if ipv6 else router.HOST, target.port),
                                        os.urandom(size))

    def test_server_away_and_back(self):
        """While the server is away connections end at once; then all is as before."""
        server = self.internet()
        redir = self.redir("-u")
        self.rules("nft", "-u", "-6")
        echo, target = self.tcp_target(targets.echo), self.udp_target()
        conn = self.dial((router.HOST, echo.port))
        self.assert_echoes(conn)
        server.kill()
        self._programs.remove(server)
        for _ in range(3):
            gone = self.dial((router.HOST, echo.port))
            with contextlib.suppress(ConnectionError):
                self.assertEqual(socks.receive_all(gone), b"")
        self.internet()
        self.assert_echoes(self.dial((router.HOST, echo.port)))
        self.assert_echoes_from(self.udp_client(), (router.HOST, target.port))
        self.assertTrue(redir.alive)

    def test_the_routers_own_traffic(self):
        self.internet()
        self.redir()
        for kind in KINDS:
            with self.subTest(kind):
                self.rules(kind, "-o", "-6")
                self.assert_seen_from(router.HOST, router.SERVER_SOURCE, rig.router)
                self.assert_seen_from(router.HOST6, router.SERVER_SOURCE6, rig.router)
                self.assert_seen_from(router.HOST, router.SERVER_SOURCE)
                nat("-f")
                self.rules(kind, "-6")
                self.assert_seen_from(router.HOST, router.WAN, rig.router)
                nat("-f")

    def test_what_is_left_out(self):
        """LAN addresses by -a, networks by -b, -w and -i, in either tool."""
        self.internet()
        self.redir("-u")
        listed = os.path.join(programs.scratch_directory(), "a list")
        with open(listed, "w") as file:
            file.write("# hosts\r\n45.1.2.0/24\r\n\r\n2a0b::2:0/112 # and these\n")
        proxied, direct = router.SERVER_SOURCE, router.CLIENT
        six, direct6 = router.SERVER_SOURCE6, router.CLIENT6
        for kind in KINDS:
            for words, seen, seen6 in (
                    (["-a", "w192.168.7.2"], proxied, direct6),
                    (["-a", "W192.168.7.3 fd77::2"], direct, six),
                    (["-a", "b192.168.7.2"], direct, six),
                    (["-a", "B192.168.7.0/24 fd77::/64"], direct, direct6),
                    (["-b", "45.1.0.0/16 1.2.3.4"], direct, six),
                    (["-i", listed], direct, direct6),
                    (["-b", "45.1.0.0/16", "-w", "45.1.2.0/24"], proxied, six)):
                with self.subTest(kind=kind, words=words):
                    self.rules(kind, "-u", "-6", *words)
                    self.assert_seen_from(router.HOST, seen)
                    self.assert_seen_from(router.HOST6, seen6)
                    target = self.udp_target()
                    self.assert_echoes_from(self.udp_client(), (router.HOST, target.port))
                    self.assertEqual(target.sources, {seen})

    def test_the_routers_addresses_are_its_own(self):
        """What a client asks the router itself, at whichever address, does not go to the server."""
        self.internet()
        self.redir("-u")
        for kind in KINDS:
            self.rules(kind, "-u", "-6")
            hosts = [router.LAN, router.LAN6, router.WAN6]
            if kind == "nft":  # by iptables it is as it always was
                hosts.append(router.WAN)
            for host in hosts:
                with self.subTest(kind=kind, host=host):
                    local = self.at(rig.router, targets.Target, targets.echo, host=host)
                    self.assert_echoes(self.dial((host, local.port)))
                    asked = self.at(rig.router, udp.Target, udp.echo, host=host)
                    self.assert_echoes_from(self.udp_client(":" in host), asked.address)


class Transparent(RouterCase):
    """TPROXY for TCP (R37) and UDP, by rules of the test's own; IPv4 and IPv6 (R35)."""

    def test_both_families(self):
        self.internet()
        for listen, on in ((("-b", "0.0.0.0", "-b", "::"), {}), (("-b", "::"), {}),
                           (("-b", "127.0.0.1", "-b", "::1"),
                            {"on4": "127.0.0.1", "on6": "[::1]"})):
            with self.subTest(listen=listen):
                redir = self.redir("-T", "-u", listen=listen)
                self.tproxy_rules(**on)
                self.assertEqual(len(redir.log_lines("tcp tproxy mode enabled")), 1)
                for ipv6 in (False, True):
                    host = router.HOST6 if ipv6 else router.HOST
                    self.assert_downloads(host, self.tcp_target(router.checksum_of(BODY), ipv6))
                    target = self.udp_target(ipv6=ipv6)
                    client = self.udp_client(ipv6)
                    for size in (1, 1400, 5000):
                        self.assert_echoes_from(client, (host, target.port), os.urandom(size))
                rig.flush()
                redir.stop()

    def test_without_the_right(self):
        """R82: TPROXY that is not allowed ends the start with 1 and a line."""
        for words, line in ((["-T"], "ERROR: setsockopt IP_TRANSPARENT: "),
                            (["-u"], "ERROR: [udp] setsockopt IP_TRANSPARENT: ")):
            redir = programs.Program(
                [programs.find(settings.bin, "ss-redir"), "-s", router.SERVER, "-p", "8388", "-l",
                 self.port, "-k", "pw", *words], prepare=give_rights_up)
            self.assertEqual(redir.wait_end(), 1)
            self.assertEqual(len(redir.log_lines(line)), 1, redir.log)

    def test_a_local_service_on_the_port(self):
        """R36: the port of an answer is in use here, on all addresses."""
        self.internet()
        redir = self.redir("-u")
        self.tproxy_rules()
        target = self.udp_target()
        service = self.at(rig.router, shared_socket, "0.0.0.0", target.port, True)
        client = self.udp_client()
        self.assert_echoes_from(client, (router.HOST, target.port))
        service.sendto(b"x", (router.CLIENT, client.getsockname()[1]))  # it goes on too
        self.assertEqual(client.recvfrom(10)[1], (router.LAN, target.port))

        # One that does not share costs the answers that come from that port, and no other.
        other = self.udp_target()
        selfish = self.at(rig.router, shared_socket, "0.0.0.0", other.port, False)
        client.sendto(b"lost", (router.HOST, other.port))
        redir.await_log("[udp] an answer from %s:%d is lost" % (router.HOST, other.port))
        self.assert_echoes_from(client, (router.HOST, target.port))
        selfish.close()
        self.assert_echoes_from(client, (router.HOST, other.port))

    def test_two_instances(self):
        """R36: two that share the ports both answer."""
        self.internet()
        instances = [self.redir("-u", "-T", "--reuse-port") for _ in range(2)]
        self.tproxy_rules()
        target = self.udp_target()
        for number in range(40):
            client = self.udp_client()
            self.assert_echoes_from(client, (router.host(number % 3), target.port), b"%d" % number)
        counts = [associations(instance) for instance in instances]
        self.assertEqual(sum(counts), 40)
        self.assertTrue(all(counts), counts)

    def test_without_ipv6(self):
        """Answers of IPv4 need no IPv6 on the router."""
        self.internet()
        netns.sysctl("net.ipv6.conf.all.disable_ipv6", 1)
        self.addCleanup(self.ipv6_again)
        self.redir("-u", "-T", listen=("-b", "0.0.0.0"))
        self.tproxy_rules(versions=[""])
        target = self.udp_target()
        self.assert_echoes_from(self.udp_client(), (router.HOST, target.port))
        self.assert_downloads(router.HOST, self.tcp_target(router.checksum_of(BODY)))

    @staticmethod
    def ipv6_again():
        netns.sysctl("net.ipv6.conf.all.disable_ipv6", 0)
        netns.sysctl("net.ipv6.conf.all.forwarding", 1)
        for name, address in ((router.LAN_NAME, router.LAN6), ("wan0", router.WAN6)):
            rig.ip(rig.router, "address add %s/64 dev %s nodad" % (address, name))
        rig.ip(rig.router, "route add default via %s" % router.SERVER6)

    def test_answers_from_anybody(self):
        """A client keeps its port, and is answered by whom it never asked."""
        self.internet()
        self.redir("-u")
        self.tproxy_rules()
        ports_seen = []

        def remember(data, source):
            ports_seen.append(source)
            return data

        target, third = self.udp_target(remember), self.udp_target(remember)
        client = self.udp_client()
        self.assert_echoes_from(client, (router.host(1), target.port))
        self.assert_echoes_from(client, (router.host(2), third.port))
        self.assertEqual(ports_seen[0], ports_seen[1])
        with rig.inside(rig.internet):
            stranger = udp.make_socket("45.1.9.9")
        self.addCleanup(stranger.close)
        stranger.sendto(b"hello", ports_seen[0])
        self.assertEqual(client.recvfrom(100), (b"hello", stranger.getsockname()))

    def test_nobody_poses_as_the_router(self):
        """What a server says came from an address of the router is not sent from there: a service
        there would lose its datagrams to us."""
        redir = self.redir("-u", "-v", "--workers", "1")
        self.tproxy_rules()
        upstream = self.at(rig.internet, udp.make_socket, router.SERVER, 8388)
        service = self.at(rig.router, shared_socket, "0.0.0.0", 5353, True)
        client = self.udp_client()
        client.sendto(b"question", (router.HOST, 53))
        packet, source = upstream.recvfrom(4096)
        self.assertEqual(udp.unseal(case.PASSWORD, packet), ((router.HOST, 53), b"question"))
        for host in (router.LAN, router.WAN, "127.0.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255"):
            upstream.sendto(udp.seal(case.PASSWORD, (host, 5353), b"posing"), source)
        upstream.sendto(udp.seal(case.PASSWORD, (router.HOST6, 5353), b"another family"), source)
        upstream.sendto(udp.seal(case.PASSWORD, ("name.test", 5353), b"a name"), source)
        upstream.sendto(udp.seal(case.PASSWORD, (router.HOST, 0), b"no port"), source)
        upstream.sendto(udp.seal(case.PASSWORD, (router.HOST, 53), b"answer"), source)
        self.assertEqual(client.recvfrom(100), (b"answer", (router.HOST, 53)))
        redir.await_log("[udp] ss-redir does not support domain name")
        with rig.inside(rig.client):
            asking = udp.make_socket(router.CLIENT)
        self.addCleanup(asking.close)
        asking.sendto(b"for the service", (router.LAN, 5353))
        self.assertEqual(service.recvfrom(100)[0], b"for the service")


class Interop(RouterCase):
    """With shadowsocks-libev, both ways round."""

    CLASSIC = os.environ.get("SS_TEST_CLASSIC", "/usr/bin")

    def classic(self, name, *words, **how):
        path = os.path.join(self.CLASSIC, name)
        if not os.access(path, os.X_OK):
            raise unittest.SkipTest("no %s of shadowsocks-libev" % name)
        started = programs.Program([path, *words], **how)
        self.addCleanup(started.kill)
        return started

    def check(self):
        self.rules("nft", "-u")
        self.assert_downloads(router.HOST, self.tcp_target(router.checksum_of(BODY)))
        sent = os.urandom(BODY)
        target = self.tcp_target(
            lambda conn: conn.sendall(hashlib.sha256(targets.read_exactly(conn, BODY)).digest()))
        conn = self.dial((router.HOST, target.port))
        conn.sendall(sent)
        self.assertEqual(socks.receive(conn, 32), hashlib.sha256(sent).digest())
        target, client = self.udp_target(), self.udp_client()
        for number in range(30):
            self.assert_echoes_from(client, (router.host(number), target.port), os.urandom(1000))

    def test_our_redir_their_server(self):
        for method in ("aes-256-gcm", "chacha20-ietf-poly1305"):
            server = self.classic("ss-server", "-s", router.SERVER, "-p", "8388", "-k", case.PASSWORD,
                                  "-m", method, "-u", prepare=rig.prepare(rig.internet))
            wait.until(lambda: "listening" in server.log, 10, "ss-server")
            redir = self.redir("-u", "-m", method)
            self.check()
            redir.stop()
            server.stop()

    def test_their_redir_our_server(self):
        self.internet()
        redir = self.classic("ss-redir", "-s", router.SERVER, "-p", "8388", "-l", self.port, "-k",
                             case.PASSWORD, "-m", settings.method, "-u", "-b", "0.0.0.0")
        wait.until(lambda: "UDP relay enabled" in redir.log, 10, "ss-redir")
        self.check()


if __name__ == "__main__":
    case.main()
