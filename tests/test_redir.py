"""ss-redir and ss-nat on a router: R34 to R37, R39, R84.

    python3 tests/test_redir.py --bin build/bin --workers 2 [unittest's own options and names]

Three network namespaces (client, router, internet); rules by iptables and by nftables, IPv4 and IPv6,
TCP and UDP. Needs root, or the right to namespaces of its own.
"""

import contextlib
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import case, dns, netns, plugins, ports, proc, programs, router  # noqa: E402
from support import socks, targets, udp, wait  # noqa: E402
from support.case import settings  # noqa: E402

rig = None
KINDS = ("iptables", "nft")
BODY = 8 << 20
ANSWERS_MAX = 256

# TPROXY for TCP and UDP in both families, of what comes from the LAN, but for the reserved ranges.
TPROXY = """
table ip t {
	chain pre {
		type filter hook prerouting priority mangle; policy accept;
		iifname "lan0" ip daddr 45.1.0.0/16 meta l4proto { tcp, udp } tproxy to %(on4)s:%(port)d meta mark set 1 accept
	}
}
table ip6 t {
	chain pre {
		type filter hook prerouting priority mangle; policy accept;
		iifname "lan0" ip6 daddr 2a0b::/32 meta l4proto { tcp, udp } tproxy to %(on6)s:%(port)d meta mark set 1 accept
	}
}
"""
# The same by NAT for TCP, and for the router's own.
REDIRECT_ALL = """
table ip r {
	chain pre {
		type nat hook prerouting priority dstnat; policy accept;
		iifname "lan0" meta l4proto tcp redirect to :%(port)d
	}
	chain out {
		type nat hook output priority -100; policy accept;
		ip daddr != 127.0.0.0/8 meta l4proto tcp redirect to :%(port)d
	}
}
"""


def setUpModule():
    global rig
    rig = router.Router()
    udp.allow_descriptors(4096)


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise unittest.SkipTest("no %s on this machine" % tool)


def nat(*words, check=True):
    done = subprocess.run([programs.find(settings.bin, "ss-nat"), *map(str, words)],
                          capture_output=True, text=True)
    if check and done.returncode != 0:
        raise AssertionError("ss-nat %s: %d\n%s" % (words, done.returncode, done.stderr))
    return done


class RouterCase(case.Case):
    def setUp(self):
        super().setUp()
        self.addCleanup(rig.flush)
        self.port = ports.free_port()

    def at(self, namespace, make, *arguments, **how):
        """Something of the test's that is made in a namespace, and closed at the end."""
        with rig.inside(namespace):
            made = make(*arguments, **how)
        self.addCleanup(made.close)
        return made

    def internet(self, *arguments):
        """ss-server in the internet, for both families."""
        server = self.program("ss-server", "-s", router.SERVER, "-s", router.SERVER6, "-p", "8388",
                              "-k", case.PASSWORD, "-m", settings.method, "-u",
                              "-b", router.SERVER_SOURCE, "-b", router.SERVER_SOURCE6, *arguments,
                              prepare=rig.prepare(rig.internet))
        server.port = 8388
        server.await_log("listening at", count=4)
        return server

    def redir(self, *arguments, listen=("-b", "0.0.0.0", "-b", "::"), server=router.SERVER, **how):
        started = self.program("ss-redir", "-s", server, "-p", "8388", "-l", self.port, "-k",
                               case.PASSWORD, "-m", settings.method, *listen, *arguments, **how)
        started.port = self.port
        started.await_log("running from root user" if "-a" not in arguments else "listening at")
        if "-U" not in arguments:
            started.await_listening(self.port)
        if "-u" in arguments or "-U" in arguments:
            wait.until(lambda: self.port in proc.udp_ports(started.pid), 10, "its UDP port")
        return started

    def rules(self, kind, *words):
        """Rules of ss-nat of one kind, for both families."""
        if kind == "iptables":
            need("iptables", "ip6tables", "ipset")
        else:
            need("nft")
        nat(*(["-N"] if kind == "nft" else []), "-s", router.SERVER, "-s", router.SERVER6, "-l",
            self.port, "-I", router.LAN_NAME, *words)

    def tproxy_rules(self, on4="", on6="", versions=("", "-6 ")):
        need("nft")
        rig.nft(TPROXY % {"port": self.port, "on4": on4, "on6": on6})
        for version in versions:
            rig.ip(rig.router, version + "rule add fwmark 1/1 table 100")
            rig.ip(rig.router, "%sroute add local %s dev lo table 100" % (
                version, "::/0" if version else "0.0.0.0/0"))

    def tcp_target(self, handler, ipv6=False, **how):
        return self.at(rig.internet, targets.Target, handler, host="::" if ipv6 else "0.0.0.0", **how)

    def udp_target(self, handler=udp.echo, ipv6=False):
        return self.at(rig.internet, router.AnyHost, handler, ipv6)

    def dial(self, address, namespace=None):
        with rig.inside(rig.client if namespace is None else namespace):
            conn = socket.create_connection(address, 10)
        self.addCleanup(conn.close)
        return conn

    def udp_client(self, ipv6=False, namespace=None, host=None):
        if host is None:
            host = router.CLIENT6 if ipv6 else router.CLIENT
        return self.at(rig.client if namespace is None else namespace, udp.make_socket, host)

    def assert_downloads(self, host, target, namespace=None):
        """BODY bytes with their checksum, by way of the server."""
        conn = self.dial((host, target.port), namespace)
        data = socks.receive_all(conn)
        self.assertEqual(len(data), BODY + 32)
        self.assertEqual(hashlib.sha256(data[:-32]).digest(), data[-32:])
        conn.close()

    def assert_seen_from(self, host, source, namespace=None):
        """Whom a target of the internet sees."""
        target = self.tcp_target(lambda conn: conn.sendall(conn.getpeername()[0].encode()),
                                 ":" in host)
        conn = self.dial((host, target.port), namespace)
        seen = socks.receive_all(conn).decode()
        self.assertEqual(seen.replace("::ffff:", ""), source)

    def assert_echoes_from(self, client, address, payload=b"a datagram"):
        client.sendto(payload, address)
        data, source = client.recvfrom(1 << 16)
        self.assertEqual((data, source[:2]), (payload, address))

    def await_echo(self, client, address, seconds=60):
        """The same, asked again while it is lost."""
        client.settimeout(1)

        def answered():
            client.sendto(b"anybody?", address)
            try:
                return client.recvfrom(100)
            except TimeoutError:
                return None

        data, source = wait.until(answered, seconds, "an answer")
        self.assertEqual((data, source[:2]), (b"anybody?", address))


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


