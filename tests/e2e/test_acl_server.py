"""R51 to R53: which clients ss-server takes and which targets it refuses, TCP and UDP."""

import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import acl, case, ports, programs, udp  # noqa: E402
from support.acl import DIRECT, PROXY, REFUSED  # noqa: E402


class Clients(acl.AclCase):
    def test_black_list(self):
        self.assert_refuses("[black_list]\n127.0.0.5\n", ["127.0.0.5"], ["127.0.0.1", "127.0.0.6"])

    def test_white_list(self):
        self.assert_refuses("[reject_all]\n[white_list]\n127.0.0.4/31\n[black_list]\n127.0.0.4\n",
                            ["127.0.0.1", "127.0.0.4"], ["127.0.0.5"])

    def test_a_mode_alone(self):
        """R53."""
        self.assert_refuses("[reject_all]\n", ["127.0.0.1", "127.0.0.5"], [])
        self.assert_refuses("[accept_all]\n", [], ["127.0.0.1"])
        self.assert_refuses("[reject_all]\n[accept_all]\n", [], ["127.0.0.1"])

    def assert_refuses(self, rules, refused, taken):
        datagrams = self.udp_teller()
        server = self.acl_server(rules)
        for source in refused:
            with self.subTest(refused=source):
                self.assert_denied(server, source)
                prober = self.prober(server, source=source)
                prober.send(datagrams.address, b"from the refused")
                self.assert_silent(prober.socket)
        for source in taken:
            with self.subTest(taken=source):
                self.assert_taken(server, source)
                prober = self.prober(server, source=source)
                prober.send(datagrams.address, b"from the taken")
                self.assertTrue(prober.receive()[1].endswith(b"from the taken"))
        self.assertEqual({data for _, data in datagrams.seen} - {b"from the taken"}, set())

    def test_mapped_clients(self):
        """R51: IPv4 clients of a socket for both families."""
        if not ports.have_ipv6():
            raise unittest.SkipTest("no IPv6 on this machine")
        server = self.acl_server("[reject_all]\n[white_list]\n127.0.0.0/8\n", host="::")
        target, datagrams = self.teller(), self.udp_teller()
        local = self.acl_local(server)
        self.assertEqual(self.way(local, *target.address), PROXY)
        self.assertEqual(self.udp_way(self.associate(local), *datagrams.address), PROXY)
        self.assert_denied(server, "::1", "::1")
        other = self.acl_server("[black_list]\n::ffff:127.0.0.5\n", host="::")
        self.assert_denied(other, "127.0.0.5")


