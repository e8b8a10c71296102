"""Both sides of a connection that lives get keep-alive probes, the outgoing one after some seconds."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, proc, targets, wait  # noqa: E402

KEEP_ALIVE_TIMER = "02"


class KeepAlive(case.Case):
    def test_both_sides(self):
        target = self.target(targets.echo)
        server, local = self.chain()
        conn = self.connect(local, target.address)
        self.assert_echoes(conn)
        for program in (server, local):
            self.assertEqual(len(proc.tcp_timers(program.pid)), 2)
            wait.until(lambda: proc.tcp_timers(program.pid) == [KEEP_ALIVE_TIMER] * 2, 40,
                       "keep-alive on both sides of " + program.name)


if __name__ == "__main__":
    case.main()
