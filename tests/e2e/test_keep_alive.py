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

    def accepted(self, *options):
        """The timer of ss-server's accepted connection, and how long it has left."""
        server, local = self.chain(server_arguments=options)
        target = self.target(targets.echo)
        self.assert_echoes(self.connect(local, target.address))
        self.assertEqual(len(proc.tcp_timers(server.pid)), 2)
        # The outgoing one has no timer so early, unless something is on its way again.
        return max(proc.tcp_timers_left(server.pid), key=lambda timer: timer[0] == KEEP_ALIVE_TIMER)

    def test_time_is_a_setting(self):
        kind, left = self.accepted("--keep-alive", 4000)
        self.assertEqual(kind, KEEP_ALIVE_TIMER)
        self.assertTrue(390000 < left <= 400000, left)

    def test_none(self):
        self.assertNotEqual(self.accepted("--keep-alive", 0)[0], KEEP_ALIVE_TIMER)


if __name__ == "__main__":
    case.main()
