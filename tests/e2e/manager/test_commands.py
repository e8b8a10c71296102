"""R41, R44, R47: commands of ss-manager from end to end, and byte for byte as front ends know them."""

import contextlib
import json
import os
import socket
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from support import case, ends, manager, ports, proc, socks, targets, udp, wait  # noqa: E402
from support.case import PASSWORD, settings  # noqa: E402


class Commands:
    def test_a_port_is_added_counted_listed_and_removed(self):
        self.manager()
        client = self.client()
        target = self.target(targets.echo)
        port, other = self.free_ports(2)
        self.assertEqual(client.ask("ping"), "stat: {}")
        self.assertEqual(client.ask("list"), "[\n]")
        self.assertEqual(client.add(port, PASSWORD), "ok")
        self.assertEqual(client.add(other, "pw", method="aes-128-gcm"), "ok")
        self.assertEqual(
            client.ask("list"),
            '[\n\t{"server_port":"%d","password":"%s","method":"%s"},'
            '\n\t{"server_port":"%d","password":"pw","method":"aes-128-gcm"}\n]'
            % (port, PASSWORD, settings.method, other))
        self.assertEqual(client.ask("ping"), 'stat: {"%d":0,"%d":0}' % (port, other))

        local = self.relay(port)
        with contextlib.closing(socks.connect(local.port, target.address)) as conn:
            self.assert_echoes(conn, b"x" * 1000)
        wait.until(lambda: client.ping()[port] >= 2000, 1 if self.live else 20,
                   "the traffic in `ping`")
        self.assertLess(client.ping()[port], 3000)
        self.assertEqual(client.ping()[other], 0)

        self.assertEqual(client.remove(port), "ok")
        self.assertEqual(client.ping(), {other: 0})
        with self.assertRaises(ConnectionRefusedError):
            socks.dial("127.0.0.1", port)
        self.assertEqual(client.remove(port), "ok")
        self.assertEqual([entry["server_port"] for entry in client.list()], [str(other)])

    def test_bytes_that_front_ends_send(self):
        self.manager()
        client = self.client()
        one, two = self.free_ports(2)
        # Of the classic manager's grammar and of the Rust one's; `echo ping | nc` adds a line end.
        for text in ('add: {"server_port": %d, "password":"7cd308cc059"}' % one,
                     'add:{"server_port":%d,"password":"7cd308cc059","method":"aes-256-gcm"}' % two,
                     'add :{"server_port":"%d","password":"7cd308cc059"}\n' % one,
                     '  add:\n{"server_port": %d,\n "password": "x", "no_delay": true}\0' % two,
                     'remove: {"server_port": %d}' % one,
                     'remove:{"server_port":"%d"}\n' % one,
                     'remove: {"server_port": %d, "password": "x", "foo": {}}' % two):
            self.assertEqual(client.ask(text), "ok", text)
        for text in ("ping", "ping\n", "ping:", "ping {}", " ping x"):
            self.assertEqual(client.ask(text), "stat: {}")
        for text in ("list", "list\n", "list:"):
            self.assertEqual(client.ask(text), "[\n]")
        self.assertEqual(client.ask_in_order("nosuch", "", "  \n", "{}", "LIST"), [])

    def test_a_counter_is_set_from_outside(self):
        self.manager()
        client = self.client()
        port = ports.free_port()
        client.add(port, "pw")
        client.send('stat: {"%d":11370}' % port)
        self.assertEqual(client.ping(), {port: 11370})
        client.send('stat: {"%d":20,"1":5,"x":7}\0' % port)
        self.assertEqual(client.ping(), {port: 20})
        client.send('stat: {"%d":"x"}' % port)
        self.assertEqual(client.ping(), {port: 20})

    def test_a_changed_password_ends_what_the_old_one_began(self):
        self.manager()
        client = self.client()
        target = self.target(targets.echo)
        port = ports.free_port()
        self.assertEqual(client.add(port, "old"), "ok")
        old = self.relay(port, "old")
        conn = self.connect(old, target.address)
        self.assert_echoes(conn)
        for _ in range(5):
            self.assertEqual(client.add(port, "new"), "ok")
        conn.settimeout(10)
        self.assertIn(ends.read_to_end(conn), ((b"", ends.FIN), (b"", ends.RESET)))
        self.assert_served(port, target, "new")
        self.assertEqual([entry["password"] for entry in client.list()], ["new"])

    def test_a_port_that_can_not_be_changed_stays_as_it_was(self):
        self.manager()
        client = self.client()
        target = self.target(targets.echo)
        port = ports.free_port()
        self.assertEqual(client.add(port, PASSWORD), "ok")
        conn = self.connect(self.relay(port), target.address)
        self.assert_echoes(conn)
        self.assertEqual(client.add(port, "new", method="nosuch"), "err")
        self.assertEqual(client.add(port, ""), "err")
        self.assertEqual(client.add(port, "no key", method="2022-blake3-aes-128-gcm"), "err")
        self.assert_echoes(conn)
        self.assertEqual([entry["password"] for entry in client.list()], [PASSWORD])

    def test_removed_and_added_again_at_once(self):
        self.manager()
        client = self.client()
        target = self.target(targets.echo)
        port = ports.free_port()
        for _ in range(5):
            self.assertEqual(client.add(port, PASSWORD), "ok")
            self.assertEqual(client.remove(port), "ok")
        self.assertEqual(client.add(port, PASSWORD), "ok")
        self.assert_served(port, target)

    def test_a_port_has_a_mode_and_a_method_of_its_own(self):
        started = self.manager()
        client = self.client()
        datagrams = udp.Target()
        self.addCleanup(datagrams.close)
        both, only = self.free_ports(2)
        self.assertEqual(
            client.ask('add :{"server_port":%d,"password":"a","mode":"tcp_and_udp",'
                       '"method":"aes-128-gcm"}' % both), "ok")
        self.assertEqual(client.add(only, "a", mode="udp_only"), "ok")
        tree = manager.tree_of(started.pid)
        tcp = set().union(*(proc.listening_ports(pid) for pid in tree))
        over_udp = set().union(*(proc.udp_ports(pid) for pid in tree))
        self.assertIn(both, tcp)
        self.assertNotIn(only, tcp)
        self.assertTrue({both, only} <= over_udp)
        tunnel = ports.free_port()
        self.program("ss-tunnel", "-s", "127.0.0.1", "-p", both, "-l", tunnel, "-k", "a", "-m",
                     "aes-128-gcm", "-U", "-L", "127.0.0.1:%d" % datagrams.port
                     ).await_log("UDP relay enabled")
        with contextlib.closing(udp.make_socket()) as sender:
            sender.sendto(b"through both", ("127.0.0.1", tunnel))
            self.assertEqual(sender.recv(100), b"through both")

    def test_the_managers_own_settings_are_the_defaults(self):
        started = self.manager("-u", "-s", "::1", method=False)
        client = self.client()
        port = ports.free_port()
        self.assertEqual(client.add(port, "pw"), "ok")
        self.assertEqual(client.list()[0]["method"], "chacha20-ietf-poly1305")
        tree = manager.tree_of(started.pid)
        self.assertIn(port, set().union(*(proc.udp_ports(pid) for pid in tree)))
        for host in ("127.0.0.1", "::1"):
            with contextlib.closing(socks.dial(host, port)):
                pass

    def test_ports_that_are_taken_or_none(self):
        started = self.manager("-u")
        client = self.client()
        port = ports.free_port()
        with socket.create_server(("127.0.0.1", port)):
            self.assertEqual(client.add(port, "pw"), "port is not available")
            self.logged(started, r"port %d: .*Address already in use" % port)
            self.assertEqual(client.list(), [])
        self.assertEqual(client.add(port, "pw"), "ok")
        for bad in (0, 70000, -1, "abc", "80x"):
            self.assertEqual(client.add(bad, "pw"), "port is not available")

    def test_over_udp(self):
        for host in ("127.0.0.1", "::1"):
            number = ports.free_port()
            text = "[%s]:%d" % (host, number) if ":" in host else "%s:%d" % (host, number)
            started = self.manager(address=text, ready=False)
            started.await_log("working directory points to")
            client = self.client((host, number))
            wait.until(lambda: client.send("ping") or client.receive(0.2), 10)
            while client.receive(0.1) is not None:
                pass  # of pings that were asked again
            port = ports.free_port()
            self.assertEqual(client.add(port, "pw"), "ok")
            self.assertEqual(client.ping(), {port: 0})
            self.assertEqual(client.remove(port), "ok")
            self.assertEqual(started.stop(), 0)


