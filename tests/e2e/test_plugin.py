"""R56 to R60: what a plugin is given, how it is found, and that it lives no longer than its program."""

import json
import os
import pwd
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, plugins, ports, proc, programs, wait  # noqa: E402
from support.case import settings  # noqa: E402

PASSWORD = "barfoo!"


class Plugins(case.Case):
    def setUp(self):
        super().setUp()
        self.folder = programs.scratch_directory()

    def started(self, name, fixture, *arguments, server="127.0.0.1", port=None, **how):
        """A program with the fixture as plugin, not ended by the test's end."""
        port = port or ports.free_port()
        words = ["-p", port, "-k", PASSWORD, "-m", settings.method, "--workers", settings.workers]
        for host in [server] if isinstance(server, str) else server:
            words += ["-s", host]
        if name != "ss-server":
            words += ["-l", ports.free_port()]
        if name == "ss-tunnel":
            words += ["-L", "target.test:80"]
        if fixture is not None:
            how.setdefault("env", fixture.env)
            words += ["--plugin", fixture.path]
        started = programs.Program([programs.find(settings.bin, name), *words, *arguments],
                                   cwd=how.pop("cwd", self.folder), **how)
        self.addCleanup(started.kill)
        started.port = port
        return started

    def assert_gone(self, pids, seconds=2):
        wait.until(lambda: not any(map(plugins.runs, pids)), seconds,
                   "the end of %s" % pids)

    def errors(self, program):
        return program.log_lines(" ERROR: ")


