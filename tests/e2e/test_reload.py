"""SIGHUP: the configuration is read again; sessions go on, and what is bad changes nothing."""

import base64
import os
import pwd
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import (  # noqa: E402
    case, plugins, ports, proc, programs, reloads, socks, targets, udp, wait)
from support.case import PASSWORD, settings  # noqa: E402

METHOD = "aes-256-gcm"
USERS_METHOD = "2022-blake3-aes-128-gcm"
MIB = 1 << 20


def key(length=16):
    return base64.b64encode(os.urandom(length)).decode()


def server_at(port, password=PASSWORD, method=METHOD, **more):
    return dict({"server": "127.0.0.1", "server_port": port, "password": password,
                 "method": method}, **more)


class Traffic:
    """Exchanges one after the other on one connection, and on one UDP association."""

    def __init__(self, local, echo, udp_echo):
        self.conn = socks.connect(local.port, echo.address, timeout=20)
        self.associate = udp.Associate(local.port, timeout=20)
        self.udp_target, self.count, self.failure = udp_echo.address, 0, None
        self._stop = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        block = os.urandom(20000)
        try:
            while not self._stop:
                self.conn.sendall(block)
                if socks.receive(self.conn, len(block)) != block:
                    raise AssertionError("the stream is cut or changed")
                if self.associate.exchange(self.udp_target, b"datagram")[1] != b"datagram":
                    raise AssertionError("a datagram is changed")
                self.count += 1
        except Exception as error:  # told by close()
            self.failure = error

    def close(self):
        self._stop = True
        self._thread.join(30)
        self.conn.close()
        self.associate.close()
        if self.failure is not None:
            raise AssertionError("after %d exchanges: %r" % (self.count, self.failure))
        return self.count


class Reload(reloads.ReloadCase):
    def setUp(self):
        super().setUp()
        self.echo = self.target(targets.echo)

    def udp_echo(self):
        made = udp.Target()
        self.addCleanup(made.close)
        return made

    def start_server(self, *servers, **more):
        config = dict({"servers": list(servers)}, **more)
        arguments = config.pop("arguments", [])
        server = self.start("ss-server", config, *arguments)
        return server.await_listening(*[each["server_port"] for each in servers
                                        if each.get("mode") != "udp_only"])

    def start_local(self, port, password=PASSWORD, method=METHOD, **more):
        local_port = ports.free_port()
        local = self.program("ss-local", "-s", "127.0.0.1", "-p", port, "-l", local_port,
                             "-k", password, "-m", method, *more.get("arguments", []))
        local.port = local_port
        return local.await_listening(local_port)


