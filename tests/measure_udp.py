#!/usr/bin/env python3
"""UDP through ss-local -> ss-server: packets a second, and CPU microseconds a packet.

    measure_udp.py --bin build/bin [--output FILE] [--peer shadowsocks-libev]... [--rounds 5]
                   [--methods aes-256-gcm,...] [--rate 15000 --burst 150]

Three loads, each echoed: 2,000 packets of 1,200 bytes one by one through UDP ASSOCIATE (a window of
one, so mostly the round trip), the same with a window that keeps the relays busy, and a paced one of
bursts. The client is ours before each server, the servers take turns, and medians of the rounds are
compared. A packet is one on the way up and its answer on the way down; CPU is user and system time of
the process, divided by those that came back.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import peers, ports, proc, programs, udp, wait  # noqa: E402

METHODS = "aes-256-gcm,chacha20-ietf-poly1305,2022-blake3-aes-128-gcm,2022-blake3-aes-256-gcm"
SIZE = 1200


class Chain:
    """Our ss-local before a server; ours has one worker."""

    def __init__(self, server, ours, method, key, target):
        self.name, self.target = server.name, target
        self.figures = {}
        port, self.entry = ports.free_port(), ports.free_port()
        self.back = server.serve(peers.Server(method, key, port))
        self.front = ours.connect(peers.Client(method, (key,), port, self.entry))
        self.associate = udp.Associate(self.entry)

    def stop(self):
        self.associate.close()
        self.front.kill()
        self.back.kill()


def run_load(options, chain, load):
    prefix = udp.frame(("127.0.0.1", chain.target), b"").hex()
    command = [os.path.join(options.bin, "udp_load"), "--to", str(chain.entry), "--size", str(SIZE),
               "--prefix", prefix, *load]
    before = [proc.cpu_seconds(program.pid) for program in (chain.front, chain.back)]
    made = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if made.returncode != 0:
        sys.exit("%s: %s" % (chain.name, made.stderr))
    after = [proc.cpu_seconds(program.pid) for program in (chain.front, chain.back)]
    result = json.loads(made.stdout)
    came = max(result["received"], 1)
    result["packets_per_second"] = result["received"] / result["seconds"]
    result["lost"] = 1 - result["received"] / result["sent"]
    result["client_us"], result["server_us"] = [
        (end - start) / came * 1e6 for start, end in zip(before, after)]
    return result


def median(results, what):
    return statistics.median(result[what] for result in results)


def measure(options, method, target, output):
    ours = peers.Ours(options.bin, workers=1)
    key = programs.key_for(options.bin, method)
    chains = []
    try:
        chains.append(Chain(ours, ours, method, key, target))
        for peer in (kind() for kind in peers.OTHERS if kind.name in options.peer):
            if not peer.there() or not peer.offers("server", method):
                print("%s: %s" % (peer.name, "does not offer " + method if peer.there() else
                                  "SKIPPED, it is not here (%s)" % peer.package))
                continue
            chains.append(Chain(peer, ours, method, key, target))
        loads = {
            "one by one": ["--count", "2000", "--window", "1"],
            "windowed": ["--count", str(options.count), "--window", str(options.window)],
            "paced": ["--count", str(options.count), "--rate", str(options.rate), "--burst",
                      str(options.burst)],
        }
        for name, load in loads.items():
            for _ in range(options.rounds):
                for chain in chains:
                    chain.figures.setdefault(name, []).append(run_load(options, chain, load))
        for name in loads:
            print("\n%s, %s" % (method, name))
            print("%-18s %10s %7s %13s %13s   %s" % ("server", "packets/s", "lost", "client us/pkt",
                                                     "server us/pkt", "ours / it, server CPU"))
            for chain in chains:
                results = chain.figures[name]
                line = "%-18s %10.0f %6.2f%% %13.2f %13.2f" % (
                    chain.name, median(results, "packets_per_second"),
                    100 * median(results, "lost"), median(results, "client_us"),
                    median(results, "server_us"))
                if chain is not chains[0] and median(results, "server_us"):
                    line += "   %.3f" % (median(chains[0].figures[name], "server_us") /
                                         median(results, "server_us"))
                print(line)
                output.append({"method": method, "load": name, "server": chain.name,
                               "rounds": results})
            sys.stdout.flush()
    finally:
        for chain in chains:
            chain.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--output", help="raw figures as JSON")
    parser.add_argument("--peer", action="append", default=[],
                        choices=[kind.name for kind in peers.OTHERS])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=60000)
    parser.add_argument("--window", type=int, default=128)
    parser.add_argument("--rate", type=int, default=15000)
    parser.add_argument("--burst", type=int, default=150)
    parser.add_argument("--methods", default=METHODS)
    options = parser.parse_args()

    target = ports.free_port()
    echo = programs.Program([os.path.join(options.bin, "udp_load"), "--echo", target])
    output = []
    try:
        wait.until(lambda: target in proc.udp_ports(echo.pid), 20, "the echo")
        for method in options.methods.split(","):
            measure(options, method, target, output)
    finally:
        echo.kill()
    if options.output:
        with open(options.output, "w") as file:
            json.dump({"size": SIZE, "results": output}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
