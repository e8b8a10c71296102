"""A client that has left is noticed though nothing is read of it, as its target takes nothing."""

import os
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, ends, programs, shadow, socks, targets, wait  # noqa: E402

HALF_OPEN = 2
STALL_CHECK = 2  # how often a source that is not read is looked at
LIMIT = 3 * (STALL_CHECK + HALF_OPEN)

MUCH = 8 << 20  # bytes that are never all buffered
STEP = 16384  # less than what still arrives when nothing is read
SMALL = 16384  # bytes of a socket buffer, so that little fills the whole way
ARGUMENTS = ("-m", shadow.METHOD, "--half-open-timeout", HALF_OPEN,
             "--tcp-outgoing-sndbuf", SMALL)


class HalfOpen(case.Case):
    def reads_on(self):
        """Whether the program has read what arrived, or does so in a while."""
        try:
            wait.until(lambda: not ends.unread(self.running, self.running.port), 0.5)
        except wait.Timeout:
            return False
        return True

    def stall(self, conn, wire):
        """Sends until the program reads no more. All has arrived then; an end would, too."""
        sent = 0
        while self.reads_on():
            self.assertLess(sent, len(wire), "so much is never buffered")
            conn.sendall(wire[sent : sent + STEP])
            sent += STEP
            ends.await_acknowledged(conn)

    def of_server(self, stalled):
        conn = shadow.Connection(self.running.port, case.PASSWORD)
        self.addCleanup(conn.close)
        conn.request(self.deaf.address, b"x")
        return conn.socket, conn.sealer.chunks(bytes(MUCH)) if stalled else b""

    def of_local(self, stalled):
        conn = self.connect(self.running, ("127.0.0.1", 9), first=b"x")
        return conn, bytes(MUCH) if stalled else b""

    def start(self, client, stalled):
        """A client and the target's end of its connection."""
        accepted = len(self.deaf.connections)
        conn, wire = client(stalled)
        wait.until(lambda: len(self.deaf.connections) > accepted, 10)
        if stalled:
            self.stall(conn, wire)
        return conn, self.deaf.connections[-1]

    def leave(self, client):
        """Three clients leave; the ends of those that were stalled, at the target."""
        reset, reset_peer = self.start(client, True)
        socks.reset(reset)
        ended, ended_peer = self.start(client, True)
        ended.shutdown(socket.SHUT_WR)
        idle, _ = self.start(client, False)
        idle.shutdown(socket.SHUT_WR)
        self.running.await_no_sessions(LIMIT)
        return reset_peer, ended_peer

    def assert_freed(self, program, client):
        for attempt in range(2):  # a busy machine may take too long, once
            self.deaf = self.target(targets.idle, keep=True)
            self.deaf.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
            self.running = program()
            try:
                peers = self.leave(client)
                break
            except programs.ProgramError:
                if attempt:
                    raise
                self.running.stop()
        for peer in peers:
            peer.settimeout(10)
            # What the target was cut off from must not look whole to it.
            self.assertEqual(ends.read_to_end(peer)[1], ends.RESET)

    def test_server(self):
        self.assert_freed(lambda: self.server(*ARGUMENTS), self.of_server)

    def test_local(self):
        self.assert_freed(lambda: self.local(self.deaf.port, *ARGUMENTS), self.of_local)


if __name__ == "__main__":
    case.main()