class Sessions(Reload):
    def test_go_on_through_100_reloads(self):
        """Of both programs, while ports come and go beside them."""
        first, second = reloads.free_ports(2)
        local_port, other_port = reloads.free_ports(2)
        mode = {"mode": "tcp_and_udp"}
        server = self.start_server(server_at(first, **mode))
        client = {"servers": [server_at(first, **mode)],
                  "locals": [{"local_port": local_port, "mode": "tcp_and_udp"}]}
        local = self.start("ss-local", client).await_listening(local_port)
        local.port = local_port
        traffic = Traffic(local, self.echo, self.udp_echo())
        for number in range(50):
            servers = [server_at(first, **mode), server_at(second, str(number), **mode)]
            self.assertIsNotNone(self.reload(server, {"servers": servers[:1 + number % 2]}))
            locals_ = client["locals"] + [{"local_port": other_port, "mode": "tcp_and_udp"}]
            self.assertIsNotNone(self.reload(local, {"servers": servers,
                                                     "locals": locals_[:1 + number % 2]}))
        self.assertGreater(traffic.close(), 20)
        self.assert_serves(local, self.echo)

    def test_a_storm_of_signals(self):
        port, second = reloads.free_ports(2)
        server = self.start_server(server_at(port, mode="tcp_and_udp"))
        before = proc.descriptors(server.pid)
        local = self.start_local(port, arguments=["-u"])
        traffic = Traffic(local, self.echo, self.udp_echo())
        for number in range(400):
            if number % 40 == 0:
                self.write("ss-server.json", {"servers": [
                    server_at(port, mode="tcp_and_udp"), server_at(second, str(number))]})
            server.process.send_signal(signal.SIGHUP)
            time.sleep(0.001)  # the storm's own pace
        done = [0]

        def quiet():
            last, done[0] = done[0], len(server.log_lines(reloads.DONE))
            return last == done[0] and last != 0

        wait.until(lambda: quiet() or time.sleep(0.2), 20, "the last of the reloads")
        self.assertGreater(traffic.close(), 5)
        self.assertEqual(server.log_lines(reloads.REFUSED), [])
        # The other port, an association that has not timed out yet, and one that a library opens
        # when it is first needed.
        wait.until(lambda: proc.descriptors(server.pid) <= before + 3, 10)
        self.assert_serves(local, self.echo)

    def test_a_removed_port_leaves_its_sessions(self):
        first, second = reloads.free_ports(2)
        server = self.start_server(server_at(first), server_at(second))
        local = self.start_local(second)
        conn = self.open(local, self.echo)
        self.assertEqual(self.reload(server, {"servers": [server_at(first)]}), (0, 1, 0, 0, 0))
        self.assertEqual(proc.listening_ports(server.pid), {first})
        self.assert_echoes(conn)
        self.assert_refuses(local, self.echo)
        self.assertEqual(
            self.reload(server, {"servers": [server_at(first), server_at(second)]}),
            (1, 0, 0, 0, 0))
        self.assert_echoes(conn)
        self.assert_serves(local, self.echo)
        total = server.traffic()["total"]
        self.assertEqual(total, 2)

    def test_of_a_changed_key_end(self):
        first, second = reloads.free_ports(2)
        server = self.start_server(server_at(first), server_at(second))
        changed, stays = self.start_local(first), self.start_local(second)
        ends, goes_on = self.open(changed, self.echo), self.open(stays, self.echo)
        self.assertEqual(
            self.reload(server, {"servers": [server_at(first, "another"), server_at(second)]}),
            (0, 0, 1, 0, 0))
        self.assert_ends(ends)
        self.assert_echoes(goes_on)
        self.assert_serves(self.start_local(first, "another"), self.echo)
        # Another method under the same password is another key.
        goes_on_too = self.open(stays, self.echo)
        self.reload(server, {"servers": [server_at(first, "another"),
                                         server_at(second, method="chacha20-ietf-poly1305")]})
        self.assert_ends(goes_on)
        self.assert_ends(goes_on_too)

    def test_ports_that_change_places(self):
        first, second = reloads.free_ports(2)
        server = self.start_server(server_at(first, "one"), server_at(second, "two"))
        self.assertEqual(
            self.reload(server, {"servers": [server_at(second, "one"), server_at(first, "two")]}),
            (0, 0, 2, 0, 0))
        self.assert_serves(self.start_local(second, "one"), self.echo)
        self.assert_serves(self.start_local(first, "two"), self.echo)


