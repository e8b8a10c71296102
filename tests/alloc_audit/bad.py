"""Connections that come to nothing: probes, replays, bad requests, targets that are not to be
reached, and what ends by a time-out."""

import contextlib
import os
import socket
import threading

from support import hole, peers, ports, programs, socks, targets

# So short that a measurement waits for each.
TIMEOUTS = ["-t", "1", "--handshake-timeout", "1", "--half-open-timeout", "1",
            "--tcp-idle-timeout", "3"]
PATIENCE_S = 20
# More names than workers at once: each reads the hosts file with its first.
NOWHERE = (("240.0.0.1", 9), ("2001:db8::1", 9),
           *(("n%d.nowhere.invalid" % number, 9) for number in range(16)))
BAD_SOCKS = (b"\x04\x01\x00\x50\x01\x02\x03\x04\x00", b"\x05\x00", b"\x05\x01\x02",
             b"GET / HTTP/1.1\r\n\r\n", socks.GREETING + b"\x05\x02\x00\x01\x7f\0\0\1\0\x09",
             socks.GREETING + b"\x05\x01\x00\x09\x7f\0\0\1\0\x09",
             socks.GREETING + b"\x05\x01\x00\x03\x00\0\x09",
             socks.GREETING + b"\x05\x01\x00\x03\x05a b\\c\0\x09", socks.GREETING + b"\x05\x01")


def probes(method):
    """Bytes that no client sends. The old methods prove nothing: any bytes are a request there, so
    what is sent stays shorter than one."""
    if method in peers.STREAM:
        return [os.urandom(size) for size in (1, 3)] if method != "none" else [b"\xff", b"\xff" * 99]
    return [os.urandom(size) for size in (1, 15, 16, 31, 32, 33, 49, 50, 51, 99, 1500, 40000)]


class Bad:
    def __init__(self, options, served, local, target):
        self.served, self.local, self.target = served, local, target
        self.probes = probes(options.method)
        self.silent = targets.Target(targets.idle, keep=True)
        self.hole = hole.Hole()
        self.captured = self._capture(options)

    def _capture(self, options):
        """A first flight of a real client, taken by a listener in place of the server."""
        entry = ports.free_port()
        with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:
            listener.settimeout(PATIENCE_S)
            program = programs.Program(
                [programs.find(options.bin, "ss-local"), "-s", "127.0.0.1", "-p",
                 listener.getsockname()[1], "-l", entry, "-k", self.served.chain, "-m",
                 options.method]).await_listening(entry)
            with contextlib.closing(socks.connect(entry, self.target, first=b"once")):
                conn, _ = listener.accept()
                with conn:
                    conn.settimeout(PATIENCE_S)
                    flight = conn.recv(1 << 16)
            program.stop()
        return flight

    @staticmethod
    def _until_end(conn):
        with contextlib.closing(conn), contextlib.suppress(ConnectionError):
            while conn.recv(1 << 16):
                pass

    def _server(self, data, end):
        conn = socks.dial("127.0.0.1", self.served.port, PATIENCE_S)
        with contextlib.suppress(ConnectionError):
            conn.sendall(data)
        if end == "reset":
            return socks.reset(conn)
        if end == "shut":
            with contextlib.suppress(OSError):
                conn.shutdown(socket.SHUT_WR)
        return conn.close() if end == "close" else self._until_end(conn)

    def _socks(self, data, end):
        conn = socks.dial("127.0.0.1", self.local, PATIENCE_S)
        conn.sendall(data)
        return conn.close() if end == "close" else self._until_end(conn)

    def _reach(self, target):
        with contextlib.suppress(socks.Refused, ConnectionError):
            conn = socks.connect(self.local, target, PATIENCE_S)
            conn.sendall(b"x")
            self._until_end(conn)

    def _idle(self, half):
        conn = socks.connect(self.local, self.silent.address if half else self.target, PATIENCE_S)
        conn.sendall(b"x")
        if half:
            conn.shutdown(socket.SHUT_WR)
        elif conn.recv(1) != b"x":
            raise AssertionError("no echo")
        self._until_end(conn)

    def _cases(self):
        for end in ("close", "shut", "reset", "wait"):
            for data in [b"", *self.probes]:
                yield self._server, data, end
            yield self._server, self.captured, end
            yield self._server, self.captured[:40], end
        for end in ("close", "wait"):
            for data in [b"", *BAD_SOCKS]:
                yield self._socks, data, end
        for target in (*NOWHERE, ("127.0.0.1", self.hole.port)):
            yield self._reach, target
        for half in (True, False):
            yield self._idle, half

    def run(self):
        """All of them at once; returns how many came to the server, and how many to ss-local."""
        problems = []

        def attempt(what, *arguments):
            try:
                what(*arguments)
            except Exception as error:  # whatever it is, the measurement is void
                problems.append("%s%r: %r" % (what.__name__, arguments, error))

        cases = list(self._cases())
        threads = [threading.Thread(target=attempt, args=case) for case in cases]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if problems:
            raise AssertionError("\n".join(problems))
        through = [case[0] for case in cases]
        local = len(through) - through.count(self._server)
        return len(through) - through.count(self._socks), local
