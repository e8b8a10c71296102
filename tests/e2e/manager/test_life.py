"""What outlives what: servers that are killed, managers that are killed or end in order, two managers
at once, and ports that come back (R45, R48, R49)."""

import contextlib
import json
import os
import pwd
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from support import case, manager, ports, proc, programs, socks, targets, wait  # noqa: E402
from support.case import PASSWORD, settings  # noqa: E402

ROOT = unittest.skipUnless(os.geteuid() == 0, "needs root")


def listens(port):
    with contextlib.closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Life:
    def servers(self, started):
        """Processes below the manager that listen for TCP."""
        found = []
        for pid in manager.tree_of(started.pid):
            with contextlib.suppress(OSError):  # it has just ended
                if proc.listening_ports(pid):
                    found.append(pid)
        return found

    def test_an_end_in_order_takes_all_with_it(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            started = self.manager()
            client = self.client()
            numbers = self.free_ports(3)
            for port in numbers:
                self.assertEqual(client.add(port, "pw"), "ok")
            tree = manager.tree_of(started.pid)
            self.assertGreater(len(tree), 2)
            self.assertEqual(started.stop(number), 0)
            self.assertFalse(any(os.path.exists("/proc/%d" % pid) for pid in tree))
            self.assertFalse(any(map(listens, numbers)))
            self.assertFalse(os.path.exists(self.socket_path))

    def test_ports_come_back_after_a_crash_and_not_after_an_end(self):
        started = self.manager()
        client = self.client()
        kept, removed = self.free_ports(2)
        self.assertEqual(client.add(kept, "a\"b", method="aes-128-gcm", mode="tcp_and_udp"), "ok")
        self.assertEqual(client.add(removed, "x"), "ok")
        self.assertEqual(client.remove(removed), "ok")
        tree = manager.tree_of(started.pid)
        self.crash(started)
        wait.until(lambda: not any(os.path.exists("/proc/%d" % pid) for pid in tree), 5,
                   "the end of the servers")
        started = self.manager()
        self.assertEqual(client.list(), [{"server_port": str(kept), "password": "a\"b",
                                          "method": "aes-128-gcm"}])
        self.assertTrue(listens(kept))
        self.assertEqual(started.stop(), 0)
        started = self.manager()
        self.assertEqual(client.list(), [])
        self.assertFalse(listens(kept))

    def test_with_restore_they_come_back_after_an_end_too(self):
        started = self.manager("--restore")
        client = self.client()
        port = ports.free_port()
        self.assertEqual(client.add(port, "pw"), "ok")
        for _ in range(2):
            self.assertEqual(started.stop(), 0)
            started = self.manager("--restore")
            self.assertEqual([entry["server_port"] for entry in client.list()], [str(port)])
            self.assertTrue(listens(port))

    def configuration(self, **keys):
        path = os.path.join(self.folder, "manager.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"server": "127.0.0.1", "method": settings.method, **keys}, file)
        return path

    def test_ports_of_the_configuration(self):
        """R48: each is up or a line says why not, and one bad port does not stop the others."""
        numbers = self.free_ports(11)
        target = self.target(targets.echo)
        passwords = {str(port): PASSWORD for port in numbers}
        passwords[str(numbers[3])] = ""
        passwords[str(numbers[4])] = None
        passwords["70000"] = "x"
        with socket.create_server(("127.0.0.1", numbers[5])):
            started = self.manager("-c", self.configuration(port_password=passwords), hosts=(),
                                   method=False)
            client = self.client()
            good = [port for port in numbers if port not in numbers[3:6]]
            self.assertEqual([int(entry["server_port"]) for entry in client.list()], good)
        self.assert_served(good[0], target)
        self.logged(started, r"port %d is not served: a password is missing" % numbers[3])
        self.logged(started, r"port_password: option '%d' must be" % numbers[4])
        self.logged(started, r"port %d is not served: .*Address already in use" % numbers[5])
        self.logged(started, r"'70000' is not a port")

    def test_the_configuration_wins_over_the_state_file(self):
        fixed, other = self.free_ports(2)
        path = self.configuration(port_password={str(fixed): "of the file"})
        started = self.manager("-c", path, hosts=(), method=False)
        client = self.client()
        self.assertEqual(client.add(fixed, "of the command"), "ok")
        self.assertEqual(client.add(other, "pw"), "ok")
        self.assertEqual(client.list()[0]["password"], "of the command")
        self.crash(started)
        self.manager("-c", path, hosts=(), method=False)
        self.assertEqual({entry["server_port"]: entry["password"] for entry in client.list()},
                         {str(fixed): "of the file", str(other): "pw"})

    def test_the_configuration_is_read_again(self):
        """SIGHUP: ports of the file come, change and go; those of commands stay."""
        same, changed, gone, new, added = self.free_ports(5)
        target = self.target(targets.echo)
        path = self.configuration(port_password={str(same): PASSWORD, str(changed): "old",
                                                 str(gone): "x"})
        started = self.manager("-c", path, hosts=(), method=False)
        client = self.client()
        self.assertEqual(client.add(added, "pw"), "ok")
        conn = self.connect(self.relay(same), target.address)
        self.assert_echoes(conn)
        self.configuration(port_password={str(same): PASSWORD, str(changed): "new",
                                          str(new): "y", "0": "bad"})
        started.process.send_signal(signal.SIGHUP)
        self.logged(started, r"reloaded: ports: 2 set, 1 removed, 0 refused", 20)
        self.assertEqual({int(entry["server_port"]): entry["password"] for entry in client.list()},
                         {same: PASSWORD, changed: "new", new: "y", added: "pw"})
        self.assertFalse(listens(gone))
        self.assert_echoes(conn)
        self.assert_served(changed, target, "new")
        with open(path, "w") as file:
            file.write("{")
        started.process.send_signal(signal.SIGHUP)
        self.logged(started, "not reloaded: what was in force stays")
        self.assertEqual(len(client.list()), 4)

    def test_a_torn_state_file_costs_one_line(self):
        started = self.manager()
        client = self.client()
        one, two = self.free_ports(2)
        self.assertEqual(client.add(one, "pw"), "ok")
        self.assertEqual(client.add(two, "pw"), "ok")
        self.crash(started)
        path = os.path.join(self.workdir, ".ss-manager.state")
        with open(path, "r+b") as file:
            content = file.read()
            file.truncate(len(content) - 5)
        started = self.manager()
        self.assertEqual([entry["server_port"] for entry in client.list()], [str(one)])
        self.logged(started, "the last line was not written whole")
        self.assertEqual(client.add(two, "pw"), "ok")
        self.assertEqual([next(iter(record)) for record in self.state()],
                         ["ss-manager", "add", "add"])

    def test_a_second_manager_is_refused(self):
        self.manager()
        client = self.client()
        self.assertEqual(client.add(ports.free_port(), "pw"), "ok")
        path = programs.find(settings.bin, "ss-manager")
        other = os.path.join(self.folder, "other")
        # On the first one's socket, and in the first one's folder.
        for words, status in ((["--manager-address", self.socket_path, "-D", other], 1),
                              (["--manager-address", other + ".sock", "-D", self.workdir], 255)):
            ended = subprocess.run([path, *words], capture_output=True, timeout=30)
            self.assertEqual(ended.returncode, status, ended.stderr)
        self.assertEqual(len(client.list()), 1)
        self.assertTrue(os.path.exists(self.socket_path))

    def test_a_socket_that_nobody_has_is_replaced(self):
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as dead:
            dead.bind(self.socket_path)
        self.manager()
        self.assertEqual(self.client().ask("ping"), "stat: {}")

    def test_modes_of_the_socket(self):
        for words, umask, mode in (((), 0o022, 0o755), ((), 0o077, 0o700), ((), 0, 0o755),
                                   (("--manager-socket-mode", "0660"), 0o077, 0o660)):
            started = self.manager(*words, prepare=lambda mask=umask: os.umask(mask))
            self.assertEqual(os.stat(self.socket_path).st_mode & 0o777, mode)
            self.assertEqual(started.stop(), 0)

    @ROOT
    def test_a_configuration_that_only_root_may_read_is_read_again(self):
        os.chmod(self.folder, 0o777)
        one, two = self.free_ports(2)
        path = self.configuration(port_password={str(one): "x"})
        os.chmod(path, 0o600)
        started = self.manager("-c", path, "-a", "nobody", hosts=(), method=False)
        client = self.client()
        self.configuration(port_password={str(one): "x", str(two): "y"})
        started.process.send_signal(signal.SIGHUP)
        self.logged(started, r"reloaded: ports: 1 set, 0 removed, 0 refused", 20)
        self.assertEqual([int(entry["server_port"]) for entry in client.list()], [one, two])

    @ROOT
    def test_as_another_user(self):
        """R45: files are that user's, and traffic is counted."""
        os.chmod(self.folder, 0o777)
        started = self.manager("-a", "nobody")
        nobody = pwd.getpwnam("nobody")
        self.assertEqual(os.stat(self.workdir).st_uid, nobody.pw_uid)
        self.assertEqual(os.stat(self.socket_path).st_uid, nobody.pw_uid)
        client = self.client()
        target = self.target(targets.echo)
        port = ports.free_port()
        self.assertEqual(client.add(port, PASSWORD), "ok")
        for pid in self.servers(started):
            wait.until(lambda p=pid: proc.status(p)["Uid"].split() == [str(nobody.pw_uid)] * 4, 5)
        self.assert_served(port, target)
        wait.until(lambda: client.ping()[port] > 0, 1 if self.live else 20)

    def test_a_folder_that_can_not_be_written(self):
        """No files: one process serves nevertheless; a process a port can't be had."""
        os.mkdir(self.workdir, 0o700)
        os.mkdir(os.path.join(self.workdir, ".ss-manager.state"))
        started = self.manager()
        self.logged(started, "ports that are added do not outlive the manager")
        client = self.client()
        self.assertEqual(client.add(ports.free_port(), "pw"), "ok")

    def test_a_full_disk_costs_what_is_written_alone(self):
        """Writes beyond a size fail, in the middle of a record."""
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

        # The log of the manager is a file too, and must not be what is full.
        fifo = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        self.addCleanup(fifo.wait)
        self.addCleanup(fifo.stdin.close)

        def prepare():
            os.dup2(fifo.stdin.fileno(), 1)
            os.dup2(fifo.stdin.fileno(), 2)
            limit()

        started = self.manager(prepare=prepare)
        client = self.client()
        numbers = self.free_ports(20)
        for port in numbers:
            self.assertEqual(client.add(port, "p" * 100), "ok")
        self.assertEqual(len(client.list()), 20)
        records = self.state()  # each of them whole
        self.assertTrue(2 < len(records) < 12, len(records))
        self.assertTrue(all(map(listens, numbers)))
        self.assertEqual(started.stop(), 0)

    def test_many_cycles_leave_nothing(self):
        """R49, a short run of it; tests/bench/manager_ports.py has the long one."""
        started = self.manager()
        client = self.client()
        port = ports.free_port()

        def cycle():
            self.assertEqual(client.add(port, PASSWORD), "ok")
            self.assertIn(port, client.ping())
            self.assertEqual(client.remove(port), "ok")

        def rest():
            """What there is once the last server is gone, and what was closed is closed."""
            last = [None]

            def still():
                try:
                    found = {pid: proc.descriptors(pid) for pid in manager.tree_of(started.pid)}
                except OSError:  # one has just ended
                    return None
                same = found == last[0] and list(found) == tree
                last[0] = found
                return found if same else None

            return wait.until(lambda: still() and still() and still(), 10, "no change any more")

        tree = manager.tree_of(started.pid)
        for _ in range(5):
            cycle()
        before = rest()
        for _ in range(200 if self.live else 20):
            cycle()
        self.assertEqual(rest(), before)
        self.assertEqual(os.listdir(self.workdir), [".ss-manager.state"])

    def test_in_the_background(self):
        pid_file = os.path.join(self.folder, "manager.pid")
        ended = subprocess.run(
            [programs.find(settings.bin, "ss-manager"), "-f", pid_file, "--manager-address",
             self.socket_path, "-D", self.workdir, "--executable",
             programs.find(settings.bin, "ss-server"), "-s", "127.0.0.1", "-m", settings.method,
             *self.layout], timeout=30)
        self.assertEqual(ended.returncode, 0)
        with open(pid_file) as file:
            pid = int(file.read())
        try:
            client = self.client()
            port = ports.free_port()
            self.assertEqual(client.add(port, "pw"), "ok")
            self.assertTrue(listens(port))
        finally:
            os.kill(pid, signal.SIGTERM)
        wait.until(lambda: not os.path.exists("/proc/%d" % pid), 10)
        self.assertFalse(os.path.exists(pid_file))
        self.assertFalse(listens(port))


class OneProcess(Life, manager.OneProcess, manager.ManagerCase):
    def the_server(self, started):
        """The one below the helper."""
        def found():
            below = [pid for helper in manager.children_of(started.pid)
                     for pid in manager.children_of(helper)]
            return below[0] if below else None

        return wait.until(found, 10, "a server")

    def test_a_killed_server_is_back_with_all_its_ports(self):
        started = self.manager()
        client = self.client()
        target = self.target(targets.echo)
        numbers = self.free_ports(20)
        for port in numbers:
            self.assertEqual(client.add(port, PASSWORD), "ok")
        local = self.relay(numbers[0])
        with contextlib.closing(socks.connect(local.port, target.address)) as conn:
            self.assert_echoes(conn, b"x" * 1000)
        before = client.ping()
        self.assertGreaterEqual(before[numbers[0]], 2000)
        for _ in range(3):
            server = self.the_server(started)
            killed = time.monotonic()
            os.kill(server, signal.SIGKILL)
            # Not the moment without its ports, which is shorter than a look on a busy machine.
            wait.until(lambda: self.the_server(started) != server, 5)
            wait.until(lambda: all(map(listens, numbers)), 10)
            self.assertLess(time.monotonic() - killed, 3)  # within one second, and a margin
            self.assertNotEqual(self.the_server(started), server)
            self.assertEqual(client.ping(), before)
        self.logged(started, r"ss-server was ended by signal 9; it is started again")
        self.assert_works(local, target)
        self.assertGreater(client.ping()[numbers[0]], before[numbers[0]])

    def test_a_server_that_hangs_is_replaced(self):
        started = self.manager()
        client = self.client()
        one, two = self.free_ports(2)
        self.assertEqual(client.add(one, "pw"), "ok")
        server = self.the_server(started)
        os.kill(server, signal.SIGSTOP)
        self.assertEqual(client.add(two, "pw"), "port is not available")
        self.logged(started, "does not answer and is ended")
        wait.until(lambda: not os.path.exists("/proc/%d" % server), 10)
        self.assertEqual([entry["server_port"] for entry in client.list()], [str(one)])
        self.assertEqual(client.add(two, "pw"), "ok")
        self.assertTrue(listens(one) and listens(two))

    def test_a_port_that_is_taken_at_the_return_is_tried_again(self):
        started = self.manager()
        client = self.client()
        port = ports.free_port()
        self.assertEqual(client.add(port, "pw"), "ok")
        self.crash(started)
        wait.until(lambda: not listens(port), 5)
        with socket.create_server(("127.0.0.1", port)):
            started = self.manager()
            self.logged(started, r"port %d is not served: .*Address already in use" % port)
            self.assertEqual(client.list(), [])
        self.logged(started, r"port %d is served now" % port, 30)
        self.assertEqual([entry["server_port"] for entry in client.list()], [str(port)])

    def test_a_server_that_can_not_start_is_tried_again(self):
        path = os.path.join(self.folder, "missing-server")
        started = self.manager(executable=path)
        client = self.client()
        port = ports.free_port()
        self.assertEqual(client.add(port, "pw"), "port is not available")
        self.logged(started, r"missing-server can't be executed: No such file")
        os.symlink(programs.find(settings.bin, "ss-server"), path)
        wait.until(lambda: client.add(port, "pw") == "ok", 30, "a server")

    def test_a_plugin_that_fails_takes_no_other_port_with_it(self):
        started = self.manager()
        client = self.client()
        target = self.target(targets.echo)
        good, missing, dying = self.free_ports(3)
        self.assertEqual(client.add(good, PASSWORD), "ok")
        server = self.the_server(started)
        self.assertEqual(client.add(missing, "pw", plugin="./no-such-plugin"), "err")
        self.assertEqual(client.add(dying, "pw", plugin="true"), "ok")
        self.logged(started, r'plugin "true" .*ended with status 0')
        self.assertEqual(self.the_server(started), server)
        self.assert_served(good, target)
        self.assertEqual(client.remove(dying), "ok")

    @ROOT
    def test_a_low_port_after_the_user_was_switched(self):
        os.chmod(self.folder, 0o777)
        self.manager("-a", "nobody")
        client = self.client()
        port = next(number for number in range(1023, 600, -1) if not listens(number))
        self.assertEqual(client.add(port, PASSWORD, mode="tcp_and_udp"), "ok")
        self.assert_served(port, self.target(targets.echo))


class ProcessPerPort(Life, manager.ProcessPerPort, manager.ManagerCase):
    def test_a_killed_server_is_started_again(self):
        started = self.manager()
        client = self.client()
        port = ports.free_port()
        self.assertEqual(client.add(port, "pw"), "ok")
        server, = self.servers(started)
        os.kill(server, signal.SIGKILL)
        wait.until(lambda: self.servers(started) not in ([], [server]), 20, "another server")
        self.logged(started, r"the server of port %d is gone" % port)
        self.assertTrue(listens(port))

    def test_only_the_manager_s_own_are_ended_by_pid_files(self):
        """What has come by the number of an old server, and files of others, are left alone."""
        os.mkdir(self.workdir, 0o700)
        other = subprocess.Popen(["sleep", "600"])
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        for name in (".shadowsocks_8001.pid", "other.pid"):
            with open(os.path.join(self.workdir, name), "w") as file:
                file.write("%d" % other.pid)
        self.manager()
        self.assertIsNone(other.poll())
        self.assertEqual(sorted(os.listdir(self.workdir)), [".ss-manager.state", "other.pid"])


class Classic(manager.ManagerCase):
    """Another suite's ss-server, which knows nothing of --control-stdio."""

    layout = ()

    def setUp(self):
        super().setUp()
        self.peer = shutil.which("ss-server", path="/usr/bin:/usr/local/bin")
        if self.peer is None or os.path.realpath(self.peer).startswith(
                os.path.realpath(settings.bin)):
            self.skipTest("shadowsocks-libev is not installed")

    def test_shadowsocks_libev_serves_the_ports(self):
        port = ports.free_port()
        target = self.target(targets.echo)
        for method in ("aes-256-gcm", "chacha20-ietf-poly1305"):
            started = self.manager("-m", method, method=False, executable=self.peer,
                                   workers=False)
            self.logged(started, "each port gets a process of its own")
            client = self.client()
            self.assertEqual(client.add(port, PASSWORD), "ok")
            wait.until(lambda: listens(port), 5)
            self.assert_served(port, target, method=method)
            wait.until(lambda: client.ping()[port] > 0, 20, "its report")
            self.assertEqual(client.add(port, "changed"), "ok")
            wait.until(lambda: listens(port), 5)
            self.assert_served(port, target, "changed", method)
            self.assertEqual(started.stop(), 0)
            self.assertFalse(listens(port))


if __name__ == "__main__":
    case.main()
