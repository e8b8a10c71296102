#!/usr/bin/env python3
"""Allocations per connection of the programs, once they are warm.

    measure_alloc.py --bin build/bin --shim build/lib/libss_alloc_audit.so --method aes-256-gcm \\
                     --target 127.0.0.1 [--program server|local|tunnel] [--trace 5]

The target is an address of this machine, or any name: a DNS stub of the test then answers it anew
for each connection. With --fresh each connection that goes by ss-local has a name of its own, and
answers are to be kept: more names than the resolver remembers. Connections come one after another and
several at once, with small and large payloads, slow readers, half-closes, resets and refused targets.

With --plugin all of it goes through plugins (tests/sip003_fixture.py) that stand before each program.
With --acl the server has an access control list, and so has ss-local, which sends all through the
server or reaches all itself. With --bad there are probes, replays, bad requests, targets that are not to
be reached and time-outs as well. With --reload each program reloads (SIGHUP) after it has become warm, and
is measured from then on. Exit status 1 unless it is 0 in each program that was asked for. --trace
prints where the first allocations come from.
"""

import argparse
import contextlib
import ipaddress
import itertools
import json
import mmap
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import bad  # noqa: E402
import lists  # noqa: E402
import more_servers  # noqa: E402
import served  # noqa: E402
from support import dns_stub, plugins, ports, proc, programs, socks, targets, wait  # noqa: E402

KINDS = ("mallocs", "callocs", "reallocs", "aligned", "maps")
FIELDS = ("magic",) + KINDS + ("frees", "bytes", "traces")
MAGIC = 0x534155444954


class Audit:
    """The counters that the shim in one process shares with us."""

    def __init__(self, shim):
        self.file = tempfile.NamedTemporaryFile(prefix="ss-audit-")
        self.file.truncate(mmap.PAGESIZE)
        self.view = mmap.mmap(self.file.fileno(), mmap.PAGESIZE)
        self.env = {"LD_PRELOAD": os.path.abspath(shim), "SS_ALLOC_AUDIT_FILE": self.file.name}

    def read(self):
        values = dict(zip(FIELDS, struct.unpack_from("<%dq" % len(FIELDS), self.view)))
        if values["magic"] != MAGIC:
            raise AssertionError("the shim did not start")
        return values

    def allocations(self):
        values = self.read()
        return sum(values[kind] for kind in KINDS)

    def trace(self, count):
        struct.pack_into("<q", self.view, 8 * FIELDS.index("traces"), count)