class Bad(Reload):
    """What can't be read, understood or bound leaves the old in force, whole, and says why."""

    def setUp(self):
        super().setUp()
        self.port, self.extra = reloads.free_ports(2)
        self.server = self.start_server(server_at(self.port))
        self.local = self.start_local(self.port)
        self.conn = self.open(self.local, self.echo)

    def assert_unchanged(self):
        self.assertEqual(proc.listening_ports(self.server.pid), {self.port})
        self.assert_echoes(self.conn)
        self.assert_serves(self.local, self.echo)

    def test_contents(self):
        good = server_at(self.extra)
        for config, why in (
                ("{", "expected near end of file"),
                ("", "it is empty"),
                ("[]", "ERROR"),
                ({"servers": [good, server_at(self.port, method="no-such")]},
                 "invalid cipher name: no-such"),
                ({"servers": [good, server_at(self.port, "short", USERS_METHOD)]},
                 "needs a key of 16 bytes"),
                ({"servers": [good, dict(server_at(self.port), server_port=70000)]}, "server_port"),
                ({"servers": []}, "ERROR"),
                ({"method": METHOD}, "remote_port is NULL")):
            lines = self.refused(self.server, config)
            self.assertIn(why, lines, config)
            self.assertNotIn("usage", lines)
            self.assert_unchanged()
        self.assertEqual(self.reload(self.server, {"servers": [server_at(self.port)]}),
                         (0, 0, 0, 0, 0))

    def test_files(self):
        path = self.server.path
        os.remove(path)
        self.assertIn("not found", self.refused(self.server))
        self.assert_unchanged()
        os.mkdir(path)
        self.assertIn("it is a directory", self.refused(self.server))
        self.assert_unchanged()
        os.rmdir(path)
        self.assertEqual(self.reload(self.server, {"servers": [server_at(self.port)]}),
                         (0, 0, 0, 0, 0))

    def test_a_port_that_is_taken(self):
        """Not even the one before it in the list is opened."""
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            lines = self.refused(self.server, {"servers": [
                server_at(self.port, "another"), server_at(self.extra), server_at(port)]})
            self.assertIn("127.0.0.1:%d can't be listened on" % port, lines)
            self.assert_unchanged()
            lines = self.refused(self.server, {"servers": [
                server_at(self.extra), server_at(self.port), server_at(self.extra)]})
            self.assertIn("%d can't be listened on" % self.extra, lines)
            self.assert_unchanged()

    def test_an_address_that_is_none(self):
        lines = self.refused(self.server, {"servers": [
            server_at(self.port), dict(server_at(self.extra), server="nosuch.invalid")]})
        self.assertIn("nosuch.invalid", lines)
        self.assert_unchanged()
        lines = self.refused(self.server, {"servers": [
            server_at(self.port), dict(server_at(self.extra), server="192.0.2.1")]})
        self.assertIn("192.0.2.1", lines)
        self.assert_unchanged()

    def test_a_plugin_where_there_was_none(self):
        lines = self.refused(self.server, {"servers": [
            server_at(self.port), server_at(self.extra, plugin="obfs-server")]})
        self.assertIn("a restart begins them", lines)
        self.assert_unchanged()

    def test_a_method_that_is_too_large(self):
        lines = self.refused(self.server, {"servers": [
            server_at(self.port), server_at(self.extra, method="bf-cfb")]})
        if "invalid cipher name" not in lines and "not supported" not in lines:
            self.assertIn("port %d: the method needs more room" % self.extra, lines)
        self.assert_unchanged()

    def test_every_other_method(self):
        out = subprocess.run([programs.find(settings.bin, "ss-server"), "-h"], capture_output=True,
                             text=True).stdout
        methods = [name for name in re.findall(r"[a-z0-9][a-z0-9-]+", out.split("methods", 1)[-1])
                   if re.search(r"-(gcm|poly1305|cfb|ctr)$", name) and name != "bf-cfb"]
        self.assertGreater(len(methods), 5)
        for method in methods:
            keyed = key(16 if "128" in method else 32) if method.startswith("2022") else PASSWORD
            servers = [server_at(self.port), server_at(self.extra, keyed, method,
                                                       mode="tcp_and_udp")]
            self.assertIsNotNone(self.reload(self.server, {"servers": servers}), method)
            local = self.start_local(self.extra, keyed, method, arguments=["-u"])
            self.assert_serves(local, self.echo)
            local.stop()
        self.assert_echoes(self.conn)

    def test_what_is_of_the_start_is_named(self):
        config = {"servers": [server_at(self.port), server_at(self.extra)], "salt_pool": 5000,
                  "timeout": 77, "max_connections": 5, "user": "nobody", "fast_open": True}
        for _ in range(2):  # also the next time
            before = len(self.server.log)
            self.assertIsNotNone(self.reload(self.server, config))
            warning = [line for line in self.server.log[before:].splitlines() if "WARN" in line]
            self.assertEqual(len(warning), 1)
            for name in ("salt_pool", "timeout", "max_connections", "user", "fast_open"):
                self.assertRegex(warning[0], r"[:,] %s(,|$)" % name)
            self.assertNotIn("udp_timeout", warning[0])
        self.assertEqual(proc.listening_ports(self.server.pid), {self.port, self.extra})
        self.assert_echoes(self.conn)


