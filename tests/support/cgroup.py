"""A control group of the test's own, with a limit on memory (version 2, or 1 where that has memory)."""

import os
import unittest

_ROOT = "/sys/fs/cgroup"


class MemoryLimit:
    def __init__(self, limit, name):
        """`limit` in bytes. unittest.SkipTest where no group can be made."""
        self.limit = limit
        two = os.path.exists(_ROOT + "/cgroup.controllers")
        self._names = ({"limit": "memory.max", "now": "memory.current", "most": "memory.peak"}
                       if two else
                       {"limit": "memory.limit_in_bytes", "now": "memory.usage_in_bytes",
                        "most": "memory.max_usage_in_bytes"})
        self.path = os.path.join(_ROOT if two else _ROOT + "/memory",
                                 "ss-test-%d-%s" % (os.getpid(), name))
        try:
            os.mkdir(self.path)
            with open(self._file("limit"), "w") as file:
                file.write(str(limit))
        except OSError as error:
            if os.path.isdir(self.path):
                os.rmdir(self.path)
            raise unittest.SkipTest("no memory group can be made: %s" % error)

    def _file(self, what):
        return os.path.join(self.path, self._names[what])

    def join(self):
        """For programs that are to run there (`prepare`)."""
        with open(os.path.join(self.path, "cgroup.procs"), "w") as file:
            file.write(str(os.getpid()))

    def read(self, what):
        """Bytes: "now", or the "most" that it was."""
        with open(self._file(what)) as file:
            return int(file.read())

    def close(self):
        """Once all programs in it have ended."""
        os.rmdir(self.path)
