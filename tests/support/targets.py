"""Targets: small servers that each behave in one way, a thread for each connection."""

import hashlib
import os
import selectors
import socket
import threading
import time

from . import socks

threading.stack_size(256 * 1024)


class Target:
    """Listens on a port of its own and runs `handler(conn)` for each connection."""

    def __init__(self, handler, host="127.0.0.1", port=0, backlog=4096, keep=False):
        """With `keep` the connection stays open when its handler returns, until close()."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.listener = socket.socket(family, socket.SOCK_STREAM)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((host, port))
        self.listener.listen(backlog)
        self.host, self.port = self.listener.getsockname()[:2]
        self.address = (self.host, self.port)
        self.accepted = 0
        self.connections = []
        self.results = []
        self._handler = handler
        self._keep = keep
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self.accepted += 1
                self.connections.append(conn)
            threading.Thread(target=self._serve, args=(conn,), daemon=True).start()

    def _serve(self, conn):
        try:
            result = self._handler(conn)
        except OSError as error:
            result = error
        with self._lock:
            self.results.append(result)
            if not self._keep:
                self.connections.remove(conn)
        if not self._keep:
            conn.close()

    def close(self):
        # shutdown wakes the thread that waits in accept; close alone would not.
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        with self._lock:
            for conn in self.connections:
                try:
                    conn.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                if self._keep:
                    conn.close()


def echo(conn):
    """Sends back what comes, then ends after the other side has."""
    while True:
        data = conn.recv(1 << 18)
        if not data:
            return
        conn.sendall(data)


def sink(conn):
    """Reads to the end and returns how much came."""
    count = 0
    while True:
        data = conn.recv(1 << 18)
        if not data:
            return count
        count += len(data)


def digest(conn):
    """Reads to the end, then answers with the SHA-256 of everything."""
    total = hashlib.sha256()
    while True:
        data = conn.recv(1 << 18)
        if not data:
            break
        total.update(data)
    conn.sendall(total.digest())


def source(count):
    """Sends `count` bytes, then ends."""

    def handler(conn):
        block = os.urandom(1 << 16)
        left = count
        while left > 0:
            conn.sendall(block[: min(left, len(block))])
            left -= len(block)

    return handler


def greeter(text, keep_echo=True):
    """Speaks first, then echoes."""

    def handler(conn):
        conn.sendall(text)
        if keep_echo:
            echo(conn)

    return handler


def http_like(body):
    """Reads a request up to its empty line, answers and closes."""

    def handler(conn):
        request = b""
        while b"\r\n\r\n" not in request:
            data = conn.recv(4096)
            if not data:
                return
            request += data
        conn.sendall(
            b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body
        )

    return handler


def after_end(delay, answer):
    """Reads to the end, waits, sends `answer`, closes; returns how much came."""

    def handler(conn):
        count = sink(conn)
        time.sleep(delay)  # the behaviour under test: a target that takes its time
        conn.sendall(answer)
        return count

    return handler


def dripper(count, pause):
    """Sends a byte every `pause` seconds, `count` times, then ends."""

    def handler(conn):
        for number in range(count):
            conn.sendall(bytes([number & 0xFF]))
            time.sleep(pause)

    return handler


def idle(conn):
    """Neither reads nor writes. Meant for keep=True."""


def read_exactly(conn, count):
    data = socks.receive(conn, count)
    if len(data) != count:
        raise AssertionError("%d bytes came instead of %d" % (len(data), count))
    return data


class EchoLoop:
    """Echoes for thousands of connections in one thread; each small message is sent back whole."""

    def __init__(self, host="127.0.0.1"):
        self.listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.listener.bind((host, 0))
        self.listener.listen(4096)
        self.address = self.listener.getsockname()
        self.port = self.address[1]
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        with selectors.DefaultSelector() as selector:
            selector.register(self.listener, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self.listener:
                        conn, _ = self.listener.accept()
                        conn.settimeout(10)
                        selector.register(conn, selectors.EVENT_READ)
                    else:
                        self._echo(selector, key.fileobj)

    def _echo(self, selector, conn):
        try:
            data = conn.recv(1 << 16)
            if data:
                conn.sendall(data)
        except OSError:
            data = b""
        if not data:
            selector.unregister(conn)
            conn.close()
