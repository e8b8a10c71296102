"""The minimal build: made from the preset, its size and what it is linked with, its unit tests, what it
refuses, and the pairs that it makes with another build.

    python3 tests/test_minimal.py --bin build/bin --build build

It is made in the folder `minimal` of --build, where the sources of the libraries are kept as well;
SS_THIRD_PARTY_FILES names a folder that has them already. Ends with 77 when they can't be had.
"""

import argparse
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import case, programs, sizes  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIMIT = 500 * 1024
METHODS = ("aes-128-gcm", "aes-256-gcm", "chacha20-ietf-poly1305", "2022-blake3-aes-128-gcm",
           "2022-blake3-aes-256-gcm", "2022-blake3-chacha20-poly1305")
PROGRAMS = ("ss-server", "ss-local", "ss-tunnel")
UNIT = ("unit_acl", "unit_codec", "unit_crypto")

options = None


def settings_of(preset):
    with open(os.path.join(ROOT, "CMakePresets.json")) as file:
        presets = json.load(file)["configurePresets"]
    return next(one["cacheVariables"] for one in presets if one["name"] == preset)


def run(*command, **more):
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          **more)


def make(folder):
    """Ends the test as skipped where there are no sources, as failed where they don't build."""
    words = ["-D%s=%s" % pair for pair in settings_of("minimal").items()]
    configured = run("cmake", "-G", "Ninja", "-S", ROOT, "-B", folder, *words)
    if "the sources can't be had (77)" in configured.stdout.replace("\n", " ").replace("  ", " "):
        print("SKIPPED: minimal: no sources of the libraries, neither from a mirror nor in "
              "SS_THIRD_PARTY_FILES")
        sys.exit(case.SKIPPED)
    if configured.returncode != 0:
        sys.exit(configured.stdout)
    built = run("ninja", "-C", folder, "-j", "2", *PROGRAMS, *UNIT)
    if built.returncode != 0:
        sys.exit(built.stdout)


class Minimal(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bin = os.path.join(options.build, "minimal", "bin")
        cls.folder = programs.scratch_directory()

    def server(self, *words):
        return run(os.path.join(self.bin, "ss-server"), "-s", "127.0.0.1", "-p", "1", "-k", "x", *words,
                   timeout=30)

    def test_programs_are_small_and_stand_alone(self):
        for name in PROGRAMS:
            path = os.path.join(self.bin, name)
            self.assertLess(sizes.stripped(path), LIMIT, name)
            self.assertEqual([library for library in sizes.libraries(path)
                              if not library.startswith(("libc.so", "ld-linux"))], [], name)

    def test_unit_tests(self):
        for name in UNIT:
            done = run(os.path.join(self.bin, name), timeout=300)
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_a_stream_method_is_refused_by_name(self):
        done = self.server("-m", "aes-256-cfb")
        self.assertEqual(done.returncode, 255, done.stdout)
        self.assertIn("stream methods are not in this build", done.stdout)

    def test_a_list_with_a_pattern_is_refused_by_line(self):
        path = os.path.join(self.folder, "list.acl")
        with open(path, "w") as file:
            file.write("[outbound_block_list]\n10.0.0.0/8\n^ad[0-9]+\\.\n")
        done = self.server("-m", "aes-256-gcm", "--acl", path)
        self.assertEqual(done.returncode, 255, done.stdout)
        self.assertRegex(done.stdout, r"3.*regular expressions are not in this build")

    def test_it_understands_another_build(self):
        done = run(sys.executable, os.path.join(ROOT, "tests", "interop.py"), "--bin", options.bin,
                   "--peer", self.bin, "--peer-only", "--workers", "1", "--methods",
                   ",".join(METHODS), timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("%d of %d pairs are good" % (4 * len(METHODS), 4 * len(METHODS)), done.stdout)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--build", required=True)
    options = parser.parse_args()
    make(os.path.join(options.build, "minimal"))
    unittest.main(argv=sys.argv[:1])
