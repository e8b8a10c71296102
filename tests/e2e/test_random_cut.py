"""R08: client, server and target are cut at random moments, in every state; nothing is left behind.

Meant for a sanitizer build; runs in any.
"""

import os
import random
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, dns_stub, ports, proc, socks, targets, wait  # noqa: E402

CONNECTIONS = int(os.environ.get("SS_TEST_CONNECTIONS", "1000"))
AT_ONCE = 25
SIZE_MAX = 300000

# Which side is cut, and in which state.
SIDES = ("client", "middle", "target")
STATES = ("greeting", "resolving", "connecting", "first chunk", "relaying", "half closed")


def cut(conn, rng):
    """Half of the cuts are RST, half FIN."""
    try:
        if rng.random() < 0.5:
            socks.reset(conn)
        else:
            conn.close()
    except OSError:
        pass


class Middle:
    """Between ss-local and ss-server: passes bytes on and cuts where it is told to."""

    def __init__(self, server_port):
        self.server_port = server_port
        self.limits = []  # one (bytes, generator) for each connection to come that is to be cut
        self.lock = threading.Lock()
        self.target = targets.Target(self.serve)
        self.port = self.target.port

    def serve(self, client):
        with self.lock:
            limit, rng = self.limits.pop() if self.limits else (None, None)
        with socket.create_connection(("127.0.0.1", self.server_port), 10) as server:
            passed = [0]

            def pump(source, sink):
                try:
                    while True:
                        room = 65536 if limit is None else max(1, min(65536, limit - passed[0]))
                        data = source.recv(room)
                        if not data:
                            sink.shutdown(socket.SHUT_WR)
                            return
                        sink.sendall(data)
                        passed[0] += len(data)
                        if limit is not None and passed[0] >= limit:
                            for conn in (client, server):
                                linger = rng.random() < 0.5
                                if linger:
                                    conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                                    b"\1\0\0\0\0\0\0\0")
                                # Wakes the other pump; the close below sends what linger asks for.
                                conn.shutdown(socket.SHUT_RD if linger else socket.SHUT_RDWR)
                            return
                except OSError:
                    return

            other = threading.Thread(target=pump, args=(server, client), daemon=True)
            other.start()
            pump(client, server)
            other.join(20)