class Targets(acl.AclCase):
    def start(self, rules, *arguments):
        self.ss_server = self.acl_server(rules, "-v", *arguments)
        local = self.acl_local(self.ss_server)
        return local, self.associate(local)

    def assert_blocked(self, local, client, host, tcp, datagrams):
        with self.subTest(host=host):
            self.assertEqual(self.way(local, host, tcp.port), REFUSED)
            count = datagrams.count
            client.send((host, datagrams.port), b"to the blocked")
            self.assert_silent(client.socket, 0.2)
            self.assertEqual(datagrams.count, count)
        self.assertEqual(tcp.accepted, 0)

    def test_block_local(self):
        """R52: as literal, mapped, text in the domain field, and by a name; and only if asked."""
        self.name("inside.test", "127.0.0.1")
        self.name("mixed.test", "127.0.0.1", "127.0.0.5")
        target, datagrams = self.teller(), self.udp_teller()
        hosts = ["127.0.0.1", "::ffff:127.0.0.1", b"127.0.0.1", b"0::ffff:127.0.0.1", "localhost",
                 "www.localhost", "inside.test", "mixed.test", "0.0.0.0"]
        if ports.have_ipv6():
            self.teller("::1", target.port)
            hosts += ["::1", "::ffff:10.0.0.1"]
        local, client = self.start(None, "--block-local")
        for host in hosts:
            self.assert_blocked(local, client, host, target, datagrams)
        self.assertIn("connect error", self.ss_server.log)
        self.assertIn("outbound blocked 127.0.0.1:%d" % target.port, self.ss_server.log)
        self.assertIn("outbound blocked inside.test:%d" % target.port, self.ss_server.log)
        self.assertEqual(self.asked(self.far), {"inside.test", "mixed.test"})
        local, client = self.start(None)
        self.assertEqual(self.way(local, *target.address), PROXY)
        self.assertEqual(self.udp_way(client, *datagrams.address), PROXY)

    def test_block_local_beside_a_file(self):
        target = self.teller()
        local, _ = self.start("[black_list]\n127.0.0.5\n", "--block-local")
        self.assertEqual(self.way(local, *target.address), REFUSED)
        self.assert_denied(self.ss_server, "127.0.0.5")

    def test_block_list(self):
        self.name("db.internal", "127.0.0.1")
        self.name("five.test", "127.0.0.5")
        self.name("six.test", "127.0.0.6")
        self.name("first.test", "127.0.0.6", "127.0.0.5")
        five, datagrams = self.teller("127.0.0.5"), self.udp_teller("127.0.0.5")
        six, more = self.teller("127.0.0.6"), self.udp_teller("127.0.0.6")
        local, client = self.start("[outbound_block_list]\n127.0.0.5\n(^|\\.)internal$\n")
        for host in ("127.0.0.5", b"127.0.0.5", "::ffff:127.0.0.5", "five.test", "db.internal",
                     "DB.Internal."):
            self.assert_blocked(local, client, host, five, datagrams)
        self.assertNotIn("db.internal", self.asked(self.far))
        # Of a name's addresses those that are blocked are not tried.
        for host in ("127.0.0.6", "six.test", "first.test"):
            with self.subTest(host=host):
                self.assertEqual(self.way(local, host, six.port), PROXY)
                self.assertEqual(self.udp_way(client, host, more.port), PROXY)

    def test_a_blocked_address_is_not_fallen_back_to(self):
        self.name("first.test", "127.0.0.6", "127.0.0.5")
        target = self.teller("127.0.0.5")
        local, _ = self.start("[outbound_block_list]\n127.0.0.5\n")
        self.assertEqual(self.way(local, "first.test", target.port), REFUSED)
        self.assertEqual(target.accepted, 0)

    def test_allow_list(self):
        self.name("www.good.test", "127.0.0.5")
        self.name("bad.good.test", "127.0.0.5")
        self.name("trap.good.test", "127.0.0.9")
        self.name("seven.test", "127.0.0.7")
        self.name("five.test", "127.0.0.5")
        five, datagrams = self.teller("127.0.0.5"), self.udp_teller("127.0.0.5")
        seven, more = self.teller("127.0.0.7"), self.udp_teller("127.0.0.7")
        local, client = self.start("[outbound_block_all]\n[outbound_allow_list]\n||good.test\n"
                                   "127.0.0.7\n[outbound_block_list]\n|bad.good.test\n127.0.0.9\n")
        for host in ("127.0.0.5", "bad.good.test", "trap.good.test", "five.test"):
            self.assert_blocked(local, client, host, five, datagrams)
        self.assertEqual(self.way(local, "www.good.test", five.port), PROXY)
        self.assertEqual(self.udp_way(client, "www.good.test", datagrams.port), PROXY)
        for host in ("127.0.0.7", "seven.test"):
            self.assertEqual(self.way(local, host, seven.port), PROXY)
            self.assertEqual(self.udp_way(client, host, more.port), PROXY)

    def test_datagrams_of_the_blocked_do_not_come_in(self):
        """Nobody asked them to send to an association's socket."""
        target = self.udp_teller("127.0.0.6")
        _, client = self.start("[outbound_block_list]\n127.0.0.5\n")
        self.assertEqual(self.udp_way(client, *target.address), PROXY)
        socket_of_association = target.sources()[0]
        for host in ("127.0.0.5", "127.0.0.7"):
            self.closing(udp.make_socket(host)).sendto(host.encode(), socket_of_association)
        self.assertEqual(client.receive()[1], b"127.0.0.7")
        self.assert_silent(client.socket, 0.2)

    def test_client_lists_are_nothing_to_targets(self):
        target = self.teller("127.0.0.5")
        local, _ = self.start("[black_list]\n127.0.0.5\n||x.test\n[proxy_list]\n127.0.0.6\n")
        self.assertEqual(self.way(local, *target.address), PROXY)

    def test_what_is_refused_is_said_a_few_times_only(self):
        target = self.teller()
        local, _ = self.start(None, "--block-local")
        for _ in range(25):
            self.assertEqual(self.way(local, *target.address), REFUSED)
        self.assertLessEqual(len(self.ss_server.log_lines("connect error")), 11)
        self.assertGreaterEqual(len(self.ss_server.log_lines("outbound blocked")), 25)


