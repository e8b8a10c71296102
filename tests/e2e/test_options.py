"""Every option and key of every program, generated from the programs' own table of settings.

An option and its key come to the same configuration, the command line beats the file as it always
did, and a value that can't be used ends the program with one line that names the setting (R39, R61,
R65).

    python3 test_options.py --bin build/bin [unittest's own options and names]
"""

import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, programs  # noqa: E402

PROGRAMS = ("ss-local", "ss-server", "ss-tunnel", "ss-redir")

# What a program can't do without, as options and as keys.
BASE_WORDS = {"s": "192.0.2.1", "p": "8388", "k": "barfoo!", "m": "aes-256-gcm"}
BASE_KEYS = {"server": "192.0.2.1", "server_port": 8388, "password": "barfoo!",
             "method": "aes-256-gcm"}
CLIENT_WORDS = {"l": "1080"}
CLIENT_KEYS = {"local_port": 1080}
TUNNEL_WORDS = {"L": "192.0.2.2:53"}
TUNNEL_KEYS = {"tunnel_address": "192.0.2.2:53"}

# Texts with a form of their own; any other text is taken as it stands.
TEXTS = {"method": "chacha20-ietf-poly1305", "tunnel_address": "target.test:80",
         "outbound_bind_addr": "192.0.2.9", "nameserver": "192.0.2.53,[2001:db8::53]:5353",
         "udp_advertised_address": "2001:db8::9", "local_ipv4_address": "192.0.2.8",
         "local_ipv6_address": "2001:db8::8", "socks5_auth_config_path": "users.json",
         "acl": "/dev/null"}
KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"

TASKS = ("task", "configuration file", "mode switch", "refused")


def dashed(setting):
    """The spellings of a setting on the command line."""
    found = []
    if "letter" in setting:
        found.append("-" + setting["letter"])
    if "option" in setting:
        found.append("--" + setting["option"])
    if "option_alias" in setting:
        found.append("--" + setting["option_alias"])
    return found


def name_of(setting):
    """The key, or what would be one."""
    return setting.get("key") or setting.get("option", setting.get("letter")).replace("-", "_")


def sample(setting):
    """A value that differs from what the setting is without it: (word, JSON value)."""
    kind, key = setting["kind"], setting.get("key")
    if kind == "flag":
        return None, True
    if kind == "number":
        number = setting["max"] // 3 + 1
        return str(number), number
    if kind == "loose number":
        return "65536", 65536
    if kind == "port":
        return "4711", 4711
    if kind == "mark":
        return "0x30", 48
    if kind == "level":
        return "error", "error"
    if kind == "balance":
        return "random", "random"
    if kind == "secret":
        return (KEY, KEY) if key == "key" else ("secret", "secret")
    if kind == "hosts":
        return "upstream.test:4000", "upstream.test:4000"
    if kind == "addresses":
        return "127.0.0.9", "127.0.0.9"
    if kind == "mode":
        return "udp_only", "udp_only"
    if kind == "texts":
        return "--word", ["--word"]
    text = TEXTS.get(key, "text")
    return text, text


class Ended:
    def __init__(self, result):
        self.status = result.returncode
        self.out = result.stdout.decode()
        self.errors = [line for line in result.stderr.decode().splitlines() if " ERROR: " in line]
        self.text = self.out + result.stderr.decode()


