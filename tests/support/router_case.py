"""The base of the tests of ss-redir and ss-nat: programs on a router between two other machines.

    python3 test_something.py --bin build/bin --workers 2 [unittest's own options and names]

Needs root, or the right to namespaces of its own; else everything is skipped.
"""

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import unittest

from . import case, ports, proc, programs, router, socks, targets, udp, wait
from .case import settings

rig = None
KINDS = ("iptables", "nft")
BODY = 8 << 20
ANSWERS_MAX = 256  # sockets that answer in the name of others

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


def make_rig():
    """For setUpModule: before there are threads."""
    global rig
    rig = router.Router()
    udp.allow_descriptors(4096)
    return rig


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


def in_user_namespace():
    with open("/proc/self/uid_map") as file:
        return file.read().split() != ["0", "0", "4294967295"]


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
        """The same, asked again while it is lost. Late answers to whoever had our port at the
        server before may come, too."""
        client.settimeout(1)

        def answered():
            client.sendto(b"anybody?", address)
            try:
                data, source = client.recvfrom(100)
                return data == b"anybody?" and source[:2] == address
            except TimeoutError:
                return False

        wait.until(answered, seconds, "an answer")
