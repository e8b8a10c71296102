#!/usr/bin/env python3
"""Allocations per datagram of the programs, once they are warm.

    measure_alloc_udp.py --bin build/bin --shim build/lib/libss_alloc_audit.so \\
                         --method aes-256-gcm --target 127.0.0.1 \\
                         [--program server|local|tunnel] [--trace 5]

The target is an address of this machine, or any name: a DNS stub of the test then answers it anew
for each association. Datagrams are small and large, one by one and many at once, from a few clients
and from more than there is room for, with ones between them that are to be dropped. With --acl the server
has an access control list, and so has ss-local, which sends all through the server or reaches all
itself. With --reload each program reloads (SIGHUP) after it has become warm, and is measured from then
on. Exit status 1 unless it is 0 in each program that was asked for. --trace prints where the first come
from.
"""

import argparse
import ipaddress
import os
import signal
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import lists  # noqa: E402
import more_servers  # noqa: E402
import served  # noqa: E402
from measure_alloc import Audit, report  # noqa: E402
from support import dns_stub, peers, ports, proc, programs, udp, wait  # noqa: E402

ROOM = 32  # associations
SIZES = (0, 1, 200, 1200, 1400, 1472, 4000, 16000, 60000)
WINDOW = 48


class Load:
    """Datagrams through one entry: SOCKS5 where there is a target, else the payloads alone."""

    def __init__(self, entry, server, target, method):
        self.entry, self.server, self.target = entry, server, target
        # The old methods prove nothing: any bytes are a request there, so these stay shorter.
        self.dropped = (0, 1, 3) if method in peers.STREAM else (0, 1, 16, 50, 300)
        self.count = 0
        self.associate = self.renew() if target else None

    def renew(self):
        return udp.Associate(self.entry, timeout=20)

    def send(self, sock, payload):
        if self.target:
            payload = udp.frame(self.target, payload)
        sock.sendto(payload, ("127.0.0.1", self.entry))
        self.count += 1

    def receive(self, sock):
        data, _ = sock.recvfrom(1 << 16)
        self.count += 1
        return udp.unframe(data)[1] if self.target else data

    def exchange(self, sock, size):
        payload = os.urandom(size)
        self.send(sock, payload)
        if self.receive(sock) != payload:
            raise AssertionError("another payload came back")

    def many(self, sock, count):
        payload = os.urandom(1200)
        left, waiting, lost = count, 0, 0
        sock.settimeout(2)
        while left or waiting:
            while left and waiting < WINDOW:
                self.send(sock, payload)
                left, waiting = left - 1, waiting + 1
            try:
                self.receive(sock)
                waiting -= 1
            except socket.timeout:  # a busy machine loses some
                lost += waiting
                waiting = 0
                if lost > count // 4:
                    raise AssertionError("%d of %d datagrams are lost" % (lost, count)) from None

    def garbage(self, sock):
        """What is to be dropped, at the entry and at the server."""
        for size in self.dropped:
            sock.sendto(b"\xff" * size, ("127.0.0.1", self.server))
            if self.target:
                sock.sendto(os.urandom(size), ("127.0.0.1", self.entry))
                sock.sendto(udp.frame((lists.BLOCKED, 9), bytes(size)), ("127.0.0.1", self.entry))

    def run(self, datagrams):
        self.count = 0
        # More clients than there is room for, so that old ones make way.
        for number in range(3 * ROOM):
            sock = udp.make_socket(timeout=20)
            self.exchange(sock, number * 37 % 1400)
            sock.close()
        sock = udp.make_socket(timeout=20)
        for size in SIZES:
            self.exchange(sock, size)
        self.garbage(sock)
        self.many(sock, datagrams)
        sock.close()
        if self.target:
            for _ in range(5):
                associate = self.renew()
                self.exchange(associate.socket, 100)
                associate.close()
        return self.count


def room_for(options):
    """Under the 2022 methods each association is a session, which is remembered for a minute: there
    must be room for all of the run, or new ones are refused."""
    return 4096 if options.method.startswith("2022-") else ROOM


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--shim", required=True)
    parser.add_argument("--method", default="aes-256-gcm")
    parser.add_argument("--target", default="127.0.0.1")
    parser.add_argument("--program", choices=("server", "local", "tunnel", "all"), default="all")
    parser.add_argument("--workers", default="1")
    parser.add_argument("--datagrams", type=int, default=3000)
    parser.add_argument("--acl", choices=("proxy", "bypass"))
    parser.add_argument("--servers", action="store_true",
                        help="two servers more for the clients")
    parser.add_argument("--reload", action="store_true")
    parser.add_argument("--trace", type=int, default=0)
    served.add_arguments(parser)
    options = parser.parse_args()
    if programs.sanitizer(programs.find(options.bin, "ss-server")):
        print("SKIPPED: a sanitizer has the heap in a build of this kind")
        sys.exit(77)

    target = udp.Target(keep=False)
    server_arguments, nameserver = [], None
    try:
        ipaddress.ip_address(options.target)
    except ValueError:
        # A time to live of 0: each association asks anew.
        stub = dns_stub.Stub({options.target: ["127.0.0.1"]}, ttl=0)
        nameserver = stub.nameserver
        server_arguments = ["-d", nameserver]
    server_list, local_list = lists.arguments(options.acl, nameserver)

    serving = served.Served(options, udp=True)
    room = ["--max-associations", room_for(options)]
    common = ["-u", "-k", serving.chain, "-m", options.method, "--workers", options.workers, *room]
    server, local, tunnel = serving.port, ports.free_port(), ports.free_port()
    audits = {name: Audit(options.shim) for name in ("server", "local", "tunnel")}
    running = {}

    def start(name, port, *arguments):
        if name == "server":
            program = serving.start(audits[name], *room, *arguments)
        else:
            program = programs.Program(
                [programs.find(options.bin, "ss-" + name), "-s", "127.0.0.1", "-p", server, *common,
                 *arguments], env=audits[name].env)
        program.await_listening(port)
        wait.until(lambda: port in proc.udp_ports(program.pid), 10, name + ": its UDP port")
        running[name] = program

    start("server", server, *server_arguments, *server_list)
    more = more_servers.MoreServers(options, common, silent=False)
    start("local", local, "-l", local, *local_list, *more.arguments)
    start("tunnel", tunnel, "-l", tunnel, "-L", "%s:%d" % (options.target, target.port),
          *more.arguments)
    loads = [Load(local, server, (options.target, target.port), options.method),
             Load(tunnel, server, None, options.method)]

    for load in loads:
        load.run(500)
    if options.reload:
        for count in (1, 2):
            for program in running.values():
                program.process.send_signal(signal.SIGHUP)
                program.await_log("INFO: reloaded: ", count=count)
    before = {name: audit.allocations() for name, audit in audits.items()}
    for name, audit in audits.items():
        if options.program in (name, "all"):
            audit.trace(options.trace)
    counts = [load.run(options.datagrams) for load in loads]
    after = {name: audit.allocations() for name, audit in audits.items()}

    datagrams = {"server": sum(counts), "local": counts[0], "tunnel": counts[1]}
    status = report(options, running, before, after, datagrams, "datagrams")
    for program in running.values():
        program.stop()
    more.stop()
    serving.stop()
    sys.exit(status)


if __name__ == "__main__":
    main()
