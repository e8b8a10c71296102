"""Users of a port come and go while it runs, and what each uses is counted (SIP023)."""

import base64
import contextlib
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from support import case, ends, manager, ports, socks, targets, wait  # noqa: E402

METHOD = "2022-blake3-aes-128-gcm"


def key():
    return base64.b64encode(os.urandom(16)).decode()


class Users:
    def setUp(self):
        super().setUp()
        self.target_of_all = self.target(targets.echo)

    def with_users(self, *names):
        """A manager, a client of it, and a port with users of these names."""
        started = self.manager("-m", METHOD, method=False)
        client = self.client()
        port, psk = ports.free_port(), key()
        keys = {name: key() for name in names}
        self.assertEqual(
            client.add(port, psk, users=[{"name": name, "password": keys[name]} for name in names]),
            "ok")
        return started, client, port, psk, keys

    def add_user(self, client, port, name, password):
        return client.ask("adduser: " + json.dumps(
            {"server_port": port, "name": name, "password": password}))

    def delete_user(self, client, port, name):
        return client.ask("deluser: " + json.dumps({"server_port": port, "name": name}))

    def open(self, port, password):
        """A connection through the port that has echoed, or None."""
        local = self.relay(port, password, METHOD)
        conn = socks.connect(local.port, self.target_of_all.address)
        self.addCleanup(conn.close)
        try:
            conn.sendall(b"x" * 1000)
            if socks.receive(conn, 1000) == b"x" * 1000:
                return conn
        except OSError:
            pass
        return None

    def assert_ended(self, conn):
        conn.settimeout(20)
        self.assertEqual(ends.read_to_end(conn)[0], b"")

    def test_users_are_told_apart(self):
        _, client, port, psk, keys = self.with_users("ann", "bob")
        self.assertIsNotNone(self.open(port, psk + ":" + keys["ann"]))
        self.assertIsNotNone(self.open(port, psk + ":" + keys["bob"]))
        self.assertIsNone(self.open(port, psk + ":" + key()))
        self.assertIsNone(self.open(port, psk))
        self.assertEqual(client.list(), [{"server_port": str(port), "password": psk,
                                          "method": METHOD, "user_count": 2}])

    def test_a_user_is_added_and_its_key_changed(self):
        _, client, port, psk, keys = self.with_users("ann")
        carl, other = key(), key()
        self.assertIsNone(self.open(port, psk + ":" + carl))
        self.assertEqual(self.add_user(client, port, "carl", carl), "ok")
        conn = self.open(port, psk + ":" + carl)
        self.assertIsNotNone(conn)
        self.assertEqual(self.add_user(client, port, "carl", other), "ok")
        self.assert_ended(conn)
        self.assertIsNone(self.open(port, psk + ":" + carl))
        self.assertIsNotNone(self.open(port, psk + ":" + other))
        self.assertIsNotNone(self.open(port, psk + ":" + keys["ann"]))

    def test_the_last_user_goes_and_nobody_is_served(self):
        _, client, port, psk, keys = self.with_users("ann")
        conn = self.open(port, psk + ":" + keys["ann"])
        self.assertIsNotNone(conn)
        self.assertEqual(self.delete_user(client, port, "ann"), "ok")
        self.assert_ended(conn)
        self.assertIsNone(self.open(port, psk + ":" + keys["ann"]))
        self.assertIsNone(self.open(port, psk))
        self.assertEqual(client.users(port), {})
        self.assertEqual(self.add_user(client, port, "bob", keys["ann"]), "ok")
        self.assertIsNotNone(self.open(port, psk + ":" + keys["ann"]))

    def test_what_can_not_be_a_user_changes_nothing(self):
        started, client, port, psk, keys = self.with_users("ann")
        for name, password in (("bob", "no key"), ("bob", keys["ann"]), ("", key()),
                               ("bob", base64.b64encode(os.urandom(32)).decode())):
            self.assertEqual(self.add_user(client, port, name, password), "err")
        other = ports.free_port()
        self.assertEqual(self.add_user(client, other, "bob", key()), "err")
        self.assertEqual(client.add(other, "pw", method="aes-256-gcm"), "ok")
        self.assertEqual(self.add_user(client, other, "bob", key()), "err")
        self.assertEqual(self.delete_user(client, port, "nobody of them"), "ok")
        self.assertEqual(list(client.users(port)), ["ann"])
        self.assertIsNotNone(self.open(port, psk + ":" + keys["ann"]))
        for secret in (psk, keys["ann"]):
            self.assertNotIn(secret, started.log)

    def test_users_come_back_after_a_crash(self):
        started, client, port, psk, keys = self.with_users("ann", "bob")
        carl = key()
        self.assertEqual(self.add_user(client, port, "carl", carl), "ok")
        self.assertEqual(self.delete_user(client, port, "bob"), "ok")
        self.crash(started)
        self.manager("-m", METHOD, method=False)
        self.assertEqual(sorted(client.users(port)), ["ann", "carl"])
        self.assertIsNotNone(self.open(port, psk + ":" + carl))
        self.assertIsNotNone(self.open(port, psk + ":" + keys["ann"]))
        self.assertIsNone(self.open(port, psk + ":" + keys["bob"]))

    def test_a_list_of_users_at_once(self):
        _, client, port, psk, keys = self.with_users("ann")
        more = {"user %d" % number: key() for number in range(300)}
        self.assertEqual(client.ask("adduser: " + json.dumps(
            {"server_port": port, "users": [{"name": name, "password": password}
                                            for name, password in more.items()]})), "ok")
        self.assertEqual(list(client.users(port)), ["ann", *more])
        conn = self.open(port, psk + ":" + keys["ann"])
        self.assertIsNotNone(self.open(port, psk + ":" + more["user 299"]))
        if self.live:
            self.assert_echoes(conn)
        self.assertEqual(client.ask("deluser: " + json.dumps(
            {"server_port": port, "users": [{"name": name} for name in more]})), "ok")
        self.assertEqual(list(client.users(port)), ["ann"])
        self.assertIsNone(self.open(port, psk + ":" + more["user 299"]))
        self.assertEqual(len(client.list("users")), 1)