class Given(Plugins):
    """R58, R59."""

    def environment(self, name, *arguments, server="127.0.0.1", **how):
        """(what SS_ variables the plugin had, the public port)"""
        fixture = plugins.Fixture("none", act="stay")
        program = self.started(name, fixture, *arguments, server=server, **how)
        start = fixture.await_start()
        self.assertEqual(program.stop(), 0)
        return start["environment"], program.port

    def assert_environment(self, found, port, host, **more):
        local = int(found.pop("SS_LOCAL_PORT"))
        self.assertTrue(0 < local < 65536)
        self.assertEqual(found, {"SS_REMOTE_HOST": host, "SS_REMOTE_PORT": str(port),
                                 "SS_LOCAL_HOST": "127.0.0.1", **more})

    def test_option_strings_byte_for_byte(self):
        for name in ("ss-local", "ss-server", "ss-tunnel", "ss-redir"):
            for text in (r"path=/a\=b;k\;x=1;v=c\\d", "", "x" * 2000, "a b\t\"c'$HOME`d`|%s;é;\n"):
                with self.subTest(program=name, text=text[:40]):
                    found, port = self.environment(name, "--plugin-opts", text)
                    self.assert_environment(found, port, "127.0.0.1", SS_PLUGIN_OPTIONS=text)
            found, port = self.environment(name)
            self.assert_environment(found, port, "127.0.0.1")

    def test_none_is_inherited(self):
        fixture = plugins.Fixture("none", act="stay")
        fixture.env.update(SS_PLUGIN_OPTIONS="of another", SS_SERVER_PASSWORD="secret",
                           SS_REMOTE_HOST="203.0.113.1", SS_OTHER="stays")
        program = self.started("ss-local", fixture)
        found = fixture.await_start()["environment"]
        self.assert_environment(found, program.port, "127.0.0.1", SS_OTHER="stays")
        self.assertEqual(program.stop(), 0)

    def test_hosts_are_passed_on_as_they_are(self):
        for name, given, told in (
                ("ss-local", "example.test", "example.test"),
                ("ss-local", "[2001:db8::1]", "2001:db8::1"),
                ("ss-local", "2001:db8::1", "2001:db8::1"),
                ("ss-local", ["192.0.2.1", "example.test", "::1"], "192.0.2.1|example.test|::1"),
                ("ss-server", "::1", "::1"),
                ("ss-server", "name.test", "name.test"),
                ("ss-server", ["0.0.0.0", "::"], "0.0.0.0|::")):
            with self.subTest(program=name, given=given):
                found, port = self.environment(name, server=given)
                self.assert_environment(found, port, told)

    def test_a_port_of_its_own_is_told(self):
        own = ports.free_port()
        found, _ = self.environment("ss-local", server="192.0.2.1:%d" % own)
        self.assert_environment(found, own, "192.0.2.1")

    def test_a_plugin_for_each_port(self):
        fixture = plugins.Fixture("none", act="stay")
        one, other = ports.free_port(), ports.free_port()
        program = self.started("ss-local", fixture, server=[
            "192.0.2.1:%d" % one, "192.0.2.2:%d" % other, "192.0.2.3:%d" % one])
        fixture.await_start(2)
        told = sorted((start["environment"]["SS_REMOTE_HOST"],
                       int(start["environment"]["SS_REMOTE_PORT"])) for start in fixture.starts)
        self.assertEqual(told, [("192.0.2.1|192.0.2.3", one), ("192.0.2.2", other)])
        self.assertEqual(len({start["environment"]["SS_LOCAL_PORT"]
                              for start in fixture.starts}), 2)
        self.assertEqual(program.stop(), 0)

    def test_a_file_with_several_servers(self):
        fixture = plugins.Fixture("none", act="stay")
        public = [ports.free_port() for _ in range(4)]
        entries = [
            {"plugin": fixture.path, "plugin_opts": "first", "plugin_args": ["a b", "", "c"]},
            {}, {"plugin": ""}, {"plugin_opts": "own"}]
        path = os.path.join(self.folder, "c.json")
        with open(path, "w") as file:
            json.dump({"plugin": fixture.path, "plugin_opts": "shared", "plugin_args": ["top"],
                       "servers": [{"server": "127.0.0.1", "server_port": port,
                                    "method": "aes-256-gcm", "password": "pw", **entry}
                                   for port, entry in zip(public, entries)]}, file)
        program = programs.Program([programs.find(settings.bin, "ss-server"), "-c", path],
                                   env=fixture.env, cwd=self.folder)
        self.addCleanup(program.kill)
        fixture.await_start(3)
        told = {int(start["environment"]["SS_REMOTE_PORT"]):
                (start["environment"]["SS_PLUGIN_OPTIONS"], start["words"])
                for start in fixture.starts}
        self.assertEqual(told, {public[0]: ("first", ["a b", "", "c"]),
                                public[1]: ("shared", ["top"]), public[3]: ("own", ["top"])})
        self.assertEqual(len(program.log_lines("plugin \"%s\" enabled" % fixture.path)), 1)
        # The one without a plugin listens itself.
        self.assertIn(public[2], proc.listening_ports(program.pid))
        self.assertEqual(program.stop(), 0)

    def test_loopback_of_ipv4_for_servers_of_ipv6(self):
        found, port = self.environment("ss-server", server="::1")
        self.assert_environment(found, port, "::1")

    def test_a_clean_process(self):
        fixture = plugins.Fixture("none", act="stay")
        program = self.started("ss-server", fixture, "-u", "--plugin-args", "--one",
                               "--plugin-args=two words")
        start = fixture.await_start()
        self.assertEqual(start["words"], ["--one", "two words"])
        self.assertEqual([number for number in start["descriptors"] if number < 3], [0, 1, 2])
        # Its own look at the folder is one, the record's none yet.
        self.assertLessEqual(len(start["descriptors"]), 4)
        self.assertEqual(start["input"], "/dev/null")
        self.assertEqual(int(start["blocked"], 16), 0)
        self.assertEqual(start["group"], start["pid"])
        self.assertEqual(start["folder"], os.path.realpath(self.folder))
        program.await_log("the plugin writes to its output")
        program.await_log("the plugin writes to its errors")
        # UDP goes around it; TCP is on loopback alone.
        self.assertEqual(proc.udp_ports(program.pid), {program.port})
        self.assertEqual(proc.listening_ports(program.pid),
                         {int(start["environment"]["SS_LOCAL_PORT"])})
        self.assertEqual(program.stop(), 0)

    def test_nothing_runs_without_plugins(self):
        program = self.started("ss-local", None)
        program.await_listening()
        self.assertEqual(plugins.children(program.pid), [])
        self.assertEqual(program.stop(), 0)

    @unittest.skipUnless(os.geteuid() == 0, "only root has privileges to drop")
    def test_the_plugin_keeps_the_rights_of_the_start(self):
        fixture = plugins.Fixture("none", act="exit:3:1.2,stay")
        os.chmod(fixture.folder, 0o755)
        program = self.started("ss-server", fixture, "-a", "nobody")
        self.assertEqual(fixture.await_start(2)["uid"], 0)
        nobody = pwd.getpwnam("nobody").pw_uid
        self.assertEqual(proc.status(program.pid)["Uid"].split(), [str(nobody)] * 4)
        self.assertEqual(program.stop(), 0)


