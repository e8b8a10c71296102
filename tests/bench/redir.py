#!/usr/bin/env python3
"""One TCP stream through ss-redir, side by side with two null relays.

    redir.py --bin build/bin [--peer libev=/usr/bin] [--methods aes-256-gcm] [--direction both]

Three network namespaces stand for client, router and internet, with links of 1,500 bytes. The way of
the bytes is iperf3 -> ss-redir -> ss-server -> iperf3 -s, redirected on the router by REDIRECT (or
TPROXY with --tproxy), and iperf3 -> null_relay -> null_relay -> iperf3 -s for the null chain. The
chains take turns; medians and ratios are those of compare.py.
"""

import argparse
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import compare  # noqa: E402
from support import ports, programs, router  # noqa: E402

RULES = """
table ip r {
	chain nat {
		type nat hook prerouting priority dstnat; policy accept;
		%s
	}
	chain pre {
		type filter hook prerouting priority mangle; policy accept;
		%s
	}
}
"""


class Redirected(compare.Chain):
    """The rules lead to the chain that has its turn."""

    def __init__(self, rig, tproxy, port, *arguments):
        super().__init__(*arguments, host=router.HOST)
        match = 'iifname "lan0" meta l4proto tcp '
        way = ("tproxy to :%d meta mark set 1 accept" if tproxy else "redirect to :%d") % port
        self._rig, self._rules = rig, RULES % (("", match + way) if tproxy else (match + way, ""))

    def take_turn(self):
        self._rig.nft(self._rules)


def redirected(rig, name, directory, method, target, options, extra=()):
    server, port = ports.free_port(), ports.free_port()
    key = programs.key_for(options.bin, method)
    back = programs.Program(
        [programs.find(directory, "ss-server"), "-s", router.SERVER, "-p", server, "-k", key, "-m",
         method, *extra], prepare=rig.prepare(rig.internet))
    front = programs.Program(
        [programs.find(directory, "ss-redir"), "-s", router.SERVER, "-p", server, "-l", port, "-b",
         "0.0.0.0", "-k", key, "-m", method, *(["-T"] if options.tproxy else []), *extra])
    back.await_log("listening at")
    front.await_listening(port)
    return Redirected(rig, options.tproxy, port, name, front, back, target)


def null(rig, name, path, target, extra=()):
    middle, entry = ports.free_port(), ports.free_port()
    back = programs.Program(
        [path, "--listen", middle, "--bind", router.SERVER, "--target",
         "%s:%d" % (router.HOST, target), *extra], prepare=rig.prepare(rig.internet))
    back.await_log("listening at")
    front = programs.Program(
        [path, "--listen", entry, "--bind", router.LAN, "--target",
         "%s:%d" % (router.SERVER, middle), *extra])
    front.await_log("listening at")
    return compare.Chain(name, front, back, entry, router.LAN)


def measure(rig, options, method, direction, iperf):
    relay = os.path.join(options.bin, "null_relay")
    chains = []
    try:
        chains.append(redirected(rig, "ours", options.bin, method, iperf.port, options,
                                 ["--workers", str(options.workers)]))
        chains.append(null(rig, "null", relay, iperf.port))
        chains.append(null(rig, "model", relay, iperf.port, ["--aead", method]))
        for peer in options.peer:
            name, _, directory = peer.partition("=")
            chains.append(redirected(rig, name, directory, method, iperf.port, options))
        for _ in range(options.rounds):
            for chain in chains:
                subprocess.run(["nft", "flush", "ruleset"], check=True)
                if isinstance(chain, Redirected):
                    chain.take_turn()
                with rig.inside(rig.client):
                    chain.rounds.append(compare.one_round(chain, iperf, options.seconds,
                                                          direction == "down", 1))
    finally:
        for chain in chains:
            chain.stop()
    compare.table(method, direction, chains)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of our programs and null_relay")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=DIR")
    parser.add_argument("--methods", default="aes-128-gcm,aes-256-gcm,chacha20-ietf-poly1305")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--direction", choices=("up", "down", "both"), default="up")
    parser.add_argument("--tproxy", action="store_true")
    options = parser.parse_args()

    load = os.getloadavg()[0]
    if load > 0.5:
        print("note: the load of this machine is %.1f before the first run; others count in" % load)
    try:
        rig = router.Router()
    except unittest.SkipTest as error:
        sys.exit("three network namespaces are needed: %s" % error)
    for words in ("rule add fwmark 1 table 100", "route add local 0.0.0.0/0 dev lo table 100"):
        rig.ip(rig.router, words)
    iperf = compare.Iperf(router.HOST, prepare=rig.prepare(rig.internet))
    try:
        for method in options.methods.split(","):
            for direction in ("up", "down"):
                if options.direction in (direction, "both"):
                    measure(rig, options, method, direction, iperf)
    except compare.Failed as error:
        sys.exit(str(error))
    finally:
        iperf.process.kill()


if __name__ == "__main__":
    main()
