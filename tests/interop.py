#!/usr/bin/env python3
"""Every method, ours with ours and with another suite both ways round.

    interop.py --bin build/bin                    # ours, and shadowsocks-libev of /usr/bin
    interop.py --bin build/bin --self             # ours with ours only
    interop.py --bin build/bin --full             # 1 GiB more for each method, ours with ours
    interop.py --bin build/bin --plugin tests/sip003_fixture.py     # all of it through a plugin

A line for each pair of programs and method; a failure names its check and prints both logs.
"""

import argparse
import base64
import contextlib
import hashlib
import os
import selectors
import shutil
import socket
import struct
import subprocess
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import plugins, ports, programs, socks, targets  # noqa: E402

PASSWORD = "barfoo!"
# Where the other suite has these methods; they are not in the default list.
KEYS_2022 = {name: base64.b64encode(bytes(range(length))).decode()
             for name, length in (("2022-blake3-aes-128-gcm", 16), ("2022-blake3-aes-256-gcm", 32),
                                  ("2022-blake3-chacha20-poly1305", 32),
                                  ("2022-blake3-chacha8-poly1305", 32))}
METHODS = ("aes-128-gcm", "aes-192-gcm", "aes-256-gcm", "chacha20-ietf-poly1305",
           "xchacha20-ietf-poly1305")
# Around the largest chunk, and around the largest SOCKS5 or pipe buffer.
SIZES = (0, 1, 16382, 16383, 16384, 16385, 65535, 16 << 20)
AT_ONCE = 500
CURL_BODY = os.urandom(300000)


def exchange_target(conn):
    """Reads length and bytes, answers with their SHA-256 and as many bytes of its own."""
    while True:
        head = socks.receive(conn, 8)
        if len(head) < 8:
            return
        (count,) = struct.unpack(">Q", head)
        total = hashlib.sha256()
        left = count
        while left:
            data = conn.recv(min(left, 1 << 18))
            if not data:
                return
            total.update(data)
            left -= len(data)
        conn.sendall(total.digest())
        send_random(conn, count)


def send_random(conn, count):
    """`count` random bytes, then their SHA-256."""
    block = os.urandom(min(count, 1 << 20))
    total = hashlib.sha256()
    number = 0
    while count:
        # A changing head keeps the blocks of a long stream apart.
        part = (struct.pack(">Q", number) + block[8:])[: min(count, len(block))]
        number += 1
        total.update(part)
        conn.sendall(part)
        count -= len(part)
    conn.sendall(total.digest())


def check_random(conn, count, pause=0.0):
    total = hashlib.sha256()
    while count:
        data = conn.recv(min(count, 1 << 18 if not pause else 1 << 16))
        if not data:
            raise AssertionError("the stream ended %d bytes early" % count)
        total.update(data)
        count -= len(data)
        if pause:
            time.sleep(pause)  # the slowness of the reader is what is tested
    if socks.receive(conn, 32) != total.digest():
        raise AssertionError("the bytes that came back are not those that were sent")


def exchange(conn, count):
    block = os.urandom(min(count, 1 << 20))
    total = hashlib.sha256()
    conn.sendall(struct.pack(">Q", count))
    left = count
    while left:
        part = block[: min(left, len(block))]
        total.update(part)
        conn.sendall(part)
        left -= len(part)
    if socks.receive(conn, 32) != total.digest():
        raise AssertionError("the target got other bytes than were sent (%d)" % count)
    check_random(conn, count)


