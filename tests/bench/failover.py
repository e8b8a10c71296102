#!/usr/bin/env python3
"""What a client notices when its preferred server falls silent: times to the first byte.

    failover.py --bin build/bin [--connections 1000] [--parallel 8] [--workers 1]

Three ss-server and one ss-local, whose favourite is found out and then black-holed (a packet filter
in a namespace of the measurement's own; without the right to one, a listener whose queue is full).
Then connections through ss-local, each with one request that only it makes. Printed are failures,
requests that the target saw more than once, and the times from the client's first byte to the first
of the answer. Exit status 1 unless nothing failed, nothing came twice, and 95 % of the first bytes
came within 300 ms.
"""

import argparse
import os
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import counting, hole, netns, ports, programs, socks  # noqa: E402
from support import filter as packet_filter  # noqa: E402

PASSWORD = "barfoo!"
LIMIT_MS = 300
SHARE = 0.95


def black_hole(server):
    """Whatever is sent to the server's port is lost from here on; how that was done."""
    try:
        netns_filter = packet_filter.Filter()
        netns_filter.drop(server.port)
        return "a packet filter"
    except unittest.SkipTest:
        server.stop()
        server.hole = hole.Hole(port=server.port)
        return "a full queue"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--parallel", type=int, default=8)
    parser.add_argument("--workers", default="1")
    parser.add_argument("--method", default="chacha20-ietf-poly1305")
    options = parser.parse_args()
    try:
        netns.enter()
    except unittest.SkipTest:
        pass  # then without a filter

    target = counting.Target()
    common = ["-k", PASSWORD, "-m", options.method, "--workers", options.workers]
    servers = []
    for _ in range(3):
        port = ports.free_port()
        server = programs.Program([programs.find(options.bin, "ss-server"), "-s", "127.0.0.1", "-p",
                                   port, *common])
        server.port = port
        servers.append(server.await_listening(port))
    entry = ports.free_port()
    local = programs.Program(
        [programs.find(options.bin, "ss-local"), "-l", entry, "-p", "1", *common]
        + [word for server in servers for word in ("-s", "127.0.0.1:%d" % server.port)])
    local.await_listening(entry)

    lock = threading.Lock()
    times, failures = [], []

    def one():
        request = counting.fresh_request()
        try:
            with socks.connect(entry, target.address, timeout=30) as conn:
                begun = time.monotonic()
                conn.sendall(request)
                first = conn.recv(counting.SIZE)
                took = time.monotonic() - begun
                if first + socks.receive(conn, counting.SIZE - len(first)) != request:
                    raise ConnectionError("another answer than was asked for")
            with lock:
                times.append(took)
        except (OSError, AssertionError) as error:
            with lock:
                failures.append(repr(error))

    for _ in range(30):
        one()
    busiest = max(servers, key=lambda server: server.traffic()["total"])
    if failures:
        sys.exit("it does not even work with all servers there: %s" % failures[0])
    how = black_hole(busiest)
    times.clear()

    left = iter(range(options.connections))

    def many():
        while True:
            with lock:
                if next(left, None) is None:
                    return
            one()

    threads = [threading.Thread(target=many) for _ in range(options.parallel)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    local.traffic()
    for line in local.log_lines("traffic: server"):
        print(line.split("INFO: ", 1)[1])
    for server in servers:
        if server.alive:
            server.stop()
    local.stop()

    times.sort()
    within = sum(took <= LIMIT_MS / 1000 for took in times)
    print("favourite of 3 servers black-holed by %s; %d connections, %d at once, %s workers" % (
        how, options.connections, options.parallel, options.workers))
    print("failures %d, requests seen twice %d" % (len(failures), len(target.twice())))
    if times:
        print("first byte: median %.1f ms, 95 %% %.1f ms, 99 %% %.1f ms, longest %.1f ms" % tuple(
            1000 * times[min(len(times) - 1, int(len(times) * share))]
            for share in (0.5, 0.95, 0.99, 1)))
    print("within %d ms: %.2f %%" % (LIMIT_MS, 100 * within / options.connections))
    for failure in failures[:5]:
        print(failure)
    sys.exit(0 if not failures and not target.twice() and within >= SHARE * options.connections else 1)


if __name__ == "__main__":
    main()