# Counts what leaves the router for the server, by its mark and by its DSCP.
COUNTERS = """
table ip count {
	counter marked {
	}
	counter unmarked {
	}
	counter ef {
	}
	counter plain {
	}
	counter answers {
	}
	chain out {
		type filter hook output priority 0; policy accept;
		oifname "lan0" ip saddr 45.1.0.0/16 meta l4proto udp meta mark 0x2a counter name answers
		ip daddr 45.0.0.2 meta mark 0x2a counter name marked
		ip daddr 45.0.0.2 meta mark 0 counter name unmarked
		ip daddr 45.0.0.2 ip dscp ef counter name ef
		ip daddr 45.0.0.2 ip dscp cs0 counter name plain
	}
}
"""
MARK_ONLY = """
table ip r {
	chain out {
		type nat hook output priority -100; policy accept;
		meta mark != 0x2a oifname "wan0" meta l4proto tcp redirect to :%(port)d
	}
}
"""
# The router's own datagrams, sent round over the loopback interface to be redirected.
OWN_UDP = """
table ip o {
	chain out {
		type route hook output priority mangle; policy accept;
		oifname "wan0" meta l4proto udp meta mark set 1
	}
	chain pre {
		type filter hook prerouting priority mangle; policy accept;
		iifname "lo" meta mark 1 meta l4proto udp tproxy to :%(port)d accept
	}
}
"""


