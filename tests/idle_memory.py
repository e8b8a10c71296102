#!/usr/bin/env python3
"""Memory of the programs with idle connections, and after a burst.

    idle_memory.py --bin build/bin --connections 1000 [--workers 1] [--method aes-256-gcm] [--json FILE]
    idle_memory.py --bin build/bin --connections 9500 1000 --peers
    idle_memory.py --bin build/bin --redir            # ss-redir, between network namespaces

Each connection echoes a little and then stays; clients and targets are in processes of their own.
Printed are private bytes (RssAnon + RssShmem) and VmRSS after the start, with the connections open,
after they have closed, and after a burst of --burst connections that move a MiB each. ss-server is
measured behind ss-local and behind ss-tunnel. The exit status is 1 when memory does not fall back to near
that of the start, a connection fails or ends, or a program is above --limit-start, --limit-idle or
--limit-rss (MiB; private, private and VmRSS with the connections open). --peers sets the servers of
other implementations beside ours, those that are here, one thread each where that can be told.
"""

import argparse
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import crowd, netns, peers, ports, proc, programs, router, wait  # noqa: E402

MIB = 1 << 20
# MiB above the start, once they have closed. What stays is bounded: the scratch that bulk has touched (0.5 MiB),
# slots that are kept for the next, blocks among them, and the salts that were seen. More bursts add nothing.
BACK_WITHIN = 2.5
BURST_SIZE = MIB
SPARE = 300  # connections that the programs are to take besides: those of a burst among them
LOOPBACK = "127.0.0.1"


def memory(program):
    return {"private": round(proc.private_bytes(program.pid) / MIB, 2),
            "rss": round(proc.resident_bytes(program.pid) / MIB, 2)}


def settled(running):
    """Waits until the memory of no program changes any more."""
    last = []

    def still():
        now = [proc.private_bytes(program.pid) for program in running]
        same = last == [now]
        last[:] = [now]
        return same

    wait.until(lambda: still() and still() and still(), 30, "a steady size")


class Chain:
    """Programs with a way from `entry` (and `target`, where it is SOCKS5) to an echo. Measured are
    those in `measured`."""

    def __init__(self, running, measured, echo, entry, target=None, prepare=None):
        self.running, self.measured, self.echo = running, measured, echo
        self.figures = {program.name: {} for program in measured}
        self.problems = []
        if prepare:
            prepare()
        self.clients = crowd.Crowd(entry, target)

    def show(self, moment):
        for program in self.measured:
            found = memory(program)
            self.figures[program.name][moment] = found
            print("%-16s %-14s private %7.2f MiB   VmRSS %7.2f MiB" % (
                program.name, moment, found["private"], found["rss"]))
        sys.stdout.flush()

    def fallen(self, moment, bound):
        """Once what the connections cost has gone back to the system, within a few seconds."""
        def near(program):
            return memory(program)["private"] < (self.figures[program.name]["start"]["private"] +
                                                 BACK_WITHIN)

        crowd.settle(self.measured)
        if bound:
            try:
                wait.until(lambda: all(near(program) for program in self.measured), 15)
            except wait.Timeout:
                self.problems.append("memory does not fall back: " + moment)
        else:
            settled(self.measured)
        self.show(moment)

    def measure(self, counts, burst, bound=True):
        settled(self.measured)
        self.show("start")
        for count in counts:
            self.clients.open(count)
            settled(self.measured)
            self.show("%d idle" % count)
            ended = self.clients.ended()
            if ended:
                self.problems.append("%d of %d idle connections ended" % (ended, count))
            self.clients.close()
            self.fallen("after %d" % count, bound)
        if burst:
            self.clients.burst(burst, BURST_SIZE)
            self.fallen("after a burst", bound)

    def end(self):
        self.clients.end()
        for program in self.running:
            program.stop()
        self.echo.close()


def common(options, key):
    return ["-k", key, "-m", options.method, "--workers", options.workers, "--max-connections",
            max(options.connections) + SPARE, *options.extra.split()]


def start(options, name, port, *arguments, **how):
    return programs.Program([programs.find(options.bin, name), *arguments],
                            **how).await_listening(port)


def through(options, client):
    """ss-server behind ss-local or ss-tunnel, on loopback."""
    words = common(options, programs.key_for(options.bin, options.method))
    server, entry, echo = ports.free_port(), ports.free_port(), crowd.Echo()
    running = [start(options, "ss-server", server, "-s", LOOPBACK, "-p", server, *words)]
    to = ["-L", "%s:%d" % echo.address] if client == "ss-tunnel" else []
    running.append(start(options, client, entry, "-s", LOOPBACK, "-p", server, "-l", entry, *to,
                         *words))
    return Chain(running, running, echo, (LOOPBACK, entry), None if to else echo.address)


