"""Milliseconds from exec to a server that takes connections, side by side.

    python3 tests/bench/start_time.py --bin build/bin [--bin minimal=build-minimal/bin ...]
        [--peer shadowsocks-libev --peer shadowsocks-rust ...] [--method M] [--rounds 21]
        [--workers 1] [--json FILE]

Each round starts every server once, by turns, and connects again and again until it is taken; that
polling costs the machine a little, and each the same. The median counts.
"""

import argparse
import errno
import json
import os
import socket
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import peers, ports, programs  # noqa: E402

LIMIT_S = 15


def start(command, port):
    """Seconds until the port takes a connection."""
    address = ("127.0.0.1", port)
    began = time.perf_counter()
    process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while True:
            with socket.socket() as probe:
                result = probe.connect_ex(address)
            took = time.perf_counter() - began
            if result == 0:
                return took
            if result != errno.ECONNREFUSED or took > LIMIT_S or process.poll() is not None:
                raise RuntimeError("%s did not start" % command[0])
            time.sleep(0.0001)
    finally:
        process.kill()
        process.wait()


def choose(options):
    chosen = []
    for text in options.bin:
        name, folder = text.split("=", 1) if "=" in text else ("default", text)
        chosen.append((name, peers.Ours(os.path.abspath(folder), options.workers)))
    every = {kind.name: kind for kind in (peers.Libev, peers.Rust, peers.Go, peers.SingBox)}
    for name in options.peer:
        peer = every[name]()
        if not peer.there():
            print("SKIPPED: %s is not there (%s)" % (name, peer.package))
        elif not peer.offers("server", options.method):
            print("SKIPPED: %s has no %s" % (name, options.method))
        else:
            chosen.append((name, peer))
    return chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", action="append", required=True, metavar="[NAME=]FOLDER")
    parser.add_argument("--peer", action="append", default=[])
    parser.add_argument("--method", default="2022-blake3-aes-256-gcm")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--workers", default="1")
    parser.add_argument("--json")
    options = parser.parse_args()

    chosen = choose(options)
    key = programs.key_for(chosen[0][1].directories[0], options.method)
    times = {name: [] for name, _ in chosen}
    for _ in range(options.rounds):
        for name, peer in chosen:
            port = ports.free_port()
            command = peer.server_command(peers.Server(options.method, key, port))
            times[name].append(1000 * start(command, port))
    report = {"method": options.method, "rounds": options.rounds, "workers": options.workers,
              "ms": {}}
    for name, found in times.items():
        report["ms"][name] = {"median": round(statistics.median(found), 2),
                              "min": round(min(found), 2), "max": round(max(found), 2)}
        print("%-20s median %7.2f ms   min %7.2f   max %7.2f" % (
            name, statistics.median(found), min(found), max(found)))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(report, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
