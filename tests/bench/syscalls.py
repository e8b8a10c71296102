#!/usr/bin/env python3
"""System calls of a short connection, counted with strace.

    syscalls.py --bin build/bin [--connections 500] [--method aes-256-gcm] [--json FILE]

One connection after another goes through ss-tunnel and ss-server: a request and an answer of a
segment each, then both ends close. Each of the two is traced in a run of its own. How often epoll_wait
is called depends on what arrives together, the rest does not.
"""

import argparse
import json
import os
import socket
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import ports, programs  # noqa: E402

REQUEST, ANSWER = b"r" * 64, b"a" * 512


def read_exactly(connection, count):
    got = b""
    while len(got) < count:
        piece = connection.recv(count - len(got))
        if not piece:
            raise programs.ProgramError("the connection ended after %d bytes" % len(got))
        got += piece
    return got


class Target:
    """Answers a request, and closes."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            connection = self.listener.accept()[0]
            with connection:
                read_exactly(connection, len(REQUEST))
                connection.sendall(ANSWER)


def one(port):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(REQUEST)
        read_exactly(connection, len(ANSWER))
        if connection.recv(1):
            raise programs.ProgramError("more came than was sent")


def counts_in(text):
    """{name: calls} of strace's table."""
    counts = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 5 and words[3].isdigit() and words[-1] != "total":
            counts[words[-1]] = int(words[3])
    return counts


def trace(program, entry, connections):
    table = os.path.join(programs.scratch_directory(), "strace.%d" % program.pid)
    tracer = programs.Program(["strace", "-c", "-f", "-p", program.pid, "-o", table])
    tracer.await_log("attached")
    for _ in range(connections):
        one(entry)
    program.await_no_sessions()
    tracer.stop()
    with open(table) as file:
        return counts_in(file.read())


def measure(directory, method, connections):
    """{program: {system call: times a connection}}"""
    target, server_port, entry = Target(), ports.free_port(), ports.free_port()
    key = programs.key_for(directory, method)
    common = ["-s", "127.0.0.1", "-p", server_port, "-k", key, "-m", method, "--workers", "1"]
    server = programs.Program([programs.find(directory, "ss-server"), *common])
    tunnel = programs.Program([programs.find(directory, "ss-tunnel"), *common, "-l", entry, "-L",
                               "127.0.0.1:%d" % target.port])
    try:
        server.await_listening(server_port)
        tunnel.await_listening(entry)
        for _ in range(20):
            one(entry)
        found = {}
        for name, program in (("ss-server", server), ("ss-tunnel", tunnel)):
            counts = trace(program, entry, connections)
            found[name] = {call: times / connections for call, times in counts.items()}
        return found
    finally:
        tunnel.kill()
        server.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--connections", type=int, default=500)
    parser.add_argument("--method", default="aes-256-gcm")
    parser.add_argument("--json")
    options = parser.parse_args()
    found = measure(options.bin, options.method, options.connections)
    for name, counts in found.items():
        print("%s: %.1f system calls a connection" % (name, sum(counts.values())))
        for call, times in sorted(counts.items(), key=lambda entry: -entry[1]):
            if times >= 0.05:
                print("    %-14s %5.2f" % (call, times))
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"method": options.method, "connections": options.connections,
                       "calls": found}, file, indent=1, sort_keys=True)
            file.write("\n")


if __name__ == "__main__":
    main()