def redirected(options):
    """ss-redir on a router, which relays UDP as well."""
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
    words = common(options, programs.key_for(options.bin, options.method))
    server = programs.Program(
        [programs.find(options.bin, "ss-server"), "-s", router.SERVER, "-p", "8388", *words],
        prepare=rig.prepare(rig.internet))
    server.await_log("listening at")
    redir = start(options, "ss-redir", port, "-s", router.SERVER, "-p", "8388", "-l", port, "-b",
                  "0.0.0.0", "-u", *words)
    with rig.inside(rig.internet):
        echo = crowd.Echo("0.0.0.0")
    return Chain([server, redir], [server, redir], echo, (router.HOST, echo.port),
                 prepare=lambda: netns.move(rig.client))


def beside(options, peer, method, server_of=None):
    """A server of another implementation, or ours, behind our ss-local, which is not measured."""
    key = programs.key_for(options.bin, method)
    server, entry, echo = ports.free_port(), ports.free_port(), crowd.Echo()
    program = peer.serve(peers.Server(method, key, server, udp=False))
    local = start(options, "ss-local", entry, "-s", LOOPBACK, "-p", server, "-l", entry, "-k", key,
                  "-m", method, "--max-connections", max(options.connections) + SPARE)
    program.name = peer.name
    return Chain([local, program], [program], echo, (LOOPBACK, entry), echo.address)


def compare_peers(options):
    """{method: {name: figures}}, with 1,000 idle connections."""
    found = {}
    for method in ("aes-256-gcm", "2022-blake3-aes-256-gcm"):
        print("-- %s, servers" % method)
        ours = peers.Ours(options.bin, workers=1)
        for peer in [ours] + [kind() for kind in peers.OTHERS]:
            peer.single = True
            if not peer.there():
                print("%s: SKIPPED, it is not here (%s)" % (peer.name, peer.package))
                continue
            if not peer.offers("server", method):
                continue
            chain = beside(options, peer, method)
            try:
                chain.measure([1000], options.burst, bound=peer is ours)
            finally:
                chain.end()
            found.setdefault(method, {}).update(chain.figures)
        base = found[method]["ours"]
        for name, figures in found[method].items():
            print("%-18s private, of ours: %s" % (name, ", ".join(
                "%s %.1f" % (moment, value["private"] / base[moment]["private"])
                for moment, value in figures.items())))
    return found


def above(options, figures):
    """Which limits are passed."""
    for name, by_moment in figures.items():
        for moment, found in by_moment.items():
            idle = moment.endswith(" idle")
            for kind, limit in (("private", options.limit_start if moment == "start" else None),
                                ("private", options.limit_idle if idle else None),
                                ("rss", options.limit_rss if idle else None)):
                if limit is not None and found[kind] > limit:
                    yield "%s: %.2f MiB %s, %s; the limit is %g" % (name, found[kind], kind, moment,
                                                                   limit)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--connections", type=int, nargs="+", default=[1000])
    parser.add_argument("--redir", action="store_true")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--workers", default="1")
    parser.add_argument("--method", default="aes-256-gcm")
    parser.add_argument("--burst", type=int, default=200)
    parser.add_argument("--limit-start", type=float)
    parser.add_argument("--limit-idle", type=float)
    parser.add_argument("--limit-rss", type=float)
    parser.add_argument("--extra", default="", help="further options for both programs")
    parser.add_argument("--json")
    options = parser.parse_args()
    if programs.sanitizer(programs.find(options.bin, "ss-server")):
        print("SKIPPED: memory says nothing in a sanitizer build")
        sys.exit(77)
    hard, most = crowd.raise_descriptors(), max(options.connections)
    # A relay has two for each, a few more for dials that race, and a reserve; ss-redir some for UDP.
    reserve = 1700 if options.redir else 300
    if hard < most * 33 // 16 + reserve:
        print("SKIPPED: %d connections take a relay's 2 descriptors each and some more; the hard limit "
              "of a process (ulimit -Hn) is %d here, enough for %d"
              % (most, hard, (hard - reserve) * 16 // 33))
        sys.exit(77)

    problems, output = [], {"method": options.method, "workers": options.workers, "unit": "MiB"}
    makers = {"ss-redir": redirected} if options.redir else {
        name: lambda options, name=name: through(options, name) for name in ("ss-local",
                                                                            "ss-tunnel")}
    for name, make in makers.items():
        print("-- through %s" % name)
        chain = make(options)
        try:
            chain.measure(options.connections, options.burst)
        finally:
            chain.end()
        problems += ["through %s: %s" % (name, problem)
                     for problem in [*chain.problems, *above(options, chain.figures)]]
        output["through " + name] = chain.figures
    if options.peers:
        output["peers"] = compare_peers(options)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(output, file, indent=1)
            file.write("\n")
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
