"""Several upstream servers: another takes the place of one that refuses, is silent or is late, and
nothing is sent twice; the choice, and what is said of it. In a namespace."""

import hashlib
import os
import signal
import socket
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, counting, netns, ports, servers, targets, timing, wait  # noqa: E402
from support import filter as packet_filter  # noqa: E402


def setUpModule():
    netns.enter()


class Upstreams(servers.Case):
    def setUp(self):
        super().setUp()
        self.target = counting.Target()
        self.addCleanup(self.target.close)

    def filter(self):
        made = packet_filter.Filter()
        self.addCleanup(made.close)
        return made

    def ask(self, local, count=1):
        """How many of `count` requests, one after the other, were answered."""
        return sum(counting.ask(local.port, self.target.address) for _ in range(count))

    def assert_nothing_came_twice(self):
        self.assertEqual(self.target.twice(), [])

    def test_each_is_spoken_to_in_its_own_way(self):
        """A method and a password for each, whichever is connected to."""
        several = [self.server_of(number) for number in range(3)]
        local = self.local_with(self.entries(several), balance="random")
        self.assertEqual(self.ask(local, 40), 40)
        for server in several:
            self.assertGreater(server.traffic()["total"], 0)
        several[1].stop()
        self.assertEqual(self.ask(local, 20), 20)
        self.assert_nothing_came_twice()

    def test_one_refuses_and_one_is_silent(self):
        """R31: 50 requests, all of them answered, without long delays."""
        drop = self.filter()
        several = [self.server_of(number) for number in range(3)]
        drop.drop(several[0].port)
        several[1].stop()
        local = self.local_with(self.entries(several))
        self.assertEqual(self.ask(local, 3), 3)

        def the_rest():
            self.assertEqual(self.ask(local, 47), 47)

        timing.within(self, 5, the_rest)
        self.assert_nothing_came_twice()
        found = self.summary(local)
        self.assertEqual(found[several[0].port]["connects"], 0, found)
        self.assertEqual(found[several[1].port]["connects"], 0, found)
        self.assertGreater(found[several[0].port]["failures"], 0, found)
        self.assertGreater(found[several[1].port]["failures"], 0, found)
        self.assertLess(found[several[0].port]["chosen"], 12, found)
        self.assertTrue(local.log_lines("is not reached; others take its place"))

    def test_many_at_once_when_the_favourite_falls_silent(self):
        drop = self.filter()
        several = [self.server_of(number) for number in range(2)]
        entries = self.entries(several)
        entries[0]["weight"] = 100
        local = self.local_with(entries)
        self.assertEqual(self.ask(local, 10), 10)
        self.assertGreaterEqual(several[0].traffic()["total"], 9)
        drop.drop(several[0].port)
        answered = []

        def one():
            answered.append(counting.ask(local.port, self.target.address))

        threads = [threading.Thread(target=one) for _ in range(60)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(answered, [True] * 60)
        self.assert_nothing_came_twice()

    def test_the_favourite_comes_back(self):
        """By its weight it is preferred as soon as it is there again."""
        several = [self.server_of(number) for number in range(2)]
        entries = self.entries(several)
        entries[0]["weight"] = 100
        local = self.local_with(entries)
        self.assertEqual(self.ask(local, 5), 5)
        several[0].stop()
        self.assertEqual(self.ask(local, 5), 5)
        self.assertTrue(self.summary(local)[several[0].port]["avoided"])
        again = self.server_of(0, port=several[0].port)

        def used():
            self.assertEqual(self.ask(local), 1)
            return again.traffic()["total"] > 0

        wait.until(used, 20, "the favourite's return")
        local.await_log("is reached again")
        self.assertEqual(self.ask(local, 5), 5)
        self.assertFalse(self.summary(local)[several[0].port]["avoided"])
        self.assert_nothing_came_twice()

    def test_all_are_tried_when_all_are_avoided(self):
        several = [self.server_of(number) for number in range(2)]
        local = self.local_with(self.entries(several))
        for server in several:
            server.stop()
        for _ in range(4):
            try:
                self.assertEqual(self.ask(local), 0)
            except OSError:
                pass
        self.server_of(1, port=several[1].port)
        self.assertEqual(self.ask(local, 5), 5)
        self.assert_nothing_came_twice()

    def test_what_is_known_survives_a_reload(self):
        """Of the servers that stay; a new one has a fresh start, and one that is gone is not used."""
        several = [self.server_of(number) for number in range(3)]
        local = self.local_with(self.entries(several[:2]))
        self.assertEqual(self.ask(local, 5), 5)
        several[0].stop()
        self.assertEqual(self.ask(local, 5), 5)
        before = self.summary(local)
        self.assertGreater(before[several[0].port]["failures"], 0)
        held = self.connect(local, self.target.address)
        self.rewrite(local, [self.entries(several)[0], self.entries(several)[2]])
        local.process.send_signal(signal.SIGHUP)
        local.await_log("reloaded")
        after = self.summary(local)
        self.assertEqual(sorted(after), sorted([several[0].port, several[2].port]))
        for what in ("chosen", "connects", "failures"):
            self.assertGreaterEqual(after[several[0].port][what], before[several[0].port][what])
            self.assertEqual(after[several[2].port][what], 0)
        self.assertEqual(self.ask(local, 5), 5)
        request = counting.fresh_request()
        held.sendall(request)
        self.assertEqual(held.recv(counting.SIZE), request)
        self.assert_nothing_came_twice()

    def test_random_follows_the_weights(self):
        several = [self.server_of(number) for number in range(2)]
        entries = self.entries(several)
        entries[0]["tcp_weight"], entries[1]["weight"] = 0.25, 0.75
        local = self.local_with(entries, balance="random")
        self.assertEqual(self.ask(local, 120), 120)
        found = self.summary(local)
        self.assertTrue(10 <= found[several[0].port]["chosen"] <= 55, found)

    def test_weight_0_is_never_used(self):
        several = [self.server_of(number) for number in range(2)]
        entries = self.entries(several)
        entries[0]["weight"] = 0
        local = self.local_with(entries)
        self.assertEqual(self.ask(local, 10), 10)
        self.assertEqual(list(self.summary(local)), [several[1].port])
        self.assertEqual(several[0].traffic()["total"], 0)

    def test_what_waits_for_a_connection_is_kept(self):
        """However many bytes the client sends while servers are tried."""
        drop = self.filter()
        several = [self.server_of(number) for number in range(2)]
        drop.drop(several[0].port)
        local = self.local_with(self.entries(several))
        digest = self.target_of(targets.digest)
        payload = os.urandom(3 << 20)
        conn = self.connect(local, digest.address, first=payload[:1000], timeout=30)
        conn.sendall(payload[1000:])
        conn.shutdown(socket.SHUT_WR)
        self.assertEqual(conn.recv(32), hashlib.sha256(payload).digest())

    def target_of(self, handler):
        target = targets.Target(handler)
        self.addCleanup(target.close)
        return target

    def test_a_failing_server_is_probed_at_most_once_a_minute(self):
        """With a bare connection, when there is traffic: it sends nothing."""
        several = [self.server_of(number) for number in range(2)]
        several[0].stop()
        local = self.local_with(self.entries(several))
        self.assertEqual(self.ask(local, 5), 5)
        self.assertGreater(self.summary(local)[several[0].port]["failures"], 0)
        got = []

        def note(conn):
            got.append(conn.recv(100))

        listener = targets.Target(note, port=several[0].port)
        self.addCleanup(listener.close)

        def back():
            self.assertEqual(self.ask(local), 1)
            return local.log_lines("is there again")

        wait.until(back, 75, "a probe")
        wait.until(lambda: got, 5, "the end of the probe")
        self.assertEqual(got, [b""])
        self.assertEqual(listener.accepted, 1)
        self.assert_nothing_came_twice()


class OneServer(case.Case):
    """What is true with several servers is so with one."""

    def test_it_is_tried_however_often_it_failed(self):
        echo = self.target(targets.echo)
        port = ports.free_port()
        local = self.local(port)
        for _ in range(5):
            conn = self.connect(local, echo.address)
            with self.assertRaises((OSError, AssertionError)):
                self.assert_echoes(conn)
        self.server(port=port)
        self.assert_works(local, echo)
        self.assertEqual(local.log_lines("is not reached"), [])


if __name__ == "__main__":
    case.main()
