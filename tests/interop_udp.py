#!/usr/bin/env python3
"""Datagrams by every method, ours with ours and with another suite both ways round.

    interop_udp.py --bin build/bin                  # ours, and shadowsocks-libev of /usr/bin
    interop_udp.py --bin build/bin --self           # ours with ours only
    interop_udp.py --bin /usr/bin --self --classic  # the other suite alone: is the test right?

A line for each pair of programs and method; a failure names its check and prints both logs. Where
the other suite is in a pair, payloads stay below what it takes for too large.
"""

import argparse
import os
import selectors
import struct
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import ports, proc, programs, udp, wait  # noqa: E402

PASSWORD = "barfoo!"
METHODS = ("aes-128-gcm", "aes-192-gcm", "aes-256-gcm", "chacha20-ietf-poly1305",
           "xchacha20-ietf-poly1305")
# 1,397 bytes of address and payload are the most that the other suite lets through.
SMALL = (0, 1, 2, 15, 16, 17, 100, 511, 512, 1023, 1200, 1280, 1372)
# The largest leaves room for a salt, an IPv6 address and a tag.
LARGE = (1373, 1397, 1400, 1452, 1472, 1500, 2048, 4000, 9000, 16383, 16384, 32768, 60000, 65440)
COUNT = 10000
WINDOW = 32
SIZE = 1200


class Pair:
    """A client program and a server, and the ways through them."""

    def __init__(self, client, client_bin, server_bin, method, workers, own):
        self.client_name, self.own = client, own
        self.name = "%s %s -> %s ss-server" % (
            "our" if own[0] else "their", client, "our" if own[1] else "their")
        self.running = []
        self.server_port = ports.free_port()
        self.common = ["-u", "-s", "127.0.0.1", "-p", self.server_port, "-k", PASSWORD,
                       "-m", method]
        self.workers = ["--workers", workers]
        self.client_bin = client_bin
        self.start(server_bin, "ss-server", own[1], self.server_port)
        self.targets = [udp.Target(keep=False)]
        if ports.have_ipv6():
            self.targets.append(udp.Target(host="::1", keep=False))
        self.entries = {}
        if client == "ss-local":
            self.local = ports.free_port()
            self.start(client_bin, client, own[0], self.local, "-l", self.local)

    def start(self, folder, name, ours, port, *arguments):
        program = programs.Program([programs.find(folder, name), *self.common, *arguments,
                                    *(self.workers if ours else [])])
        self.running.append(program)
        program.await_listening(port)
        wait.until(lambda: port in proc.udp_ports(program.pid), 10, "%s: its UDP port" % name)

    def client(self, target):
        """Something with exchange(), send() and receive() to a target."""
        if self.client_name == "ss-local":
            return Socks(udp.Associate(self.local), target.address)
        if target not in self.entries:
            port = ports.free_port()
            host = "[%s]" % target.host if ":" in target.host else target.host
            self.start(self.client_bin, "ss-tunnel", self.own[0], port, "-l", port, "-L",
                       "%s:%d" % (host, target.port))
            self.entries[target] = port
        return udp.Client(self.entries[target])

    def close(self):
        for target in self.targets:
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

    def check_sizes(self):
        for target in self.targets:
            client = self.client(target)
            for size in SMALL + (LARGE if all(self.own) else ()):
                payload = os.urandom(size)
                if client.exchange(payload) != payload:
                    raise AssertionError("%d bytes came back as others" % size)
            client.close()

    def check_many(self):
        """10,000 datagrams, some at once, and not one is lost."""
        client = self.client(self.targets[0])
        filler = os.urandom(SIZE)
        waiting = set()
        number = 0
        while number < COUNT or waiting:
            while number < COUNT and len(waiting) < WINDOW:
                client.send(struct.pack(">I", number) + filler[: number % (SIZE - 4)])
                waiting.add(number)
                number += 1
            answer = client.receive()
            (got,) = struct.unpack_from(">I", answer)
            if answer[4:] != filler[: got % (SIZE - 4)]:
                raise AssertionError("datagram %d came back as another" % got)
            waiting.remove(got)
        client.close()

    def check_many_clients(self):
        """200 clients at once; each gets its own answers."""
        target = self.targets[0]
        clients = [self.client(target) for _ in range(200)]
        with selectors.DefaultSelector() as selector:
            for number, client in enumerate(clients):
                selector.register(client.socket, selectors.EVENT_READ, number)
            for turn in range(5):
                for first in range(0, len(clients), 20):
                    missing = set(range(first, first + 20))
                    for number in missing:
                        clients[number].send(b"%d %d" % (number, turn))
                    while missing:
                        ready = selector.select(10)
                        if not ready:
                            raise AssertionError("no answer for %d clients" % len(missing))
                        for key, _ in ready:
                            answer = clients[key.data].receive()
                            if answer != b"%d %d" % (key.data, turn):
                                raise AssertionError("client %d got %r" % (key.data, answer))
                            missing.remove(key.data)
        for client in clients:
            client.close()


class Socks:
    """A SOCKS5 client that talks to one target, and takes answers from no other."""

    def __init__(self, associate, target):
        self.associate, self.target = associate, target
        self.socket = associate.socket
        self.close = associate.close

    def send(self, payload):
        self.associate.send(self.target, payload)

    def receive(self):
        origin, payload = self.associate.receive()
        if origin != self.target:
            raise AssertionError("an answer in the name of %s:%d" % origin)
        return payload

    def exchange(self, payload):
        self.send(payload)
        return self.receive()


def run_pair(client, client_bin, server_bin, method, workers, own):
    start = time.monotonic()
    pair = Pair(client, client_bin, server_bin, method, workers, own)
    failures = []
    try:
        for check in (pair.check_sizes, pair.check_many, pair.check_many_clients):
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
    print("%-5s %-34s %-24s workers %s  %5.1f s" % (
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
    parser.add_argument("--classic", action="store_true", help="--bin holds the classic suite")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--workers", default="1,2")
    options = parser.parse_args()

    udp.allow_descriptors(4096)
    ours, theirs = options.bin, options.peer
    own = not options.classic
    clients = ("ss-local", "ss-tunnel")
    plans = [] if options.peer_only else [(name, ours, ours, (own, own)) for name in clients]
    missing = False
    if not options.only_self:
        missing = not all(os.access(os.path.join(theirs, name), os.X_OK)
                          for name in clients + ("ss-server",))
        if missing:
            print("SKIPPED: no other suite in %s (Debian: shadowsocks-libev)" % theirs)
        else:
            plans += [(name, ours, theirs, (True, False)) for name in clients]
            plans += [(name, theirs, ours, (False, True)) for name in clients]
    good = [run_pair(client, client_bin, server_bin, method, workers, own)
            for workers in (options.workers.split(",") if own else "1")
            for method in options.methods.split(",")
            for client, client_bin, server_bin, own in plans]
    print("%d of %d pairs are good" % (sum(good), len(good)))
    if not all(good):
        sys.exit(1)
    if missing and not good:
        sys.exit(77)


if __name__ == "__main__":
    main()