class Addresses(Reload):
    def test_udp_begins_and_ends(self):
        port = ports.free_port()
        server = self.start_server(server_at(port))
        local = self.start_local(port, arguments=["-u"])
        conn, target = self.open(local, self.echo), self.udp_echo()
        both = {"servers": [server_at(port, mode="tcp_and_udp")]}
        self.assertEqual(self.reload(server, both), (1, 0, 0, 0, 0))
        associate = udp.Associate(local.port)
        self.addCleanup(associate.close)
        self.assertEqual(associate.exchange(target.address, b"now")[1], b"now")
        self.assertEqual(self.reload(server, {"servers": [server_at(port)]}), (0, 1, 0, 0, 0))
        associate.send(target.address, b"lost")
        self.assertEqual(self.reload(server, both), (1, 0, 0, 0, 0))
        self.assertEqual(associate.exchange(target.address, b"again")[1], b"again")
        self.assertNotIn(b"lost", target.payloads())
        self.assert_echoes(conn)

    def test_the_families_of_a_wildcard(self):
        """`::` makes way for itself, when it is to be IPv6 alone, and comes back as both."""
        port = ports.free_port()
        both = dict(server_at(port), server="::")
        apart = dict(server_at(port), server=["::", "0.0.0.0"])
        server = self.start("ss-server", both).await_listening(port)
        local = self.start_local(port)
        conn = self.open(local, self.echo)
        self.assertEqual(self.reload(server, apart), (2, 1, 0, 0, 0))
        self.assert_serves(local, self.echo)
        self.assertEqual(self.reload(server, both), (1, 2, 0, 0, 0))
        self.assert_serves(local, self.echo)
        self.assert_echoes(conn)

    def test_the_order_and_the_writing_of_addresses(self):
        """The key is the same, so sessions go on."""
        port, second = reloads.free_ports(2)
        hosts = ["127.0.0.1", "127.0.0.2"]
        server = self.start_server(dict(server_at(port), server=hosts))
        conn = self.open(self.start_local(port), self.echo)
        for changed, numbers in ((hosts[::-1], (0, 0, 0, 0, 0)),
                                 (["127.0.0.3", "127.0.0.1"], (1, 1, 0, 0, 0)),
                                 (["localhost"], (0, 1, 0, 0, 0)),
                                 (["127.0.0.1"], (0, 0, 0, 0, 0))):
            self.assertEqual(self.reload(server, {"servers": [
                server_at(second, "x"), dict(server_at(port), server=changed)]})[1:], numbers[1:])
            self.assert_echoes(conn)

    def test_a_wildcard_and_one_address_change_places(self):
        port = ports.free_port()
        server = self.start_server(server_at(port))
        local = self.start_local(port)
        conn = self.open(local, self.echo)
        for host in ("0.0.0.0", "127.0.0.1"):
            self.assertEqual(
                self.reload(server, {"servers": [dict(server_at(port), server=host)]}),
                (1, 1, 0, 0, 0))
            self.assert_serves(local, self.echo)
        self.assert_echoes(conn)

    def test_what_made_way_comes_back(self):
        port = ports.free_port()
        server = self.start_server(server_at(port))
        local = self.start_local(port)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            lines = self.refused(server, {"servers": [
                dict(server_at(port), server="0.0.0.0"), server_at(taken.getsockname()[1])]})
        self.assertNotIn("can't be opened again", lines)
        self.assert_serves(local, self.echo)


