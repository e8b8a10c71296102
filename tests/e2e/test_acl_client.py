"""R50, R51: which targets ss-local reaches itself, TCP and UDP, and what it looks up for that."""

import hashlib
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import acl, case, ports, programs, socks, targets, udp, wait  # noqa: E402
from support.acl import DIRECT, PROXY, REFUSED  # noqa: E402


class Client(acl.AclCase):
    def test_bypassed_name_is_resolved_and_reached_directly(self):
        """The server hears nothing of it; a proxied name is looked up there alone."""
        self.name("direct.test", "127.0.0.1")
        self.name("other.test", "127.0.0.1")
        target, datagrams = self.teller(), self.udp_teller()
        local = self.acl_local(self.acl_server(), "[bypass_list]\n||direct.test\n")
        self.assert_ways(local, {("direct.test", target.port): DIRECT,
                                 ("DIRECT.test.", target.port): DIRECT,
                                 ("other.test", target.port): PROXY,
                                 ("127.0.0.1", target.port): PROXY})
        client = self.associate(local)
        self.assertEqual(self.udp_way(client, "direct.test", datagrams.port), DIRECT)
        self.assertEqual(self.udp_way(client, "other.test", datagrams.port), PROXY)
        self.assertEqual(self.udp_way(client, "direct.test", datagrams.port), DIRECT)
        self.assertEqual(self.udp_way(client, "127.0.0.1", datagrams.port), PROXY)
        self.assertEqual(self.asked(self.near), {"direct.test"})
        self.assertEqual(self.asked(self.far), {"other.test"})

    def test_addresses_decide_where_no_rule_names_it(self):
        self.name("five.test", "127.0.0.5")
        self.name("six.test", "127.0.0.6")
        self.name("both.test", "127.0.0.6", "127.0.0.5")
        five, six = self.teller("127.0.0.5"), self.teller("127.0.0.6")
        self.teller("127.0.0.6", five.port)
        local = self.acl_local(self.acl_server(), "[bypass_list]\n127.0.0.4/31\n")
        self.assert_ways(local, {("five.test", five.port): DIRECT,
                                 ("six.test", six.port): PROXY,
                                 ("both.test", five.port): DIRECT,
                                 ("127.0.0.5", five.port): DIRECT,
                                 ("127.0.0.6", six.port): PROXY})
        self.assertEqual(self.asked(self.far), {"six.test"})
        datagrams = [self.udp_teller(host) for host in ("127.0.0.5", "127.0.0.6")]
        client = self.associate(local)
        for name, target, way in (("five.test", datagrams[0], DIRECT),
                                  ("six.test", datagrams[1], PROXY),
                                  ("127.0.0.5", datagrams[0], DIRECT),
                                  ("127.0.0.6", datagrams[1], PROXY),
                                  ("six.test", datagrams[1], PROXY)):
            with self.subTest(name=name):
                self.assertEqual(self.udp_way(client, name, target.port), way)

    def test_bypass_all(self):
        self.name("www.listed.test", "127.0.0.1")
        self.name("free.test", "127.0.0.1")
        self.name("six.test", "127.0.0.6")
        target, six = self.teller(), self.teller("127.0.0.6")
        local = self.acl_local(self.acl_server(), "[bypass_all]\n[proxy_list]\n||listed.test\n"
                               "127.0.0.6\n[bypass_list]\n|not.listed.test\n")
        self.name("not.listed.test", "127.0.0.1")
        self.assert_ways(local, {("www.listed.test", target.port): PROXY,
                                 ("not.listed.test", target.port): DIRECT,
                                 ("free.test", target.port): DIRECT,
                                 ("six.test", six.port): PROXY,
                                 ("127.0.0.6", six.port): PROXY,
                                 ("127.0.0.1", target.port): DIRECT})
        self.assertNotIn("www.listed.test", self.asked(self.near))

    def test_text_and_mapped_addresses_are_addresses(self):
        """R51, for the client."""
        target, datagrams = self.teller(), self.udp_teller()
        local = self.acl_local(self.acl_server(), "[bypass_list]\n127.0.0.0/8\n")
        client = self.associate(local)
        for host in ("127.0.0.1", b"127.0.0.1", b"0::ffff:127.0.0.1", "::ffff:127.0.0.1",
                     b"::FFFF:7f00:1"):
            with self.subTest(host=host):
                self.assertEqual(self.way(local, host, target.port), DIRECT)
                self.assertEqual(self.udp_way(client, host, datagrams.port), DIRECT)
        self.assertEqual(self.asked(self.near), set())

    def test_what_is_unknown_here_goes_through_the_server(self):
        self.far.records["there.test"] = ["127.0.0.1"]
        target, datagrams = self.teller(), self.udp_teller()
        local = self.acl_local(self.acl_server(), "[bypass_all]\n")
        self.assertEqual(self.way(local, "there.test", target.port), PROXY)
        self.assertEqual(self.udp_way(self.associate(local), "there.test", datagrams.port), PROXY)

    def test_a_silent_name_server_does_not_hold_a_client_up(self):
        """A target that can't be decided in two seconds goes through the server."""
        self.far.records["slow.test"] = ["127.0.0.1"]
        self.near.silent.add("slow.test")
        target, datagrams = self.teller(), self.udp_teller()
        local = self.acl_local(self.acl_server(), "[bypass_list]\n192.0.2.1\n")
        client = self.associate(local)
        client.send(("slow.test", datagrams.port), b"first")
        began = time.monotonic()
        self.assertEqual(self.way(local, "slow.test", target.port), PROXY)
        self.assertLess(time.monotonic() - began, 6)

        def answered():
            client.send(("slow.test", datagrams.port), b"again")
            client.socket.settimeout(0.3)
            try:
                return client.receive()[1]
            except TimeoutError:
                return None
        self.assertTrue(wait.until(answered, 10).endswith(b"first"))

    def test_first_bytes_and_long_streams_of_a_bypassed_target(self):
        self.name("direct.test", "127.0.0.1")
        data = os.urandom(3 << 20)
        target = self.target(targets.digest)
        local = self.acl_local(self.acl_server(), "[bypass_list]\n||direct.test\n127.0.0.0/8\n")
        for host in ("direct.test", "127.0.0.1"):
            with self.subTest(host=host):
                conn = self.connect(local, (host, target.port), first=data[:1000])
                conn.sendall(data[1000:])
                conn.shutdown(1)
                self.assertEqual(socks.receive_all(conn), hashlib.sha256(data).digest())
        self.assertEqual(local.traffic()["received"], 2 * len(data))

    def test_a_bypassed_target_that_refuses_is_not_tried_through_the_server(self):
        target = self.teller()
        target.close()
        server = self.acl_server(None, "-v")
        local = self.acl_local(server, "[bypass_list]\n127.0.0.0/8\n", "-v")
        self.assertEqual(self.way(local, "127.0.0.1", target.port), REFUSED)
        local.await_log("bypass 127.0.0.1:%d" % target.port)
        self.assertEqual(server.log_lines("connect to"), [])

    def test_datagrams_of_both_ways_keep_apart(self):
        """What a bypassed target sends is never taken for the server's, and each way is its own
        socket."""
        near, far = self.udp_teller("127.0.0.5"), self.udp_teller("127.0.0.1")
        local = self.acl_local(self.acl_server(), "[bypass_list]\n127.0.0.5\n")
        client = self.associate(local)
        for _ in range(3):
            self.assertEqual(self.udp_way(client, "127.0.0.5", near.port), DIRECT)
            self.assertEqual(self.udp_way(client, "127.0.0.1", far.port), PROXY)
        self.assertEqual(len(set(near.sources())), 1)
        origin, answer = client.exchange(near.address, b"x")
        self.assertEqual(origin, near.address)
        # Another target answers to the same socket: the client is told who it was.
        other = self.closing(udp.make_socket("127.0.0.5"))
        other.sendto(b"uncalled", near.sources()[0])
        self.assertEqual(client.receive(), (other.getsockname()[:2], b"uncalled"))
        self.assertTrue(answer.endswith(b" x"))

    def test_without_a_readable_file_everything_goes_through_the_server(self):
        target = self.teller()
        server = self.acl_server()
        for path in ("/nonexistent/list.acl", os.path.dirname(acl.write(""))):
            with self.subTest(path=path):
                local = self.acl_local(server, None, "--acl", path)
                self.assertIn("Invalid acl path.", local.log)
                self.assertIn("everything goes through the server", local.log)
                self.assertEqual(self.way(local, "127.0.0.1", target.port), PROXY)

    def test_bad_lines_are_told_and_left_out(self):
        path = acl.write("[bypass_list]\n10.0.0.0/abc\n(abc\n127.0.0.5\n")
        target = self.teller("127.0.0.5")
        local = self.acl_local(self.acl_server(), None, "--acl", path)
        self.assertIn("%s:2: not a prefix length of its family: '10.0.0.0/abc'" % path, local.log)
        self.assertIn("%s:3: regex compilation failed" % path, local.log)
        self.assertEqual(self.way(local, "127.0.0.5", target.port), DIRECT)

    def test_check_config_fails_on_any_bad_line(self):
        program = programs.find(case.settings.bin, "ss-local")

        def check(path):
            return subprocess.run([program, "-s", "127.0.0.1", "-p", "1", "-l", "1", "-k", "x",
                                   "-m", case.settings.method, "--acl", path, "--check-config"],
                                  capture_output=True, text=True)
        self.assertEqual(check(acl.write("[bypass_list]\n10.0.0.0/8\n")).returncode, 0)
        for path in (acl.write("[bypass_list]\n(abc\n"), acl.write("[nosuch_list]\n"),
                     "/nonexistent/list.acl"):
            with self.subTest(path=path):
                self.assertEqual(check(path).returncode, 255)

    def test_a_gap_in_the_proxy_list_is_fatal_under_bypass_all(self):
        program = self.program("ss-local", "-s", "127.0.0.1", "-p", 1, "-l", ports.free_port(),
                               "-k", "x", "-m", case.settings.method, "--acl",
                               acl.write("[bypass_all]\n[proxy_list]\n10.0.0.0/40\n"))
        self._programs.remove(program)
        self.assertEqual(program.wait_end(), 255)
        self.assertIn("list.acl:3:", program.log)


if __name__ == "__main__":
    case.main()
