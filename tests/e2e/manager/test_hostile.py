"""R40, R42, R43: what is no command, or would be one for a shell, does nothing and ends nothing."""

import json
import os
import random
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from support import case, manager, ports, targets  # noqa: E402
from support.case import PASSWORD, settings  # noqa: E402


class Hostile:
    def test_datagrams_that_are_no_commands(self):
        started = self.manager()
        client = self.client()
        for text in ("add", "add:", "add: {", "remove:", "remove: {}", "add: []", "add: {}",
                     "adduser: {", "deluser: {}", 'users: {"server_port":', "add: " + "[" * 30000,
                     "add: {" + '"a":{' * 5000, 'add: {"server_port":1,"password":"\\ud800"}',
                     'add: {"server_port":1,"password":"\udcff"}'.encode("utf-8", "surrogateescape"),
                     'add: {"server_port":"1","password":{}}'):
            self.assertEqual(client.ask(text), "err", text)
        self.assertEqual(client.ask('remove: {"server_port":"x"}'), "port is not available")
        self.assertEqual(
            client.ask_in_order("", "\n", "\0", "\0" * 1000, bytes(range(256)), "a" * 32000,
                                'stat: {"1":', "stat", "nosuch: {}"),
            [])
        self.assertEqual(client.ask("ping"), "stat: {}")
        self.logged(started, "unknown command 'nosuch'")

    def test_datagrams_that_are_too_long(self):
        started = self.manager()
        client = self.client()
        self.assertEqual(client.ask("ping" + " " * 32000), "stat: {}")
        self.assertEqual(client.ask_in_order("ping" + " " * 32764, "a" * 70000), [])
        self.logged(started, "too large request: 70000")

    def test_random_datagrams(self):
        started = self.manager()
        client = self.client()
        seed = int(os.environ.get("SS_TEST_SEED", "0")) or random.SystemRandom().getrandbits(32)
        print("seed %d" % seed)
        chance = random.Random(seed)
        # A port that is taken: what stays a command opens none.
        taken = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(taken.close)
        good = ['add: {"server_port": %d, "password": "pw", "method": "aes-256-gcm"}'
                % taken.getsockname()[1], 'adduser: {"server_port": 1, "users": [{"name": "a", "password": "b"}]}',
                'stat: {"8001": 5}', "list", 'remove: {"server_port": "8001"}', "users", "ping"]
        for _ in range(2000):
            text = bytearray(chance.choice(good).encode())
            for _ in range(chance.randrange(1, 4)):
                at = chance.randrange(len(text) + 1)
                how = chance.randrange(3)
                if how == 0:
                    text[at:at] = bytes([chance.randrange(256)])
                elif how == 1:
                    del text[at : at + chance.randrange(1, 9)]
                else:
                    text[at : at + 1] = bytes([chance.randrange(256)])
            if b"server_port" in text and b"%d" % taken.getsockname()[1] not in text:
                continue  # it may have become a command for another port
            client.socket.settimeout(20)
            client.send(bytes(text))
            client.socket.setblocking(False)
            try:
                while True:
                    client.socket.recv(1 << 17)
            except BlockingIOError:
                pass
        client.ask_in_order()
        self.assertTrue(started.alive)
        self.assertEqual(client.list(), [])

    def test_nothing_reaches_a_shell(self):
        self.manager()
        client = self.client()
        target = self.target(targets.echo)
        marks = [os.path.join(self.folder, "mark-%d" % number) for number in range(4)]
        one, two, three = self.free_ports(3)
        self.assertEqual(client.add(one, "pw", method="aes-256-gcm||touch %s&&" % marks[0]), "err")
        word = "$(touch %s)`touch %s`" % (marks[1], marks[1])
        self.assertEqual(client.add(two, word), "ok")
        self.assert_served(two, target, word)
        self.assertIn(client.add(three, "pw", plugin="true;touch %s" % marks[2]),
                      ("err", "port is not available", "ok"))
        self.assertIn(client.add(three, "pw", plugin="true", plugin_opts="; touch %s" % marks[3]),
                      ("err", "port is not available", "ok"))
        client.remove(three)
        self.assertEqual([mark for mark in marks if os.path.exists(mark)], [])

    def test_odd_passwords_are_passwords(self):
        self.manager()
        client = self.client()
        target = self.target(targets.echo)
        for password in ('q" b\\ \t \n é 漢 \U0001f600', "x" * 5000, '","plugin":"x', "%s%n", "-c"):
            port = ports.free_port()
            self.assertEqual(client.add(port, password), "ok")
            self.assert_served(port, target, password)
            self.assertEqual(client.list()[0]["password"], password)
            self.assertEqual(client.remove(port), "ok")

    def test_a_client_that_does_not_read(self):
        """Its answers are lost; others are answered."""
        self.manager()
        port = ports.free_port()
        good = self.client()
        self.assertEqual(good.add(port, "p" * 20000), "ok")
        deaf = self.client()
        deaf.socket.settimeout(0.5)
        for _ in range(2000):
            try:
                deaf.send("list")
            except (BlockingIOError, socket.timeout):
                break
        self.assertEqual(good.ask("ping", 60), 'stat: {"%d":0}' % port)
        self.assertEqual(len(good.list()), 1)

    def test_a_client_without_a_name(self):
        self.manager()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as nameless:
            nameless.connect(self.socket_path)
            for text in (b"ping", b"list", b"add: {"):
                nameless.send(text)
        self.assertEqual(self.client().ask("ping"), "stat: {}")


class OneProcess(Hostile, manager.OneProcess, manager.ManagerCase):
    pass


class ProcessPerPort(Hostile, manager.ProcessPerPort, manager.ManagerCase):
    def test_a_file_is_strict_json(self):
        self.manager()
        client = self.client()
        port = ports.free_port()
        password = 'q" b\\ \t \n é'
        self.assertEqual(client.add(port, password), "ok")
        with open(os.path.join(self.workdir, ".shadowsocks_%d.conf" % port), "rb") as file:
            self.assertEqual(json.loads(file.read().decode("utf-8"))["password"], password)


if __name__ == "__main__":
    case.main()