class Users(Reload):
    def config(self, users, password=None):
        return {"servers": [server_at(self.port, password or self.key, USERS_METHOD,
                                      mode="tcp_and_udp",
                                      users=[{"name": name, "password": password}
                                             for name, password in users.items()])]}

    def start_user(self, password):
        return self.start_local(self.port, self.key + ":" + password, USERS_METHOD,
                                arguments=["-u"])

    def numbers(self, server, name):
        """(sessions, received, sent) of a user, as SIGUSR1 tells."""
        server.traffic()
        lines = server.log_lines("user %s: " % name)
        return tuple(int(n) for n in re.findall(r"\d+", lines[-1].split("user ", 1)[1]))

    def test_come_and_go_with_sessions_open(self):
        self.port, self.key, target = ports.free_port(), key(), self.udp_echo()
        users = {"ann": key(), "bob": key()}
        server = self.start("ss-server", self.config(users)).await_listening(self.port)
        ann, bob = self.start_user(users["ann"]), self.start_user(users["bob"])
        conns = [self.open(ann, self.echo), self.open(bob, self.echo)]
        associates = [udp.Associate(ann.port, timeout=1), udp.Associate(bob.port)]
        for associate in associates:
            self.addCleanup(associate.close)
            self.assertEqual(associate.exchange(target.address, b"12345")[1], b"12345")

        cid = key()
        self.assertEqual(self.reload(server, self.config(dict(users, cid=cid))), (0, 0, 0, 1, 0))
        for conn, associate in zip(conns, associates):
            self.assert_echoes(conn)
            self.assertEqual(associate.exchange(target.address, b"12345")[1], b"12345")
        self.assert_serves(self.start_user(cid), self.echo)

        del users["ann"]
        self.assertEqual(self.reload(server, self.config(users)), (0, 0, 0, 0, 2))
        self.assert_ends(conns[0])
        self.assert_refuses(ann, self.echo)
        associates[0].send(target.address, b"gone")
        self.assert_echoes(conns[1])
        self.assertEqual(associates[1].exchange(target.address, b"12345")[1], b"12345")
        self.assertNotIn(b"gone", target.payloads())
        # Counters of a user that stays go on.
        self.assertEqual(self.numbers(server, "bob"), (2, 3 * 13 + 3 * 5, 3 * 13 + 3 * 5))

        # So they do when the key is another one; sessions of the old one end.
        users["bob"] = key()
        self.assertEqual(self.reload(server, self.config(users)), (0, 0, 0, 1, 1))
        self.assert_ends(conns[1])
        self.assert_serves(self.start_user(users["bob"]), self.echo)
        self.assertEqual(self.numbers(server, "bob"), (3, 4 * 13 + 3 * 5, 4 * 13 + 3 * 5))

    def test_a_bad_user_changes_nothing(self):
        self.port, self.key = ports.free_port(), key()
        users = {"ann": key()}
        server = self.start("ss-server", self.config(users)).await_listening(self.port)
        ann = self.start_user(users["ann"])
        conn = self.open(ann, self.echo)
        lines = self.refused(server, self.config({"bob": key(), "cid": "AAAA"}))
        self.assertIn("users[1] 'cid'", lines)
        self.assert_echoes(conn)
        self.assert_serves(ann, self.echo)

    def test_the_server_gets_another_key(self):
        self.port, self.key = ports.free_port(), key()
        users = {"ann": key()}
        server = self.start("ss-server", self.config(users)).await_listening(self.port)
        conn = self.open(self.start_user(users["ann"]), self.echo)
        self.key = key()
        self.assertEqual(self.reload(server, self.config(users)), (0, 0, 2, 0, 0))
        self.assert_ends(conn)
        self.assert_serves(self.start_user(users["ann"]), self.echo)
        self.assertEqual(self.numbers(server, "ann"), (2, 26, 26))