class Options(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = programs.scratch_directory()
        with open(os.path.join(cls.folder, "users.json"), "w") as file:
            json.dump({"password": {"users": [{"user_name": "u", "password": "p"}]}}, file)
        cls.settings = {}
        for program in PROGRAMS:
            listed = cls.run_program(program, ["--list-settings"])
            cls.settings[program] = json.loads(listed.out)

    @classmethod
    def run_program(cls, program, words, environment=None):
        env = {name: value for name, value in os.environ.items()
               if not name.startswith("SS_") and name != "POSIXLY_CORRECT"}
        env.update(environment or {})
        return Ended(subprocess.run(
            [programs.find(case.settings.bin, program), *words], cwd=cls.folder, env=env,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30,
            check=False))

    def words(self, program, without=None):
        base = dict(BASE_WORDS)
        if program != "ss-server":
            base.update(CLIENT_WORDS)
        if program == "ss-tunnel":
            base.update(TUNNEL_WORDS)
        base.pop(without, None)
        return [part for letter, value in base.items() for part in ("-" + letter, value)]

    def keys(self, program):
        base = dict(BASE_KEYS)
        if program != "ss-server":
            base.update(CLIENT_KEYS)
        if program == "ss-tunnel":
            base.update(TUNNEL_KEYS)
        return base

    def file(self, members):
        with open(os.path.join(self.folder, "c.json"), "w") as file:
            json.dump(members, file)
        return ["-c", "c.json"]

    def check(self, program, words):
        """The effective configuration, apart from the path of the file."""
        ended = self.run_program(program, [*words, "--check-config"])
        self.assertEqual(ended.status, 0, ended.text)
        found = json.loads(ended.out)
        found.pop("config", None)
        return found

    def each(self, body, *, on_line=True, in_file=True):
        """body(program, setting) for every setting that has a value of its own there."""
        seen = 0
        for program in PROGRAMS:
            for setting in self.settings[program]:
                if (setting["kind"] in TASKS or setting.get("ignored") or
                        on_line and not dashed(setting) or
                        in_file and "key" not in setting):
                    continue
                seen += 1
                with self.subTest(program=program, setting=name_of(setting)):
                    body(program, setting)
        self.assertGreater(seen, 80)

    def test_option_and_key_come_to_the_same(self):
        def body(program, setting):
            word, value = sample(setting)
            by_file = self.check(program, self.file({**self.keys(program), setting["key"]: value}))
            for spelling in dashed(setting):
                rest = self.words(program, without=setting.get("letter"))
                by_line = self.check(program,
                                     [*rest, spelling] + ([] if word is None else [word]))
                self.assertEqual(by_line, by_file)
            # A password is hidden, so another one shows nothing.
            if setting["key"] != "password":
                self.assertNotEqual(by_file, self.check(program, self.words(program)))

        self.each(body)

    def test_secrets_come_through(self):
        for program in PROGRAMS:
            words = self.words(program, without="k")
            urls = {self.run_program(program, [*words, *given, "--print-url"]).out
                    for given in (["-k", "p@ss:word"], ["--password=p@ss:word"])}
            keys = {**self.keys(program), "password": "p@ss:word"}
            urls.add(self.run_program(program, [*self.file(keys), "--print-url"]).out)
            environment = {"SS_SERVER_PASSWORD": "p@ss:word"}
            urls.add(self.run_program(program, [*words, "--print-url"], environment).out)
            self.assertEqual(len(urls), 1, urls)
            url = urls.pop().strip()
            # And the URL comes to the same configuration.
            listening = [] if program == "ss-server" else ["-l", "1080"]
            listening += ["-L", "192.0.2.2:53"] if program == "ss-tunnel" else []
            again = self.run_program(program, ["-c", url, *listening, "--print-url"]).out.strip()
            self.assertEqual(again, url)

    def test_the_line_beats_the_file(self):
        """Strings, numbers, hosts: what was given on the line counts, the file's is not looked at."""
        others = {"number": 5000, "mark": 5000, "loose number": 70000, "port": 4712, "level": "warn",
                  "balance": "fastest",
                  "addresses": "127.0.0.8", "mode": "tcp_and_udp", "texts": ["a", "b"],
                  "hosts": ["198.51.100.1", "198.51.100.2:99"]}

        def body(program, setting):
            word, value = sample(setting)
            if setting["kind"] == "flag":
                return
            spelling = dashed(setting)[0]
            rest = self.words(program, without=setting.get("letter"))
            other = others.get(setting["kind"], value if setting["key"] in TEXTS else "other")
            in_file = self.file({setting["key"]: other})
            self.assertEqual(self.check(program, [*rest, *in_file, spelling, word]),
                             self.check(program, [*rest, spelling, word]))

        self.each(body)

    def test_switches_add_up(self):
        """A switch is on when either says so: the line can't switch off what the file has on."""
        def body(program, setting):
            if setting["kind"] != "flag":
                return
            spelling = dashed(setting)[0]
            on = self.check(program, [*self.words(program), spelling])
            for given, value in (([], True), ([spelling], False), ([spelling], True)):
                words = [*self.words(program), *self.file({setting["key"]: value}), *given]
                self.assertEqual(self.check(program, words), on)

        self.each(body)

    def test_zero_leaves_loose_numbers_to_the_file(self):
        def body(program, setting):
            if setting["kind"] != "loose number":
                return
            words = [*self.words(program), *self.file({setting["key"]: 65536})]
            by_file = self.check(program, words)
            for word in ("0", "junk"):
                self.assertEqual(self.check(program, [*words, dashed(setting)[0], word]), by_file)

        self.each(body)

    def test_modes(self):
        for program in PROGRAMS:
            words = self.words(program)
            modes = {}
            for name, given, mode in (("file", [], "udp_only"), ("-u", ["-u"], "udp_only"),
                                      ("-U", ["-U"], "tcp_and_udp"), ("-uU", ["-uU"], "tcp_only"),
                                      ("-U -u", ["-U", "-u"], "tcp_only")):
                checked = self.check(program, [*words, *self.file({"mode": mode}), *given])
                modes[name] = checked["mode"]
            self.assertEqual(modes, {"file": "udp_only", "-u": "tcp_and_udp", "-U": "udp_only",
                                     "-uU": "udp_only", "-U -u": "tcp_and_udp"})

    def test_the_last_of_several_counts(self):
        firsts = {"number": "5000", "mark": "5000", "loose number": "70000", "port": "4712", "level": "warn",
                  "mode": "tcp_and_udp", "balance": "fastest"}

        def body(program, setting):
            word, _ = sample(setting)
            if word is None or setting["kind"] in ("hosts", "addresses", "texts", "secret"):
                return
            spelling = dashed(setting)[0]
            rest = self.words(program, without=setting.get("letter"))
            first = firsts.get(setting["kind"], "first")
            self.assertEqual(self.check(program, [*rest, spelling, first, spelling, word]),
                             self.check(program, [*rest, spelling, word]))

        self.each(body, in_file=False)

    def assert_names(self, ended, setting):
        """One error line, which names the setting, and a status that is not 0."""
        name = name_of(setting)
        names = [*dashed(setting), "'%s'" % name, "%s:" % name]
        self.assertNotEqual(ended.status, 0)
        self.assertEqual(len(ended.errors), 1, ended.text)
        self.assertTrue(any(word in ended.errors[0] for word in names), ended.errors)

    BAD = {"number": ("x", "-1", "", "1x", "0x10", "99999999999", "4294967297"),
           "port": ("x", "-1", "", "8388abc", "0", "65536", "4294975684", " 80"),
           "mark": ("x", "-1", "", "1x", "0x", "0x1g", "99999999999", "0x123456789"),
           "level": ("x", "", "2"), "balance": ("x", "", "fast")}

    def test_bad_values_on_the_line(self):
        def body(program, setting):
            rest = self.words(program, without=setting.get("letter"))
            for word in self.BAD.get(setting["kind"], ()):
                for spelling in dashed(setting):
                    self.assert_names(
                        self.run_program(program, [*rest, spelling, word, "--check-config"]),
                        setting)

        self.each(body, in_file=False)

    def test_bad_values_in_a_file(self):
        def body(program, setting):
            for word in self.BAD.get(setting["kind"], ()):
                members = {**self.keys(program), setting["key"]: word}
                self.assert_names(
                    self.run_program(program, [*self.file(members), "--check-config"]), setting)

        self.each(body, on_line=False)

    # Where the words are those of the classic programs, which name the thing in another way.
    WORDS = {"key": "Invalid key", "method": "cipher", "nameserver": "nameservers"}

    def test_every_key_with_every_type(self):
        """R61: either it means something, or a line names the key."""
        deep = {}
        for _ in range(40):
            deep = {"in": [deep]}
        values = (None, True, 0, -1, 1.5, 1e300, "", "x", [], ["x"], {}, deep)

        def try_value(program, key, value):
            members = {**self.keys(program), key: value}
            ended = self.run_program(program, [*self.file(members), "--check-config"])
            if ended.status == 0:
                json.loads(ended.out)
                self.assertEqual(ended.errors, [])
            elif ended.status == 1:  # what was said is nothing, and it can't do without
                self.assertIn(value, (None, []))
            else:
                self.assertEqual(ended.status, 255)
                text = "".join(ended.errors)
                self.assertTrue(key in text or self.WORDS.get(key, key) in text, ended.errors)

        for program in PROGRAMS:
            for setting in self.settings[program]:
                if "key" not in setting or setting["kind"] in ("ignored", "refused"):
                    continue
                for value in values:
                    with self.subTest(program=program, key=setting["key"], value=value):
                        try_value(program, setting["key"], value)

    def test_the_page_names_every_setting(self):
        """docs/options.md has each option and key in backquotes."""
        with open(os.path.join(case.settings.source, "docs", "options.md")) as file:
            page = file.read()
        for program in PROGRAMS:
            for setting in self.settings[program]:
                names = ["`--" + setting["option"]] if "option" in setting else []
                names += ["`-" + setting["letter"]] if "letter" in setting else []
                names += ["`%s`" % setting[name] for name in ("key", "alias") if name in setting]
                for name in names:
                    self.assertIn(name, page)

    def test_abbreviations_of_old_keep_their_meaning(self):
        """A long option of ours never makes a prefix ambiguous that was not."""
        old = {"fast-open", "no-delay", "reuse-port", "mptcp", "mtu", "help", "plugin",
               "plugin-opts", "password", "key", "acl", "manager-address"}
        for program in PROGRAMS:
            options = {setting["option"] for setting in self.settings[program]
                       if "option" in setting} & old
            for option in sorted(options - {"help", "plugin", "manager-address"}):
                for length in range(1, len(option)):
                    prefix = option[:length]
                    if sum(other.startswith(prefix) for other in options) > 1:
                        continue
                    setting = next(setting for setting in self.settings[program]
                                   if setting.get("option") == option)
                    word, _ = sample(setting)
                    value = [] if word is None else [word]
                    with self.subTest(program=program, prefix=prefix):
                        self.assertEqual(
                            self.check(program, [*self.words(program), "--" + prefix, *value]),
                            self.check(program, [*self.words(program), "--" + option, *value]))


if __name__ == "__main__":
    case.main()
