#!/usr/bin/env python3
"""A ceiling on memory: idle connections and bulk flows under `max_memory`.

    ceiling.py --bin build/bin [--idle 9000] [--flows 50] [--seconds 60] [--limit 64] [--json FILE]
               [--cgroup MIB]

The clients of the bulk flows are slow readers, so that what may wait does wait; clients and target of
the idle connections are in processes of their own. Private bytes of both programs are sampled each
second; the exit status is 1 when one is above the limit (MiB), a connection fails or ends, or a bulk
flow comes to a stop. With --cgroup each program runs in a control group with so much memory (0: what
docs/performance.md says it takes), where the kernel's share counts as well.
"""

import argparse
import json
import os
import socket
import statistics
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import cgroup, crowd, ports, proc, programs, socks, wait  # noqa: E402

MIB = 1 << 20
SPARE = 50  # connections that the programs are to take besides


class Flow(threading.Thread):
    """Reads a download in small bites."""

    def __init__(self, entry, target, rate):
        super().__init__(daemon=True)
        self.conn = socks.connect(entry, ("127.0.0.1", target), timeout=30)
        self.conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32768)
        self.conn.sendall(b"d" * 64)
        self.rate, self.count, self.error, self.stop = rate, 0, None, False

    def run(self):
        try:
            while not self.stop:
                got = self.conn.recv(65536)
                if not got:
                    raise ConnectionError("the download ended")
                self.count += len(got)
                time.sleep(len(got) / self.rate)  # the slow reader is what is measured
        except OSError as error:
            self.error = error


def buffers(flows):
    """Bytes that the kernel may hold for busy connections: both sockets, both directions."""
    most = 0
    for name in ("tcp_rmem", "tcp_wmem"):
        with open("/proc/sys/net/ipv4/" + name) as file:
            most += int(file.read().split()[2])
    return 2 * flows * most


def group_limit(options):
    """The rule of docs/performance.md, in bytes, without the socket buffers that it names last."""
    if options.cgroup:
        return int(options.cgroup * MIB)
    sessions = options.idle + options.flows
    return int(options.limit * MIB) + sessions * 7 * 1024 + buffers(options.flows) + 8 * MIB


def sample(options, measured, flows, groups):
    """MiB of each program each second, and what went wrong."""
    samples = {program.name: [] for program in measured}
    in_groups = {name: [] for name in groups}
    failed, before = [], [0] * len(flows)
    for second in range(options.seconds):
        time.sleep(1)  # the interval of the samples
        for program in measured:
            if not program.alive:
                return samples, in_groups, ["%s ended with %s" % (program.name,
                                                                program.process.returncode)]
            samples[program.name].append(round(proc.private_bytes(program.pid) / MIB, 2))
        for name, group in groups.items():
            in_groups[name].append(round(group.read("now") / MIB, 2))
        if second % 10 == 9:
            now = [flow.count for flow in flows]
            failed += ["a flow stands still" for one, other in zip(before, now) if one == other]
            before = now
    return samples, in_groups, failed + [str(flow.error) for flow in flows if flow.error]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--idle", type=int, default=9000)
    parser.add_argument("--flows", type=int, default=50)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--limit", type=float, default=64)
    parser.add_argument("--rate", type=float, default=1e6, help="bytes a second that a flow reads")
    parser.add_argument("--cgroup", type=float, help="MiB")
    parser.add_argument("--json")
    options = parser.parse_args()

    hard, sessions = crowd.raise_descriptors(), options.idle + options.flows + SPARE
    if hard < sessions * 33 // 16 + 300:
        sys.exit("%d connections take a relay's 2 descriptors each and some more; the hard limit of a "
                 "process (ulimit -Hn) is %d here" % (sessions, hard))
    bulk, server, entry = ports.free_port(), ports.free_port(), ports.free_port()
    common = ["-k", "barfoo!", "-m", "aes-256-gcm", "--workers", "1", "--max-connections", sessions,
              "--max-memory", int(options.limit * MIB)]
    running, groups = [], {}
    output = dict(idle=options.idle, flows=options.flows, seconds=options.seconds,
                  limit=options.limit, unit="MiB")

    def start(name, port, *words):
        how = {}
        if options.cgroup is not None:
            groups[name] = cgroup.MemoryLimit(group_limit(options), name)
            how["prepare"] = groups[name].join
        program = programs.Program([programs.find(options.bin, name), *words, *common], **how)
        running.append(program)
        return program.await_listening(port)

    failed, echo, clients = [], None, None
    try:
        running.append(programs.Program([os.path.join(options.bin, "tcp_load"), "--serve", bulk])
                       .await_listening(bulk))
        measured = [start("ss-server", server, "-s", "127.0.0.1", "-p", server),
                    start("ss-local", entry, "-s", "127.0.0.1", "-p", server, "-l", entry)]
        echo = crowd.Echo()
        clients = crowd.Crowd(("127.0.0.1", entry), echo.address)
        clients.open(options.idle)
        flows = [Flow(entry, bulk, options.rate) for _ in range(options.flows)]
        for flow in flows:
            flow.start()
        samples, in_groups, failed = sample(options, measured, flows, groups)
        ended = clients.ended()
        failed += ["an idle connection ended"] * ended
        for flow in flows:
            flow.stop = True
        for name, values in samples.items():
            output[name] = {"most": max(values), "median": statistics.median(values),
                            "each_second": values}
            print("%-10s private: at most %.2f MiB, median %.2f; the limit is %g" % (
                name, max(values), statistics.median(values), options.limit))
            if max(values) > options.limit:
                failed.append(name + " was above the limit")
        for name, values in in_groups.items():
            output[name]["group"] = {"limit": groups[name].limit / MIB, "each_second": values,
                                     "most": groups[name].read("most") / MIB}
            print("%-10s control group: at most %.1f MiB of %.1f; a second's: at most %.1f" % (
                name, groups[name].read("most") / MIB, groups[name].limit / MIB, max(values)))
        speed = sum(flow.count for flow in flows) / options.seconds / 1e6
        print("%d idle (%d of them ended), %d flows: %.1f MB a second in all" % (
            options.idle, ended, options.flows, speed))
        output.update(ended=ended, megabytes_a_second=round(speed, 1))
    except unittest.SkipTest as error:
        print("SKIPPED: %s" % error)
        sys.exit(77)
    finally:
        for part in (clients, echo):
            if part:
                (part.end if part is clients else part.close)()
        for program in running:
            program.kill()
        for group in groups.values():
            wait.until(lambda: not open(os.path.join(group.path, "cgroup.procs")).read(), 10,
                       "an empty group")
            group.close()
    output["failed"] = {reason: failed.count(reason) for reason in sorted(set(failed))}
    if options.json:
        with open(options.json, "w") as file:
            json.dump(output, file, indent=1)
            file.write("\n")
    for reason, count in output["failed"].items():
        print("%d times: %s" % (count, reason))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
