#!/usr/bin/env python3
"""Memory of the programs with idle connections.

    idle_memory.py --bin build/bin --connections 1000 [--workers 1] [--method aes-256-gcm]
    idle_memory.py --bin build/bin --redir            # ss-redir, between network namespaces

Each connection echoes a little and then stays. Printed are private bytes (RssAnon + RssShmem) and
VmRSS after the start, with the connections open, and after they have closed. With --limit-start and
--limit-idle (MiB of private memory) the exit status is 1 when a program is above.
"""

import argparse
import os
import resource
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import netns, ports, proc, programs, router, socks, wait  # noqa: E402
from support import targets  # noqa: E402

PASSWORD = "barfoo!"
MIB = 1 << 20
BACK_WITHIN = MIB  # of the start, once they have closed


def show(moment, running, figures):
    for program in running:
        private, resident = proc.private_bytes(program.pid), proc.resident_bytes(program.pid)
        figures.setdefault(program.name, {})[moment] = private
        print("%-10s %-22s private %7.2f MiB   VmRSS %7.2f MiB   %5d descriptors" % (
            program.name, moment, private / MIB, resident / MIB, proc.descriptors(program.pid)))
    sys.stdout.flush()


def settled(running):
    """Waits until the memory of no program changes any more."""
    last = []

    def still():
        now = [proc.private_bytes(program.pid) for program in running]
        same = last == [now]
        last[:] = [now]
        return same

    wait.until(lambda: still() and still() and still(), 20, "a steady size")


def fallen(running, figures):
    """Waits until what the connections cost has gone back to the system, within a few seconds."""
    def has():
        return all(proc.private_bytes(program.pid) <
                   figures[program.name]["after start"] + BACK_WITHIN for program in running)

    wait.until(has, 15, "memory near that of the start")


def start_local(options, common):
    """ss-server and ss-local on loopback; what dials the target."""
    server_port, local_port = ports.free_port(), ports.free_port()
    server = programs.Program(
        [programs.find(options.bin, "ss-server"), "-s", "127.0.0.1", "-p", server_port, *common])
    local = programs.Program(
        [programs.find(options.bin, "ss-local"), "-s", "127.0.0.1", "-p", server_port, "-l",
         local_port, *common])
    running = [server.await_listening(server_port), local.await_listening(local_port)]
    target = targets.EchoLoop()
    return running, lambda: socks.connect(local_port, target.address)


def start_redir(options, common):
    """The same with ss-redir on a router, which relays UDP as well."""
    try:
        rig = router.Router()
    except unittest.SkipTest as error:
        print("SKIPPED: %s" % error)
        sys.exit(77)
    port = ports.free_port()
    rig.nft("""
table ip r {
	chain nat {
		type nat hook prerouting priority dstnat; policy accept;
		iifname "lan0" meta l4proto tcp redirect to :%d
	}
}
""" % port)
    server = programs.Program(
        [programs.find(options.bin, "ss-server"), "-s", router.SERVER, "-p", "8388", *common],
        prepare=rig.prepare(rig.internet))
    redir = programs.Program(
        [programs.find(options.bin, "ss-redir"), "-s", router.SERVER, "-p", "8388", "-l", port,
         "-b", "0.0.0.0", "-u", *common])
    server.await_log("listening at")
    redir.await_listening(port)
    with rig.inside(rig.internet):
        target = targets.EchoLoop("0.0.0.0")
    netns.move(rig.client)
    return [server, redir], lambda: socks.dial(router.HOST, target.port)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--redir", action="store_true")
    parser.add_argument("--workers", default="1")
    parser.add_argument("--method", default="aes-256-gcm")
    parser.add_argument("--limit-start", type=float)
    parser.add_argument("--limit-idle", type=float)
    parser.add_argument("--extra", default="", help="further options for both programs")
    options = parser.parse_args()
    if programs.sanitizer(programs.find(options.bin, "ss-server")):
        print("SKIPPED: memory says nothing in a sanitizer build")
        sys.exit(77)

    # A session has two descriptors here as in each program.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    needed = 2 * options.connections + 1000
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(hard, needed), max(hard, needed)))
        hard = max(hard, needed)
    except (ValueError, PermissionError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard < needed:
        print("SKIPPED: only %d descriptors are allowed" % hard)
        sys.exit(77)

    common = ["-k", PASSWORD, "-m", options.method, "--workers", options.workers]
    common += options.extra.split()
    running, dial = (start_redir if options.redir else start_local)(options, common)
    figures = {}

    settled(running)
    show("after start", running, figures)
    held = []
    for number in range(options.connections):
        conn = dial()
        text = b"connection %d" % number
        conn.sendall(text)
        if socks.receive(conn, len(text)) != text:
            raise AssertionError("no echo")
        held.append(conn)
    settled(running)
    show("%d idle" % options.connections, running, figures)
    for conn in held:
        conn.close()
    for program in running:
        wait.until(lambda: not proc.tcp_connections(program.pid), 30, "the end of the connections")
    fallen(running, figures)
    show("closed again", running, figures)
    for program in running:
        program.stop()

    failed = False
    for name, by_moment in figures.items():
        for moment, limit in (("after start", options.limit_start),
                              ("%d idle" % options.connections, options.limit_idle)):
            if limit is not None and by_moment[moment] > limit * MIB:
                print("%s: %.2f MiB %s, the limit is %g" % (
                    name, by_moment[moment] / MIB, moment, limit))
                failed = True
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
