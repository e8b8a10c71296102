#!/usr/bin/env python3
"""The three programs under valgrind with small payloads: no error, nothing lost.

    valgrind_run.py --bin build/bin [--method chacha20-ietf-poly1305]
"""

import argparse
import contextlib
import os
import shutil
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import dns_stub, ports, programs, shadow, socks, targets  # noqa: E402

PASSWORD = "barfoo!"
ERRORS = 99


def under_valgrind(path, *arguments):
    return programs.Program(
        ["valgrind", "--quiet", "--error-exitcode=%d" % ERRORS, "--leak-check=full",
         "--show-leak-kinds=definite,indirect", "--errors-for-leak-kinds=definite,indirect",
         "--num-callers=25", "--track-fds=no", path, *arguments])


def dial(entry, target):
    if target:
        return contextlib.closing(socks.connect(entry, target, timeout=60))
    return contextlib.closing(socks.dial("127.0.0.1", entry, timeout=60))


def expect(got, wanted):
    if got != wanted:
        raise AssertionError("%r came instead of %r" % (got[:40], wanted[:40]))


def run_method(bin_directory, method, workers):
    echo = targets.Target(targets.echo)
    stub = dns_stub.Stub({"echo.test": ["127.0.0.1"]})
    refused = ports.closed_port()
    server_port, local_port, tunnel_port = (ports.free_port() for _ in range(3))
    common = ["-s", "127.0.0.1", "-p", server_port, "-k", PASSWORD, "-m", method, "--workers",
              workers]

    def start(name, port, *arguments):
        program = under_valgrind(programs.find(bin_directory, name), *common, *arguments)
        return program.await_listening(port, seconds=120)

    running = [start("ss-server", server_port, "-d", stub.nameserver, "--half-open-timeout", 2),
               start("ss-local", local_port, "-l", local_port, "--half-open-timeout", 2),
               start("ss-tunnel", tunnel_port, "-l", tunnel_port, "-L",
                     "127.0.0.1:%d" % echo.port)]

    for entry, target in ((local_port, echo.address), (local_port, ("echo.test", echo.port)),
                          (tunnel_port, None)):
        for size in (1, 100, 5000, 20000):
            with dial(entry, target) as conn:
                payload = os.urandom(size)
                conn.sendall(payload)
                expect(socks.receive(conn, size), payload)
        with dial(entry, target) as conn:
            conn.sendall(b"half")
            conn.shutdown(socket.SHUT_WR)
            expect(socks.receive_all(conn), b"half")
        with dial(entry, target) as conn:
            conn.sendall(b"reset")
            socks.receive(conn, 5)
            socks.reset(conn)
    for target in (("127.0.0.1", refused), ("none.test", 80)):
        with dial(local_port, target) as conn, contextlib.suppress(ConnectionError):
            conn.sendall(b"x")
            expect(conn.recv(1), b"")
    for request in (b"\x04", b"\x05\x01\x02", socks.GREETING + b"\x05\x02\x00\x01" + bytes(6)):
        with contextlib.closing(socks.dial("127.0.0.1", local_port, 60)) as conn:
            conn.sendall(request)
            socks.receive_all(conn)
    for start_bytes in (b"", os.urandom(40), os.urandom(300)):
        with contextlib.closing(socks.dial("127.0.0.1", server_port, 60)) as conn:
            conn.sendall(start_bytes)
    if method == shadow.METHOD:
        packet = shadow.first_packet(PASSWORD, echo.address, b"twice")
        for _ in range(2):
            with contextlib.closing(socks.dial("127.0.0.1", server_port, 60)) as conn:
                conn.sendall(packet)

    # Some stay open, so that the end has something to clear away.
    held = [socks.connect(local_port, echo.address, timeout=60) for _ in range(5)]
    for conn in held:
        conn.sendall(b"held")
        socks.receive(conn, 4)
    good = True
    for program in reversed(running):
        status = program.stop(seconds=60)
        if status != 0:
            print("%s under valgrind ended with %d:\n%s" % (program.arguments, status, program.log))
            good = False
    print("%s %s, workers %d" % ("ok  " if good else "FAIL", method, workers))
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--methods", default="aes-256-gcm,chacha20-ietf-poly1305")
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        print("SKIPPED: valgrind is not there")
        sys.exit(77)
    if programs.sanitizer(programs.find(options.bin, "ss-server")):
        print("SKIPPED: a sanitizer build does not run under valgrind")
        sys.exit(77)
    good = [run_method(options.bin, method, workers)
            for method, workers in zip(options.methods.split(","), (1, 2))]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