class Found(Plugins):
    """R60, and how names are looked for."""

    def run_named(self, fixture, plugin, *arguments, cwd, path=None):
        env = dict(fixture.env)
        if path is not None:
            env["PATH"] = path
        return self.started("ss-server", None, "--plugin", plugin, *arguments, env=env, cwd=cwd)

    def test_names_in_all_their_forms(self):
        fixture = plugins.Fixture("none", act="stay", name="my plugins/p")
        here = os.path.dirname(fixture.path)
        os.symlink(fixture.path, os.path.join(here, "linked"))
        usual = os.environ["PATH"]
        forms = (("./my plugins/p", fixture.folder, None), ("my plugins/p", fixture.folder, None),
                 (fixture.path, self.folder, None), ("p", here, None), ("./linked", here, None),
                 ("../my plugins/p", here, None), ("p", self.folder, here + ":" + usual))
        count = 0
        for plugin, cwd, path in forms:
            with self.subTest(plugin=plugin, cwd=cwd):
                program = self.run_named(fixture, plugin, cwd=cwd, path=path)
                count += 1
                fixture.await_start(count)
                self.assertEqual(program.stop(), 0)

    def test_relative_names_in_the_background(self):
        fixture = plugins.Fixture("none", act="stay", name="my plugins/p")
        for count, plugin in enumerate(("./my plugins/p", "my plugins/p", fixture.path), 1):
            pid_path = os.path.join(self.folder, "p.pid")
            program = self.run_named(fixture, plugin, "-f", pid_path, cwd=fixture.folder)
            self.assertEqual(program.wait_end(20), 0, program.log)
            with open(pid_path) as file:
                pid = int(file.read())
            try:
                start = fixture.await_start(count)
                self.assertEqual(start["folder"], os.path.realpath(fixture.folder))
                self.assertEqual(os.readlink("/proc/%d/cwd" % pid), "/")
            finally:
                os.kill(pid, signal.SIGTERM)
            self.assert_gone([pid, start["pid"], start["parent"]])

    def test_what_is_not_there_is_named_in_full(self):
        fixture = plugins.Fixture("none")
        for plugin, shown, why in (
                ("./my plugins/q", os.path.join(fixture.folder, "./my plugins/q"),
                 "No such file or directory"),
                ("/nowhere/at all", "/nowhere/at all", "No such file or directory"),
                ("no-such-plugin", 'plugin "no-such-plugin"', "No such file or directory"),
                ("./record", os.path.join(fixture.folder, "./record"), "Permission denied")):
            with open(os.path.join(fixture.folder, "record"), "w"):
                pass
            with self.subTest(plugin=plugin):
                begin = time.monotonic()
                program = self.run_named(fixture, plugin, cwd=fixture.folder)
                self.assertEqual(program.wait_end(), 255)
                self.assertLess(time.monotonic() - begin, 10 if self.sanitized else 2)
                self.assertEqual(len(self.errors(program)), 1, program.log)
                self.assertIn(shown, self.errors(program)[0])
                self.assertIn(why, self.errors(program)[0])

    def test_in_the_background_the_parent_tells(self):
        program = self.run_named(plugins.Fixture("none"), "no-such-plugin", "-f",
                                 os.path.join(self.folder, "p.pid"), cwd=self.folder)
        self.assertEqual(program.wait_end(), 255)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "p.pid")))

    def test_no_shell(self):
        """What a shell would make something of is a name like another."""
        program = self.run_named(plugins.Fixture("none"), "touch made; true", cwd=self.folder)
        self.assertEqual(program.wait_end(), 255)
        self.assertEqual(os.listdir(self.folder), [])


