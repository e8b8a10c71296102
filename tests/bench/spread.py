#!/usr/bin/env python3
"""How evenly the workers of ss-server share connections: CPU and bytes of each of its threads.

    spread.py --bin build/bin [--workers 2] [--streams 10,100,1000] [--seconds 2]

Many streams at once are relayed downwards (tcp_load -> ss-tunnel -> ss-server -> tcp_load).
"""

import argparse
import os

import compare
from support import programs

METHOD = "2022-blake3-aes-256-gcm"


def threads(pid):
    """{thread: (ticks of CPU, bytes that it has read)}"""
    found = {}
    for thread in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/stat" % (pid, thread)) as file:
            fields = file.read().rsplit(")", 1)[1].split()
        with open("/proc/%d/task/%s/io" % (pid, thread)) as file:
            read = int(file.readline().split()[1])
        found[thread] = (int(fields[11]) + int(fields[12]), read)
    return found


def measure(options, streams):
    options.streams = streams
    loads = compare.Loads(options)
    chain = None
    try:
        chain = compare.shadowsocks("ours", options.bin, METHOD, loads.port,
                                    ["--workers", str(options.workers)],
                                    programs.key_for(options.bin, METHOD))
        before = threads(chain.back.pid)
        loads.run(chain, down=True)
        after = threads(chain.back.pid)
    finally:
        if chain is not None:
            chain.stop()
        loads.process.kill()
    return [tuple(now - then for now, then in zip(after[thread], before[thread]))
            for thread in sorted(after, key=int) if thread in before]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--streams", default="10,100,1000")
    parser.add_argument("--seconds", type=int, default=2)
    options = parser.parse_args()
    options.load = "streams"
    for streams in options.streams.split(","):
        shares = measure(options, int(streams))
        total = [sum(column) or 1 for column in zip(*shares)]
        print("%5s streams: %s" % (streams, "; ".join(
            "%.0f%% of the CPU, %.0f%% of the bytes" % (100 * cpu / total[0], 100 * read / total[1])
            for cpu, read in shares)))


if __name__ == "__main__":
    main()