class Clients(Reload):
    def test_servers_and_ports_of_a_client(self):
        here, there = reloads.free_ports(2)
        first, second = reloads.free_ports(2)
        servers = [self.start_server(server_at(here)), None]
        local = self.start("ss-local", {"servers": [server_at(here)],
                                        "locals": [{"local_port": first}]}).await_listening(first)
        local.port = first
        conn = self.open(local, self.echo)
        path = self.write("there.json", {"servers": [server_at(there, "other")]})
        servers[1] = self.program("ss-server", "-c", path).await_listening(there)
        self.assertEqual(self.reload(local, {
            "servers": [server_at(there, "other")],
            "locals": [{"local_port": first}, {"local_port": second}]}), (1, 0, 1, 0, 0))
        self.assert_serves(local, self.echo)
        self.assert_echoes(conn)
        self.assertEqual([server.traffic()["total"] for server in servers], [1, 1])
        with socks.connect(second, self.echo.address) as other:
            self.assert_echoes(other)

    def test_users_of_socks5(self):
        port, server_port = reloads.free_ports(2)
        self.start_server(server_at(server_port))
        config = {"servers": [server_at(server_port)], "locals": [{"local_port": port}]}
        local = self.start("ss-local", config).await_listening(port)
        local.port = port
        conn = self.open(local, self.echo)
        auth = {"password": {"users": [{"user_name": "u", "password": "p"}]}}
        path = self.write("auth.json", auth)
        config["locals"][0]["socks5_auth_config_path"] = path
        self.assertEqual(self.reload(local, config), (0, 0, 1, 0, 0))
        self.assert_echoes(conn)
        with self.assertRaises((ConnectionError, socks.Refused)):
            socks.connect(port, self.echo.address)
        os.remove(path)
        self.assertIn("auth.json", self.refused(local, config))
        with self.assertRaises((ConnectionError, socks.Refused)):
            socks.connect(port, self.echo.address)

    def test_where_a_tunnel_leads(self):
        port, server_port = reloads.free_ports(2)
        self.start_server(server_at(server_port))
        other = self.target(targets.greeter(b"other"))

        def config(target):
            return dict(server_at(server_port), local_port=port,
                        tunnel_address="%s:%d" % target.address)

        tunnel = self.start("ss-tunnel", config(self.echo)).await_listening(port)
        with socks.dial("127.0.0.1", port) as conn:
            self.assert_echoes(conn)
            self.assertEqual(self.reload(tunnel, config(other)), (0, 0, 1, 0, 0))
            self.assert_echoes(conn)
        with socks.dial("127.0.0.1", port) as conn:
            self.assertEqual(socks.receive(conn, 5), b"other")


