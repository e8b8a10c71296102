"""Three network namespaces of the test's own, as a router is used: client - router - internet.

The links are of 1,500 bytes. Everything that begins with 45.1 or 2a0b is a host of the internet and
answers; only what is sent by a server there comes from SERVER_SOURCE. The addresses are of no
reserved range, since rules leave those out, and are seen by nobody outside.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import unittest

from . import netns, udp

CLIENT, LAN = "192.168.7.2", "192.168.7.1"
CLIENT6, LAN6 = "fd77::2", "fd77::1"
WAN, SERVER, SERVER_SOURCE = "45.0.0.1", "45.0.0.2", "45.0.0.3"
WAN6, SERVER6, SERVER_SOURCE6 = "2a0a::1", "2a0a::2", "2a0a::3"
HOST, HOST6 = "45.1.2.3", "2a0b::2:3"
LAN_NAME = "lan0"

_IP_PKTINFO = 8  # not in every Python


def host(number):
    """One of many hosts of the internet."""
    return "45.1.%d.%d" % (10 + number // 250, 1 + number % 250)


def host6(number):
    return "2a0b::1:%x" % (number + 1)


class Router:
    """Made once a process, before it has threads. This process stays in the router's namespace."""

    def __init__(self):
        if not shutil.which("ip"):
            raise unittest.SkipTest("no ip command on this machine")
        netns.enter()
        self.router = self._own_namespace()
        self.client = self._new_namespace()
        self.internet = self._new_namespace()
        netns.move(self.router)
        self._link(LAN_NAME, self.router, "eth0", self.client)
        self._link("wan0", self.router, "eth0", self.internet)
        for where, name, addresses in (
                (self.client, "eth0", (CLIENT + "/24", CLIENT6 + "/64")),
                (self.router, LAN_NAME, (LAN + "/24", LAN6 + "/64")),
                (self.router, "wan0", (WAN + "/24", WAN6 + "/64")),
                (self.internet, "eth0", (SERVER + "/24", SERVER6 + "/64", SERVER_SOURCE + "/24",
                                         SERVER_SOURCE6 + "/64"))):
            self.ip(where, "link set lo up")
            for address in addresses:
                self.ip(where, "address add %s dev %s%s" % (address, name,
                                                            " nodad" if ":" in address else ""))
            self.ip(where, "link set %s up" % name)
        self.ip(self.client, "route add default via %s" % LAN)
        self.ip(self.client, "route add default via %s" % LAN6)
        self.ip(self.router, "route add default via %s" % SERVER)
        self.ip(self.router, "route add default via %s" % SERVER6)
        self.ip(self.internet, "route add 192.168.7.0/24 via %s" % WAN)
        self.ip(self.internet, "route add fd77::/64 via %s" % WAN6)
        self.ip(self.internet, "route add local 45.1.0.0/16 dev lo")
        self.ip(self.internet, "route add local 2a0b::/32 dev lo")
        with self.inside(self.internet):
            netns.sysctl("net.ipv6.ip_nonlocal_bind", 1)
        netns.sysctl("net.ipv4.ip_forward", 1)
        netns.sysctl("net.ipv6.conf.all.forwarding", 1)

    @staticmethod
    def _own_namespace():
        namespace = os.open("/proc/self/ns/net", os.O_RDONLY)
        os.set_inheritable(namespace, True)
        return namespace

    def _new_namespace(self):
        # The right to it comes from the first one, so it can always be had.
        if netns._libc.unshare(netns._CLONE_NEWNET) != 0:
            raise unittest.SkipTest("no right to make a network namespace")
        return self._own_namespace()

    def _link(self, name, where, peer, there):
        with self.inside(where):
            made = subprocess.run(["ip", "link", "add", name, "type", "veth", "peer", "name", peer,
                                   "netns", "/proc/%d/fd/%d" % (os.getpid(), there)],
                                  capture_output=True)
        if made.returncode != 0:
            raise unittest.SkipTest("no veth link: " + made.stderr.decode().strip())

    @contextlib.contextmanager
    def inside(self, namespace):
        """Sockets that are made inside, and threads and programs that are started, are there."""
        netns.move(namespace)
        try:
            yield
        finally:
            netns.move(self.router)

    def prepare(self, namespace):
        """For programs that are to run there."""
        return lambda: netns.move(namespace)

    def ip(self, namespace, words):
        with self.inside(namespace):
            subprocess.run(["ip", *words.split()], check=True, capture_output=True)

    # -- the router's rules --

    def nft(self, text):
        done = subprocess.run(["nft", "-f", "-"], input=text, text=True, capture_output=True)
        if done.returncode != 0:
            raise unittest.SkipTest("nft: " + done.stderr.strip())

    def nft_counter(self, table, name):
        """Packets that a named counter has seen."""
        listed = subprocess.run(["nft", "list", "counter", *table.split(), name], check=True,
                                capture_output=True, text=True).stdout
        return int(re.search(r"packets (\d+)", listed).group(1))

    def flush(self):
        """Takes away whatever a test has put up."""
        for command in ("nft flush ruleset", "ip rule del fwmark 1/1 table 100",
                        "ip -6 rule del fwmark 1/1 table 100", "ip route flush table 100",
                        "ip -6 route flush table 100", "ipset destroy"):
            if shutil.which(command.split()[0]):
                subprocess.run(command.split(), capture_output=True)

    def rules(self):
        """All that a firewall script could have changed, without counts and empty frames."""
        found = []
        for command in ("iptables-save", "ip6tables-save", "ipset save", "ip rule", "ip -6 rule",
                        "ip route show table 100", "ip -6 route show table 100"):
            if not shutil.which(command.split()[0]):
                continue
            out = subprocess.run(command.split(), capture_output=True, text=True).stdout
            if command.endswith("-save"):
                out = "\n".join(line for line in out.splitlines() if line.startswith("-A"))
            elif command == "ipset save":
                out = re.sub(r" bucketsize \d+ initval 0x[0-9a-f]+", "", out)
                out = "\n".join(sorted(out.splitlines()))
            found.append("== %s\n%s" % (command, out.strip()))
        if shutil.which("nft"):
            found.append("== nft\n" + self._nft_rules())
        return "\n".join(found)

    @staticmethod
    def _nft_rules():
        """Sets and rules, these in the order of each chain. iptables leaves chains and tables
        without a rule behind; they mean nothing."""
        out = subprocess.run(["nft", "-j", "list", "ruleset"], capture_output=True, text=True)
        sets, chains = [], {}
        for entry in json.loads(out.stdout)["nftables"]:
            kind, item = next(iter(entry.items()))
            item.pop("handle", None)
            if kind == "set":
                sets.append(json.dumps(item, sort_keys=True))
            elif kind == "rule":
                chain = chains.setdefault((item["family"], item["table"], item["chain"]), [])
                chain.append(re.sub(r'"(packets|bytes)": \d+', "", json.dumps(item["expr"])))
        return "\n".join(sorted(sets) + ["%s %s" % pair for pair in sorted(chains.items())])


