"""Reloads of the programs: a configuration file that changes, SIGHUP, and what the log says then."""

import json
import os
import re
import signal

from . import case, ports, programs, socks, wait

DONE, REFUSED = "INFO: reloaded: ", "ERROR: not reloaded: "
_DONE = re.compile(r"ports: (\d+) opened, (\d+) closed, (\d+) changed; "
                   r"users: (\d+) added, (\d+) removed")


class ReloadCase(case.Case):
    """Programs with a file of their own each."""

    def setUp(self):
        super().setUp()
        self.folder = programs.scratch_directory()

    def write(self, name, config):
        """A file that takes the place of the one before at once."""
        path = os.path.join(self.folder, name)
        with open(path + ".new", "w") as file:
            file.write(config if isinstance(config, str) else json.dumps(config))
        os.rename(path + ".new", path)
        return path

    def start(self, name, config, *arguments, **how):
        path = self.write(name + ".json", config)
        program = self.program(name, "-c", path, *arguments, **how)
        program.path = path
        return program

    def reload(self, program, config=None):
        """(opened, closed, changed, added, removed), or None when it was refused."""
        before = len(program.log_lines(DONE)), len(program.log_lines(REFUSED))
        if config is not None:
            self.write(os.path.basename(program.path), config)
        program.process.send_signal(signal.SIGHUP)

        def over():
            now = len(program.log_lines(DONE)), len(program.log_lines(REFUSED))
            if not program.alive:
                program.fail("ended with %s by a reload" % program.process.returncode)
            return now if now != before else None

        if wait.until(over, 20, "the end of a reload")[0] == before[0]:
            return None
        line = program.log_lines(DONE)[before[0]]
        return tuple(int(number) for number in _DONE.search(line).groups())

    def refused(self, program, config=None):
        """The lines that were logged since, of a reload that must not succeed."""
        before = len(program.log)
        self.assertIsNone(self.reload(program, config))
        return program.log[before:]

    def assert_serves(self, local, echo):
        self.assert_works(local, echo)

    def assert_refuses(self, local, echo):
        """A new connection comes to nothing."""
        with socks.connect(getattr(local, "port", local), echo.address) as conn:
            try:
                conn.sendall(b"x")
                self.assertEqual(conn.recv(1), b"")
            except ConnectionError:
                pass

    def open(self, local, echo):
        conn = self.connect(local, echo.address)
        self.assert_echoes(conn)
        return conn

    def assert_ends(self, conn, seconds=10):
        conn.settimeout(seconds)
        try:
            self.assertEqual(conn.recv(1), b"")
        except ConnectionError:
            pass


def free_ports(count):
    found = []
    while len(found) < count:
        port = ports.free_port()
        if port not in found:
            found.append(port)
    return found
