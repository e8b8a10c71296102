"""R92: the code is free of warnings with gcc and with clang; a release build has no -Werror. R24: and of
deprecated calls of c-ares."""

import concurrent.futures
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case  # noqa: E402
from support.case import settings  # noqa: E402

WARNINGS = ["-Wall", "-Wextra", "-Wcast-align=strict", "-Wshadow", "-Wstrict-prototypes",
            "-Wmissing-prototypes", "-Wpointer-arith", "-Wwrite-strings", "-Wvla", "-Wundef",
            "-Wformat=2", "-Werror", "-DCARES_NO_DEPRECATED"]

# What src/resolver may call of c-ares: in none of its versions so far is any of these deprecated, but
# ares_query, which is for those that have no ares_query_dnsrec.
CARES = {"ares_library_init", "ares_library_init_mem", "ares_library_cleanup", "ares_init_options",
         "ares_destroy", "ares_cancel", "ares_strerror", "ares_timeout", "ares_process_fd",
         "ares_set_servers_ports_csv", "ares_set_socket_callback",
         "ares_set_socket_configure_callback", "ares_query", "ares_query_dnsrec", "ares_dns_write",
         "ares_free_string"}


class Warnings(unittest.TestCase):
    def commands(self):
        path = os.path.join(settings.build, "compile_commands.json")
        if not os.path.exists(path):
            raise unittest.SkipTest("%s is not there" % path)
        with open(path) as file:
            return json.load(file)

    def sources(self):
        """(source, options that say what it sees) of everything of ours that is not generated."""
        for entry in self.commands():
            if not entry["file"].startswith(settings.source + "/src/"):
                continue
            words = shlex.split(entry["command"])
            kept = ["-std=c11"]
            for word, after in zip(words, words[1:] + [""]):
                if word in ("-isystem", "-I", "-D"):
                    kept += [word, after]
                elif word.startswith(("-I", "-D", "-isystem")):
                    kept.append(word)
            yield entry["directory"], entry["file"], kept

    def check(self, compiler, extra):
        if not shutil.which(compiler):
            raise unittest.SkipTest("%s is not there" % compiler)
        if compiler == "clang":
            extra = extra + ["-Wno-unknown-warning-option", "-Wcast-align"]

        def one(entry):
            directory, source, kept = entry
            command = [compiler, "-O2", "-c", "-o", os.devnull, *kept, *WARNINGS, *extra, source]
            run = subprocess.run(command, cwd=directory, capture_output=True, text=True)
            return run.stderr if run.returncode else ""

        entries = list(self.sources())
        self.assertGreater(len(entries), 20)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            said = "".join(pool.map(one, entries))
        self.assertEqual(said, "")

    def test_gcc(self):
        self.check("gcc", [])

    def test_clang(self):
        self.check("clang", [])

    def test_calls_of_c_ares(self):
        called = set()
        for path in glob.glob(os.path.join(settings.source, "src", "*", "*.c")):
            with open(path) as file:
                called |= set(re.findall(r"\b(ares_\w+)\(", file.read()))
        self.assertEqual(called - CARES, set())

    def test_warnings_are_no_errors_by_default(self):
        with open(os.path.join(settings.build, "CMakeCache.txt")) as file:
            cache = file.read()
        if "SS_WERROR:BOOL=ON" in cache:
            raise unittest.SkipTest("this build asked for errors")
        for entry in self.commands():
            self.assertNotIn("-Werror", shlex.split(entry["command"]))


if __name__ == "__main__":
    case.main()