class AnyHost:
    """A datagram target at one port of every host of the internet: answers from where it was
    asked. `handler(data, source)` gives what to answer, or None; `count` and `sources` tell what
    came."""

    def __init__(self, handler=udp.echo, ipv6=False, port=0):
        self.socket = socket.socket(socket.AF_INET6 if ipv6 else socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        if ipv6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        self.socket.bind(("::" if ipv6 else "0.0.0.0", port))
        self.port = self.socket.getsockname()[1]
        self.count, self.sources = 0, set()
        self._ipv6, self._handler = ipv6, handler
        if ipv6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
        else:
            self.socket.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _answer(self, data, control, source):
        for level, kind, info in control:
            if self._ipv6 and kind == socket.IPV6_PKTINFO:
                info = info[:16] + bytes(4)
            elif not self._ipv6 and kind == _IP_PKTINFO:
                info = bytes(4) + info[8:12] + bytes(4)
            else:
                continue
            self.socket.sendmsg([data], [(level, kind, info)], 0, source)

    def _run(self):
        while True:
            try:
                data, control, _, source = self.socket.recvmsg(1 << 16, 256)
            except OSError:
                return
            if source is None:
                return
            self.count += 1
            self.sources.add(source[0])
            answer = self._handler(data, source[:2])
            if answer is not None:
                try:
                    self._answer(answer, control, source)
                except OSError:
                    pass

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._thread.join(udp.PATIENCE_S)
        self.socket.close()


def checksum_of(count):
    """A handler that sends `count` bytes and then their SHA-256."""
    def handler(conn):
        block = os.urandom(1 << 16)
        total, left = hashlib.sha256(), count
        while left > 0:
            piece = block[: min(left, len(block))]
            total.update(piece)
            conn.sendall(piece)
            left -= len(piece)
        conn.sendall(total.digest())
        conn.shutdown(socket.SHUT_WR)
        while conn.recv(1 << 16):
            pass

    return handler