class PassedOn(acl.AclCase):
    def test_what_is_passed_on_is_for_the_next_server_to_judge(self):
        """Where users are passed on to is the configuration's word, whatever the list says."""
        method = "2022-blake3-aes-128-gcm"
        keys = [programs.key_for(case.settings.bin, method) for _ in range(3)]

        def serve(**members):
            port = ports.free_port()
            path = acl.write(json.dumps({"server": "127.0.0.1", "server_port": port,
                                         "mode": "tcp_and_udp", "method": method, **members}))
            started = self.program("ss-server", "-c", path).await_listening(port)
            started.port = port
            return self.await_udp(started)
        behind = serve(password=keys[2])
        front = serve(password=keys[0], block_local=True, users=[
            {"name": "own", "password": keys[1]},
            {"name": "passed", "password": keys[2], "server": "127.0.0.1",
             "server_port": behind.port}])
        target, datagrams = self.teller(), self.udp_teller()
        for key, way in ((keys[1], REFUSED), (keys[2], DIRECT)):
            local = self.local(front, "-m", method, "-k", keys[0] + ":" + key)
            self.assertEqual(self.way(local, *target.address), way)
            self.assertEqual(self.udp_way(self.associate(local), *datagrams.address,
                                          seconds=0.5 if way == REFUSED else 10),
                             None if way == REFUSED else way)


class Start(acl.AclCase):
    def ends(self, *arguments):
        program = self.program("ss-server", "-s", "127.0.0.1", "-p", ports.free_port(), "-k", "x",
                               "-m", case.settings.method, *arguments)
        self._programs.remove(program)
        self.assertEqual(program.wait_end(), 255)
        return program.log

    def test_a_missing_or_unreadable_file_is_fatal(self):
        for path in ("/nonexistent/list.acl", os.path.dirname(acl.write(""))):
            with self.subTest(path=path):
                log = self.ends("--acl", path)
                self.assertIn("Invalid acl path.", log)
                self.assertIn(path, log)

    def test_a_gap_is_fatal(self):
        for rules in ("[outbound_block_list]\n127.0.0.0/abc\n",
                      "[white_list]\n10.0.0.0.0/8\n[reject_all]\n"):
            with self.subTest(rules=rules):
                self.assertIn("list.acl:2:", self.ends("--acl", acl.write(rules)))

    def test_other_bad_lines_are_not(self):
        server = self.acl_server("(abc\n[black_list]\n10.0.0/8\n||*\n127.0.0.5\n")
        self.assertEqual(len(server.log_lines("list.acl:")), 3)
        self.assert_denied(server, "127.0.0.5")
        self.assert_taken(server, "127.0.0.6")

    def test_many_bad_lines_are_not_all_shown(self):
        server = self.acl_server("(abc\n" * 500)
        self.assertEqual(len(server.log_lines("list.acl:")), 21)
        self.assertIn("500 bad lines", server.log)

    def test_check_config(self):
        program = programs.find(case.settings.bin, "ss-server")

        def check(*arguments):
            return subprocess.run([program, "-s", "127.0.0.1", "-p", "1", "-k", "x", "-m",
                                   case.settings.method, *arguments, "--check-config"],
                                  capture_output=True, text=True)
        self.assertEqual(check("--acl", acl.write("[black_list]\n10.0.0.0/8\n")).returncode, 0)
        self.assertEqual(check("--block-local").returncode, 0)
        self.assertEqual(check("--acl", acl.write("[black_list]\n(abc\n")).returncode, 255)
        self.assertEqual(check("--acl", "/nonexistent/list.acl").returncode, 255)

    def test_a_manager_does_not_start_servers_that_could_not(self):
        program = programs.find(case.settings.bin, "ss-manager")

        def check(path):
            return subprocess.run([program, "-m", case.settings.method, "--manager-address",
                                   "127.0.0.1:1", "--acl", path, "--check-config"],
                                  capture_output=True, text=True)
        self.assertEqual(check(acl.write("[black_list]\n10.0.0.0/8\n")).returncode, 0)
        missing = check("/nonexistent/list.acl")
        self.assertEqual(missing.returncode, 255)
        self.assertIn("Invalid acl path.", missing.stderr)


if __name__ == "__main__":
    case.main()
