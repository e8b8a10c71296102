"""R46: ss-manager takes every option and key of ss-server, and each reaches its servers. Generated
from the programs' own tables of settings."""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from support import case, manager, ports, programs, wait  # noqa: E402
from support.case import settings  # noqa: E402

# Of one port, or of the one server that is told of its ports: taken and ignored, or not there.
OF_ONE_PORT = {"server_port", "password", "key", "users", "control_stdio"}
# Handed on in another way than by the option of the same name: in the configuration of each port, or
# because the manager has a file, a user or an address of its own.
OTHERWISE = {"server", "method", "mode", "u", "U", "c", "f", "v", "port_password", "servers",
             "manager_address", "plugin", "plugin_opts", "plugin_args", "plugin_mode",
             "use_syslog", "local_address", "local_ipv4_address", "local_ipv6_address",
             "outbound_bind_addr", "dns", "reuse_port"}
KINDS = {"flag", "number", "loose number", "mark", "level", "text", "secret"}
SAMPLES = {"nameserver": "192.0.2.53", "user": "root", "outbound_bind_interface": "lo"}


def name_of(setting):
    return setting.get("key") or setting.get("option", setting.get("letter")).replace("-", "_")


def sample(setting):
    """(word, JSON value)"""
    kind = setting["kind"]
    if kind == "flag":
        return None, True
    if kind == "number":
        number = setting["max"] // 3 + 1
        return str(number), number
    if kind in ("loose number", "mark"):
        return "65536", 65536
    if kind == "level":
        return "error", "error"
    text = SAMPLES.get(setting.get("key"), "text")
    return text, text


class Settings(manager.ManagerCase):
    def table(self, program):
        listed = subprocess.run([programs.find(settings.bin, program), "--list-settings"],
                                capture_output=True, check=True)
        return {name_of(setting): setting for setting in json.loads(listed.stdout)}

    def setUp(self):
        super().setUp()
        self.server, self.manager_table = self.table("ss-server"), self.table("ss-manager")
        self.assertGreater(len(self.server), 40)
        SAMPLES["acl"] = os.path.join(self.folder, "rules.acl")
        with open(SAMPLES["acl"], "w") as file:
            file.write("[bypass_list]\n")

    def test_every_setting_is_known(self):
        for name, setting in self.server.items():
            with self.subTest(setting=name):
                known = self.manager_table.get(name)
                if known is None:
                    self.assertIn(name, OF_ONE_PORT)
                    continue
                for form in ("option", "letter"):
                    self.assertEqual(known.get(form), setting.get(form))
                if known.get("ignored"):
                    self.assertIn(name, OF_ONE_PORT | {"l"})
                elif "key" in setting:
                    self.assertEqual(known.get("key"), setting.get("key"))

    def handed_on(self, layout, arguments):
        """The words that a server is started with."""
        path = os.path.join(self.folder, "wrapper")
        words = os.path.join(self.folder, "words")
        with open(path, "w") as file:
            file.write("#!/bin/sh\nfor word; do printf '%%s\\n' \"$word\"; done > %s.new\n"
                       "mv %s.new %s\nexit 0\n" % (words, words, words))
        os.chmod(path, 0o755)
        if os.path.exists(words):
            os.unlink(words)
        started = self.manager(*layout, *arguments, executable=path, workers=False)
        if layout:
            self.client().add(ports.free_port(), "pw")
        wait.until(lambda: os.path.exists(words), 10)
        self.assertEqual(started.stop(), 0)
        with open(words) as file:
            return file.read().splitlines()

    def assert_handed_on(self, layout, arguments, chosen):
        words = self.handed_on(layout, arguments)
        for setting in chosen:
            word, _ = sample(setting)
            options = ["--" + setting["option"]] if "option" in setting else []
            options += ["-" + setting["letter"]] if "letter" in setting else []
            with self.subTest(setting=name_of(setting), layout=layout):
                at = [words.index(option) for option in options if option in words]
                self.assertTrue(at, words)
                if word is not None:
                    self.assertEqual(words[at[0] + 1], word)

    def chosen(self):
        return [setting for name, setting in self.server.items()
                if name not in OF_ONE_PORT | OTHERWISE and setting["kind"] in KINDS and
                ("option" in setting or "letter" in setting) and not setting.get("ignored")]

    def test_options_are_handed_on(self):
        chosen = self.chosen()
        self.assertGreater(len(chosen), 20)
        arguments = []
        for setting in chosen:
            word, _ = sample(setting)
            arguments.append("--" + setting["option"] if "option" in setting
                             else "-" + setting["letter"])
            arguments += [word] if word is not None else []
        for layout in ((), ("--process-per-port",)):
            self.assert_handed_on(layout, arguments, chosen)

    def test_keys_are_handed_on(self):
        chosen = [setting for setting in self.chosen() if "key" in setting]
        path = os.path.join(self.folder, "manager.json")
        with open(path, "w") as file:
            json.dump({setting["key"]: sample(setting)[1] for setting in chosen}, file)
        for layout in ((), ("--process-per-port",)):
            self.assert_handed_on(layout, ["-c", path], chosen)

    def test_what_has_a_way_of_its_own(self):
        words = self.handed_on(("--process-per-port",),
                               ["-u", "-b", "127.0.0.9", "--plugin", "p", "--plugin-opts", "o=1",
                                "--plugin-args", "-x", "--plugin-mode", "tcp_and_udp", "-s", "::1"])
        line = " ".join(words)
        for text in ("-u", "-b 127.0.0.9", "--plugin p", "--plugin-opts o=1", "--plugin-args -x",
                     "--plugin-mode tcp_and_udp", "-s 127.0.0.1 -s ::1"):
            self.assertIn(text, line)
        words = self.handed_on((), ["-b", "127.0.0.9", "--reuse-port", "--use-syslog"])
        line = " ".join(words)
        self.assertEqual(words[0], "--control-stdio")
        for text in ("-b 127.0.0.9", "--reuse-port", "--use-syslog"):
            self.assertIn(text, line)

    def test_ports_and_passwords_of_a_server_are_taken_and_ignored(self):
        self.manager("-p", "8388", "-l", "1080", "-k", "pw", "--key", "x")
        self.assertEqual(self.client().ask("list"), "[\n]")


if __name__ == "__main__":
    case.main()