class Files(Reload):
    def test_a_list_of_rules(self):
        port = ports.free_port()
        rules = self.write("rules.acl", "")
        config = {"servers": [server_at(port)], "acl": rules}
        server = self.start("ss-server", config).await_listening(port)
        local = self.start_local(port)
        conn = self.open(local, self.echo)
        self.write("rules.acl", "[outbound_block_list]\n127.0.0.0/8\n")
        self.assertIsNotNone(self.reload(server))
        self.assert_refuses(local, self.echo)
        self.assert_echoes(conn)
        os.remove(rules)
        self.assertIn("rules.acl", self.refused(server))
        self.assert_refuses(local, self.echo)
        del config["acl"]
        self.assertIsNotNone(self.reload(server, config))
        self.assert_serves(local, self.echo)

    def test_relative_paths_in_the_background(self):
        """The program has gone to the root directory; the file is where it was."""
        port, second = reloads.free_ports(2)
        self.write("c.json", {"servers": [server_at(port)]})
        pid_file = os.path.join(self.folder, "pid")
        path = programs.find(settings.bin, "ss-server")
        started = programs.Program([path, "-c", "c.json", "-f", pid_file], cwd=self.folder)
        self.assertEqual(started.wait_end(), 0)
        with open(pid_file) as file:
            pid = int(file.read())
        self.addCleanup(lambda: os.path.exists(pid_file) and os.kill(pid, signal.SIGKILL))
        self.write("c.json", {"servers": [server_at(port), server_at(second)]})
        os.kill(pid, signal.SIGHUP)
        wait.until(lambda: proc.listening_ports(pid) == {port, second}, 10)
        os.kill(pid, signal.SIGTERM)
        wait.until(lambda: not os.path.exists(pid_file), 10)

    def test_nothing_but_a_command_line(self):
        server = self.server()
        self.assertEqual(self.reload_words(server), (0, 0, 0, 0, 0))
        self.assert_serves(self.local(server), self.echo)

    def reload_words(self, program):
        program.path = None
        return self.reload(program)

    def test_the_level_of_the_log(self):
        port = ports.free_port()
        server = self.start_server(server_at(port))
        self.assertEqual(server.log_lines("DEBUG"), [])
        self.assertIsNotNone(self.reload(server, {"servers": [server_at(port)],
                                                  "log_level": "debug"}))
        self.assert_serves(self.start_local(port), self.echo)
        wait.until(lambda: server.log_lines("DEBUG"), 10)

    @unittest.skipUnless(os.geteuid() == 0, "only root has privileges to drop")
    def test_what_only_root_may_read_and_bind(self):
        """With -a the helper opens the files of the start again, and binds low ports."""
        port, second = reloads.free_ports(2)
        low = next(number for number in range(1023, 600, -1) if ports.is_free(number))
        rules = self.write("rules.acl", "")

        def config(*servers, **more):
            return dict({"servers": list(servers), "user": "nobody", "acl": rules}, **more)

        def private(name, content):
            path = self.write(name, content)
            os.chmod(path, 0o600)
            return path

        os.chmod(self.folder, 0o755)
        private("rules.acl", "")
        path = private("ss-server.json", config(server_at(port)))
        server = self.program("ss-server", "-c", path).await_listening(port)
        server.path = path
        nobody = str(pwd.getpwnam("nobody").pw_uid)
        wait.until(lambda: proc.status(server.pid)["Uid"].split() == [nobody] * 4, 5)
        local = self.start_local(port)
        conn = self.open(local, self.echo)
        self.assertEqual(self.reload(server), (0, 0, 0, 0, 0))

        private("ss-server.json", config(server_at(port), server_at(low)))
        self.assertEqual(self.reload(server), (1, 0, 0, 0, 0))
        self.assert_serves(self.start_local(low), self.echo)
        private("rules.acl", "[outbound_block_list]\n127.0.0.0/8\n")
        self.assertIsNotNone(self.reload(server))
        self.assert_refuses(local, self.echo)

        # A file that was not named at the start is not opened in the name of root.
        other = private("other.acl", "")
        private("ss-server.json", config(server_at(port), server_at(second), acl=other))
        self.assertIn("other.acl", self.refused(server))
        self.assert_refuses(local, self.echo)
        os.remove(path)
        self.assertIn("not found", self.refused(server))
        # Nor is anything read any more when the helper is gone.
        private("ss-server.json", config(server_at(port)))
        for child in plugins.children(server.pid):
            os.kill(child, signal.SIGKILL)
        server.await_log("the helper process is gone")
        lines = self.refused(server)
        self.assertIn("the user of -a, nobody, may not read %s" % path, lines)
        self.assertIsNotNone(self.read_by_all(server, path))
        self.assert_echoes(conn)
        self.assert_serves(local, self.echo)

    def read_by_all(self, server, path):
        os.chmod(path, 0o644)
        os.chmod(os.path.join(self.folder, "rules.acl"), 0o644)
        with open(os.path.join(self.folder, "rules.acl"), "w"):
            pass
        return self.reload(server)


