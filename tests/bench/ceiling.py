#!/usr/bin/env python3
"""A ceiling on memory: idle connections and bulk flows under `max_memory`.

    ceiling.py --bin build/bin [--idle 9000] [--flows 50] [--seconds 60] [--limit 64]

The clients of the bulk flows are slow readers, so that what may wait does wait. Private bytes of
both programs are sampled each second; the exit status is 1 when one is above the limit (MiB), a
connection fails, or a bulk flow comes to a stop.
"""

import argparse
import os
import resource
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import ports, proc, programs, socks  # noqa: E402

MIB = 1 << 20


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


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--idle", type=int, default=9000)
    parser.add_argument("--flows", type=int, default=50)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--limit", type=float, default=64)
    parser.add_argument("--rate", type=float, default=1e6, help="bytes a second that a flow reads")
    options = parser.parse_args()

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    sessions = options.idle + options.flows + 50
    if hard < 2 * sessions + 500:
        sys.exit("only %d descriptors are allowed" % hard)
    target, server, entry = ports.free_port(), ports.free_port(), ports.free_port()
    common = ["-k", "barfoo!", "-m", "aes-256-gcm", "--workers", "1", "--max-connections", sessions,
              "--max-memory", int(options.limit * MIB)]
    running = [programs.Program([os.path.join(options.bin, "tcp_load"), "--serve", target])
               .await_listening(target)]
    failed = []
    try:
        running.append(programs.Program([programs.find(options.bin, "ss-server"), "-s", "127.0.0.1",
                                         "-p", server, *common]).await_listening(server))
        running.append(programs.Program([programs.find(options.bin, "ss-local"), "-s", "127.0.0.1",
                                         "-p", server, "-l", entry, *common])
                       .await_listening(entry))
        idle = []
        for number in range(options.idle):
            conn = socks.connect(entry, ("127.0.0.1", target), timeout=30)
            conn.sendall(b"x" * 16)
            idle.append(conn)
        flows = [Flow(entry, target, options.rate) for _ in range(options.flows)]
        for flow in flows:
            flow.start()
        most = {}
        before = [0] * len(flows)
        for second in range(options.seconds):
            time.sleep(1)  # the interval of the samples
            for program in running[1:]:
                most[program.name] = max(most.get(program.name, 0), proc.private_bytes(program.pid))
            if second % 10 == 9:
                now = [flow.count for flow in flows]
                failed += ["a flow stands still"
                           for one, other in zip(before, now) if one == other]
                before = now
        failed += [str(flow.error) for flow in flows if flow.error]
        for conn in idle[:: max(1, len(idle) // 50)]:
            conn.setblocking(False)
            try:
                if not conn.recv(1):
                    failed.append("an idle connection was closed")
            except BlockingIOError:
                pass
        for flow in flows:
            flow.stop = True
        for name, value in most.items():
            print("%-10s at most %.2f MiB private, the limit is %g" % (name, value / MIB,
                                                                      options.limit))
            if value > options.limit * MIB:
                failed.append(name + " was above the limit")
        print("%d idle, %d flows: %.1f MB a second in all" % (
            options.idle, options.flows,
            sum(flow.count for flow in flows) / options.seconds / 1e6))
    finally:
        for program in running:
            program.kill()
    for reason in sorted(set(failed)):
        print("%d times: %s" % (failed.count(reason), reason))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