class RandomCut(case.Case):
    def setUp(self):
        super().setUp()
        self.seed = int(os.environ.get("SS_TEST_SEED", random.randrange(1 << 32)))
        print("seed", self.seed)
        self.stub = dns_stub.Stub({"slow.test": ["127.0.0.1"], "echo.test": ["127.0.0.1"]})
        self.addCleanup(self.stub.close)
        self.stub.delays["slow.test"] = 0.1
        self.stub.silent.add("never.test")

    def test_everything_is_cut(self):
        quick = ["--half-open-timeout", "3", "--tcp-idle-timeout", "10"]
        server = self.server("-d", self.stub.nameserver, *quick)
        middle = Middle(server.port)
        self.addCleanup(middle.target.close)
        local = self.local(middle.port, *quick)
        target_rng = random.Random(self.seed + 1)

        def cutting_echo(conn):
            """Echoes until a random byte; a first byte of 1 asks for a cut."""
            first = conn.recv(1)
            with rng_lock:
                limit = target_rng.randrange(SIZE_MAX) if first == b"\1" else None
                rng = random.Random(target_rng.random())
            count = 0
            while first and (limit is None or count < limit):
                data = conn.recv(65536)
                if not data:
                    break
                conn.sendall(data)
                count += len(data)
            if limit is not None:
                cut(conn, rng)

        rng_lock = threading.Lock()
        echo = self.target(cutting_echo)
        refused = ports.closed_port()
        errors = []

        def one(number):
            rng = random.Random(self.seed * 1000 + number)
            side, state = rng.choice(SIDES), rng.choice(STATES)
            if side == "middle":
                with middle.lock:
                    middle.limits.append((rng.choice((rng.randrange(1, 100),
                                                      rng.randrange(1, SIZE_MAX))), rng))
            conn = socks.dial("127.0.0.1", local.port, 10)
            try:
                conn.settimeout(10)
                head = socks.GREETING + socks.request(
                    {"resolving": rng.choice(("slow.test", "never.test"))}.get(state, "echo.test"),
                    refused if state == "connecting" and rng.random() < 0.5 else echo.port)
                if state == "greeting":
                    conn.sendall(head[: rng.randrange(len(head))])
                    return
                conn.sendall(head)
                if state in ("resolving", "connecting"):
                    if rng.random() < 0.5:
                        socks.receive(conn, 12)
                    return
                payload = bytes([side == "target"]) + os.urandom(rng.randrange(1, SIZE_MAX))
                if state == "first chunk":
                    payload = payload[: rng.randrange(1, 200)]
                stop = rng.randrange(len(payload)) if side == "client" else len(payload)
                conn.sendall(payload[: stop // 2])
                if state == "half closed":
                    conn.shutdown(socket.SHUT_WR)
                else:
                    conn.sendall(payload[stop // 2 : stop])
                if rng.random() < 0.7:
                    conn.settimeout(1)
                    socks.receive(conn, rng.randrange(1, len(payload) + 12))
            except OSError:
                pass  # its other sides are cut as well
            finally:
                cut(conn, rng)

        def some(numbers):
            try:
                for number in numbers:
                    one(number)
            except Exception as error:
                errors.append(error)
                raise

        threads = [threading.Thread(target=some, args=(range(start, CONNECTIONS, AT_ONCE),))
                   for start in range(AT_ONCE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        with middle.lock:
            middle.limits.clear()

        for program in (server, local):
            self.assertTrue(program.alive, program.log)
        for program in (local, server):
            wait.until(lambda: not proc.tcp_connections(program.pid), 30,
                       "%s: the end of its sockets" % program.name)
            program.await_no_sessions()
        # A clean connection still works. The echo takes the first byte for itself.
        conn = self.connect(local, ("echo.test", echo.port))
        conn.sendall(b"\0and the rest")
        self.assertEqual(socks.receive(conn, 12), b"and the rest")

    def test_server_is_killed_and_comes_back(self):
        """ss-local survives its server's death in the middle of its connections."""
        server, local = self.chain()
        echo = self.target(targets.echo)
        for _ in range(3):
            conns = [self.connect(local, echo.address) for _ in range(20)]
            for conn in conns:
                self.assert_echoes(conn)
            server.kill()
            self._programs.remove(server)
            for conn in conns:
                conn.settimeout(10)
                try:
                    self.assertEqual(conn.recv(1), b"")
                except ConnectionResetError:
                    pass
                conn.close()
            server = self.server(port=server.port)
            self.assert_works(local, echo)
            self.assertTrue(local.alive)
        local.await_no_sessions()

    def test_stop_with_connections_in_every_state(self):
        """SIGTERM ends a program at once and in order, whatever its connections do."""
        echo = self.target(targets.echo)
        server, local = self.chain(["-d", self.stub.nameserver])
        for name in ("echo.test", "never.test", "slow.test"):
            for _ in range(5):
                conn = self.connect(local, (name, echo.port))
                conn.sendall(b"x")
        for _ in range(5):
            self.addCleanup(socks.dial("127.0.0.1", local.port).close)
            self.addCleanup(socks.dial("127.0.0.1", server.port).close)
        conn = self.connect(local, ("echo.test", echo.port))
        self.assert_echoes(conn)
        start = time.monotonic()
        self.assertEqual(server.stop(), 0)
        self.assertEqual(local.stop(), 0)
        self.assertLess(time.monotonic() - start, 15 if self.sanitized else 5)


if __name__ == "__main__":
    case.main()
