"""The base of the end-to-end tests: programs in chains, ended after each test, logs on failure.

    python3 test_something.py --bin build/bin --workers 2 [unittest's own options and names]
"""

import argparse
import contextlib
import os
import sys
import unittest

from . import ports, programs, socks, targets

PASSWORD = "barfoo!"
SKIPPED = 77  # what ctest takes as "could not run here"


class _Settings:
    bin = os.environ.get("SS_TEST_BIN", "")
    workers = int(os.environ.get("SS_TEST_WORKERS", "1"))
    method = os.environ.get("SS_TEST_METHOD", "chacha20-ietf-poly1305")
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    build = os.environ.get("SS_TEST_BUILD", "")


settings = _Settings()


class Case(unittest.TestCase):
    """Starts programs of ours; whatever was started is ended and checked when the test ends."""

    def setUp(self):
        self._programs = []

    def tearDown(self):
        problems = []
        for program in reversed(self._programs):
            try:
                if program.process.returncode is None and not program.alive:
                    program.fail("ended by itself with %s" % program.process.returncode)
                status = program.stop()
                if status != 0:
                    program.fail("ended with %s" % status)
            except AssertionError as error:
                problems.append(str(error))
            finally:
                program.kill()
        if self._outcome_failed() and not problems:
            for program in self._programs:
                sys.stderr.write("--- log of %s\n%s" % (" ".join(program.arguments), program.log))
        if problems:
            self.fail("\n".join(problems))

    def _outcome_failed(self):
        outcome = getattr(self, "_outcome", None)
        result = getattr(outcome, "result", None)
        if result is None:
            return False
        return any(test is self for test, _ in list(result.errors) + list(result.failures))

    @property
    def sanitized(self):
        return programs.sanitizer(os.path.join(settings.bin, "ss-server"))

    def program(self, name, *arguments, **how):
        """Starts a program of ours with --workers; ended when the test ends."""
        path = programs.find(settings.bin, name)
        started = programs.Program(
            [path, "--workers", settings.workers, *arguments], **how)
        self._programs.append(started)
        return started

    def target(self, handler, **how):
        target = targets.Target(handler, **how)
        self.addCleanup(target.close)
        return target

    def server(self, *arguments, port=None, host="127.0.0.1", **how):
        port = port or ports.free_port()
        started = self.program("ss-server", "-s", host, "-p", port, "-k", PASSWORD,
                               "-m", settings.method, *arguments, **how)
        started.port = port
        return started.await_listening(port)

    def local(self, server, *arguments, port=None, host="127.0.0.1", **how):
        """ss-local for a server: a program that self.server() gave, or a port."""
        port = port or ports.free_port()
        upstream = server if isinstance(server, int) else server.port
        started = self.program("ss-local", "-s", host, "-p", upstream, "-l", port, "-k", PASSWORD,
                               "-m", settings.method, *arguments, **how)
        started.port = port
        return started.await_listening(port)

    def tunnel(self, server, target, *arguments, port=None, **how):
        port = port or ports.free_port()
        upstream = server if isinstance(server, int) else server.port
        started = self.program("ss-tunnel", "-s", "127.0.0.1", "-p", upstream, "-l", port,
                               "-L", "%s:%d" % target, "-k", PASSWORD, "-m", settings.method,
                               *arguments, **how)
        started.port = port
        return started.await_listening(port)

    def chain(self, server_arguments=(), local_arguments=()):
        """(ss-server, ss-local) that work together."""
        server = self.server(*server_arguments)
        return server, self.local(server, *local_arguments)

    def connect(self, local, target, **how):
        """A SOCKS5 connection, closed when the test ends."""
        conn = socks.connect(getattr(local, "port", local), target, **how)
        self.addCleanup(conn.close)
        return conn

    def assert_echoes(self, conn, text=b"does it echo?"):
        conn.sendall(text)
        self.assertEqual(socks.receive(conn, len(text)), text)

    def assert_works(self, local, target):
        """One whole exchange on a new connection; `target` echoes."""
        with contextlib.closing(socks.connect(local.port, target.address)) as conn:
            self.assert_echoes(conn)


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--bin")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--method")
    parser.add_argument("--build")
    known, rest = parser.parse_known_args()
    for name, value in vars(known).items():
        if value is not None:
            setattr(settings, name, value)
    if not settings.bin:
        sys.exit("give the folder of the programs with --bin")
    settings.bin = os.path.abspath(settings.bin)
    if not settings.build:
        settings.build = os.path.dirname(settings.bin)
    run = unittest.main(module="__main__", argv=sys.argv[:1] + rest, exit=False, verbosity=2)
    if not run.result.wasSuccessful():
        sys.exit(1)
    # Where nothing ran but skipped tests, ctest shows that instead of a pass.
    if run.result.testsRun and len(run.result.skipped) == run.result.testsRun:
        for test, reason in run.result.skipped:
            print("SKIPPED %s: %s" % (test, reason))
        sys.exit(SKIPPED)
