#!/usr/bin/env python3
"""probe.py against a server of ours that is started for it; with --red it has to find the leak.

    run_probe.py --bin build/bin --method aes-256-gcm
    run_probe.py --bin build/bin --method 2022-blake3-aes-128-gcm --users     identity headers
    run_probe.py --bin build/bin --method 2022-blake3-aes-128-gcm --relay     one that passes on
    run_probe.py --bin build/bin --method aes-256-gcm --udp                   datagrams
    run_probe.py --server build/leaky/ss-server-leaky --method aes-256-gcm --red

Whatever else is given goes to probe.py (--full, --timing). The status is 77 when the build is
without the method.
"""

import argparse
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import interop_peers  # noqa: E402
from support import peers, ports, programs  # noqa: E402

HANDSHAKE_S = 3


class Server(peers.Ours):
    programs = ("ss-server",)

    def server_command(self, server):
        return [*super().server_command(server), "--handshake-timeout", HANDSHAKE_S]


class OneProgram(Server):
    def __init__(self, path):
        super().__init__(os.path.dirname(os.path.abspath(path)))
        self.program = path

    def path(self, program):
        return self.program


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin")
    parser.add_argument("--server", help="the program itself")
    parser.add_argument("--method", required=True)
    parser.add_argument("--users", action="store_true")
    parser.add_argument("--relay", action="store_true")
    parser.add_argument("--udp", action="store_true")
    parser.add_argument("--red", action="store_true")
    options, rest = parser.parse_known_args()

    ours = OneProgram(options.server) if options.server else Server(options.bin)
    key = interop_peers.new_key(options.method)
    users = tuple(interop_peers.new_key(options.method) for _ in range(3)) if options.users else ()
    port = ports.free_port()
    chain, behind, relayed = [key, *users[1:2]], None, ()
    try:
        if options.relay:
            next_key, user, next_port = *(interop_peers.new_key(options.method) for _ in range(2)), \
                ports.free_port()
            behind = ours.serve(peers.Server(options.method, next_key, next_port, users=(user,),
                                             udp=options.udp))
            chain, relayed = [key, next_key, user], ((next_key, next_port),)
        server = ours.serve(peers.Server(options.method, key, port, users=users, relayed=relayed,
                                         udp=options.udp))
    except peers.NotOffered:
        print("SKIPPED: this build is without %s" % options.method)
        sys.exit(77)
    expected = "reset" if options.method.startswith("2022-") else "drain"
    how = ("--udp", "--pid", str(server.pid)) if options.udp else ("--expect", expected)
    if options.udp and options.relay:
        how += ("--passes-on",)
    run = subprocess.run(
        [sys.executable, os.path.join(os.path.dirname(HERE), "probe.py"),
         "--server", "127.0.0.1:%d" % port, "--method", options.method, "--key", ":".join(chain),
         *(how if options.udp or not options.red else ()), *rest],
        stdout=subprocess.PIPE, text=True)
    print(run.stdout)
    for program in (server, behind):
        if program and not program.alive:
            program.fail("ended with %s" % program.process.returncode)
        if program and program.stop() != 0:
            program.fail("ended with an error")
    if options.red:
        says = "some had consequences" if options.udp else "causes can be told apart"
        found = run.returncode == 1 and says in run.stdout
        print("the leak is %s" % ("found" if found else "NOT found"))
        sys.exit(0 if found else 1)
    sys.exit(run.returncode)


if __name__ == "__main__":
    main()