class OneProcess(Users, manager.OneProcess, manager.ManagerCase):
    def test_counters_are_live_and_outlive_the_server(self):
        started, client, port, psk, keys = self.with_users("ann", "bob")
        conn = self.open(port, psk + ":" + keys["ann"])
        used = client.users(port)
        self.assertEqual((used["ann"]["received"], used["ann"]["sent"], used["ann"]["sessions"]),
                         (1000, 1000, 1))
        self.assertEqual((used["bob"]["received"], used["bob"]["sessions"]), (0, 0))
        conn.sendall(b"y" * 500)
        self.assertEqual(len(socks.receive(conn, 500)), 500)
        self.assertEqual(client.users(port)["ann"]["received"], 1500)
        # Another user does not touch it, nor does a new key for that one.
        self.assertEqual(self.add_user(client, port, "carl", key()), "ok")
        self.assert_echoes(conn)
        before = client.users(port)["ann"]
        server = next(pid for helper in manager.children_of(started.pid)
                      for pid in manager.children_of(helper))
        os.kill(server, signal.SIGKILL)
        wait.until(lambda: not os.path.exists("/proc/%d" % server), 10)
        self.assertEqual(client.users(port)["ann"], before)
        self.assertIsNotNone(self.open(port, psk + ":" + keys["ann"]))
        self.assertEqual(client.users(port)["ann"]["received"], before["received"] + 1000)
        self.assertEqual(sorted(client.users(port)), ["ann", "bob", "carl"])

    def test_a_changed_port_keeps_the_sessions_of_users_that_stay(self):
        _, client, port, psk, keys = self.with_users("ann", "bob")
        ann = self.open(port, psk + ":" + keys["ann"])
        bob = self.open(port, psk + ":" + keys["bob"])
        self.assertEqual(client.add(port, psk, users=[{"name": "ann", "password": keys["ann"]}]),
                         "ok")
        self.assert_ended(bob)
        self.assert_echoes(ann)
        with contextlib.closing(ann):
            self.assertEqual(client.add(port, key(),
                                        users=[{"name": "ann", "password": keys["ann"]}]), "ok")
            self.assert_ended(ann)


class ProcessPerPort(Users, manager.ProcessPerPort, manager.ManagerCase):
    pass


if __name__ == "__main__":
    case.main()
