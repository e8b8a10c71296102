"""ss-redir on a router: loops that are refused, socket options, rights, reload (R34, R39, R84).

    python3 tests/test_redir_sockets.py --bin build/bin --workers 2 [unittest's own options and names]
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import case, netns, plugins, ports, proc, programs, router, router_case  # noqa: E402
from support import socks, targets, udp, wait  # noqa: E402
from support.case import settings  # noqa: E402
from support.router_case import (BODY, COUNTERS, KINDS, MARK_ONLY, OWN_UDP,  # noqa: E402
                                 REDIRECT_ALL, RouterCase, associations, in_user_namespace, nat,
                                 need)

rig = None


def setUpModule():
    global rig
    rig = router_case.make_rig()


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


if __name__ == "__main__":
    case.main()