class Loops(RouterCase):
    """What would come back is refused, with one clear line (R34)."""

    TCP = "a connection to our own port"
    UDP = "[udp] a datagram to our own port"
    OWN = "traffic of this machine to the server"

    def assert_refused(self, namespace, host, port=None):
        conn = self.dial((host, port or self.port), namespace)
        with contextlib.suppress(ConnectionError):
            conn.sendall(b"anybody?")
            self.assertEqual(socks.receive_all(conn), b"")
        conn.close()

    def assert_quiet(self, program):
        """Nothing is open, and nothing goes round."""
        program.await_no_sessions()
        self.assertLess(proc.cpu_share(program.pid, 0.5), 0.2)

    def test_own_ports(self):
        server = self.internet()
        for words in ([], ["-T"]):
            with self.subTest(words=words):
                redir = self.redir(*words)
                for namespace, hosts in (
                        (rig.client, (router.LAN, router.LAN6, router.WAN, router.WAN6)),
                        (rig.router, ("127.0.0.1", "127.9.9.9", "::1", router.LAN, router.WAN,
                                      router.LAN6))):
                    for host in hosts:
                        self.assert_refused(namespace, host)
                self.assertEqual(len(redir.log_lines(self.TCP)), 1, redir.log)
                self.assert_quiet(redir)
                redir.stop()
        self.assertEqual(server.traffic()["total"], 0)

    def test_own_ports_by_the_rules(self):
        """The same with the firewall's records: rules that redirect what is for the router."""
        self.internet()
        redir = self.redir()
        need("nft")
        rig.nft(REDIRECT_ALL % {"port": self.port})
        for host in (router.LAN, router.WAN):
            self.assert_refused(rig.client, host)
        self.assert_refused(rig.router, router.LAN)
        self.assertEqual(len(redir.log_lines(self.TCP)), 1, redir.log)
        self.assert_quiet(redir)

    def test_another_listener_is_own_too(self):
        """Two ports of one program: a connection that is redirected from the one to the other."""
        self.internet()
        other = ports.free_port()
        path = os.path.join(programs.scratch_directory(), "c.json")
        with open(path, "w") as file:
            file.write('{"dscp": {"%d": "EF"}}' % other)
        redir = self.redir("-c", path)
        redir.await_listening(other)
        need("nft")
        rig.nft(REDIRECT_ALL % {"port": self.port})
        self.assert_refused(rig.client, router.WAN, other)
        self.assertEqual(len(redir.log_lines(self.TCP)), 1, redir.log)

    def test_datagrams_to_the_own_port(self):
        self.internet()
        redir = self.redir("-u")
        client, own = self.udp_client(), self.udp_client(namespace=rig.router, host="127.0.0.1")
        for _ in range(20):
            client.sendto(b"straight", (router.LAN, self.port))
            client.sendto(b"straight", (router.WAN, self.port))
            own.sendto(b"straight", ("127.0.0.1", self.port))
        redir.await_log(self.UDP)
        self.tproxy_rules()
        target = self.udp_target()
        self.assert_echoes_from(client, (router.HOST, target.port))
        self.assertEqual(len(redir.log_lines(self.UDP)), 1, redir.log)
        self.assertEqual(associations(redir), 1)

    def test_the_own_connection_comes_back(self):
        """Rules that leave the server in: the one connection to it is refused, and no other is
        made."""
        for server in (router.SERVER, "proxy.test"):
            with self.subTest(server=server):
                upstream = self.internet()
                if server == "proxy.test":
                    self.add_host("%s proxy.test" % router.SERVER)
                redir = self.redir(server=server)
                rig.nft(REDIRECT_ALL % {"port": self.port})
                for _ in range(10):
                    self.assert_refused(rig.client, router.HOST, 80)
                self.assert_refused(rig.router, router.HOST, 80)
                self.assertEqual(len(redir.log_lines(self.OWN)), 1, redir.log)
                # Each worker may have to see the server's address once.
                self.assertLessEqual(redir.traffic()["total"], 22 + settings.workers)
                self.assert_quiet(redir)
                # A client of the LAN may use the server itself.
                conn = self.dial((router.SERVER, 8388))
                conn.close()
                rig.flush()
                redir.stop()
                upstream.stop()

    def test_the_connection_of_a_plugin_comes_back(self):
        """A plugin dials the server itself, by a name that it looks up itself."""
        upstream = self.internet()
        self.add_host("%s proxy.test" % router.SERVER)
        for server in (router.SERVER, "proxy.test"):
            with self.subTest(server=server):
                plugin = plugins.Fixture("client")
                redir = self.redir("--plugin", plugin.path, server=server, env=plugin.env)
                plugin.await_relaying()
                echo = self.tcp_target(targets.echo)
                self.rules("nft")
                conn = self.dial((router.HOST, echo.port))
                self.assert_echoes(conn)
                conn.close()
                nat("-f")
                rig.nft(REDIRECT_ALL % {"port": self.port})
                for _ in range(10):
                    self.assert_refused(rig.client, router.HOST, echo.port)
                self.assertEqual(len(redir.log_lines(self.OWN)), 1, redir.log)
                # Each worker may have to look the name up once.
                self.assertLessEqual(redir.traffic()["total"], 22 + 20 * settings.workers)
                self.assert_quiet(redir)
                rig.flush()
                redir.stop()
        self.assertTrue(upstream.alive)

    def add_host(self, line):
        """A line in /etc/hosts, in a mount namespace of this process."""
        if netns._libc.unshare(0x00020000) != 0:
            raise unittest.SkipTest("no right to make a mount namespace")
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        path = os.path.join(programs.scratch_directory(), "hosts")
        with open(path, "w") as file:
            file.write("127.0.0.1 localhost\n%s\n" % line)
        subprocess.run(["mount", "--bind", path, "/etc/hosts"], check=True)
        self.addCleanup(subprocess.run, ["umount", "/etc/hosts"])

    def test_the_own_datagrams_come_back(self):
        server = self.internet()
        redir = self.redir("-u")
        rig.ip(rig.router, "rule add fwmark 1/1 table 100")
        rig.ip(rig.router, "route add local 0.0.0.0/0 dev lo table 100")
        self.tproxy_client_rules()
        rig.nft(OWN_UDP % {"port": self.port})
        client = self.udp_client()
        for _ in range(20):
            client.sendto(b"question", (router.HOST, 53))
        redir.await_log(self.OWN)
        self.assertEqual(len(redir.log_lines(self.OWN)), 1, redir.log)
        self.assertLess(proc.cpu_share(redir.pid, 0.5), 0.2)
        self.assertLessEqual(associations(redir), 2)
        self.assertTrue(server.alive)

    def tproxy_client_rules(self):
        rig.nft("""
table ip t {
	chain pre {
		type filter hook prerouting priority mangle; policy accept;
		iifname "lan0" ip daddr 45.1.0.0/16 meta l4proto udp tproxy to :%d meta mark set 1 accept
	}
}
""" % self.port)

    def test_a_mark_keeps_it_out(self):
        """--outbound-fwmark: rules that tell by the mark need no address of the server; UDP too."""
        self.internet()
        for option in ("--outbound-fwmark", "--fwmark"):
            redir = self.redir("-u", option, "0x2a")
            rig.nft(MARK_ONLY % {"port": self.port})
            rig.nft(COUNTERS)
            self.tproxy_rules()
            self.assert_seen_from(router.HOST, router.SERVER_SOURCE, rig.router)
            marked = rig.nft_counter("ip count", "marked")
            self.assertGreater(marked, 3)
            target = self.udp_target()
            self.assert_echoes_from(self.udp_client(), (router.HOST, target.port))
            self.assertGreater(rig.nft_counter("ip count", "marked"), marked)
            self.assertEqual(rig.nft_counter("ip count", "answers"), 1)
            self.assertEqual(rig.nft_counter("ip count", "unmarked"), 0)
            self.assertEqual(redir.log_lines(self.OWN), [])
            rig.flush()
            redir.stop()

    def test_ss_nat_leaves_a_mark_out(self):
        """-m: a server that the rules do not know."""
        self.internet()
        redir = self.redir("--outbound-fwmark", "42")
        for kind in KINDS:
            with self.subTest(kind):
                need(*(["nft"] if kind == "nft" else ["iptables", "ipset"]))
                nat(*(["-N"] if kind == "nft" else []), "-s", "45.0.0.9", "-l", self.port, "-I",
                    router.LAN_NAME, "-o", "-m", "0x2a")
                self.assert_seen_from(router.HOST, router.SERVER_SOURCE, rig.router)
                nat("-f")
        self.assertEqual(redir.log_lines(self.OWN), [])