class Plugins(Reload):
    def through(self, client, port):
        local_port = ports.free_port()
        local = self.program("ss-local", "-s", "127.0.0.1", "-p", port, "-l", local_port, "-k",
                             PASSWORD, "-m", METHOD, "--plugin", client.path, env=client.env)
        local.port = local_port
        local.await_listening(local_port)
        client.await_relaying()
        return local

    def test_of_a_server(self):
        """They stay as long as they are what they were; another one takes the port over."""
        port, second = reloads.free_ports(2)
        self.fixture = plugins.Fixture("server")
        one = server_at(port, plugin=self.fixture.path, plugin_opts="a=1")
        server = self.start("ss-server", {"servers": [one]}, env=self.fixture.env)
        self.fixture.await_relaying()
        local = self.through(plugins.Fixture("client"), port)
        conn = self.open(local, self.echo)
        self.assertEqual(self.reload(server, {"servers": [one, server_at(second)]}),
                         (1, 0, 0, 0, 0))
        self.assert_echoes(conn)
        self.assertEqual(len(self.fixture.starts), 1)

        lines = self.refused(server, {"servers": [server_at(port), server_at(second)]})
        self.assertIn("port %d: its plugin can't be taken away" % port, lines)
        self.assert_echoes(conn)

        self.assertIsNotNone(self.reload(server, {"servers": [dict(one, plugin_opts="b=2")]}))
        self.assert_ends(conn)
        wait.until(lambda: "b=2" in str(self.fixture.starts[-1]) and
                   port in proc.listening_ports(self.fixture.starts[-1]["pid"]), 20)
        wait.until(lambda: self.serves(local), 20)
        self.assertEqual(proc.listening_ports(server.pid).intersection({second}), set())

        lines = self.refused(server, {"servers": [dict(one, plugin="/nosuch/plugin")]})
        self.assertIn("/nosuch/plugin", lines)
        self.assert_serves(local, self.echo)

    def serves(self, local):
        try:
            self.assert_serves(local, self.echo)
        except (OSError, AssertionError):
            return False
        return True

    def test_of_a_client(self):
        """What goes through the one before goes on."""
        port, local_port = ports.free_port(), ports.free_port()
        server, client = plugins.Fixture("server"), plugins.Fixture("client")
        self.start("ss-server", server_at(port, plugin=server.path), env=server.env)
        server.await_relaying()
        config = dict(server_at(port, plugin=client.path, plugin_opts="a=1"), local_port=local_port)
        local = self.start("ss-local", config, env=client.env).await_listening(local_port)
        local.port = local_port
        client.await_relaying()
        conn = self.open(local, self.echo)
        self.assertEqual(self.reload(local, dict(config, plugin_opts="b=2")), (0, 0, 1, 0, 0))
        client.await_relaying(2)
        self.assert_serves(local, self.echo)
        self.assert_echoes(conn)
        first, second = [start["pid"] for start in client.starts]
        self.assertTrue(plugins.runs(first) and plugins.runs(second))
        conn.close()
        wait.until(lambda: not plugins.runs(first), 20)
        self.assert_serves(local, self.echo)


class Growth(Reload):
    def test_a_thousand_reloads(self):
        """Neither memory nor descriptors, with ports and users that come and go, and sessions of
        other generations."""
        if self.sanitized:
            raise unittest.SkipTest("memory says nothing in a sanitizer build")
        port, second = reloads.free_ports(2)
        server_key, ann = key(), key()
        others = [key() for _ in range(200)]

        def config(number):
            users = [{"name": "ann", "password": ann}]
            users += [{"name": "user-%d" % (number * 7 + i), "password": others[i]}
                      for i in range(number % 3 * 100)]
            servers = [server_at(port, server_key, USERS_METHOD, mode="tcp_and_udp", users=users),
                       server_at(second, str(number), mode="tcp_and_udp")]
            return {"servers": servers[:1 + number % 2]}

        server = self.start("ss-server", config(0)).await_listening(port)
        local = self.start_local(port, server_key + ":" + ann, USERS_METHOD)
        conns, samples = [], []
        for number in range(1, 1001):
            self.assertIsNotNone(self.reload(server, config(number)))
            if number % 100 == 0:
                conns.append(self.open(local, self.echo))
                if number > 300:  # some stay, of the first generations
                    conns.pop(3).close()
                wait.until(lambda: server.traffic()["open"] == len(conns), 10)
                samples.append((proc.private_bytes(server.pid), proc.descriptors(server.pid)))
        for conn in conns:
            self.assert_echoes(conn)
        text = "\n".join("%.2f MiB, %d descriptors" % (size / MIB, count)
                         for size, count in samples)
        self.assertLessEqual(samples[-1][0], samples[3][0] + MIB // 4, text)
        self.assertEqual(samples[-1][1], samples[3][1], text)


if __name__ == "__main__":
    case.main()
