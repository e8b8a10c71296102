"""Traffic through plugins: the fixture of ours and real ones, and what becomes of it when they die."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, plugins, ports, proc, programs, socks, targets, udp, wait  # noqa: E402
from support.case import settings  # noqa: E402

PASSWORD = "barfoo!"
KEY = "AAECAwQFBgcICQoLDA0ODw=="
METHODS = (("aes-256-gcm", PASSWORD), ("2022-blake3-aes-128-gcm", KEY))
CLASSIC = "/usr/bin"


class Relay(case.Case):
    def start(self, name, *words, folder=None, **how):
        """One of ours, or of `folder`; ended by the test's end, in good order where it is ours."""
        if folder is None:
            return self.program(name, *words, **how)
        started = programs.Program([programs.find(folder, name), *words], **how)
        self.addCleanup(started.kill)
        return started

    def pair(self, server_words, local_words, method="aes-256-gcm", password=PASSWORD, port=None,
             server_folder=None, local_folder=None, server_env=None, local_env=None):
        """(ss-server, ss-local) with their words for plugins; they serve when it returns."""
        port = port or ports.free_port()
        common = ["-s", "127.0.0.1", "-p", port, "-k", password, "-m", method]
        server = self.start("ss-server", *common, *server_words, folder=server_folder,
                            env=server_env)
        listening = ports.free_port()
        local = self.start("ss-local", *common, "-l", listening, *local_words,
                           folder=local_folder, env=local_env)
        server.port, local.port = port, listening
        local.await_listening(listening)
        return server, local

    def fixtures(self, **more):
        return (plugins.Fixture("server", **more), plugins.Fixture("client", **more))

    def through_fixtures(self, *words, method="aes-256-gcm", password=PASSWORD, udp=False, tcp=True,
                         **more):
        at_server, at_client = self.fixtures(udp=udp, no_tcp=not tcp, **more)
        server, local = self.pair(["--plugin", at_server.path, *words],
                                  ["--plugin", at_client.path, *words], method, password,
                                  server_env=at_server.env, local_env=at_client.env)
        for fixture in (at_server, at_client):
            fixture.await_relaying(udp=udp and not tcp)
        return server, local, at_server, at_client

    def assert_serves(self, local, target, count=5):
        for _ in range(count):
            self.assert_works(local, target)
        with contextlib.closing(socks.connect(local.port, target.address)) as conn:
            data = os.urandom(1 << 20)
            sender = threading.Thread(target=conn.sendall, args=(data,), daemon=True)
            sender.start()
            self.assertTrue(socks.receive(conn, len(data)) == data)
            sender.join()


