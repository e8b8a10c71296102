"""Name servers and names of the system: R19, R20 and R86, with files of /etc of the test's own."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, dns_case, mounts, netns, programs, proc, shadow, wait  # noqa: E402

FIRST, SECOND = "127.0.0.1", "127.0.0.2"
SECONDS = 5  # so soon a changed file counts
LOOK_UP_S = 3


def setUpModule():
    global resolv_conf, hosts
    netns.enter()
    mounts.enter()
    directory = programs.scratch_directory()
    resolv_conf = mounts.cover("/etc/resolv.conf", "", directory)
    hosts = mounts.cover("/etc/hosts", "", directory)


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


class ResolvConf(dns_case.DnsCase):
    def setUp(self):
        super().setUp()
        write(resolv_conf, "nameserver %s\n" % FIRST)
        write(hosts, "127.0.0.1 localhost\n")

    def stub_at(self, address, records):
        return self.stub(records, ttl=3600, host=address, port=53)

    def start(self, *arguments):
        return self.server("-m", shadow.METHOD, *arguments)

    def found(self, server, name, timeout=LOOK_UP_S):
        conn = self.request(server, name, timeout=timeout)
        try:
            return conn.receive(5) == b"hello"
        except OSError:
            return False
        finally:
            conn.close()

    def test_changed_name_server(self):
        first = self.stub_at(FIRST, {"echo.test": ["127.0.0.1"]})
        second = self.stub_at(SECOND, {"echo.test": ["127.0.0.1"], "new.test": ["127.0.0.1"]})
        server = self.start()
        self.exchange(server, "echo.test")
        kept = self.request(server, "echo.test")
        self.assertEqual(kept.receive(5), b"hello")
        asked = first.count("echo.test")
        write(resolv_conf, "search corp.test\nnameserver %s\n" % SECOND)
        wait.until(lambda: self.found(server, "new.test"), SECONDS, "the new name server")
        for _ in range(4 * case.settings.workers):
            self.exchange(server, "echo.test")
        wait.until(lambda: second.count("echo.test") > 0, SECONDS)
        self.assertEqual(first.count("echo.test"), asked)
        kept.send(b"still here")  # no connection was lost
        self.assertEqual(kept.receive(10), b"still here")
        wait.until(lambda: not proc.udp_ports(server.pid), 10, "the end of the sockets")

    def test_old_server_is_gone(self):
        """What waits for a name server that has gone is answered by the new one."""
        first = self.stub_at(FIRST, {"echo.test": ["127.0.0.1"]})
        server = self.start("--workers", 1)
        first.silent.add("echo.test")
        waiting = self.request(server, "echo.test")
        self.await_queries(first, "echo.test", 2)
        self.stub_at(SECOND, {"echo.test": ["127.0.0.1"], "new.test": ["127.0.0.1"]})
        write(resolv_conf, "nameserver %s\n" % SECOND)
        wait.until(lambda: self.found(server, "new.test"), SECONDS)
        wait.until(lambda: self.found(server, "echo.test"), SECONDS)
        waiting.socket.settimeout(SECONDS)
        self.assertEqual(waiting.receive(5), b"hello")

    def test_named_servers_are_kept(self):
        """With -d the file is nobody's business."""
        second = self.stub_at(SECOND, {"echo.test": ["127.0.0.1"]})
        server = self.start("-d", SECOND)
        write(resolv_conf, "nameserver 192.0.2.1\n")
        self.exchange(server, "echo.test")
        self.assertEqual(second.count("echo.test"), 2)

    def test_absolute_names(self):
        """R20: v4only.test has no AAAA; that of v4only.test.corp.test must not be taken for it."""
        write(resolv_conf, "search corp.test\noptions ndots:5\nnameserver %s\n" % FIRST)
        stub = self.stub_at(FIRST, {"v4only.test": ["127.0.0.1"], "*.corp.test": ["::1"]})
        server = self.start("-6")
        self.exchange(server, "v4only.test")
        self.assertFalse(self.found(server, "short"))
        self.assertEqual({name for name, _, _ in stub.queries}, {"v4only.test", "short"})

    def test_hosts_file(self):
        stub = self.stub_at(FIRST, {"echo.test": ["192.0.2.1"]})
        write(hosts, "127.0.0.1 localhost echo.test\n")
        server = self.start()
        self.exchange(server, "echo.test")
        self.assertEqual(stub.queries, [])
        write(hosts, "127.0.0.1 localhost\n")
        stub.records["echo.test"] = []
        wait.until(lambda: not self.found(server, "echo.test"), SECONDS, "the changed hosts file")

    def test_server_name_that_can_not_be_resolved_at_start(self):
        """R86: ss-local starts, stays, and finds its server when the name server is there."""
        server = self.start()
        local = self.program("ss-local", "-s", "server.test", "-p", server.port, "-l", 10800,
                             "-b", "127.0.0.1", "-k", case.PASSWORD, "-m", shadow.METHOD)
        local.port = 10800
        local.await_listening(local.port)
        for _ in range(3):
            self.connect(local, self.echo.address).close()
        self.assertTrue(local.alive)
        self.stub_at(FIRST, {"server.test": ["127.0.0.1"]})

        def works():
            conn = self.connect(local, self.echo.address, first=b"hello")
            conn.settimeout(2)
            try:
                return conn.recv(5) == b"hello"
            except OSError:
                return False

        wait.until(works, SECONDS, "the server")

    def test_a_name_with_both_families(self):
        self.stub_at(FIRST, {"echo.test": ["::1", "127.0.0.1"]})
        for arguments in ((), ("-6",)):
            self.exchange(self.start(*arguments), "echo.test")


if __name__ == "__main__":
    case.main()
