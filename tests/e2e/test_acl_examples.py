"""R55: the examples in docs/acl do what they say, in a network namespace with addresses for it."""

import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import acl, case, netns, ports  # noqa: E402
from support.acl import DIRECT, PROXY, REFUSED  # noqa: E402

EXAMPLES = os.path.join(case.settings.source, "docs", "acl")
ADDRESSES = ["10.1.2.3", "172.16.9.9", "192.168.1.1", "192.0.2.5", "192.0.2.66", "198.51.100.7",
             "203.0.113.9", "203.0.113.13"]
ADDRESSES6 = ["2001:db8:5::1", "2001:db8:6::1", "fd00::1", "fd00:9::9"]
ELSEWHERE = "198.51.100.7"


def setUpModule():
    if not shutil.which("ip"):
        raise unittest.SkipTest("no ip command on this machine")
    netns.enter()
    for address in ADDRESSES:
        subprocess.run(["ip", "address", "add", address + "/32", "dev", "lo"], check=True)
    if ports.have_ipv6():
        for address in ADDRESSES6:
            subprocess.run(["ip", "address", "add", address + "/128", "dev", "lo", "nodad"],
                           check=True)


def example(name):
    return "--acl", os.path.join(EXAMPLES, name)


class Examples(acl.AclCase):
    def targets(self, addresses):
        """TCP and UDP on one port at all of them."""
        tcp = self.teller("0.0.0.0")
        self.port = tcp.port
        for address in addresses:
            # One by one, so that each answers from the address that was asked.
            self.udp_teller(address, self.port)
        if ports.have_ipv6():
            for address in ADDRESSES6:
                self.teller(address, self.port)
                self.udp_teller(address, self.port)

    def chain(self, server=(), local=()):
        self.targets([*ADDRESSES, "127.0.0.1"])
        six = ("-b", "fd00:9::9") if ports.have_ipv6() else ()
        self.ss_server = self.acl_server(None, *six, *server)
        self.ss_local = self.acl_local(self.ss_server, None, *local)
        self.udp_client = self.associate(self.ss_local)

    def assert_hosts(self, expected):
        for host, way in expected.items():
            source = "fd00:9::9" if ":" in host else acl.SERVER_SOURCE
            if ":" in host and not ports.have_ipv6():
                continue
            with self.subTest(host=host):
                self.assertEqual(self.way(self.ss_local, host, self.port, source), way)
                self.assertEqual(
                    self.udp_way(self.udp_client, host, self.port, source,
                                 0.3 if way == REFUSED else 10),
                    None if way == REFUSED else way)

    def names(self, *names, **others):
        for name in names:
            self.name(name, ELSEWHERE)
        for name, address in others.items():
            self.name(name.replace("_", "."), address)

    def test_each_example_has_a_test(self):
        for name in os.listdir(EXAMPLES):
            if name.endswith(".acl"):
                self.assertTrue(hasattr(self, "test_" + name[:-4].replace("-", "_")), name)

    def test_direct_list(self):
        self.names("wiki.intranet.example", "intranet.example", "printer.example",
                   "old.printer.example", "build12.example", "rebuild12.example", "nas.local",
                   "www.example.com", inside_example="10.1.2.3")
        self.chain(local=example("direct-list.acl"))
        self.assert_hosts({"10.1.2.3": DIRECT, "172.16.9.9": DIRECT, "192.168.1.1": DIRECT,
                           "127.0.0.1": DIRECT, "fd00::1": DIRECT, "localhost": DIRECT,
                           "198.51.100.7": PROXY, "2001:db8:6::1": PROXY,
                           "wiki.intranet.example": DIRECT, "INTRANET.example.": DIRECT,
                           "printer.example": DIRECT, "old.printer.example": PROXY,
                           "build12.example": DIRECT, "rebuild12.example": PROXY,
                           "nas.local": DIRECT, "inside.example": DIRECT,
                           "www.example.com": PROXY})

    def test_proxy_list(self):
        self.names("www.example.com", "example.com", "notexample.com", "static.example.com",
                   "img.static.example.com", "www.example.net", "news.example.org",
                   "news-eu.example.org", "www.example.org", cdn_test="203.0.113.9")
        self.chain(local=example("proxy-list.acl"))
        self.assert_hosts({"203.0.113.9": PROXY, "198.51.100.7": DIRECT, "10.1.2.3": DIRECT,
                           "2001:db8:5::1": PROXY, "2001:db8:6::1": DIRECT,
                           "example.com": PROXY, "WWW.Example.Com": PROXY,
                           "notexample.com": DIRECT, "static.example.com": DIRECT,
                           "img.static.example.com": DIRECT, "www.example.net": PROXY,
                           "news-eu.example.org": PROXY, "www.example.org": DIRECT,
                           "cdn.test": PROXY})

    def test_own_clients(self):
        server = self.acl_server(None, *example("own-clients.acl"), host="0.0.0.0")
        for source in ("127.0.0.1", "192.0.2.5"):
            with self.subTest(source=source):
                self.assert_taken(server, source)
        for source in ("192.0.2.66", "198.51.100.7"):
            with self.subTest(source=source):
                self.assert_denied(server, source)

    def test_few_targets(self):
        self.names("example.com", "www.example.com", "private.example.com", "example.net",
                   listed_test="203.0.113.9", **{"trap_example_com": "203.0.113.13"})
        self.chain(server=example("few-targets.acl"))
        self.assert_hosts({"203.0.113.9": PROXY, "203.0.113.13": REFUSED, "198.51.100.7": REFUSED,
                           "2001:db8:6::1": REFUSED, "example.com": PROXY,
                           "www.example.com": PROXY, "private.example.com": REFUSED,
                           "example.net": REFUSED, "listed.test": PROXY,
                           "trap.example.com": REFUSED})

    def test_classic_server(self):
        self.names("db.internal", "db7.example.com", "dbx.example.com", loop_test="127.0.0.1")
        self.chain(server=example("classic-server.acl"))
        self.assert_hosts({"127.0.0.1": REFUSED, "localhost": REFUSED, "loop.test": REFUSED,
                           "db.internal": REFUSED, "db7.example.com": REFUSED,
                           "dbx.example.com": PROXY, "198.51.100.7": PROXY})
        self.assert_denied(self.ss_server, "198.51.100.7")

    def test_block_local(self):
        self.names("www.example.com", inside_test="10.1.2.3")
        self.chain(server=example("block-local.acl"))
        self.assert_hosts({"127.0.0.1": REFUSED, "10.1.2.3": REFUSED, "172.16.9.9": REFUSED,
                           "192.168.1.1": REFUSED, "fd00::1": REFUSED, "localhost": REFUSED,
                           "::ffff:10.1.2.3": REFUSED, "inside.test": REFUSED,
                           "198.51.100.7": PROXY, "www.example.com": PROXY,
                           "2001:db8:6::1": PROXY})


if __name__ == "__main__":
    case.main()
