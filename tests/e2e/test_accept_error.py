"""R01: ENFILE in accept, which a preloaded shim gives while a file exists, ends by itself."""

import contextlib
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, proc, programs, socks, targets  # noqa: E402
from support.case import settings  # noqa: E402


class AcceptError(case.Case):
    def test_system_is_out_of_files(self):
        shim = os.path.join(settings.build, "lib", "libss_accept_fault.so")
        if not os.path.exists(shim):
            raise unittest.SkipTest("%s is not built" % shim)
        if self.sanitized:
            raise unittest.SkipTest("a sanitizer wants to be loaded first")
        switch = os.path.join(programs.scratch_directory(), "enfile")
        echo = self.target(targets.echo)
        server = self.server(env={"LD_PRELOAD": shim, "SS_ACCEPT_FAULT_FILE": switch})
        local = self.local(server)
        held = self.connect(local, echo.address)
        self.assert_echoes(held)

        lines = len(server.log_lines())
        open(switch, "w").close()
        with contextlib.closing(socks.connect(local.port, echo.address)) as waiting:
            waiting.sendall(b"later")
            self.assertLess(proc.cpu_share(server.pid, 3), 0.05)
            self.assert_echoes(held)
            self.assertLessEqual(len(server.log_lines()) - lines, 4, server.log)
            os.unlink(switch)
            waiting.settimeout(10)
            self.assertEqual(socks.receive(waiting, 5), b"later")
        self.assert_works(local, echo)


if __name__ == "__main__":
    case.main()
