"""R81: MPTCP where the kernel has it; else one warning and plain TCP. In a namespace of its own."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, netns, socks, targets  # noqa: E402


def setUpModule():
    netns.enter()
    if not os.path.exists("/proc/sys/net/mptcp/enabled"):
        raise unittest.SkipTest("this kernel has no MPTCP")


class Mptcp(case.Case):
    def exchange(self, arguments):
        echo = self.target(targets.echo)
        server, local = self.chain(*arguments)
        for _ in range(3):
            conn = socks.connect(local.port, echo.address)
            self.addCleanup(conn.close)
            self.assert_echoes(conn, os.urandom(50000))
        return server, local

    def test_enabled(self):
        netns.sysctl("net.mptcp.enabled", 1)
        before = netns.counters("MPTcpExt")
        self.exchange((["--mptcp"], ["--mptcp"]))
        after = netns.counters("MPTcpExt")
        self.assertGreaterEqual(after["MPCapableSYNRX"] - before["MPCapableSYNRX"], 3)
        self.assertGreaterEqual(after["MPCapableACKRX"] - before["MPCapableACKRX"], 3)

    def test_one_side_only(self):
        netns.sysctl("net.mptcp.enabled", 1)
        self.exchange((["--mptcp"], []))
        self.exchange(([], ["--mptcp"]))

    def test_disabled_in_the_kernel(self):
        netns.sysctl("net.mptcp.enabled", 0)
        server, local = self.exchange((["--mptcp"], ["--mptcp"]))
        for program in (server, local):
            warnings = [line for line in program.log_lines() if " WARN: " in line
                        and "mptcp" in line.lower() or " WARN: " in line
                        and "multipath" in line.lower()]
            self.assertEqual(len(warnings), 1, program.log)
        netns.sysctl("net.mptcp.enabled", 1)


if __name__ == "__main__":
    case.main()
