"""quickstart.sh: the demonstration, the server with its kept key, the client, and wrong words."""

import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, ports, proc, programs, targets, udp, wait  # noqa: E402
from support.case import settings  # noqa: E402

SCRIPT = os.path.join(settings.source, "quickstart.sh")
PATIENCE_S = 60


def children(pid):
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and int(proc.status(int(name))["PPid"]) == pid:
                found.append(int(name))
        except (OSError, KeyError):
            continue
    return found


def command_line(pid):
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            return file.read().decode().split("\0")
    except OSError:
        return []


def as_a_terminal_does():
    """A process group of its own, in which Ctrl-C works whatever started this test."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Quickstart(case.Case):
    def setUp(self):
        super().setUp()
        self.home = programs.scratch_directory()
        self.scratch = programs.scratch_directory()
        self.state = os.path.join(self.home, ".config", "shadowsocks-uv")
        self.config = os.path.join(self.state, "server.json")
        self.environment = {"SS_QUICKSTART_BIN": settings.bin, "HOME": self.home,
                            "XDG_CONFIG_HOME": "", "TMPDIR": self.scratch}

    def start(self, *arguments, **environment):
        script = programs.Program(["sh", SCRIPT, *arguments], prepare=as_a_terminal_does,
                                  env=dict(self.environment, **environment))
        self._programs.append(script)
        return script

    def run_to_end(self, *arguments, **environment):
        """(exit status, what it printed) of a run that ends by itself."""
        script = self.start(*arguments, **environment)
        status = script.wait_end(PATIENCE_S)
        self._programs.remove(script)
        return status, script.log

    def url(self, script):
        return script.await_log("ss://", PATIENCE_S).strip()

    def read_config(self):
        with open(self.config) as file:
            return json.load(file)

    def write_config(self, config):
        with open(self.config, "w") as file:
            json.dump(config, file)

    def assert_nothing_is_left(self):
        self.assertEqual(os.listdir(self.scratch), [])


class Demonstration(Quickstart):
    def setUp(self):
        super().setUp()
        if shutil.which("curl") is None:
            raise unittest.SkipTest("no curl on this machine")

    def test_once(self):
        status, log = self.run_to_end("--once")
        self.assertEqual(status, 0, log)
        sums = re.findall(r"(original|received) +1048576 bytes, sha256 ([0-9a-f]{64})\n", log)
        self.assertEqual([word for word, _ in sums], ["original", "received"], log)
        self.assertEqual(sums[0][1], sums[1][1])
        self.assertRegex(log, r"ss-server sessions .* 1 total; .* sent 10[0-9]{5} bytes\n")
        self.assertRegex(log, r"\nss://[A-Za-z0-9_-]+@127\.0\.0\.1:[0-9]+\n")
        if shutil.which("qrencode"):
            self.assertGreater(log.count("\u2588"), 100)
        self.assert_nothing_is_left()

    def test_proxies_of_the_environment_are_not_used(self):
        nobody = "http://127.0.0.1:%d" % ports.closed_port()
        status, log = self.run_to_end("--once", http_proxy=nobody, ALL_PROXY=nobody, no_proxy="*")
        self.assertEqual(status, 0, log)

    def demonstrate(self):
        """(script, pids of the two programs), both serving."""
        script = self.start("--method", "aes-128-gcm")
        script.await_log("run until Ctrl-C", PATIENCE_S)
        pids = {os.path.basename(command_line(pid)[0]): pid for pid in children(script.pid)}
        return script, pids["ss-server"], pids["ss-local"]

    def test_serves_until_ctrl_c(self):
        script, server, local = self.demonstrate()
        echo = self.target(targets.echo)
        (port,) = proc.listening_ports(local)
        self.assert_echoes(self.connect(port, echo.address), b"one more")

        (work,) = os.listdir(self.scratch)
        work = os.path.join(self.scratch, work)
        self.assertEqual(stat.S_IMODE(os.stat(work).st_mode), 0o700)
        path = os.path.join(work, "server.json")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        with open(path) as file:
            key = json.load(file)["password"]
        for pid in (script.pid, server, local):
            self.assertNotIn(key, " ".join(command_line(pid)))

        # As a terminal does: to the whole group.
        os.killpg(script.pid, signal.SIGINT)
        self.assertEqual(script.wait_end(20), 0, script.log)
        self._programs.remove(script)
        self.assertIn("both programs have ended", script.log)
        for pid in (server, local):
            self.assertFalse(os.path.exists("/proc/%d" % pid))
        self.assert_nothing_is_left()

    def test_a_signal_to_the_script_alone(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            script, server, local = self.demonstrate()
            script.process.send_signal(number)
            self.assertEqual(script.wait_end(20), 0, script.log)
            self._programs.remove(script)
            for pid in (server, local):
                self.assertFalse(os.path.exists("/proc/%d" % pid))
            self.assert_nothing_is_left()

    def test_a_program_that_dies(self):
        """The other one is ended, the log is shown, and the status tells."""
        script, server, local = self.demonstrate()
        os.kill(server, signal.SIGKILL)
        self.assertEqual(script.wait_end(20), 1)
        self._programs.remove(script)
        self.assertIn("has ended by itself", script.log)
        self.assertIn("--- ss-local.log", script.log)
        self.assertFalse(os.path.exists("/proc/%d" % local))
        self.assert_nothing_is_left()

    def test_a_step_that_fails(self):
        """A client that does not start: the server and the files go all the same."""
        broken = programs.scratch_directory()
        os.symlink(os.path.join(settings.bin, "ss-server"), os.path.join(broken, "ss-server"))
        with open(os.path.join(broken, "ss-local"), "w") as file:
            file.write("#!/bin/sh\necho this one is broken\nexit 3\n")
        os.chmod(file.name, 0o755)
        status, log = self.run_to_end("--once", SS_QUICKSTART_BIN=broken)
        self.assertEqual(status, 1, log)
        self.assertIn("do not start", log)
        self.assertIn("this one is broken", log)
        self.assert_nothing_is_left()


class Server(Quickstart):
    def start_server(self, *arguments, **environment):
        script = self.start("server", *arguments, **environment)
        return script, self.url(script)

    def start_local(self, url, *arguments):
        port = ports.free_port()
        script = self.start("local", "--port", port, *arguments, url)
        script.port = port
        return script.await_listening(port)

    def ctrl_c(self, script):
        self.assertEqual(script.stop(signal.SIGINT), 0, script.log)

    def test_serves_a_client(self):
        port = ports.free_port()
        server, url = self.start_server("--port", port, "--host", "127.0.0.1")
        server.await_listening(port)
        local = self.start_local(url)
        echo = self.target(targets.echo)
        # What is here is not for clients, unless the one who runs the server says so.
        self.assertEqual(self.connect(local, echo.address).recv(1), b"")
        self.ctrl_c(server)
        self.write_config(dict(self.read_config(), block_local=False))
        server, again = self.start_server("--host", "127.0.0.1")
        server.await_listening(port)
        self.assertEqual(again, url)

        self.assert_echoes(self.connect(local, echo.address))
        packets = udp.Target()
        self.addCleanup(packets.close)
        client = udp.Associate(local.port)
        self.addCleanup(client.close)
        self.assertEqual(client.exchange(packets.address, b"a datagram"),
                         (packets.address, b"a datagram"))

        # The script has become the program, and no list of processes shows the key.
        key = self.read_config()["password"]
        for script in (server, local):
            self.assertRegex(command_line(script.pid)[0], "ss-(server|local)$")
            self.assertNotIn(key, " ".join(command_line(script.pid)))
            self.assertNotIn(url, command_line(script.pid))
        if os.geteuid() == 0:
            self.assertNotEqual(proc.status(server.pid)["Uid"].split()[0], "0")
        self.ctrl_c(local)
        self.ctrl_c(server)
        self.assert_nothing_is_left()

    def test_keeps_its_key(self):
        port = ports.free_port()
        server, url = self.start_server("--port", port, "--method", "aes-128-gcm", "--host", "192.0.2.7")
        server.await_listening(port)
        self.ctrl_c(server)
        self.assertTrue(url.endswith("@192.0.2.7:%d" % port), url)
        self.assertEqual(os.listdir(self.state), ["server.json"])
        self.assertEqual(stat.S_IMODE(os.stat(self.config).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(self.state).st_mode), 0o700)
        config = self.read_config()
        self.assertEqual(len(config["password"]), 44)
        self.assertEqual((config["method"], config["server_port"], config["mode"]),
                         ("aes-128-gcm", port, "tcp_and_udp"))

        # Port, method and key are those of the first run; a mode that was widened is put right.
        os.chmod(self.config, 0o644)
        server, again = self.start_server("--host", "192.0.2.7")
        server.await_listening(port)
        self.ctrl_c(server)
        self.assertEqual(again, url)
        self.assertEqual(stat.S_IMODE(os.stat(self.config).st_mode), 0o600)

        # What is given holds for the run.
        other = ports.free_port()
        server, third = self.start_server("--port", other, "--host", "2001:db8::7")
        server.await_listening(other)
        self.ctrl_c(server)
        self.assertTrue(third.endswith("@[2001:db8::7]:%d" % other), third)
        self.assertEqual(third.split("@")[0], url.split("@")[0])
        self.assertEqual(self.read_config(), config)

    def test_xdg_folder_and_own_address(self):
        folder = programs.scratch_directory()
        port = ports.free_port()
        server, url = self.start_server("--port", port, XDG_CONFIG_HOME=folder)
        server.await_listening(port)
        self.ctrl_c(server)
        self.assertEqual(os.listdir(folder), ["shadowsocks-uv"])
        self.assertFalse(os.path.exists(self.state))
        host = url.split("@")[1].rsplit(":", 1)[0].strip("[]")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as own:
            own.bind((host, 0))  # fails for an address that is not of this machine

    def test_two_keys_are_not_the_same(self):
        keys = set()
        for _ in range(2):
            port = ports.free_port()
            server, _ = self.start_server("--port", port, "--host", "127.0.0.1")
            server.await_listening(port)
            self.ctrl_c(server)
            keys.add(self.read_config()["password"])
            os.unlink(self.config)
        self.assertEqual(len(keys), 2)

    def test_a_port_that_is_taken(self):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as taken:
            taken.bind(("0.0.0.0", 0))
            taken.listen(1)
            status, log = self.run_to_end("server", "--port", taken.getsockname()[1],
                                          "--host", "127.0.0.1")
        self.assertEqual(status, 255, log)
        self.assertIn("Address already in use", log)

    def test_a_method_that_is_not_there(self):
        status, log = self.run_to_end("server", "--method", "rot13")
        self.assertEqual(status, 1, log)
        self.assertIn("rot13", log)
        self.assertEqual(os.listdir(self.state), [])

    def test_url_from_standard_input(self):
        port = ports.free_port()
        url = "ss://YWVzLTI1Ni1nY206c2VjcmV0@127.0.0.1:%d" % ports.closed_port()
        reading, writing = os.pipe()
        local = self.start_with_input(reading, "local", "--port", port)
        os.write(writing, url.encode() + b"\n")
        os.close(writing)
        local.await_listening(port)
        self.ctrl_c(local)

    def start_with_input(self, descriptor, *arguments):
        script = programs.Program(["sh", SCRIPT, *arguments], env=self.environment,
                                  prepare=lambda: (as_a_terminal_does(), os.dup2(descriptor, 0)))
        os.close(descriptor)
        self._programs.append(script)
        return script


class Words(Quickstart):
    def test_help(self):
        for word in ("--help", "-h"):
            status, log = self.run_to_end(word)
            self.assertEqual(status, 0)
            for part in ("quickstart.sh server", "quickstart.sh local", "--once", "--port"):
                self.assertIn(part, log)
            self.assertNotIn("set -eu", log)

    def test_wrong_words(self):
        url = "ss://YWVzLTI1Ni1nY206c2VjcmV0@127.0.0.1:8388"
        for arguments, expected in (
            (["serve"], "'serve' is not known here"),
            (["--twice"], "'--twice' is not known here"),
            (["server", "client"], "'client' is not known here"),
            (["server", "--port"], "--port needs a value"),
            (["server", "--port", "0"], "'0' is not a port"),
            (["server", "--port", "65536"], "'65536' is not a port"),
            (["server", "--port", "80x"], "'80x' is not a port"),
            (["server", "--port", ""], "'' is not a port"),
            (["server", "--port", "99999999999999999999"], "is not a port"),
            (["server", "--method", 'x"y'], "is not a method"),
            (["server", "--host", "a b"], "neither a name nor an address"),
            (["server", "--host", "example.com:80"], "the port is given with --port"),
            (["server", "--once"], "--once is for the demonstration"),
            (["server", url], "sh quickstart.sh local"),
            (["--port", "8000"], "--port is for server and local"),
            (["--host", "192.0.2.1"], "--host is for server"),
            (["local"], "not an ss:// URL"),
            (["local", "https://example.com"], "neither an option nor an ss:// URL"),
            (["local", url, url], "one ss:// URL"),
            (["local", url, "--method", "aes-256-gcm"], "the URL names the method"),
        ):
            with self.subTest(arguments=arguments):
                status, log = self.run_to_end(*arguments)
                self.assertEqual(status, 2, log)
                self.assertIn(expected, log)
                self.assertEqual(len(log.splitlines()), 2, log)
        self.assertFalse(os.path.exists(self.state))
        self.assert_nothing_is_left()

    def test_a_url_that_is_none(self):
        for url in ("ss://", "ss://nothing", "ss://YWVz@host"):
            with self.subTest(url=url):
                status, log = self.run_to_end("local", url)
                self.assertEqual(status, 255, log)
                self.assertIn("the ss:// URL can't be used", log)

    def test_no_programs(self):
        empty = programs.scratch_directory()
        status, log = self.run_to_end("--once", SS_QUICKSTART_BIN=empty)
        self.assertEqual(status, 1, log)
        self.assertIn("there is no ss-server", log)
        status, log = self.run_to_end("--once", SS_QUICKSTART_BIN=os.path.join(empty, "none"))
        self.assertEqual(status, 1, log)
        self.assertIn("SS_QUICKSTART_BIN is no folder", log)

    def test_neither_root_nor_sudo(self):
        """A machine without the packages, played by stand-ins: what to install is said."""
        tools = programs.scratch_directory()
        for name, text in (("dpkg-query", "exit 1"), ("apt-get", "exit 1"),
                           ("dpkg", "echo amd64"), ("id", "echo 1000")):
            with open(os.path.join(tools, name), "w") as file:
                file.write("#!/bin/sh\n%s\n" % text)
            os.chmod(file.name, 0o755)
        for name in ("sh", "sed", "dirname", "grep"):
            os.symlink(shutil.which(name), os.path.join(tools, name))
        done = subprocess.run([os.path.join(tools, "sh"), SCRIPT, "--once"], env={"PATH": tools},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"neither root nor sudo(.|\n)*apt-get install gcc .*libuv1-dev")


if __name__ == "__main__":
    case.main()