class Sockets(RouterCase):
    """R39, R84: options of the sockets, and the user."""

    def test_another_user(self):
        """-a: answers go on, from low ports too, and every other right is gone."""
        if os.geteuid() != 0 or in_user_namespace():
            raise unittest.SkipTest("not root")
        self.internet()
        self.port = 443
        redir = self.redir("-u", "-T", "-a", "nobody", "--outbound-fwmark", "42")
        fields = proc.status(redir.pid)
        self.assertEqual(fields["Uid"].split(), ["65534"] * 4)
        held = int(fields["CapEff"], 16)
        self.assertEqual(held & ~(1 << 10 | 1 << 12 | 1 << 13), 0, fields["CapEff"])
        self.assertEqual([int(fields[name], 16) for name in ("CapPrm", "CapInh", "CapAmb")],
                         [held, 0, 0])
        for thread in os.listdir("/proc/%d/task" % redir.pid):
            with open("/proc/%d/task/%s/status" % (redir.pid, thread)) as file:
                self.assertIn("CapEff:\t%016x" % held, file.read())
        self.tproxy_rules()
        rig.nft(COUNTERS)
        with rig.inside(rig.internet):
            low = router.AnyHost(port=53)
        self.addCleanup(low.close)
        self.assert_echoes_from(self.udp_client(), (router.HOST, 53))
        self.assert_downloads(router.HOST, self.tcp_target(router.checksum_of(BODY)))
        self.assertEqual(rig.nft_counter("ip count", "unmarked"), 0)

    def test_a_service_unit(self):
        """R84: an ordinary user with the capabilities that the unit gives, ambient, and no others."""
        need("setpriv")
        if os.geteuid() != 0 or in_user_namespace():
            raise unittest.SkipTest("not root")
        self.internet()
        names = "+net_admin,+net_bind_service"
        path = programs.find(settings.bin, "ss-redir")
        redir = programs.Program(
            ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs",
             "--bounding-set=-all," + names, "--inh-caps=-all," + names,
             "--ambient-caps=-all," + names, path, "--workers", settings.workers, "-s",
             router.SERVER, "-p", "8388", "-l", "443", "-k", case.PASSWORD, "-m", settings.method,
             "-u", "-T", "-b", "::", "--outbound-fwmark", "42"])
        self._programs.append(redir)
        redir.await_listening(443)
        self.port = 443
        self.tproxy_rules()
        rig.nft(COUNTERS)
        with rig.inside(rig.internet):
            low = router.AnyHost(port=53)
        self.addCleanup(low.close)
        self.assert_echoes_from(self.udp_client(), (router.HOST, 53))
        self.assert_downloads(router.HOST, self.tcp_target(router.checksum_of(BODY)))
        self.assertEqual(rig.nft_counter("ip count", "unmarked"), 0)

    def test_marks_of_all_programs(self):
        """--outbound-fwmark in ss-local, ss-tunnel and ss-server, questions to name servers included."""
        self.internet()
        need("nft")
        rig.nft(COUNTERS.replace("ip daddr 45.0.0.2", "ip daddr 45.0.0.0/15"))
        echo, target = self.tcp_target(targets.echo), self.udp_target()
        mark = ["--outbound-fwmark", "42", "-u"]
        local = self.local_at(router.SERVER, *mark)
        with contextlib.closing(socks.connect(local.port, (router.HOST, echo.port))) as conn:
            self.assert_echoes(conn)
        associate = self.at(rig.router, udp.Associate, local.port)
        address = (router.HOST, target.port)
        self.assertEqual(associate.exchange(address, b"x"), (address, b"x"))
        self.assertGreater(rig.nft_counter("ip count", "marked"), 4)

        asked = self.udp_target(lambda data, source: None)
        server = self.server(*mark, "-d", "%s:%d" % (router.HOST, asked.port))
        direct = self.local(server)
        for host in (router.HOST, "name.test"):
            with contextlib.suppress(OSError):
                conn = socks.connect(direct.port, (host, echo.port))
                self.addCleanup(conn.close)
                conn.sendall(b"x")
                if host == router.HOST:
                    self.assertEqual(conn.recv(1), b"x")
        wait.until(lambda: asked.count, 10, "a question")
        self.assertEqual(rig.nft_counter("ip count", "unmarked"), 0)

    def local_at(self, host, *words):
        port = ports.free_port()
        started = self.program("ss-local", "-s", host, "-p", "8388", "-l", port, "-k", case.PASSWORD,
                               "-m", settings.method, *words)
        started.port = port
        return started.await_listening(port)

    def test_dscp(self):
        """A port of `dscp` marks what goes to the server; the main port does not."""
        self.internet()
        other = ports.free_port()
        path = os.path.join(programs.scratch_directory(), "c.json")
        with open(path, "w") as file:
            file.write('{"dscp": {"%d": "EF"}}' % other)
        redir = self.redir("-u", "-c", path)
        redir.await_log("listening at 0.0.0.0:%d (TOS 0xb8)" % other)
        redir.await_log("listening at :::%d (TOS 0xb8)" % other)
        rig.nft(COUNTERS)
        self.rules("nft", "-u")
        self.assert_seen_from(router.HOST, router.SERVER_SOURCE)
        target = self.udp_target()
        self.assert_echoes_from(self.udp_client(), (router.HOST, target.port))
        self.assertEqual(rig.nft_counter("ip count", "ef"), 0)
        plain = rig.nft_counter("ip count", "plain")
        self.assertGreater(plain, 3)
        nat("-f")
        nat("-N", "-s", router.SERVER, "-l", other, "-I", router.LAN_NAME, "-u")
        self.assert_seen_from(router.HOST, router.SERVER_SOURCE)
        self.assert_echoes_from(self.udp_client(), (router.HOST, target.port))
        # What leaves with the last FINs of the first connections is plain still.
        self.assertGreater(rig.nft_counter("ip count", "ef"), 3)

    def test_options_are_taken(self):
        """Every option that the other clients have works here: traffic flows with each."""
        self.internet()
        self.rules("nft", "-u")
        echo, target = self.tcp_target(targets.echo), self.udp_target()
        for words in (["--fast-open"], ["--mptcp"], ["--no-delay"], ["--reuse-port"], ["-6"],
                      ["--mtu", "1400"], ["-i", "wan0"], ["-n", "4096"], ["-t", "5"],
                      ["--tcp-incoming-sndbuf", "65536", "--tcp-incoming-rcvbuf", "65536",
                       "--tcp-outgoing-sndbuf", "65536", "--tcp-outgoing-rcvbuf", "65536"],
                      ["--outbound-bind-addr", router.WAN], ["--max-connections", "10"]):
            with self.subTest(words=words):
                redir = self.redir("-u", *words)
                self.assert_echoes(self.dial((router.HOST, echo.port)))
                self.assert_echoes_from(self.udp_client(), (router.HOST, target.port))
                redir.stop()

    def test_rules_that_look_for_sockets_first(self):
        """Rules that send datagrams to a transparent socket that fits, before TPROXY: the socket
        that answered takes them, and they are relayed all the same."""
        self.internet()
        self.redir("-u")
        self.tproxy_rules()
        rig.nft("""
table ip divert {
	chain pre {
		type filter hook prerouting priority -200; policy accept;
		iifname "lan0" meta l4proto udp socket transparent 1 meta mark set 1 accept
	}
}
""")
        rig.nft("flush chain ip t pre\n")
        rig.nft("""
table ip t {
	chain pre {
		iifname "lan0" meta mark != 1 ip daddr 45.1.0.0/16 meta l4proto udp tproxy to :%d meta mark set 1 accept
	}
}
""" % self.port)
        target = self.udp_target()
        client = self.udp_client()
        for number in range(5):
            self.assert_echoes_from(client, (router.HOST, target.port), b"%d" % number)
        self.assertEqual(target.count, 5)

    def test_killed_and_started_again(self):
        """kill -9 leaves nothing behind that would be in the way."""
        self.internet()
        self.rules("nft", "-u", "-6")
        target, echo = self.udp_target(), self.tcp_target(targets.echo)
        for _ in range(3):
            redir = self.redir("-u")
            self.assert_echoes_from(self.udp_client(), (router.HOST, target.port))
            conn = self.dial((router.HOST, echo.port))
            self.assert_echoes(conn)
            redir.kill()
            self._programs.remove(redir)

    def test_reload(self):
        """SIGHUP: another server, and a port more; what is under way goes on as it was."""
        self.internet()
        rig.ip(rig.internet, "address add 45.0.0.4/24 dev eth0")
        self.addCleanup(rig.ip, rig.internet, "address del 45.0.0.4/24 dev eth0")
        second = self.program("ss-server", "-s", router.SERVER, "-p", "8389", "-k", "another", "-m",
                              "aes-128-gcm", "-u", "-b", "45.0.0.4",
                              prepare=rig.prepare(rig.internet))
        second.await_log("listening at", count=2)
        other = ports.free_port()
        path = os.path.join(programs.scratch_directory(), "c.json")

        def write(port, password, method, dscp):
            with open(path, "w") as file:
                json.dump({"server": router.SERVER, "server_port": port, "password": password,
                           "method": method, "local_address": "::", "local_port": self.port,
                           "mode": "tcp_and_udp", "dscp": dscp}, file)

        write(8388, case.PASSWORD, settings.method, {})
        redir = self.program("ss-redir", "-c", path)
        redir.await_listening(self.port)
        self.rules("nft", "-u")
        echo, target = self.tcp_target(targets.echo), self.udp_target()
        held = self.dial((router.HOST, echo.port))
        self.assert_echoes(held)
        self.assert_echoes_from(self.udp_client(), (router.HOST, target.port))
        self.assertEqual(target.sources, {router.SERVER_SOURCE})

        write(8389, "another", "aes-128-gcm", {str(other): "EF"})
        redir.process.send_signal(signal.SIGHUP)
        redir.await_log("(TOS 0xb8)")
        wait.until(lambda: other in proc.listening_ports(redir.pid), 10, "the new port")
        self.assert_echoes(held)
        self.assert_seen_from(router.HOST, "45.0.0.4")
        target.sources.clear()
        self.await_echo(self.udp_client(), (router.HOST, target.port))
        self.assertEqual(target.sources, {"45.0.0.4"})
        self.rules("nft", "-u", "-l", other)
        self.assert_seen_from(router.HOST, "45.0.0.4")
        # The new port is our own too.
        conn = self.dial((router.LAN, other))
        with contextlib.suppress(ConnectionError):
            self.assertEqual(socks.receive_all(conn), b"")
        redir.await_log("a connection to our own port")

    def test_few_descriptors(self):
        """The sockets that answer are within the budget: with 128 descriptors it goes on."""
        self.internet()
        redir = self.redir("-u", "-n", "0", descriptors=128)
        self.rules("nft", "-u")
        target, echo = self.udp_target(), self.tcp_target(targets.echo)
        clients = [self.udp_client() for _ in range(40)]
        for number in range(400):
            self.assert_echoes_from(clients[number % 40], (router.host(number), target.port))
            self.assertLessEqual(proc.descriptors(redir.pid), 128)
        self.assert_echoes(self.dial((router.HOST, echo.port)))
        self.assertNotIn("Too many open files", redir.log)