class Pair:
    """A client program and a server, with what they are reached by."""

    def __init__(self, client, client_bin, server_bin, method, workers, own=("", ""),
                 plugin=None):
        self.client_name = client
        self.method = method
        self.ours_client, self.ours_server = own
        self.name = "%s %s -> %s ss-server" % (
            "our" if self.ours_client else "their", client, "our" if self.ours_server else "their")
        self.exchange = targets.Target(exchange_target)
        self.greeter = targets.Target(targets.greeter(b"220 ready\r\n"))
        self.digest = targets.Target(targets.digest)
        self.source = targets.Target(lambda conn: send_random(conn, 16 << 20))
        self.http = targets.Target(targets.http_like(CURL_BODY))
        self.running = []
        server_port = ports.free_port()
        common = ["-k", KEYS_2022.get(method, PASSWORD), "-m", method]
        ours = ["--workers", workers]
        self.plugin = plugin
        if plugin:
            common += ["--plugin", plugin]
        self.server = self.start(
            [programs.find(server_bin, "ss-server"), "-s", "127.0.0.1", "-p", server_port, *common]
            + (ours if self.ours_server else []), server_port)
        self.entries = {}
        self.clients = {}
        self.client_command = [programs.find(client_bin, client), "-s", "127.0.0.1", "-p",
                               server_port, *common] + (ours if self.ours_client else [])
        if client == "ss-local":
            port = ports.free_port()
            self.local = self.start(self.client_command + ["-l", port], port)
            self.local.port = port

    def start(self, command, port):
        role = "server" if os.path.basename(command[0]) == "ss-server" else "client"
        program = programs.Program(command, env={"FIXTURE_ROLE": role})
        self.running.append(program)
        if self.plugin and role == "server":
            plugins.await_descendant(program, port)
            return program
        program.await_listening(port)
        if self.plugin:
            plugins.await_descendant(program)
        return program

    def dial(self, target):
        """A connection to one of the targets, by whatever the client program is."""
        if self.client_name == "ss-local":
            return contextlib.closing(socks.connect(self.local.port, target, timeout=30))
        if target not in self.entries:
            port = ports.free_port()
            self.clients[target] = self.start(
                self.client_command + ["-l", port, "-L", "%s:%d" % target], port)
            self.entries[target] = port
        return contextlib.closing(socks.dial("127.0.0.1", self.entries[target], timeout=30))

    def close(self):
        for target in (self.exchange, self.greeter, self.digest, self.source, self.http):
            target.close()
        problems = []
        for program in reversed(self.running):
            try:
                if not program.alive:
                    program.fail("ended by itself")
                program.stop()
            except AssertionError as error:
                problems.append(str(error))
                program.kill()
        if problems:
            raise AssertionError("\n".join(problems))

    # The checks. Each raises when it does not hold.

    def check_payloads(self):
        for size in SIZES:
            with self.dial(self.exchange.address) as conn:
                exchange(conn, size)
        with self.dial(self.exchange.address):
            pass  # a connection that carries nothing
        # Several messages on one connection: the nonces go on.
        with self.dial(self.exchange.address) as conn:
            for size in SIZES[:-1]:
                exchange(conn, size)

    def check_many_at_once(self):
        target = targets.EchoLoop()
        with self.dial(target.address) as conn:  # the entry exists before the rush
            conn.sendall(b"x")
            socks.receive(conn, 1)
        many(self, target, AT_ONCE)

    def check_half_close(self):
        """The client's end reaches the target, whose answer still comes."""
        payload = os.urandom(100000)
        with self.dial(self.digest.address) as conn:
            conn.sendall(payload)
            conn.shutdown(socket.SHUT_WR)
            if socks.receive_all(conn) != hashlib.sha256(payload).digest():
                raise AssertionError("no whole answer after a half-close")

    def check_slow_reader(self):
        with self.dial(self.source.address) as conn:
            check_random(conn, 16 << 20, pause=0.001)

    def check_server_first(self):
        with self.dial(self.greeter.address) as conn:
            if socks.receive(conn, 11) != b"220 ready\r\n":
                raise AssertionError("the target's greeting did not come")
            conn.sendall(b"HELO")
            if socks.receive(conn, 4) != b"HELO":
                raise AssertionError("no echo after the greeting")

    def check_target_refused(self):
        with self.dial(("127.0.0.1", ports.closed_port())) as conn:
            expect_end(conn)
        with self.dial(self.exchange.address) as conn:
            exchange(conn, 100)

    def check_server_unreachable(self):
        port = ports.free_port()
        command = list(self.client_command)
        command[command.index("-p") + 1] = ports.closed_port()
        command += ["-l", port]
        if self.client_name == "ss-tunnel":
            command += ["-L", "127.0.0.1:%d" % self.exchange.port]
        client = self.start(command, port)
        for _ in range(2):
            if self.client_name == "ss-local":
                with contextlib.suppress(ConnectionError, socks.Refused):
                    with contextlib.closing(socks.connect(port, self.exchange.address)) as conn:
                        expect_end(conn)
            else:
                with contextlib.closing(socks.dial("127.0.0.1", port)) as conn:
                    expect_end(conn)
        if not client.alive:
            client.fail("ended because its server is not there")

    def check_curl(self):
        """A program that people use; our counters prove that its bytes went through."""
        counted = [program for program, ours in (
            (self.server, self.ours_server),
            (getattr(self, "local", None), self.ours_client)) if program and ours]
        before = [program.traffic() for program in counted]
        if self.client_name == "ss-local":
            way = ["--socks5-hostname", "127.0.0.1:%d" % self.local.port,
                   "http://127.0.0.1:%d/" % self.http.port]
        else:
            with self.dial(self.http.address) as conn:
                conn.sendall(b"GET / HTTP/1.0\r\n\r\n")
                socks.receive_all(conn)
            way = ["http://127.0.0.1:%d/" % self.entries[self.http.address]]
        environment = {name: value for name, value in os.environ.items()
                       if not name.lower().endswith("_proxy")}
        run = subprocess.run(["curl", "-sS", "--max-time", "20", "--noproxy", "", *way],
                             capture_output=True, env=environment)
        if run.returncode or run.stdout != CURL_BODY:
            raise AssertionError("curl: status %d, %d bytes; %s" % (
                run.returncode, len(run.stdout), run.stderr.decode("utf-8", "replace")))
        for program, start in zip(counted, before):
            now = program.traffic()
            if max(now["sent"] - start["sent"],
                   now["received"] - start["received"]) < len(CURL_BODY):
                program.fail("its counters do not show the bytes: %s, then %s" % (start, now))

    def check_one_gibibyte(self):
        with self.dial(self.exchange.address) as conn:
            exchange(conn, 1 << 30)

    def checks(self, full):
        found = [self.check_payloads, self.check_many_at_once, self.check_slow_reader,
                 self.check_server_first, self.check_target_refused,
                 self.check_server_unreachable]
        if shutil.which("curl"):
            found.append(self.check_curl)
        # shadowsocks-libev closes both directions when one ends.
        if self.ours_client and self.ours_server:
            found.append(self.check_half_close)
            if full:
                found.append(self.check_one_gibibyte)
        return found


