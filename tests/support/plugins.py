"""Plugins for tests: the fixture of ours with what it has written down, and real ones."""

import contextlib
import json
import os
import shutil

from . import case, proc, programs, wait

FIXTURE = os.path.join(case.settings.source, "tests", "sip003_fixture.py")


class Fixture:
    """What a program needs to run the fixture (`env`), and what the fixture has told.

    A name of its own in a folder of its own, so that a test can call it as it likes."""

    def __init__(self, role, act="relay", name="fixture", **more):
        self.folder = programs.scratch_directory()
        self.path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        shutil.copy(FIXTURE, self.path)
        self._record = os.path.join(self.folder, "record")
        self.env = {"FIXTURE_RECORD": self._record, "FIXTURE_ROLE": role, "FIXTURE_ACT": act}
        self.env.update({"FIXTURE_" + key.upper(): "1" for key, on in more.items() if on})

    def told(self, what):
        if not os.path.exists(self._record):
            return []
        with open(self._record) as file:
            lines = [json.loads(line) for line in file if line.endswith("\n")]
        return [line for line in lines if line["what"] == what]

    @property
    def starts(self):
        return self.told("start")

    def await_start(self, count=1, seconds=20):
        """What it told of its `count`th start."""
        return wait.until(lambda: self.starts[count - 1:count], seconds,
                          "start %d of the plugin" % count)[0]

    def await_relaying(self, count=1, udp=False):
        """Until what began with its `count`th start listens."""
        start = self.await_start(count)
        look = proc.udp_ports if udp else proc.listening_ports
        wait.until(lambda: look(start["pid"]), 20, "the plugin's listening")
        return start


def process_is_there(pid):
    """Whether it is there, zombies included."""
    return os.path.exists("/proc/%d" % pid)


def runs(pid):
    """Whether it is there and no zombie: those of a killed program wait for process 1."""
    try:
        return proc.status(pid)["State"].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(pid):
    """Its direct children by their numbers, zombies included."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % name) as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(name))
    return found


def descendants(pid):
    found = []
    for child in children(pid):
        found += [child, *descendants(child)]
    return found


def await_descendant(program, port=None, seconds=20):
    """Until a process below the program listens, on `port` if one is given."""
    def ready():
        for pid in descendants(program.pid):
            with contextlib.suppress(FileNotFoundError):
                found = proc.listening_ports(pid)
                if found and port in (None, *found):
                    return True
        return False

    wait.until(ready, seconds, "%s: listening of its plugin" % program.name)


def await_listening_somewhere(program, seconds=20):
    """Until each plugin of one of ours listens: they are the children of its child."""
    def ready():
        plugins = [pid for helper in children(program.pid) for pid in children(helper)]
        try:
            return plugins and all(proc.listening_ports(pid) for pid in plugins)
        except FileNotFoundError:
            return False

    wait.until(ready, seconds, "%s: listening of its plugins" % program.name)
