"""A target that counts what it is asked: each request of a client is to come once."""

import collections
import itertools
import threading

from . import socks, targets

SIZE = 16
_numbers = itertools.count()


def fresh_request():
    """One that nobody in this process has made before."""
    return b"%016d" % next(_numbers)


class Target:
    """Answers each request with itself. `seen` says how often each came."""

    def __init__(self, **how):
        self.seen = collections.Counter()
        self._lock = threading.Lock()
        self._target = targets.Target(self._answer, **how)
        self.address, self.port = self._target.address, self._target.port

    def _answer(self, conn):
        request = socks.receive(conn, SIZE)
        if len(request) == SIZE:
            with self._lock:
                self.seen[request] += 1
            conn.sendall(request)

    def twice(self):
        return [request for request, count in self.seen.items() if count > 1]

    def close(self):
        self._target.close()


def ask(port, target, timeout=30):
    """One request through a SOCKS5 proxy; its answer is the request."""
    request = fresh_request()
    with socks.connect(port, target, first=request, timeout=timeout) as conn:
        return socks.receive(conn, SIZE) == request
