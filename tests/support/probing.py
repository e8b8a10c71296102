"""Many connections at once that each say something, and how the server ends each of them."""

import collections
import dataclasses
import errno
import heapq
import selectors
import socket
import struct
import time

WAVE = 400


@dataclasses.dataclass
class Probe:
    """`steps` are (pause in seconds before it, bytes or what makes them when they are to leave);
    with `fin` the sending side ends after them. Those of a `group` are to end alike."""

    cause: str
    group: str
    steps: tuple
    fin: bool = False

    # What came of it: "FIN", "RST", "data" or "none", and when, in seconds since the connection was
    # there and since its first step had left.
    ending: str = ""
    after: float = 0.0
    since_sent: float = 0.0


class _Connection:
    def __init__(self, probe, server):
        self.probe = probe
        self.steps = list(probe.steps)
        if self.steps and self.steps[0][0] == 0:
            # Made before the connection is: its making takes milliseconds of the time that is measured.
            self.steps[0] = (0, self._made(self.steps[0][1]))
        self.begun = self.sent = None
        family = socket.AF_INET6 if ":" in server[0] else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        code = self.socket.connect_ex(server)
        if code not in (0, errno.EINPROGRESS):
            raise OSError(code, "connecting to %s:%d" % server)

    @staticmethod
    def _made(data):
        return data() if callable(data) else data

    def end(self, how):
        now = time.monotonic()
        self.probe.ending = how
        self.probe.after = now - self.begun
        self.probe.since_sent = now - (self.sent or self.begun)
        self.socket.close()

    def step(self):
        """The next bytes, or the end; false when nothing is left to do."""
        if self.steps:
            _, data = self.steps.pop(0)
            data = self._made(data)
            if data and self.socket.send(data) != len(data):
                raise RuntimeError("the kernel does not take %d bytes" % len(data))
            self.sent = self.sent or time.monotonic()
        if not self.steps and self.probe.fin:
            self.socket.shutdown(socket.SHUT_WR)
            self.sent = self.sent or time.monotonic()
        return bool(self.steps)


def _wave(probes, server, patience):
    with selectors.DefaultSelector() as selector:
        waiting = set()
        timed, order = [], 0

        def finish(conn, how):
            selector.unregister(conn.socket)
            waiting.discard(conn)
            conn.end(how)

        def act(conn):
            nonlocal order
            try:
                if not conn.step():
                    return
            except OSError as error:
                if not isinstance(error, ConnectionError) and error.errno != errno.ENOTCONN:
                    raise
                finish(conn, "RST")  # it was quicker than our next step
                return
            order += 1
            heapq.heappush(timed, (time.monotonic() + conn.steps[0][0], order, conn))

        # One connection after the other, with a look at all others between: what comes is seen when it
        # comes, not when the last start has been made.
        pending = collections.deque(probes)
        deadline = None
        while pending or waiting and time.monotonic() < deadline:
            if pending:
                conn = _Connection(pending.popleft(), server)
                selector.register(conn.socket, selectors.EVENT_WRITE, conn)
                waiting.add(conn)
                deadline = time.monotonic() + patience
            now = time.monotonic()
            while timed and timed[0][0] <= now:
                conn = heapq.heappop(timed)[2]
                if conn in waiting:
                    act(conn)
            until = min(deadline, timed[0][0]) if timed else deadline
            if pending:
                until = now
            for key, _ in selector.select(max(0.0, until - time.monotonic())):
                conn = key.data
                if conn.begun is None:
                    code = conn.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                    if code:
                        raise OSError(code, "connecting to %s:%d" % server)
                    conn.begun = time.monotonic()
                    selector.modify(conn.socket, selectors.EVENT_READ, conn)
                    if conn.steps or conn.probe.fin:
                        act(conn)
                    continue
                try:
                    finish(conn, "data" if conn.socket.recv(1) else "FIN")
                except ConnectionError:
                    finish(conn, "RST")
        for conn in list(waiting):
            if conn.begun is None:
                raise TimeoutError("no connection to %s:%d" % server)
            finish(conn, "none")


def run(probes, server, patience):
    """Fills in what comes of each; those of a wave are all open together."""
    for first in range(0, len(probes), WAVE):
        _wave(probes[first : first + WAVE], server, patience)


def time_to_end(data, server, patience):
    """Seconds from sending the bytes on a connection of their own to its end."""
    with socket.create_connection(server, patience) as conn:
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Aborted at the end, so that thousands of measurements leave no port in TIME_WAIT.
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        start = time.perf_counter()
        conn.sendall(data)
        try:
            conn.recv(1)
        except ConnectionError:
            pass
        return time.perf_counter() - start