class Fixtures(Relay):
    def test_streams(self):
        target = self.target(targets.echo)
        for method, password in METHODS:
            with self.subTest(method=method):
                server, local, *fixtures = self.through_fixtures(method=method, password=password)
                self.assert_serves(local, target)
                for fixture in fixtures:
                    self.assertGreaterEqual(len(fixture.told("tcp")), 6)
                # Only the plugin is known to the other side.
                self.assertNotIn(server.port, proc.listening_ports(server.pid))

    def test_streams_that_are_cut_anew(self):
        """One first write and one first read (SIP022) do not come through a plugin as they were."""
        target = self.target(targets.echo)
        for method, password in METHODS:
            with self.subTest(method=method):
                _, local, *_ = self.through_fixtures(method=method, password=password, cut=True)
                self.assert_serves(local, target)

    def test_datagrams_go_around_it(self):
        target = self.target(targets.echo)
        datagrams = udp.Target(udp.echo)
        self.addCleanup(datagrams.close)
        server, local, *fixtures = self.through_fixtures("-u")
        self.assert_works(local, target)
        self.assert_datagrams(local, datagrams)
        for fixture in fixtures:
            self.assertEqual(fixture.told("udp"), [])
        self.assertIn(server.port, proc.udp_ports(server.pid))

    def assert_datagrams(self, local, target):
        with contextlib.closing(udp.Associate(local.port)) as client:
            for size in (1, 1200):
                payload = os.urandom(size)
                client.send(target.address, payload)
                self.assertEqual(client.receive()[1], payload)

    def test_datagrams_through_it(self):
        target = self.target(targets.echo)
        datagrams = udp.Target(udp.echo)
        self.addCleanup(datagrams.close)
        for mode, tcp in (("tcp_and_udp", True), ("udp_only", False)):
            for method, password in METHODS:
                with self.subTest(mode=mode, method=method):
                    server, local, *fixtures = self.through_fixtures(
                        "-u", "--plugin-mode", mode, method=method, password=password, udp=True,
                        tcp=tcp)
                    self.assert_datagrams(local, datagrams)
                    self.assert_works(local, target)
                    for fixture in fixtures:
                        self.assertEqual(len(fixture.told("udp")), 1)
                        self.assertEqual(bool(fixture.told("tcp")), tcp)
                    self.assertNotIn(server.port, proc.udp_ports(server.pid))
                    self.assertEqual(server.port in proc.listening_ports(server.pid), not tcp)

    def test_a_tunnel(self):
        target = self.target(targets.echo)
        at_server, at_client = self.fixtures()
        port, listening = ports.free_port(), ports.free_port()
        common = ["-s", "127.0.0.1", "-p", port, "-k", PASSWORD]
        self.program("ss-server", *common, "--plugin", at_server.path, env=at_server.env)
        tunnel = self.program("ss-tunnel", *common, "-l", listening, "-L",
                              "%s:%d" % target.address, "--plugin", at_client.path,
                              env=at_client.env)
        tunnel.await_listening(listening)
        for fixture in (at_server, at_client):
            fixture.await_relaying()
        with contextlib.closing(socks.dial("127.0.0.1", listening)) as conn:
            self.assert_echoes(conn)

    def test_a_source_address_is_for_the_way_to_the_server(self):
        """Else nothing would reach the plugin's end on loopback."""
        target = self.target(targets.echo)
        at_server, at_client = self.fixtures()
        _, local = self.pair(["--plugin", at_server.path],
                             ["--plugin", at_client.path, "--outbound-bind-addr", "192.0.2.1"],
                             server_env=at_server.env, local_env=at_client.env)
        for fixture in (at_server, at_client):
            fixture.await_relaying()
        self.assert_works(local, target)

    def test_the_port_that_people_know_is_counted(self):
        target = self.target(targets.echo)
        at_server, at_client = self.fixtures()
        public = [ports.free_port(), ports.free_port()]
        entries = [{"server": "127.0.0.1", "server_port": port, "method": "aes-256-gcm",
                    "password": PASSWORD, "plugin": plugin}
                   for port, plugin in zip(public, (at_server.path, ""))]
        path = os.path.join(at_server.folder, "c.json")
        with open(path, "w") as file:
            json.dump({"servers": entries}, file)
        server = self.program("ss-server", "-c", path, env=at_server.env)
        listening = ports.free_port()
        local = self.program("ss-local", "-s", "127.0.0.1", "-p", public[0], "-l", listening, "-k",
                             PASSWORD, "-m", "aes-256-gcm", "--plugin", at_client.path,
                             env=at_client.env)
        local.port = listening
        local.await_listening(listening)
        for fixture in (at_server, at_client):
            fixture.await_relaying()
        self.assert_works(local, target)
        server.await_no_sessions()
        self.assertTrue(server.log_lines("port %d: 1 sessions" % public[0]), server.log)

    def test_one_that_dies_is_back_before_long(self):
        target = self.target(targets.echo)
        at_server, at_client = self.fixtures(act="relay")
        at_server.env["FIXTURE_ACT"] = "exit:9:1.5,relay"
        _, local = self.pair(["--plugin", at_server.path], ["--plugin", at_client.path],
                             server_env=at_server.env, local_env=at_client.env)
        at_client.await_relaying()
        at_server.await_relaying()
        with contextlib.closing(socks.connect(local.port, target.address)) as conn:
            self.assert_echoes(conn)
            # The plugin's end is this connection's, too.
            self.assertEqual(conn.recv(1), b"")
        at_server.await_relaying(2)
        self.assert_serves(local, target)

    def test_plugins_cut_at_random(self):
        """R08: one of the two plugins is killed in the middle of it all, again and again."""
        target = self.target(targets.echo)
        first = random.Random(8)
        _, local, *fixtures = self.through_fixtures(act="exit:1:1.1,relay")
        for fixture in fixtures:
            fixture.await_relaying(2)
        stop = threading.Event()

        def ask():
            own = random.Random(first.random())
            while not stop.is_set():
                with contextlib.suppress(OSError, AssertionError):
                    conn = socks.connect(local.port, target.address, timeout=2)
                    with contextlib.closing(conn):
                        for _ in range(own.randrange(4)):
                            conn.sendall(os.urandom(own.randrange(1, 40000)))
                            conn.recv(own.randrange(1, 40000))

        askers = [threading.Thread(target=ask, daemon=True) for _ in range(8)]
        for asker in askers:
            asker.start()
        try:
            for round_ in range(10):
                fixture = first.choice(fixtures)
                count = len(fixture.starts)
                start = fixture.starts[-1]
                wait.until(lambda: len(fixture.told("tcp")) > 3 * round_, 20)
                os.kill(start["pid"], signal.SIGKILL)
                fixture.await_start(count + 1, 30)
        finally:
            stop.set()
            for asker in askers:
                asker.join()
        for fixture in fixtures:
            fixture.await_relaying(len(fixture.starts))
        self.assert_serves(local, target)