class OneProcess(Commands, manager.OneProcess, manager.ManagerCase):
    def test_lists_longer_than_a_datagram(self):
        self.manager()
        client = self.client()
        numbers = self.free_ports(90)
        long = "ä\"" * 500
        for number in numbers:
            self.assertEqual(client.add(number, long), "ok")
        entries = client.list()
        self.assertEqual([int(entry["server_port"]) for entry in entries], numbers)
        self.assertEqual({entry["password"] for entry in entries}, {long})
        for number in numbers:
            self.assertEqual(client.remove(number), "ok")
        self.assertEqual(client.list(), [])


class ProcessPerPort(Commands, manager.ProcessPerPort, manager.ManagerCase):
    def test_files_are_private_json_and_gone_at_the_end(self):
        started = self.manager()
        client = self.client()
        port = ports.free_port()
        odd = 'q" b\\ n\n t\t é ","plugin":"x'
        self.assertEqual(client.add(port, odd), "ok")
        path = os.path.join(self.workdir, ".shadowsocks_%d.conf" % port)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(json.load(file), {"server_port": port, "password": odd,
                                               "method": settings.method})
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        self.assertEqual(os.stat(self.workdir).st_mode & 0o777, 0o700)
        self.assertTrue(os.path.exists(path[:-4] + "pid"))
        self.assertEqual(client.remove(port), "ok")
        self.assertEqual(os.listdir(self.workdir), [".ss-manager.state"])
        self.assertEqual(client.add(port, odd), "ok")
        self.assertEqual(started.stop(), 0)
        self.assertEqual(os.listdir(self.workdir), [".ss-manager.state"])


if __name__ == "__main__":
    case.main()
