#!/usr/bin/env python3
"""Allocations of ss-redir, for each connection and each datagram, once it is warm.

    measure_alloc_redir.py --bin build/bin --shim build/lib/libss_alloc_audit.so \\
                           [--method aes-256-gcm] [--server ADDRESS|NAME] [--tcp redirect|tproxy] [--trace 5]

Between three network namespaces of its own (client, router, internet): connections by REDIRECT or TPROXY,
datagrams by TPROXY. Connections are those of measure_alloc.py. Datagrams go to
more hosts than there are sockets to answer for, from more clients than there is room for. The server
is an address, or a name that a DNS stub of the test answers. With --reload it reloads (SIGHUP) after it
has become warm. Exit status 1 unless it is 0.
"""

import argparse
import contextlib
import ipaddress
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import measure_alloc  # noqa: E402
from support import dns_stub, netns, ports, proc, programs, router, targets, udp, wait  # noqa: E402

ROOM = 32  # associations
CLOSED = 9  # nobody listens there
HOSTS = 400  # above the 256 sockets that answer
RULES = """
table ip r {
	chain nat {
		type nat hook prerouting priority dstnat; policy accept;
		%(nat)s
	}
	chain pre {
		type filter hook prerouting priority mangle; policy accept;
		iifname "lan0" meta l4proto { %(protocols)s } tproxy to :%(port)d meta mark set 1 accept
	}
}
"""
NAT = 'iifname "lan0" meta l4proto tcp redirect to :%d'


class Connections(measure_alloc.Load):
    def __init__(self, port):
        super().__init__(None, None)
        self.port, self.number = port, 0

    def dial(self):
        self.number += 1
        return socket.create_connection((router.host(self.number % HOSTS), self.port), 20)

    def refuse(self):
        """Targets at which nobody listens, seen as a connection that ends."""
        self.number += 1
        with socket.create_connection((router.host(self.number % HOSTS), CLOSED), 20) as conn:
            with contextlib.suppress(ConnectionError):
                conn.sendall(b"x")
                conn.recv(1)


class Datagrams:
    def __init__(self, port):
        self.port, self.count = port, 0

    def exchange(self, sock, number, size):
        address = (router.host(number % HOSTS), self.port)
        payload = os.urandom(size)
        sock.sendto(payload, address)
        if sock.recvfrom(1 << 16) != (payload, address):
            raise AssertionError("another answer came")
        self.count += 2

    def run(self, datagrams):
        self.count = 0
        for number in range(3 * ROOM):
            sock = udp.make_socket(router.CLIENT, timeout=20)
            self.exchange(sock, number, number * 37 % 1400)
            sock.close()
        sock = udp.make_socket(router.CLIENT, timeout=20)
        for size in (0, 1, 1200, 1472, 4000, 16000, 60000):
            self.exchange(sock, size, size)
        for number in range(datagrams // 2):
            self.exchange(sock, number, 500)
        sock.close()
        return self.count


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--shim", required=True)
    parser.add_argument("--method", default="aes-256-gcm")
    parser.add_argument("--server", default=router.SERVER)
    parser.add_argument("--tcp", choices=("redirect", "tproxy"), default="redirect")
    parser.add_argument("--workers", default="1")
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--datagrams", type=int, default=3000)
    parser.add_argument("--reload", action="store_true")
    parser.add_argument("--result", help="a file for the counts, as JSON")
    parser.add_argument("--trace", type=int, default=0)
    options = parser.parse_args()
    if programs.sanitizer(programs.find(options.bin, "ss-redir")):
        print("SKIPPED: a sanitizer has the heap in a build of this kind")
        sys.exit(77)
    for tool in ("nft", "ip"):
        if not shutil.which(tool):
            print("SKIPPED: no %s on this machine" % tool)
            sys.exit(77)
    try:
        rig = router.Router()
    except unittest.SkipTest as error:
        print("SKIPPED: %s" % error)
        sys.exit(77)

    port = ports.free_port()
    tproxy = options.tcp == "tproxy"
    made = subprocess.run(
        ["nft", "-f", "-"], text=True, capture_output=True,
        input=RULES % {"nat": "" if tproxy else NAT % port, "port": port,
                       "protocols": "tcp, udp" if tproxy else "udp"})
    if made.returncode != 0:
        print("SKIPPED: nft: %s" % made.stderr.strip())
        sys.exit(77)
    for words in ("rule add fwmark 1 table 100", "route add local 0.0.0.0/0 dev lo table 100"):
        rig.ip(rig.router, words)

    name_servers = None
    try:
        ipaddress.ip_address(options.server)
    except ValueError:
        stub = dns_stub.Stub({options.server: [router.SERVER]}, ttl=0)
        name_servers = tempfile.NamedTemporaryFile("w", suffix=".json")
        name_servers.write('{"dns": "%s"}' % stub.nameserver)
        name_servers.flush()

    common = ["-u", "-k", programs.key_for(options.bin, options.method), "-m", options.method,
              "--workers", options.workers, "--max-associations",
              4096 if options.method.startswith("2022-") else ROOM]
    audit = measure_alloc.Audit(options.shim)
    upstream = programs.Program(
        [programs.find(options.bin, "ss-server"), "-s", router.SERVER, "-p", "8388", *common],
        prepare=rig.prepare(rig.internet))
    upstream.await_log("listening at", count=2)
    redir = programs.Program(
        [programs.find(options.bin, "ss-redir"), "-s", options.server, "-p", "8388", "-l", port, "-b", "0.0.0.0",
         *(["-T"] if tproxy else []), *(["-c", name_servers.name] if name_servers else []), *common],
        env=audit.env).await_listening(port)
    wait.until(lambda: port in proc.udp_ports(redir.pid), 10, "its UDP port")

    with rig.inside(rig.internet):
        connections = Connections(targets.Target(targets.echo, host="0.0.0.0").port)
        datagrams = Datagrams(router.AnyHost().port)
    netns.move(rig.client)
    connections.run(options.connections // 4, 20)
    datagrams.run(600)
    measure_alloc.settle([redir])
    if options.reload:
        for number in (1, 2):
            redir.process.send_signal(signal.SIGHUP)
            redir.await_log("INFO: reloaded: ", count=number)
    before = audit.allocations()
    audit.trace(options.trace)
    count = connections.run(options.connections, 20)
    measure_alloc.settle([redir])
    middle = audit.allocations()
    sent = datagrams.run(options.datagrams)
    after = audit.allocations()
    print("ss-redir %d allocations before, %d in %d connections, %d in %d datagrams" % (
        before, middle - before, count, after - middle, sent))
    if options.trace and after != before:
        print(redir.log)
    if options.result:
        with open(options.result, "w") as file:
            json.dump({"ss-redir": {"allocations": after - before, "connections": count,
                                    "datagrams": sent}}, file)
    redir.stop()
    upstream.stop()
    sys.exit(1 if after != before else 0)


if __name__ == "__main__":
    main()
