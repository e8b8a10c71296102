#!/usr/bin/env python3
"""TCP throughput and CPU cost of a chain of two relays, side by side.

    compare.py --bin build/bin --peer libev=/usr/bin [--json docs/measurements/NAME.json]
    compare.py --bin build/bin --server shadowsocks-rust --server shadowsocks-go [--single]
    compare.py --bin build/bin --load streams --streams 100 | --load small --write 1400 | --load short

The way of the bytes is iperf3 -> ss-tunnel -> ss-server -> iperf3 -s for ours and for each peer,
iperf3 -> null_relay -> null_relay -> iperf3 -s for the null chain, and the same with
`--aead METHOD` for the cost model. With the method none there is our chain once more, to which
splice is refused. A --server is another implementation behind our ss-tunnel; --single gives each
one thread. The other loads are those of tcp_load: many streams, small writes, and short
connections, for which "GB" reads "million connections".

The chains take turns, each round begun by another one. What is printed is the median of the rounds,
and of a ratio the median of the rounds' ratios, in which it does not count that the whole machine
was slower in one round than in another. CPU seconds are user and system time of the one process, per
10^9 bytes of payload. Ratios above 1 in throughput, and below 1 in CPU, are in our favour.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import peers, ports, proc, programs  # noqa: E402

PASSWORD = "barfoo!"
METHODS = "aes-128-gcm,aes-256-gcm,chacha20-ietf-poly1305"


class Failed(Exception):
    pass


class Chain:
    """client-side relay -> server-side relay -> target; it begins at port `entry` of `host`."""

    def __init__(self, name, front, back, entry, host="127.0.0.1"):
        self.name, self.front, self.back = name, front, back
        self.entry, self.host = entry, host
        self.rounds = []

    def stop(self):
        for program in (self.front, self.back):
            program.kill()


def shadowsocks(name, directory, method, target, extra=(), key=PASSWORD, env=None):
    server, entry = ports.free_port(), ports.free_port()
    back = programs.Program(
        [programs.find(directory, "ss-server"), "-s", "127.0.0.1", "-p", server, "-k", key,
         "-m", method, *extra], env=env).await_listening(server)
    front = programs.Program(
        [programs.find(directory, "ss-tunnel"), "-s", "127.0.0.1", "-p", server, "-l", entry, "-L",
         "127.0.0.1:%d" % target, "-k", key, "-m", method, *extra],
        env=env).await_listening(entry)
    return Chain(name, front, back, entry)


def behind_ours(peer, directory, method, target, options):
    """Another server, with our client in front."""
    server, entry = ports.free_port(), ports.free_port()
    key = programs.key_for(directory, method)
    back = peer.serve(peers.Server(method, key, server, udp=False))
    front = programs.Program(
        [programs.find(directory, "ss-tunnel"), "-s", "127.0.0.1", "-p", server, "-l", entry, "-L",
         "127.0.0.1:%d" % target, "-k", key, "-m", method, "--workers",
         str(options.workers)]).await_listening(entry)
    return Chain(peer.name, front, back, entry)


def null(name, path, target, extra=()):
    middle, entry = ports.free_port(), ports.free_port()
    back = programs.Program([path, "--listen", middle, "--target", "127.0.0.1:%d" % target, *extra])
    back.await_listening(middle)
    front = programs.Program([path, "--listen", entry, "--target", "127.0.0.1:%d" % middle, *extra])
    return Chain(name, front.await_listening(entry), back, entry)


class Iperf:
    """The server at the end of every chain; it says "listening" anew after each run."""

    def __init__(self, host="127.0.0.1", **how):
        self.port = ports.free_port()
        self.runs = 0
        self.process = programs.Program(
            ["iperf3", "-s", "-p", self.port, "-B", host, "--forceflush"], **how)
        self.await_ready()

    def await_ready(self):
        self.runs += 1
        self.process.await_log("Server listening", 30, self.runs)


class Loads:
    """The same for the loads of tcp_load."""

    def __init__(self, options):
        self.path = os.path.join(options.bin, "tcp_load")
        self.port = ports.free_port()
        self.process = programs.Program([self.path, "--serve", self.port])
        self.process.await_listening(self.port)
        self.options = options

    def run(self, chain, down):
        options = self.options
        load = "short" if options.load == "short" else "down" if down else "up"
        command = [self.path, "--to", chain.entry, "--load", load, "--streams", options.streams,
                   "--seconds", options.seconds]
        if options.load == "small":
            command += ["--write", options.write]
        made = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              timeout=options.seconds * 4 + 60)
        if made.returncode != 0:
            raise Failed("%s: %s" % (chain.name, made.stderr))
        result = json.loads(made.stdout)
        # Short connections are counted, in thousands as if each were a kilobyte.
        count = result["connections"] * 1000 if load == "short" else result["bytes"]
        return count, count / result["seconds"]


def one_round(chain, iperf, seconds, down, streams):
    if isinstance(iperf, Loads):
        before = [proc.cpu_seconds(program.pid) for program in (chain.front, chain.back)]
        received, rate = iperf.run(chain, down)
        return costs_of(chain, before, received, rate)
    before = [proc.cpu_seconds(program.pid) for program in (chain.front, chain.back)]
    command = ["iperf3", "-c", chain.host, "-p", str(chain.entry), "-t", str(seconds), "-J",
               "-P", str(streams)]
    run = subprocess.run(command + (["-R"] if down else []), capture_output=True, text=True,
                         timeout=seconds * 4 + 30)
    iperf.await_ready()
    try:
        result = json.loads(run.stdout)
        received = result["end"]["sum_received"]["bytes"]
        rate = result["end"]["sum_received"]["bits_per_second"] / 8
    except (ValueError, KeyError):
        raise Failed("%s: iperf3 says %s" % (chain.name, run.stdout + run.stderr))
    return costs_of(chain, before, received, rate)


def costs_of(chain, before, received, rate):
    after = [proc.cpu_seconds(program.pid) for program in (chain.front, chain.back)]
    costs = [(end - start) / received * 1e9 for start, end in zip(before, after)]
    return {"bytes": received, "bytes_per_second": rate, "front_cpu_s_per_gb": costs[0],
            "back_cpu_s_per_gb": costs[1]}


def median(chain, what):
    return statistics.median(entry[what] for entry in chain.rounds)


def spread(chain, what):
    values = [entry[what] for entry in chain.rounds]
    return (max(values) - min(values)) / statistics.median(values)


def ratio(ours, other, what):
    """Ours to another in the same round: the median over the rounds."""
    return statistics.median(one[what] / two[what] if two[what] else float("nan")
                             for one, two in zip(ours.rounds, other.rounds))


def table(method, direction, chains):
    ours = chains[0]
    print("\n%s, %s" % (method, direction))
    print("%-18s %8s %7s  %11s %11s   %s" % (
        "chain", "GB/s", "spread", "client s/GB", "server s/GB",
        "ours/it: speed, client CPU, server CPU"))
    for chain in chains:
        speed = median(chain, "bytes_per_second")
        front, back = median(chain, "front_cpu_s_per_gb"), median(chain, "back_cpu_s_per_gb")
        line = "%-18s %8.3f %6.0f%%  %11.3f %11.3f" % (
            chain.name, speed / 1e9, 100 * spread(chain, "bytes_per_second"), front, back)
        if chain is not ours:
            line += "   %6.3f %6.3f %6.3f" % (
                ratio(ours, chain, "bytes_per_second"),
                ratio(ours, chain, "front_cpu_s_per_gb"), ratio(ours, chain, "back_cpu_s_per_gb"))
        print(line)
    sys.stdout.flush()


def measure(options, method, direction, iperf):
    target = iperf.port
    relay = options.null or os.path.join(options.bin, "null_relay")
    chains = []
    try:
        ours = ["--workers", str(options.workers)]
        chains.append(shadowsocks("ours", options.bin, method, target, ours,
                                  programs.key_for(options.bin, method)))
        shim = os.path.join(options.bin, "..", "lib", "libss_splice_fault.so")
        if method == "none" and os.path.exists(shim):
            chains.append(shadowsocks("ours, copying", options.bin, method, target, ours,
                                      env={"LD_PRELOAD": shim, "SS_SPLICE_FAULT": "source"}))
        if os.path.exists(relay):
            chains.append(null("null", relay, target))
            if not method.startswith("2022-") and method != "none":
                chains.append(null("model", relay, target, ["--aead", method]))
        for name in options.server:
            peer = next(kind for kind in peers.OTHERS if kind.name == name)()
            if not peer.there() or not peer.offers("server", method):
                print("%s: SKIPPED, %s" % (name, "it does not offer " + method if peer.there()
                                           else "it is not here (%s)" % peer.package))
                continue
            peer.single = options.single
            chains.append(behind_ours(peer, options.bin, method, target, options))
        for peer in options.peer:
            name, _, directory = peer.partition("=")
            chains.append(shadowsocks(name, directory, method, target,
                                      key=programs.key_for(options.bin, method)))
        for turn in range(options.rounds):
            first = turn % len(chains)
            for chain in chains[first:] + chains[:first]:
                chain.rounds.append(one_round(
                    chain, iperf, options.seconds, direction == "down", options.streams))
    finally:
        for chain in chains:
            chain.stop()
    table(method, direction, chains)
    return [{"method": method, "direction": direction, "chain": chain.name,
             "rounds": chain.rounds} for chain in chains]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of our programs and null_relay")
    parser.add_argument("--null", help="null_relay, when it is not in --bin")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=DIR")
    parser.add_argument("--server", action="append", default=[],
                        choices=[kind.name for kind in peers.OTHERS])
    parser.add_argument("--single", action="store_true", help="one thread a server")
    parser.add_argument("--load", choices=("bulk", "streams", "small", "short"), default="bulk")
    parser.add_argument("--write", type=int, default=1400, help="bytes a write, of --load small")
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--streams", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--direction", choices=("up", "down", "both"), default="up")
    parser.add_argument("--json", help="raw figures; kept ones are in docs/measurements/")
    options = parser.parse_args()

    load = os.getloadavg()[0]
    if load > 0.5:
        print("note: the load of this machine is %.1f before the first run; others count in" % load)
    iperf = Iperf() if options.load == "bulk" else Loads(options)
    results = []
    try:
        for method in options.methods.split(","):
            for direction in ("up", "down"):
                if options.direction in (direction, "both"):
                    results += measure(options, method, direction, iperf)
    except Failed as error:
        sys.exit(str(error))
    finally:
        iperf.process.kill()
    if options.json:
        cpu = ""
        with open("/proc/cpuinfo") as file:
            cpu = next((line.split(":", 1)[1].strip() for line in file
                        if line.startswith("model name")), "")
        with open(options.json, "w") as file:
            json.dump({"machine": {"processor": cpu, "cores": os.cpu_count(),
                                   "kernel": platform.release(), "load_before": load},
                       "rounds": options.rounds, "seconds": options.seconds,
                       "load": options.load, "write": options.write,
                       "streams": options.streams, "workers": options.workers,
                       "results": results}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