def is_address(text):
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def self_test(shim, check):
    """The shim counts what a program allocates that allocates once in each way."""
    audit = Audit(shim)
    process = subprocess.Popen([check], env=dict(os.environ, **audit.env), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    process.stdout.readline()
    before = audit.read()
    process.stdin.write(b"go\n")
    process.stdin.flush()
    process.stdout.readline()
    after = audit.read()
    process.stdin.write(b"end\n")
    process.stdin.close()
    process.wait()
    counted = {name: after[name] - before[name] for name in FIELDS}
    wanted = {"mallocs": 2, "callocs": 1, "reallocs": 1, "aligned": 2, "maps": 1, "frees": 6}
    for name, count in wanted.items():
        # stdin's buffer is one malloc more, on its first line.
        if not count <= counted[name] <= count + (name == "mallocs"):
            raise AssertionError("%s counted %d times instead of %d" % (name, counted[name], count))
    print("the shim counts every way of allocating")


class Load:
    """Connections of several kinds through one entry. SOCKS5 where `target` is given."""

    def __init__(self, entry, target, *refused, fresh=False):
        self.entry, self.target, self.refused = entry, target, refused
        self.numbers = itertools.count() if fresh else None

    def named(self, target):
        """The target, by a name that was not asked for before if that is wanted."""
        if self.numbers is None:
            return target
        return ("n%d.%s" % (next(self.numbers), target[0]), target[1])

    def dial(self):
        if self.target:
            return socks.connect(self.entry, self.named(self.target))
        return socks.dial("127.0.0.1", self.entry)

    def echo(self, size):
        with contextlib.closing(self.dial()) as conn:
            block = os.urandom(min(size, 1 << 16))
            sender = threading.Thread(target=self._send, args=(conn, block, size))
            sender.start()
            got = len(socks.receive(conn, size))
            sender.join()
            if got != size:
                raise AssertionError("%d of %d bytes came back" % (got, size))

    def _send(self, conn, block, size):
        with contextlib.suppress(OSError):
            while size > 0:
                conn.sendall(block[:size])
                size -= len(block)

    def half_close(self):
        with contextlib.closing(self.dial()) as conn:
            conn.sendall(b"before the end")
            conn.shutdown(socket.SHUT_WR)
            if socks.receive_all(conn) != b"before the end":
                raise AssertionError("the echo did not come back after a half-close")

    def reset(self):
        conn = self.dial()
        conn.sendall(b"x")
        socks.receive(conn, 1)
        socks.reset(conn)

    def slow(self):
        """Fills every buffer on the way before it reads."""
        with contextlib.closing(self.dial()) as conn:
            conn.setblocking(False)
            sent = 0
            block = bytes(1 << 16)

            def full():
                nonlocal sent
                try:
                    while True:
                        sent += conn.send(block)
                except BlockingIOError:
                    return sent > 4 << 20

            with contextlib.suppress(wait.Timeout):
                wait.until(full, 0.3)
            conn.settimeout(20)
            got = len(socks.receive(conn, sent))
            if got != sent:
                raise AssertionError("%d of %d bytes came back" % (got, sent))

    def refuse(self):
        for target in self.refused:
            with contextlib.closing(socks.connect(self.entry, self.named(target))) as conn:
                conn.sendall(b"x")
                with contextlib.suppress(ConnectionError):
                    conn.recv(1)

    def parallel(self, count, size):
        threads = [threading.Thread(target=self.echo, args=(size,)) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def run(self, connections, parallel):
        """About `connections` connections; returns how many."""
        for number in range(connections):
            self.echo(1 + number * 37 % 3000)
        for _ in range(3):
            self.half_close()
            self.reset()
            self.refuse()
        self.echo(1 << 20)
        self.slow()
        self.parallel(parallel, 100000)
        return connections + 9 + 2 + parallel


def settle(running):
    for program in running:
        wait.until(lambda: not proc.tcp_connections(program.pid), 20,
                   "%s: the end of its connections" % program.name)


def report(options, running, before, after, counts, unit):
    """Prints the allocations of each program, writes them where that is asked for; the exit status."""
    failed, result = False, {}
    for name, program in running.items():
        grown = after[name] - before[name]
        asked = options.program in (name, "all")
        failed |= asked and grown != 0
        print("ss-%-7s %6d allocations before, %4d in %d %s: %g each%s" % (
            name, before[name], grown, counts[name], unit, grown / counts[name],
            "" if asked else " (not asked for)"))
        if options.trace and asked and grown:
            print(program.log)
        if asked:
            result["ss-" + name] = {"allocations": grown, unit: counts[name]}
    if options.result:
        with open(options.result, "w") as file:
            json.dump(result, file)
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin")
    parser.add_argument("--shim", required=True)
    parser.add_argument("--method", default="aes-256-gcm")
    parser.add_argument("--target", default="127.0.0.1")
    parser.add_argument("--program", choices=("server", "local", "tunnel", "all"), default="all")
    parser.add_argument("--workers", default="1")
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--plugin", action="store_true")
    parser.add_argument("--acl", choices=("proxy", "bypass"))
    parser.add_argument("--servers", action="store_true",
                        help="two servers more for the clients")
    parser.add_argument("--bad", action="store_true")
    parser.add_argument("--reload", action="store_true")
    parser.add_argument("--trace", type=int, default=0)
    parser.add_argument("--self-test", metavar="PROGRAM")
    served.add_arguments(parser)
    options = parser.parse_args()
    if options.self_test:
        self_test(options.shim, options.self_test)
        return
    if programs.sanitizer(programs.find(options.bin, "ss-server")):
        print("SKIPPED: a sanitizer has the heap in a build of this kind")
        sys.exit(77)

    target = targets.Target(targets.echo)
    refused = ports.closed_port()
    server_arguments, nameserver = [], None
    if not is_address(options.target):
        # A time to live of 0: each connection asks anew.
        stub = dns_stub.Stub({options.target: ["127.0.0.1"], "*." + options.target: ["127.0.0.1"]},
                             ttl=3600 if options.fresh else 0)
        nameserver = stub.nameserver
        server_arguments = ["-d", nameserver]
    server_list, local_list = lists.arguments(options.acl, nameserver)

    serving = served.Served(options, udp=False)
    bounds = bad.TIMEOUTS if options.bad else []
    common = ["-k", serving.chain, "-m", options.method, "--workers", options.workers, *bounds]
    server, local, tunnel = serving.port, ports.free_port(), ports.free_port()
    audits = {name: Audit(options.shim) for name in ("server", "local", "tunnel")}
    running = {}

    def start(name, port, *arguments):
        env = dict(audits[name].env)
        fixture = None
        if options.plugin:
            # The counters are the program's: what it starts must not load the shim as well.
            fixture = plugins.Fixture("server" if name == "server" else "client")
            env.update(fixture.env)
            words = ["-u", "LD_PRELOAD", fixture.path]
            arguments += ("--plugin", "env", *("--plugin-args=" + word for word in words))
        if name == "server":
            audits[name].env = env
            running[name] = serving.start(audits[name], *bounds, *arguments)
        else:
            running[name] = programs.Program(
                [programs.find(options.bin, "ss-" + name), "-s", "127.0.0.1", "-p", server, *common,
                 *arguments], env=env)
        if fixture is None or name != "server":
            running[name].await_listening(port)
        if fixture is not None:
            fixture.await_relaying()

    start("server", server, *server_arguments, *server_list)
    more = more_servers.MoreServers(options, common, silent=True)
    start("local", local, "-l", local, *local_list, *more.arguments)
    start("tunnel", tunnel, "-l", tunnel, "-L", "%s:%d" % (options.target, target.port),
          *more.arguments)
    refusals = [(options.target, refused)] + [(lists.BLOCKED, 9)] * bool(options.acl)
    loads = [Load(local, (options.target, target.port), *refusals, fresh=options.fresh),
             Load(tunnel, None)]

    worse = bad.Bad(options, serving, local, (options.target, target.port)) if options.bad else None

    # As many at once as will ever be, so that no table of a library grows later.
    for load in loads:
        load.run(50, 40)
    if worse:
        worse.run()
    settle([*running.values(), *more.programs])
    if options.reload:
        for count in (1, 2):
            for program in running.values():
                program.process.send_signal(signal.SIGHUP)
                program.await_log("INFO: reloaded: ", count=count)
    before = {name: audit.allocations() for name, audit in audits.items()}
    for name, audit in audits.items():
        if options.program in (name, "all"):
            audit.trace(options.trace)
    counts = [load.run(options.connections, 20) for load in loads]
    more_server, more_local = worse.run() if worse else (0, 0)
    settle([*running.values(), *more.programs])
    after = {name: audit.allocations() for name, audit in audits.items()}

    connections = {"server": sum(counts) + more_server, "local": counts[0] + more_local,
                   "tunnel": counts[1]}
    status = report(options, running, before, after, connections, "connections")
    for program in running.values():
        program.stop()
    more.stop()
    serving.stop()
    sys.exit(status)


if __name__ == "__main__":
    main()