def expect_end(conn):
    """The connection ends without a byte: by FIN or RST, but soon."""
    conn.settimeout(15)
    try:
        data = conn.recv(1)
    except ConnectionError:
        return
    if data:
        raise AssertionError("bytes came from a target that refuses")


def many(pair, target, count):
    """`count` connections that are all open at once, each with an echo of its own bytes."""
    socks_way = pair.client_name == "ss-local"
    entry = pair.local.port if socks_way else pair.entries[target.address]
    head = socks.GREETING + socks.request(*target.address) if socks_way else b""
    skip = 12 if socks_way else 0  # the answers to greeting and request

    class One:
        def __init__(self):
            self.payload = os.urandom(4000)
            self.out = head + self.payload
            self.got = b""
            self.socket = socket.socket()
            self.socket.setblocking(False)
            self.socket.connect_ex(("127.0.0.1", entry))

        def step(self, events):
            if events & selectors.EVENT_WRITE and self.out:
                self.out = self.out[self.socket.send(self.out):]
            if events & selectors.EVENT_READ:
                data = self.socket.recv(1 << 16)
                if not data:
                    raise AssertionError("a connection ended after %d bytes" % len(self.got))
                self.got += data
            return len(self.got) >= skip + len(self.payload)

    deadline = time.monotonic() + 60
    with selectors.DefaultSelector() as selector:
        ones = [One() for _ in range(count)]
        for one in ones:
            selector.register(one.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, one)
        pending = count
        while pending:
            if time.monotonic() > deadline:
                raise AssertionError("%d of %d connections are not answered" % (pending, count))
            for key, events in selector.select(1):
                if key.data.step(events):
                    selector.unregister(key.fileobj)
                    pending -= 1
                elif not key.data.out:
                    selector.modify(key.fileobj, selectors.EVENT_READ, key.data)
        # Only now, when each has been answered, does the first one close.
        for one in ones:
            if one.got[skip:] != one.payload:
                raise AssertionError("an echo has other bytes than were sent")
            one.socket.close()


def run_pair(options, client, client_bin, server_bin, method, workers, own):
    start = time.monotonic()
    pair = Pair(client, client_bin, server_bin, method, workers, own, options.plugin)
    failures = []
    try:
        for check in pair.checks(options.full and client == "ss-local"):
            try:
                check()
            except Exception:
                failures.append("%s: %s" % (check.__name__, traceback.format_exc()))
    finally:
        logs = "".join("--- %s\n%s" % (program.name, program.log) for program in pair.running)
        try:
            pair.close()
        except AssertionError as error:
            failures.append("at the end: %s" % error)
    print("%-5s %-32s %-24s workers %s  %5.1f s" % (
        "FAIL" if failures else "ok", pair.name, method, workers, time.monotonic() - start))
    for failure in failures:
        print(failure)
    if failures:
        print(logs)
    sys.stdout.flush()
    return not failures


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--self", action="store_true", dest="only_self", help="ours with ours only")
    parser.add_argument("--peer-only", action="store_true", help="only ours with theirs")
    parser.add_argument("--peer", default="/usr/bin", help="folder of the other suite")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--plugin", metavar="FILE", type=os.path.abspath,
                        help="one that is both ends, by FIXTURE_ROLE")
    options = parser.parse_args()

    ours, theirs = options.bin, options.peer
    plans = [] if options.peer_only else [
        ("ss-local", ours, ours, (True, True)), ("ss-tunnel", ours, ours, (True, True))]
    missing = False
    if not options.only_self:
        missing = not all(os.access(os.path.join(theirs, name), os.X_OK)
                          for name in ("ss-local", "ss-server", "ss-tunnel"))
        if missing:
            print("SKIPPED: no other suite in %s (Debian: shadowsocks-libev)" % theirs)
        else:
            plans += [(client, ours, theirs, (True, False)) for client in ("ss-local", "ss-tunnel")]
            plans += [(client, theirs, ours, (False, True)) for client in ("ss-local", "ss-tunnel")]
    good = [run_pair(options, client, client_bin, server_bin, method, workers, own)
            for workers in options.workers.split(",")
            for method in options.methods.split(",")
            for client, client_bin, server_bin, own in plans]
    print("%d of %d pairs are good" % (sum(good), len(good)))
    if not all(good):
        sys.exit(1)
    if missing and not good:
        sys.exit(77)


if __name__ == "__main__":
    main()