def in_user_namespace():
    with open("/proc/self/uid_map") as file:
        return file.read().split() != ["0", "0", "4294967295"]


class Script(RouterCase):
    """ss-nat by itself."""

    OTHERS = """
table inet mine {
	set ss_spec_like {
		type ipv4_addr
		elements = { 192.0.2.7 }
	}
	chain in {
		type filter hook input priority 0; policy accept;
		ip saddr @ss_spec_like tcp dport 22 accept
	}
}
"""

    def others(self):
        """Rules that are not the script's."""
        need("nft")
        rig.nft(self.OTHERS)
        if shutil.which("iptables"):
            for words in ("iptables -t nat -A PREROUTING -p tcp --dport 80 -m comment --comment "
                          "SS_SPEC_like -j REDIRECT --to-ports 81",
                          "iptables -t mangle -N SS_MINE", "iptables -t mangle -A SS_MINE -j RETURN",
                          "iptables -t mangle -A PREROUTING -i lan0 -j SS_MINE",
                          "ip6tables -t nat -A OUTPUT -p tcp --dport 80 -j ACCEPT"):
                subprocess.run(words.split(), check=True, capture_output=True)

    LINES = (["-u", "-o", "-6"], [], ["-U", "-S", "45.0.0.8", "-L", "1090"],
             ["-u", "-a", "w192.168.7.2 fd77::2", "-b", "45.1.0.0/16 2a0b::/32", "-w", "45.1.2.0/24",
              "-6"])

    def test_start_and_stop(self):
        """Twice is as once, a stop leaves the rules as they were, and a second stop too."""
        self.others()
        before = rig.rules()
        for kind in KINDS:
            for words in self.LINES:
                with self.subTest(kind=kind, words=words):
                    self.rules(kind, *words)
                    once = rig.rules()
                    self.assertNotEqual(once, before)
                    self.rules(kind, *words)
                    self.assertEqual(rig.rules(), once)
                    nat("-f")
                    self.assertEqual(rig.rules(), before)
                    nat("-f")
                    self.assertEqual(rig.rules(), before)

    def test_either_takes_the_other_away(self):
        self.others()
        before = rig.rules()
        for first, second in (("iptables", "nft"), ("nft", "iptables")):
            self.rules(second, "-u", "-6")
            alone = rig.rules()
            nat("-f")
            self.rules(first, "-u", "-o", "-6")
            self.rules(second, "-u", "-6")
            self.assertEqual(rig.rules(), alone)
            nat("-f")
            self.assertEqual(rig.rules(), before)

    def test_a_dry_run(self):
        """-n changes nothing, and what it shows does the same."""
        self.others()
        before = rig.rules()
        for kind in KINDS:
            for words in self.LINES:
                with self.subTest(kind=kind, words=words):
                    kinds = ["-N"] if kind == "nft" else []
                    line = [*kinds, "-s", router.SERVER, "-l", self.port, "-I", router.LAN_NAME]
                    shown = nat("-n", *line, *words).stdout
                    self.assertEqual(rig.rules(), before)
                    subprocess.run(["sh"], input=shown, text=True, check=True, capture_output=True)
                    by_hand = rig.rules()
                    nat("-f")
                    nat(*line, *words)
                    self.assertEqual(rig.rules(), by_hand)
                    self.assertIn("SS_SPEC" if kind == "iptables" else "ss_spec",
                                  nat("-n", "-f").stdout)
                    self.assertEqual(rig.rules(), by_hand)
                    nat("-f")

    def test_failures_leave_nothing(self):
        """Whatever goes wrong, and wherever: status, a line, and the rules as before."""
        self.others()
        before = rig.rules()
        base = ["-s", router.SERVER, "-l", self.port, "-I", router.LAN_NAME]
        bad = [["-s", router.SERVER, "-l", "0"], ["-s", router.SERVER, "-l", "70000"],
               ["-s", router.SERVER, "-l", "10x"], ["-s", "no.such.name.test", "-l", "1080"],
               [*base, "-a", "192.168.7.2"], [*base, "-a", "wx"], [*base, "-b", "1.2.3"],
               [*base, "-w", "1.2.3.4; flush ruleset"], [*base, "-i", "/nonexistent"],
               [*base, "-N", "-e", "--dport 80"], [*base, "-I", "a b"], [*base, "-m", "x"],
               [*base, "-U", "-L", "1090"], [*base, "-U", "-S", "45.0.0.8"],
               [*base, "-N", "-b", "1.2.3.4/40"], [*base, "-N", "-u", "-6", "-b", "::/200"]]
        if shutil.which("iptables") and shutil.which("ipset"):
            bad += [[*base, "-e", "--nonsense"], [*base, "-b", "1.2.3.4/40"],
                    [*base, "-u", "-6", "-b", "::/200"], [*base, "-u", "-e", "-m nonsense"]]
        for words in bad:
            with self.subTest(words=words):
                done = nat(*words, check=False)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("ss-nat: ", done.stderr)
                self.assertEqual(rig.rules(), before)
        for words in ([], ["-s", router.SERVER], ["-l", "1080"]):
            done = nat(*words, check=False)
            self.assertEqual((done.returncode, done.stdout.split()[0]), (2, "Usage:"))
        self.assertEqual(nat("-h").stdout.split()[0], "Usage:")

    def test_a_step_that_fails(self):
        """Each command in turn fails: what was made before is taken away."""
        self.others()
        before = rig.rules()
        folder = programs.scratch_directory()
        for kind in KINDS:
            tools = ["ip"] + (["nft"] if kind == "nft" else ["iptables", "ip6tables", "ipset"])
            need(*tools)
            for tool in tools:
                with open(os.path.join(folder, tool), "w") as file:
                    # The n-th call that makes something fails; looking and taking away work.
                    file.write('#!/bin/sh\ncase " $* " in *" -X "*|*" -F "*|*" -D "*|*" del "*|*" list "*|'
                               '*" delete "*) exec %s "$@";; esac\n'
                               'n=$(cat "$COUNT"); echo $((n - 1)) >"$COUNT"\n'
                               '[ "$n" -ne 0 ] || { echo broken >&2; exit 3; }\nexec %s "$@"\n'
                               % (shutil.which(tool), shutil.which(tool)))
                os.chmod(os.path.join(folder, tool), 0o755)
            count = os.path.join(folder, "count")
            for number in range(60):
                with open(count, "w") as file:
                    file.write("%d\n" % number)
                words = (["-N"] if kind == "nft" else []) + [
                    "-s", router.SERVER, "-l", "1080", "-I", router.LAN_NAME, "-u", "-o", "-6"]
                done = subprocess.run(
                    [programs.find(settings.bin, "ss-nat"), *words], capture_output=True, text=True,
                    env={**os.environ, "PATH": folder + ":" + os.environ["PATH"], "COUNT": count})
                if done.returncode == 0:
                    break
                self.assertEqual((done.returncode, rig.rules()), (1, before), done.stderr)
            self.assertGreater(number, 5)
            nat("-f")
            self.assertEqual(rig.rules(), before)
            for tool in tools:
                os.unlink(os.path.join(folder, tool))

    def test_large_lists(self):
        """More networks than a set holds by itself."""
        listed = os.path.join(programs.scratch_directory(), "list")
        with open(listed, "w") as file:
            for number in range(70000):
                file.write("46.%d.%d.%d/31\n" % (number >> 15, number >> 7 & 255, number * 2 & 255))
        before = rig.rules()
        for kind in KINDS:
            self.rules(kind, "-i", listed)
            nat("-f")
            self.assertEqual(rig.rules(), before)

    def test_the_choice_of_tools(self):
        """iptables where it and ipset are, nft otherwise; words of -e are for iptables."""
        folder = programs.scratch_directory()
        for tool in ("sh", "awk", "sed", "cat", "grep", "id", "sort", "tr", "nft", "ip"):
            found = shutil.which(tool)
            if found:
                os.symlink(found, os.path.join(folder, tool))
        script = programs.find(settings.bin, "ss-nat")
        env = {**os.environ, "PATH": folder}
        line = [script, "-n", "-s", "45.0.0.2", "-l", "1080"]
        done = subprocess.run(line, capture_output=True, text=True, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("nft -f -", done.stdout)
        done = subprocess.run([*line, "-e", "--dport 80"], capture_output=True, text=True, env=env)
        self.assertEqual(done.returncode, 1)
        need("iptables", "ipset")
        self.assertIn("iptables -w -t nat", nat(*line[1:]).stdout)
        self.assertIn("nft -f -", nat(*line[1:], "-N").stdout)


    def test_the_include_file(self):
        """OpenWrt's older firewall drops all rules when it is loaded again, and runs this."""
        need("iptables", "ip6tables", "ipset")
        folder = programs.scratch_directory()
        include = os.path.join(folder, "include")
        with open(os.path.join(folder, "uci"), "w") as file:
            file.write('#!/bin/sh\n[ "$*" = "-q get firewall.shadowsocks.path" ] && echo %s\n'
                       % include)
        os.chmod(os.path.join(folder, "uci"), 0o755)
        env = {**os.environ, "PATH": folder + ":" + os.environ["PATH"]}
        script = programs.find(settings.bin, "ss-nat")
        words = ["-s", router.SERVER, "-l", "1080", "-I", router.LAN_NAME, "-u", "-o", "-6", "-a",
                 "w192.168.7.2"]
        subprocess.run([script, *words], env=env, check=True)
        whole = rig.rules()
        for tool in ("iptables", "ip6tables"):
            for table in ("nat", "mangle"):
                for what in ("-F", "-X"):
                    subprocess.run([tool, "-t", table, what], check=True)
        self.assertNotEqual(rig.rules(), whole)
        for _ in range(2):
            subprocess.run(["sh", include], check=True)
            self.assertEqual(rig.rules(), whole)
        subprocess.run([script, "-f"], env=env, check=True)
        with open(include) as file:
            self.assertEqual(file.read(), "#!/bin/sh\n")


class Recipes(RouterCase):
    """What docs/router.md says, with the names that are used here."""

    @staticmethod
    def page(language, containing):
        with open(os.path.join(settings.source, "docs", "router.md")) as file:
            blocks = file.read().split("```")[1::2]
        text = next(block for block in blocks
                    if block.startswith(language) and containing in block)
        return text.split("\n", 1)[1]

    def fill(self, text):
        for example, here in (("br-lan", router.LAN_NAME), ('"wan"', '"wan0"'),
                              (":1080", ":%d" % self.port), ("192.0.2.10", router.SERVER)):
            text = text.replace(example, here)
        return text

    def test_the_routers_own_datagrams(self):
        self.internet()
        redir = self.redir("-u", "--outbound-fwmark", "0x2a")
        self.rules("nft", "-u")
        rig.nft(self.fill(self.page("text", "own_udp")))
        target = self.udp_target()
        own = self.udp_client(namespace=rig.router, host=router.WAN)
        for number in range(5):
            self.assert_echoes_from(own, (router.host(number), target.port))
        self.assertEqual(target.sources, {router.SERVER_SOURCE})
        self.assert_echoes_from(self.udp_client(), (router.HOST, target.port))
        self.assertEqual(redir.log_lines("ERROR"), [])

    def test_every_question_to_the_router(self):
        self.internet()
        self.redir("-u")
        self.rules("nft", "-u")
        for line in self.fill(self.page("sh", "udp dport 53 redirect")).strip().splitlines():
            subprocess.run(line.split(), check=True)
        self.at(rig.router, udp.Target, lambda data, source: b"the router: " + data,
                host=router.LAN, port=53)
        client = self.udp_client()
        client.sendto(b"question", (router.HOST, 53))
        self.assertEqual(client.recvfrom(100), (b"the router: question", (router.HOST, 53)))
        other = self.udp_target()
        self.assert_echoes_from(client, (router.HOST, other.port))
        self.assertEqual(other.sources, {router.SERVER_SOURCE})

    def test_sets_are_changed_while_all_goes_on(self):
        self.internet()
        self.redir("-u")
        self.rules("nft", "-u")
        self.assert_seen_from(router.HOST, router.SERVER_SOURCE)
        add, delete, force = [
            line.split("#")[0].replace("203.0.113.0/24", "45.1.0.0/16").replace(
                "198.51.100.7", router.HOST)
            for line in self.page("sh", "nft add element").splitlines()[:3]]
        subprocess.run(["sh", "-c", add], check=True)
        self.assert_seen_from(router.HOST, router.CLIENT)
        subprocess.run(["sh", "-c", force], check=True)
        self.assert_seen_from(router.HOST, router.SERVER_SOURCE)
        self.assert_seen_from(router.host(3), router.CLIENT)
        subprocess.run(["sh", "-c", delete], check=True)
        self.assert_seen_from(router.host(3), router.SERVER_SOURCE)

    def test_tproxy_alone(self):
        self.internet()
        self.redir("-u", "-T")
        rig.nft(self.fill(self.page("text", "table ip proxy")))
        for line in self.page("sh", "ip rule add").splitlines():
            if line.startswith("ip "):
                subprocess.run(line.split(), check=True)
        target = self.udp_target()
        self.assert_echoes_from(self.udp_client(), (router.HOST, target.port))
        self.assert_downloads(router.HOST, self.tcp_target(router.checksum_of(BODY)))
        self.assertEqual(target.sources, {router.SERVER_SOURCE})


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


def shared_socket(host, port, shared):
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    if shared:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((host, port))
    made.settimeout(10)
    return made


def associations(program):
    """How many a program has opened so far, as it says on SIGUSR1."""
    count = len(program.log_lines("UDP associations"))
    program.process.send_signal(signal.SIGUSR1)
    line = program.await_log("UDP associations", 5, count + 1)
    return int(line.split(",")[1].split()[0])


def give_rights_up():
    """In a child: no capability is left, and no program brings one."""
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


if __name__ == "__main__":
    case.main()