def certificate(folder):
    """(certificate, key) for plugin.test, signed by itself."""
    made = [os.path.join(folder, name) for name in ("cert.pem", "key.pem")]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", "/CN=plugin.test", "-addext",
         "subjectAltName=DNS:plugin.test", "-out", made[0], "-keyout", made[1]],
        check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    return made


class Real(Relay):
    """Ours at both ends, and shadowsocks-libev at one."""

    def check(self, server_plugin, server_options, local_plugin, local_options):
        for plugin in {server_plugin, local_plugin}:
            if shutil.which(plugin) is None:
                self.skipTest("%s is not installed" % plugin)
        target = self.target(targets.echo)
        sides = [(None, None)]
        if os.access(os.path.join(CLASSIC, "ss-local"), os.X_OK):
            sides += [(CLASSIC, None), (None, CLASSIC)]
        for server_folder, local_folder in sides:
            for method, password in METHODS if sides[0] == (server_folder, local_folder) \
                    else METHODS[:1]:
                with self.subTest(server=server_folder or "ours", local=local_folder or "ours",
                                  method=method):
                    server, local = self.pair(
                        ["--plugin", server_plugin, "--plugin-opts", server_options],
                        ["--plugin", local_plugin, "--plugin-opts", local_options],
                        method, password, server_folder=server_folder, local_folder=local_folder)
                    self.await_plugin(server, server_folder)
                    self.await_plugin(local, local_folder)
                    self.assert_serves(local, target)

    def await_plugin(self, program, folder):
        if folder is None:
            plugins.await_listening_somewhere(program)
        else:
            plugins.await_descendant(program)

    def test_obfs_http(self):
        self.check("obfs-server", "obfs=http", "obfs-local", "obfs=http;obfs-host=example.com")

    def test_obfs_tls(self):
        self.check("obfs-server", "obfs=tls", "obfs-local", "obfs=tls;obfs-host=example.com")

    def test_v2ray_websocket(self):
        self.check("ss-v2ray-plugin", "server", "ss-v2ray-plugin", "")

    def test_v2ray_websocket_with_a_certificate(self):
        if shutil.which("openssl") is None:
            self.skipTest("openssl is not installed")
        cert, key = certificate(programs.scratch_directory())
        self.check("ss-v2ray-plugin", "server;tls;host=plugin.test;cert=%s;key=%s" % (cert, key),
                   "ss-v2ray-plugin", "tls;host=plugin.test;cert=" + cert)


if __name__ == "__main__":
    case.main()
