"""R68, R70, R77: every method that the build offers, users by identity headers, and relays of them.

Clock skew, replay and the wire formats are held to vectors in the unit tests of the codec.
"""

import base64
import json
import os
import re
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, ports, programs, socks, targets, udp_case  # noqa: E402

STREAM_WARNING = ("Stream ciphers are insecure, therefore deprecated, and should be almost always "
                  "avoided.")
AES = ("2022-blake3-aes-128-gcm", "2022-blake3-aes-256-gcm")
# By these names people know them, whether a build has them or not.
OLD = ("rc4-md5", "salsa20", "chacha20", "chacha20-ietf", "none")


def is_old(method):
    return method in OLD or method.endswith(("-cfb", "-ctr"))


class Base(udp_case.UdpCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = programs.scratch_directory()

    @staticmethod
    def run_to_end(program, *words):
        return subprocess.run([programs.find(case.settings.bin, program), *map(str, words)],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=30, check=False, text=True)

    def methods(self):
        """As the usage text lists them."""
        listed = self.run_to_end("ss-server", "-h").stdout.split("methods:\n", 1)[1]
        found = re.findall(r"^ {7}(\S+)$", listed, re.M)
        self.assertIn("aes-256-gcm", found)
        self.assertIn(AES[0], found)
        return found

    def key(self, method):
        made = self.run_to_end("ss-server", "--gen-key", method)
        self.assertEqual(made.returncode, 0, made.stderr)
        return made.stdout.strip()

    def file(self, members):
        path = os.path.join(self.folder, "%d.json" % len(os.listdir(self.folder)))
        with open(path, "w") as file:
            json.dump(members, file)
        return path

    def server_of(self, members):
        """ss-server of a file with these members; a free port goes with them."""
        port = ports.free_port()
        path = self.file({"server": "127.0.0.1", "server_port": port, "mode": "tcp_and_udp",
                          **members})
        started = self.program("ss-server", "-c", path)
        started.port = port
        return self.await_udp(started.await_listening(port))

    def client_of(self, server, method, password):
        return self.local(server, "-m", method, "-k", password)

    def summary(self, program):
        """All that SIGUSR1 logs."""
        before = len(program.log_lines("traffic: sessions"))
        program.process.send_signal(signal.SIGUSR1)
        program.await_log("traffic: sessions", count=before + 1)
        # It is logged in one go, so that the beginning of a second one is the end of the first.
        program.process.send_signal(signal.SIGUSR1)
        program.await_log("traffic: sessions", count=before + 2)
        return program.log.split("traffic: sessions")[before + 1]

    def numbers(self, program, subject):
        """(sessions, received, sent) that SIGUSR1 logs of a user or a port, or None."""
        found = re.search(r"%s: (\d+) sessions; received (\d+) bytes, sent (\d+) bytes"
                          % re.escape(subject), self.summary(program))
        return tuple(map(int, found.groups())) if found else None

    def exchange_tcp(self, local, target, size):
        conn = self.connect(local, target.address)
        data = os.urandom(size)
        conn.sendall(data)
        self.assertEqual(socks.receive(conn, size), data)
        conn.close()

    def assert_refused(self, local, target):
        """The server is reached and gives nothing."""
        before = target.accepted
        conn = socks.dial("127.0.0.1", local.port)
        self.addCleanup(conn.close)
        conn.sendall(socks.GREETING + socks.request(*target.address) + b"anybody?")
        conn.settimeout(5)
        try:
            answer = socks.receive_all(conn)
        except ConnectionResetError:
            answer = b""
        self.assertNotIn(b"anybody?", answer)
        self.assertEqual(target.accepted, before)


class Methods(Base):
    def check_method(self, method):
        words = ["-m", method]
        if method != "none":
            words += ["-k", self.key(method)]
        port = ports.free_port()
        echo, datagrams = self.target(targets.echo, port=port), self.udp_target(port=port)
        server = self.server(*words)
        local = self.local(server, *words)
        tunnel = self.tunnel(server, echo.address, *words)

        self.exchange_tcp(local, echo, 200000)
        with socket.create_connection(("127.0.0.1", tunnel.port), 10) as conn:
            self.assert_echoes(conn, os.urandom(70000))
        associate = self.associate(local)
        client = self.client(tunnel)
        for size in (0, 1, 1400, 9000):
            self.assert_relays(associate, datagrams, os.urandom(size))
            payload = os.urandom(size)
            self.assertEqual(client.exchange(payload), payload)

        for program in (server, local, tunnel):
            program.await_log("initializing ciphers... " + method)
            warnings = len(program.log_lines(STREAM_WARNING))
            self.assertEqual(warnings, 1 if is_old(method) else 0)
        for program in (tunnel, local, server):
            self.assertEqual(program.stop(), 0)

    def test_every_method_over_tcp_and_udp(self):
        for method in self.methods():
            with self.subTest(method=method):
                self.check_method(method)

    def test_old_methods_stand_apart(self):
        """R77: the default is an AEAD method, and the insecure ones come last in the list."""
        methods = self.methods()
        ages = [is_old(method) for method in methods]
        self.assertEqual(ages, sorted(ages))
        usage = self.run_to_end("ss-local", "-h").stdout
        self.assertEqual("insecure methods" in usage, any(ages))
        self.assertIn("The default method is chacha20-ietf-poly1305.", usage)

    def test_names_that_are_refused(self):
        for program, words in (("ss-server", ()), ("ss-local", ("-l", "1080")),
                               ("ss-tunnel", ("-l", "1080", "-L", "192.0.2.2:53"))):
            for method, says in (("rc4", "rc4 is broken and not offered; use aes-256-gcm"),
                                 ("table", "Table is deprecated"),
                                 ("seed-cfb", "Cipher seed-cfb not found in crypto library"),
                                 ("AES-256-GCM", "invalid cipher name: AES-256-GCM")):
                ended = self.run_to_end(program, "-s", "127.0.0.1", "-p", "8388", "-k", "x",
                                        "-m", method, *words)
                self.assertEqual(ended.returncode, 255)
                self.assertIn(says, ended.stderr)

    def test_keys_that_do_not_fit(self):
        """R70: the method, the bytes needed and given, and how to make a key."""
        for method in self.methods():
            if not method.startswith("2022-"):
                continue
            needed = 16 if "-128-" in method else 32
            other = self.key(AES[1] if needed == 16 else AES[0])
            for key, given in ((other, "has %d" % (48 - needed)), ("barfoo!", "is not base64"),
                               (self.key(method)[:-4], "has ")):
                ended = self.run_to_end("ss-server", "-s", "127.0.0.1", "-p", "8388", "-k", key,
                                        "-m", method)
                self.assertEqual(ended.returncode, 255)
                for part in (method, "%d bytes" % needed, given, "ss-server --gen-key " + method):
                    self.assertIn(part, ended.stderr)

    def test_either_alphabet_padded_or_not(self):
        """R68"""
        key = "+/+/AwQFBgcICQoLDA0ODw=="
        echo = self.target(targets.echo)
        server = self.server("-m", AES[0], "-k", key)
        for form in (key.rstrip("="), key.replace("+", "-").replace("/", "_")):
            self.assert_works(self.client_of(server, AES[0], form), echo)
        self.assert_works(self.local(server, "-m", AES[0], "--key", key), echo)

    def test_a_wrong_key_gets_nothing(self):
        echo = self.target(targets.echo)
        for method in ("aes-256-gcm", *AES, "2022-blake3-chacha8-poly1305"):
            server = self.server("-m", method, "-k", self.key(method), "--handshake-timeout", "1")
            self.assert_refused(self.client_of(server, method, self.key(method)), echo)
            self.assertEqual(server.traffic()["received"], 0)


class Users(Base):
    def test_users_are_counted_apart(self):
        for method in AES:
            with self.subTest(method=method):
                self.check_users(method)

    def check_users(self, method):
        echo, datagrams = self.target(targets.echo), self.udp_target()
        keys = {name: self.key(method) for name in ("server", "ann", "bob", "cyd", "nobody")}
        server = self.server_of({"method": method, "password": keys["server"],
                                 "users": [{"name": name, "password": keys[name]}
                                           for name in ("ann", "bob", "cyd")]})
        ann, bob, nobody = (self.client_of(server, method, keys["server"] + ":" + keys[name])
                            for name in ("ann", "bob", "nobody"))
        for _ in range(3):
            self.exchange_tcp(ann, echo, 1000)
        self.exchange_tcp(bob, echo, 50000)
        server.await_no_sessions()
        self.assertEqual(self.numbers(server, "user ann"), (3, 3000, 3000))
        self.assertEqual(self.numbers(server, "user bob"), (1, 50000, 50000))
        self.assertIsNone(self.numbers(server, "user cyd"))

        # Over UDP too, and nothing for a key that is on no list, nor for one that stands alone.
        self.assert_relays(self.associate(ann), datagrams, b"x" * 500)
        self.assertEqual(self.numbers(server, "user ann"), (4, 3500, 3500))
        for local in (nobody, self.client_of(server, method, keys["server"])):
            self.assert_refused(local, echo)
        self.assertEqual(self.numbers(server, "user bob"), (1, 50000, 50000))

    def test_only_the_largest_are_logged(self):
        """However many users there are, SIGUSR1 logs 50 of them."""
        method, count = AES[0], 53
        echo = self.target(targets.echo)
        server_key, keys = self.key(method), [os.urandom(16) for _ in range(count)]
        keys = [base64.b64encode(key).decode() for key in keys]
        server = self.server_of({"method": method, "password": server_key, "users": [
            {"name": "user-%d" % number, "password": key} for number, key in enumerate(keys)]})
        # Each connection of this client is, by chance, one of them.
        port = ports.free_port()
        local = self.program("ss-local", "-c", self.file({
            "servers": [{"server": "127.0.0.1", "server_port": server.port, "method": method,
                         "password": server_key + ":" + key} for key in keys],
            "balance": "random", "locals": [{"local_port": port}]}))
        local.port = port
        local.await_listening(port)
        for _ in range(10):
            for _ in range(300):
                self.assert_works(local, echo)
            text = self.summary(server)
            if "3 other users had less traffic" in text:
                break
        self.assertIn("3 other users had less traffic", text)
        self.assertEqual(len(re.findall(r"user user-\d+: ", text)), 50)

    def test_many_users_load_quickly(self):
        method, count = AES[1], 30000
        users = [{"name": "u%d" % number, "password": "%042dA=" % number}
                 for number in range(count)]
        known = self.key(method)
        users.append({"name": "known", "password": known})
        server_key = self.key(method)
        server = self.server_of({"method": method, "password": server_key, "users": users})
        self.assert_works(self.client_of(server, method, server_key + ":" + known),
                          self.target(targets.echo))

    def test_keys_of_users_that_are_refused(self):
        """By name; and a list of nobody, which would let in who has the server's key."""
        method = AES[0]
        key, other = self.key(method), self.key(method)
        for users, says in (
                ([], "'users' must be a list with at least one user"),
                ([("ann", other), ("bob", key)], "users[1] 'bob': that is the server's own key"),
                ([("ann", other), ("bob", other)], "users[1] 'bob': another user has the same"),
                ([("ann", self.key(AES[1]))], "users[0] 'ann': " + method + " needs a key of 16")):
            path = self.file({"server": "127.0.0.1", "server_port": 8388, "method": method,
                              "password": key, "users": [{"name": name, "password": password}
                                                         for name, password in users]})
            ended = self.run_to_end("ss-server", "-c", path)
            self.assertEqual(ended.returncode, 255)
            self.assertIn(says, ended.stderr)

    def test_urls_of_users(self):
        """--print-url gives each user a URL that a client can start from."""
        method = AES[0]
        echo = self.target(targets.echo)
        members = {"method": method, "password": self.key(method),
                   "users": [{"name": "ann b", "password": self.key(method)}]}
        server = self.server_of(members)
        path = self.file({"server": "127.0.0.1", "server_port": server.port, **members})
        url = self.run_to_end("ss-server", "-c", path, "--print-url").stdout.strip()
        self.assertRegex(url, r"^ss://%s:[^:@]*%%3A[^:@]*@127\.0\.0\.1:%d#ann%%20b$"
                         % (method, server.port))
        port = ports.free_port()
        local = self.program("ss-local", "-c", url, "-l", port)
        local.port = port
        self.assert_works(local.await_listening(port), echo)
        self.assertEqual(self.numbers(server, "user ann b")[0], 1)


class Relays(Base):
    def test_passed_on_over_tcp_and_udp(self):
        for method in AES:
            with self.subTest(method=method):
                self.check_relay(method)

    def check_relay(self, method):
        """client -> ss-server with users -> ss-server with users or without, -> target."""
        echo, datagrams = self.target(targets.echo), self.udp_target()
        names = ("front", "own", "plain", "listed", "ann")
        keys = {name: self.key(method) for name in names}
        plain = self.server_of({"method": method, "password": keys["plain"]})
        listed = self.server_of({"method": method, "password": keys["listed"],
                                 "users": [{"name": "ann", "password": keys["ann"]}]})
        front = self.server_of({"method": method, "password": keys["front"], "users": [
            {"name": "own", "password": keys["own"]},
            {"name": "plain", "password": keys["plain"], "server": "127.0.0.1",
             "server_port": plain.port},
            {"name": "listed", "password": keys["listed"], "server": "127.0.0.1",
             "server_port": listed.port}]})
        for name, chain, ends in (("own", ("front", "own"), front),
                                  ("plain", ("front", "plain"), plain),
                                  ("listed", ("front", "listed", "ann"), listed)):
            before = ends.traffic()["received"]
            local = self.client_of(front, method, ":".join(keys[key] for key in chain))
            self.exchange_tcp(local, echo, 100000)
            self.assert_relays(self.associate(local), datagrams, b"y" * 700)
            self.assertEqual(ends.traffic()["received"] - before, 100700)
            sessions, received, sent = self.numbers(front, "user " + name)
            self.assertEqual(sessions, 2)
            # What is passed on is sealed, and so a little more than the payload.
            sealed = ends is not front
            for count in (received, sent):
                self.assertTrue(100700 + sealed <= count <= 100700 + sealed * 3000, count)
        self.assertEqual(self.numbers(listed, "user ann"), (2, 100700, 100700))


class Ports(Base):
    def test_a_line_for_each_of_several_ports(self):
        echo = self.target(targets.echo)
        one, two, three = (ports.free_port() for _ in range(3))
        path = self.file({"server": "127.0.0.1", "mode": "tcp_and_udp", "method": "aes-128-gcm",
                          "port_password": {str(port): "pw" for port in (one, two, three)}})
        server = self.program("ss-server", "-c", path)
        server.await_listening(one, two, three)
        for port, size, times in ((one, 1000, 1), (two, 300, 2)):
            local = self.client_of(port, "aes-128-gcm", "pw")
            for _ in range(times):
                self.exchange_tcp(local, echo, size)
        server.await_no_sessions()
        self.assertEqual(self.numbers(server, "port %d" % one), (1, 1000, 1000))
        self.assertEqual(self.numbers(server, "port %d" % two), (2, 600, 600))
        self.assertIsNone(self.numbers(server, "port %d" % three))

        alone = self.server("-m", "aes-128-gcm", "-k", "pw")
        self.exchange_tcp(self.client_of(alone, "aes-128-gcm", "pw"), echo, 10)
        self.assertIsNone(self.numbers(alone, "port %d" % alone.port))


if __name__ == "__main__":
    case.main()
