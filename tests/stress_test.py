#!/usr/bin/env python3
"""A long TCP stream through ss-local -> ss-server, method by method.

    stress_test.py --bin build/bin --size 1024 --repeat 3 [--json FILE] [--methods a,b] [--workers N]

A target sends --size MiB at once, the client reads them through SOCKS5 and discards them; that is
repeated, and the median is printed in Mbit/s, with VmRSS and private memory of both programs after
it. The bytes are counted, and the exit status is 1 when any are missing.
"""

import argparse
import json
import os
import socket
import statistics
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import ports, proc, programs, socks  # noqa: E402

METHODS = ("aes-128-gcm,aes-192-gcm,aes-256-gcm,chacha20-ietf-poly1305,xchacha20-ietf-poly1305,"
           "2022-blake3-aes-128-gcm,2022-blake3-aes-256-gcm,2022-blake3-chacha20-poly1305,"
           "2022-blake3-chacha8-poly1305")
MIB = 1 << 20


class Source:
    """Sends so many bytes to each that connects, then its end."""

    def __init__(self, size):
        self.size = size
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        block = bytes(MIB)
        while True:
            try:
                conn, _ = self.socket.accept()
            except OSError:
                return
            with conn:
                for _ in range(self.size // MIB):
                    conn.sendall(block)

    def close(self):
        self.socket.close()


def read_all(entry, target):
    """Bytes that came, and seconds from the first to the end."""
    room = bytearray(MIB)
    count = 0
    with socks.connect(entry, target) as conn:
        begin = time.monotonic()
        while True:
            got = conn.recv_into(room)
            if not got:
                return count, time.monotonic() - begin
            count += got


def measure(options, method, source):
    server, entry = ports.free_port(), ports.free_port()
    common = ["-k", programs.key_for(options.bin, method), "-m", method, "--workers", str(options.workers)]
    running = []
    rates = []
    try:
        running.append(programs.Program([programs.find(options.bin, "ss-server"), "-s", "127.0.0.1",
                                         "-p", server, *common]).await_listening(server))
        running.append(programs.Program([programs.find(options.bin, "ss-local"), "-s", "127.0.0.1",
                                         "-p", server, "-l", entry, *common])
                       .await_listening(entry))
        for _ in range(options.repeat):
            count, seconds = read_all(entry, ("127.0.0.1", source.port))
            if count != source.size:
                sys.exit("%s: %d of %d bytes came" % (method, count, source.size))
            rates.append(count * 8 / seconds / 1e6)
        memory = {program.name: {"resident": proc.resident_bytes(program.pid),
                                 "private": proc.private_bytes(program.pid)}
                  for program in running}
    finally:
        for program in running:
            program.kill()
    return {"method": method, "mbit_per_second": rates, "memory": memory}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--size", type=int, default=1024, metavar="MIB")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()

    source = Source(options.size * MIB)
    results = []
    print("%-30s %10s   %s" % ("method", "Mbit/s", "VmRSS / private after, MiB"))
    try:
        for method in options.methods.split(","):
            result = measure(options, method, source)
            results.append(result)
            print("%-30s %10.0f   %s" % (
                method, statistics.median(result["mbit_per_second"]),
                "  ".join("%s %.1f / %.1f" % (name, of["resident"] / MIB, of["private"] / MIB)
                          for name, of in result["memory"].items())))
            sys.stdout.flush()
    finally:
        source.close()
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"size_mib": options.size, "results": results}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