class Ends(Plugins):
    """R57."""

    def test_a_first_run_that_is_none_is_fatal(self):
        for act, how in (("exit:0", "ended with status 0"), ("exit:7", "ended with status 7"),
                         ("kill:9", "was ended by signal 9 (Killed)"),
                         ("exit:1:0.3", "ended with status 1")):
            with self.subTest(act=act):
                fixture = plugins.Fixture("server", act=act)
                begin = time.monotonic()
                program = self.started("ss-server", fixture)
                self.assertEqual(program.wait_end(), 255)
                self.assertLess(time.monotonic() - begin, 10 if self.sanitized else 3)
                self.assertEqual(len(self.errors(program)), 1, program.log)
                self.assertIn('plugin service exit unexpectedly: plugin "%s" %s after 0.'
                              % (fixture.path, how), self.errors(program)[0])
                self.assertEqual(len(fixture.starts), 1)

    def test_false(self):
        program = self.started("ss-local", None, "--plugin", "false")
        self.assertEqual(program.wait_end(), 255)
        self.assertIn('"false" ended with status 1', self.errors(program)[0])

    def test_a_later_end_is_followed_by_a_start(self):
        fixture = plugins.Fixture("server", act="exit:3:1.2,relay")
        program = self.started("ss-server", fixture)
        first = fixture.await_start()
        second = fixture.await_start(2)
        self.assertEqual(first["environment"], second["environment"])
        self.assertEqual(first["words"], second["words"])
        line = program.await_log(" WARN: ")
        self.assertRegex(line, r'plugin "%s" ended with status 3 after 1\.\d{3} s; it is started '
                               r'again in 0\.1 s' % fixture.path)
        self.assertEqual(self.errors(program), [])
        self.assertEqual(program.stop(), 0)

    def test_pauses_grow(self):
        fixture = plugins.Fixture("server", act="exit:3:1.2,kill:15")
        program = self.started("ss-server", fixture)
        fixture.await_start(5)
        pauses = [float(line.rsplit(" in ", 1)[1].split()[0])
                  for line in program.log_lines(" WARN: ")][:4]
        self.assertEqual(pauses, [0.1, 0.2, 0.4, 0.8])
        self.assertIn("was ended by signal 15", program.log)
        self.assertEqual(program.stop(), 0)

    def test_one_that_vanishes_is_looked_for_again(self):
        fixture = plugins.Fixture("server", act="exit:1:1.2,stay")
        program = self.started("ss-server", fixture)
        fixture.await_start()
        os.rename(fixture.path, fixture.path + ".away")
        line = program.await_log("can't be started")
        self.assertIn(fixture.path, line)
        os.rename(fixture.path + ".away", fixture.path)
        fixture.await_start(2)
        self.assertEqual(program.stop(), 0)

    def test_plugin_exit(self):
        for given in (["--plugin-exit"], ["-c", "c.json"]):
            with open(os.path.join(self.folder, "c.json"), "w") as file:
                json.dump({"plugin_exit": True}, file)
            fixture = plugins.Fixture("server", act="exit:5:1.3")
            program = self.started("ss-server", fixture, *given)
            self.assertEqual(program.wait_end(), 255)
            self.assertEqual(len(self.errors(program)), 1)
            self.assertIn("plugin service exit unexpectedly: ", self.errors(program)[0])
            self.assertIn("ended with status 5 after 1.", self.errors(program)[0])


