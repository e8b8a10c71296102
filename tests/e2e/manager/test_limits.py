"""Limits of ports and users: what a server lets through, and what a manager tells of it."""

import contextlib
import json
import os
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from support import case, ends, manager, ports, programs, socks, targets, wait  # noqa: E402
from support.case import PASSWORD, settings  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
METHOD_2022 = "2022-blake3-aes-128-gcm"
# What may have been granted and not delivered when the others ended, a connection.
SLACK = 512 * KIB


class Downloads:
    """Connections that each read what a source sends until it ends."""

    def __init__(self, entry, target, count):
        self.counts = [0] * count
        self.conns = [socks.connect(entry, target, timeout=30) for _ in range(count)]
        self.threads = [threading.Thread(target=self._read, args=(number,), daemon=True)
                        for number in range(count)]
        for thread in self.threads:
            thread.start()

    def _read(self, number):
        try:
            while True:
                got = self.conns[number].recv(65536)
                if not got:
                    return
                self.counts[number] += len(got)
        except OSError:
            return

    def join(self, seconds):
        for thread in self.threads:
            thread.join(seconds)
        return not any(thread.is_alive() for thread in self.threads)

    def close(self):
        for conn in self.conns:
            conn.close()


class Limits(manager.OneProcess, manager.ManagerCase):
    def source(self, count):
        return self.target(targets.source(count)).address

    def entry(self, client, port):
        return next(entry for entry in client.list() if entry["server_port"] == str(port))

    def download(self, entry, target, count=4):
        downloads = Downloads(entry, target, count)
        self.addCleanup(downloads.close)
        return downloads

    def assert_ends(self, conn, seconds=10):
        conn.settimeout(seconds)
        self.assertEqual(ends.read_to_end(conn)[0], b"")

    def test_quota_of_a_user(self):
        """10 MiB left, 50 MiB wanted over four connections; then a raise, at once."""
        server_key, key, other_key = (
            programs.key_for(settings.bin, METHOD_2022) for _ in range(3))
        self.manager()
        client = self.client()
        port = self.free_ports(1)[0]
        user = {"name": "ann", "password": key, "quota": 10 * MIB}
        self.assertEqual(client.add(port, server_key, method=METHOD_2022, users=[
            user, {"name": "bob", "password": other_key}]), "ok")
        ann = self.relay(port, "%s:%s" % (server_key, key), METHOD_2022)
        bob = self.relay(port, "%s:%s" % (server_key, other_key), METHOD_2022)
        echo = self.target(targets.echo).address
        idle = socks.connect(ann.port, echo)
        self.addCleanup(idle.close)
        self.assert_echoes(idle)

        target = self.source(50 * MIB)
        downloads = self.download(ann.port, target)
        self.assertTrue(downloads.join(60))
        self.assertGreater(sum(downloads.counts), 10 * MIB - 4 * SLACK)
        self.assertLessEqual(sum(downloads.counts), 10 * MIB + 4 * 64 * KIB)
        # What sessions were granted and did not use is there again; then it is used up for good.
        def used_up():
            self.assertTrue(self.download(ann.port, target, 1).join(60))
            return client.users(port)["ann"].get("state") == "quota"

        wait.until(used_up, 30, "the end of the quota")
        self.assert_ends(idle)  # what waits for nothing ends too
        wait.until(used_up, 30, "the end of what the idle one held")
        with contextlib.closing(socks.connect(ann.port, echo)) as late:
            late.sendall(b"x")
            self.assert_ends(late)
        told = client.users(port)
        self.assertEqual(told["ann"]["state"], "quota")
        self.assertEqual(told["ann"]["quota"], 10 * MIB)
        self.assertNotIn("state", told["bob"])
        self.assert_works(bob, self.target(targets.echo))

        user["quota"] = 12 * MIB
        self.assertEqual(client.ask("adduser: " + json.dumps({"server_port": port, **user})), "ok")
        self.assertNotIn("state", client.users(port)["ann"])
        downloads = self.download(ann.port, target)
        self.assertTrue(downloads.join(60))
        self.assertGreater(sum(downloads.counts), 2 * MIB - 4 * SLACK - 64 * KIB)
        self.assertLessEqual(sum(downloads.counts), 2 * MIB + 4 * 64 * KIB)

    def test_what_was_used_outlives_the_server_and_the_manager(self):
        started = self.manager("--restore")
        client = self.client()
        port, other = self.free_ports(2)
        self.assertEqual(client.add(port, PASSWORD, quota=MIB), "ok")
        self.assertEqual(client.add(other, PASSWORD, quota=MIB), "ok")
        local, target = self.relay(port), self.source(8 * MIB)

        def used_up():
            self.assertTrue(self.download(local.port, target, 1).join(60))
            return self.entry(client, port).get("state") == "quota"

        wait.until(used_up, 30, "the end of the quota")
        self.assertGreaterEqual(self.entry(client, port)["quota_used"], MIB)
        self.assertEqual(self.entry(client, other)["quota_used"], 0)

        def assert_still():
            self.assertEqual(self.entry(client, port)["state"], "quota")
            self.assertFalse(self.echoes(local, self.target(targets.echo)))
            self.assertNotIn("state", self.entry(client, other))

        server = next(pid for helper in manager.children_of(started.pid)
                      for pid in manager.children_of(helper))
        os.kill(server, signal.SIGKILL)
        wait.until(lambda: not os.path.exists("/proc/%d" % server), 10)
        assert_still()
        self.assertEqual(started.stop(), 0)
        started = self.manager("--restore")
        assert_still()
        self.assertEqual(client.add(port, PASSWORD, quota=MIB), "ok")
        assert_still()
        self.assertEqual(client.remove(port), "ok")
        self.assertEqual(client.add(port, PASSWORD, quota=MIB), "ok")
        self.assertNotIn("state", self.entry(client, port))
        self.assertTrue(self.echoes(local, self.target(targets.echo)))

    def test_quota_of_a_port_and_its_period(self):
        self.manager()
        client = self.client()
        port = self.free_ports(1)[0]
        self.assertEqual(client.add(port, PASSWORD, quota=MIB, quota_period=6), "ok")
        local = self.relay(port)
        target = self.source(8 * MIB)
        downloads = self.download(local.port, target)
        self.assertTrue(downloads.join(60))
        self.assertLessEqual(sum(downloads.counts), MIB + 4 * 64 * KIB)
        wait.until(lambda: self.entry(client, port).get("state") is None, 20, "the next period")
        self.assert_works(local, self.target(targets.echo))

    def test_rate(self):
        """After the first two seconds; time is what is tested, with a wide margin."""
        rate = 2 * MIB
        self.manager()
        client = self.client()
        port = self.free_ports(1)[0]
        self.assertEqual(client.add(port, PASSWORD, rate=rate), "ok")
        local = self.relay(port)
        downloads = self.download(local.port, self.source(1 << 30), 3)
        time.sleep(2)
        before, begin = sum(downloads.counts), time.monotonic()
        time.sleep(6)
        got, span = sum(downloads.counts) - before, time.monotonic() - begin
        downloads.close()
        self.assertGreater(got, rate * span / 3)
        self.assertLess(got, rate * span * 1.5)

    def test_connections_at_once(self):
        self.manager()
        client = self.client()
        port = self.free_ports(1)[0]
        self.assertEqual(client.add(port, PASSWORD, max_connections=2), "ok")
        local = self.relay(port)
        target = self.target(targets.echo)
        held = []
        for _ in range(2):
            held.append(socks.connect(local.port, target.address))
            self.addCleanup(held[-1].close)
            self.assert_echoes(held[-1])
        with contextlib.closing(socks.connect(local.port, target.address)) as third:
            third.sendall(b"x")
            self.assert_ends(third)
        held[0].close()
        wait.until(lambda: self.echoes(local, target), 20, "a place for another")

    def echoes(self, local, target):
        with contextlib.closing(socks.connect(local.port, target.address)) as conn:
            try:
                conn.sendall(b"x")
                return conn.recv(1) == b"x"
            except OSError:
                return False

    def test_an_end_in_time(self):
        self.manager()
        client = self.client()
        port = self.free_ports(1)[0]
        self.assertEqual(client.add(port, PASSWORD, expires=int(time.time()) + 8), "ok")
        local = self.relay(port)
        target = self.target(targets.echo)
        with contextlib.closing(socks.connect(local.port, target.address)) as idle:
            self.assert_echoes(idle)
            self.assert_ends(idle, 30)
        self.assertEqual(self.entry(client, port)["state"], "expired")
        self.assertFalse(self.echoes(local, target))
        self.assertEqual(client.add(port, PASSWORD, expires=int(time.time()) + 3600), "ok")
        self.assertTrue(self.echoes(local, target))

    def test_of_a_file(self):
        """In the list of servers and of users, without a manager; a bad one is refused."""
        port = ports.free_port()
        server = {"server": "127.0.0.1", "server_port": port, "method": settings.method,
                  "password": PASSWORD, "quota": MIB}
        path = os.path.join(self.folder, "limits.json")

        def write():
            with open(path, "w") as file:
                json.dump({"servers": [server]}, file)

        write()
        started = self.program("ss-server", "-c", path).await_listening(port)
        local = self.relay(port)
        downloads = self.download(local.port, self.source(8 * MIB))
        self.assertTrue(downloads.join(60))
        self.assertLessEqual(sum(downloads.counts), MIB + 4 * 64 * KIB)
        server["quota"] = 100 * MIB
        write()
        os.kill(started.pid, signal.SIGHUP)  # what was used stays used, and there is room again
        echo = self.target(targets.echo)
        wait.until(lambda: self.echoes(local, echo), 20, "the raised quota")

        server["rate"] = "fast"
        write()
        bad = programs.Program([programs.find(settings.bin, "ss-server"), "-c", path])
        self.assertEqual(bad.wait_end(20), 255)
        self.assertIn("servers[0]: 'rate' is not a number", bad.log)


if __name__ == "__main__":
    case.main()
