"""R09: stalled connections of any kind cost no CPU."""

import os
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, proc, socks, targets, wait  # noqa: E402

COUNT = 200
SECONDS = 10


class Stalled(case.Case):
    def fill(self, conn):
        """Sends until nothing more is taken on the whole way."""
        conn.setblocking(False)
        block = bytes(1 << 16)

        def full():
            try:
                while conn.send(block):
                    pass
            except BlockingIOError:
                return False

        try:
            wait.until(full, 0.2)
        except wait.Timeout:
            pass  # the span in which the buffers were filled is over

    def test_no_spin(self):
        silent = self.target(targets.idle, keep=True)
        ending = self.target(lambda conn: conn.shutdown(socket.SHUT_WR), keep=True)

        def pushing(conn):
            try:
                while True:
                    conn.sendall(bytes(1 << 16))
            except OSError:
                pass

        pusher = self.target(pushing)
        deaf = self.target(targets.idle, keep=True)
        server, local = self.chain()

        for _ in range(COUNT // 4):
            conn = self.connect(local, silent.address)
            conn.sendall(b"x")
            conn.shutdown(socket.SHUT_WR)  # the client has sent FIN
            conn = self.connect(local, ending.address)
            conn.sendall(b"x")  # the target has sent FIN
            self.connect(local, pusher.address)  # the client does not read
        unread = [self.connect(local, deaf.address) for _ in range(COUNT // 4)]
        for conn in unread:  # the target does not read
            conn.setblocking(False)
            try:
                while conn.send(bytes(1 << 16)):
                    pass
            except BlockingIOError:
                pass
        self.fill(unread[-1])
        wait.until(lambda: silent.accepted + ending.accepted + pusher.accepted + deaf.accepted
                   == COUNT, 20)
        limit = 0.03 if self.sanitized else 0.01
        for share in self.shares_at_rest(server, local):
            self.assertLessEqual(share, limit)
        for program in (server, local):
            self.assertEqual(program.traffic()["open"], COUNT)

    def shares_at_rest(self, *running):
        """CPU of a span in which no byte was relayed: the kernel's buffers fill before that."""
        for _ in range(6):
            before = [program.traffic() for program in running]
            shares = proc.cpu_shares([program.pid for program in running], SECONDS)
            if [program.traffic() for program in running] == before:
                return shares
        self.fail("the connections do not come to rest")


if __name__ == "__main__":
    case.main()