class EndsWithIt(Plugins):
    """R56."""

    def with_brood(self, name="ss-server", *arguments, **how):
        fixture = plugins.Fixture("server" if name == "ss-server" else "client", brood=True)
        program = self.started(name, fixture, *arguments, **how)
        start = fixture.await_relaying()
        self.assertEqual(len(start["brood"]), 2)
        return program, start

    def all_of(self, start):
        return [start["pid"], start["parent"], *start["brood"]]

    def test_by_each_signal(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            for name in ("ss-server", "ss-local"):
                with self.subTest(signal=number, program=name):
                    program, start = self.with_brood(name)
                    port = int(start["environment"]["SS_%s_PORT" % (
                        "REMOTE" if name == "ss-server" else "LOCAL")])
                    begin = time.monotonic()
                    program.process.send_signal(number)
                    status = program.wait_end()
                    self.assertEqual(status, -9 if number == signal.SIGKILL else 0)
                    if number != signal.SIGKILL:
                        # It waits for them itself.
                        self.assertFalse(any(map(plugins.process_is_there, self.all_of(start))))
                    self.assert_gone(self.all_of(start))
                    self.assertLess(time.monotonic() - begin, 2.5)
                    self.assertTrue(ports.is_free(port))
                    self.assertEqual(self.errors(program), [])

    def test_one_that_heeds_sigterm_is_waited_for_no_longer(self):
        fixture = plugins.Fixture("server")
        program = self.started("ss-server", fixture)
        fixture.await_relaying()
        begin = time.monotonic()
        self.assertEqual(program.stop(), 0)
        self.assertLess(time.monotonic() - begin, 0.5)

    def test_by_an_error_after_its_start(self):
        fixture = plugins.Fixture("server")
        program = self.started("ss-server", fixture, "-a", "no-such-user")
        self.assertEqual(program.wait_end(), 255)
        self.assert_gone([start["pid"] for start in fixture.starts])

    def test_a_service_ended_as_a_whole(self):
        """Plugin, helper and program get the signal, in this order: nobody complains."""
        fixture = plugins.Fixture("server")
        program = self.started("ss-server", fixture)
        start = fixture.await_relaying()
        for pid in (start["pid"], start["parent"], program.pid):
            os.kill(pid, signal.SIGTERM)
        self.assertEqual(program.wait_end(), 0)
        self.assertNotIn("was ended by", program.log)
        self.assert_gone([start["pid"], start["parent"]])

    def test_a_helper_that_is_killed(self):
        program, start = self.with_brood()
        os.kill(start["parent"], signal.SIGKILL)
        self.assertEqual(program.wait_end(), 255)
        self.assertIn("the helper process is gone", program.log)
        self.assert_gone([start["pid"], start["parent"]])
        for pid in start["brood"]:  # with nobody left to know them
            os.kill(pid, signal.SIGKILL)

    def test_the_rest_of_a_dead_plugin_goes_before_the_next_start(self):
        fixture = plugins.Fixture("server", act="exit:1:1.2,relay", brood=True)
        program = self.started("ss-server", fixture)
        first = fixture.await_start()
        fixture.await_start(2)
        self.assertFalse(plugins.process_is_there(first["brood"][0]))
        self.assertEqual(program.stop(), 0)
        self.assert_gone([*first["brood"]])

    def test_no_zombies_while_it_runs(self):
        fixture = plugins.Fixture("server", act="exit:1:1.2,exit:1,exit:1,stay", brood=True)
        program = self.started("ss-server", fixture)
        fixture.await_start(4)
        names = [proc.status(pid)["State"].split()[0]
                 for pid in plugins.descendants(program.pid)]
        self.assertNotIn("Z", names)
        self.assertEqual(program.stop(), 0)


if __name__ == "__main__":
    case.main()
