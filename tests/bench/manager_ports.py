#!/usr/bin/env python3
"""What many ports and users of ss-manager cost.

    manager_ports.py --bin build/bin                        all of it
    manager_ports.py --bin build/bin --only ports           1,000 and 5,000 ports: time, memory
    manager_ports.py --bin build/bin --only users           CPU a handshake, 10,000 users against 1
    manager_ports.py --bin build/bin --only cycles          10,000 times add, ping, list, remove

Memory is private (RssAnon + RssShmem) of all processes together. Exit status 1 when a figure is
beyond its bound: 16 MiB with 1,000 ports, 5 % more CPU a handshake, anything left by the cycles.
"""

import argparse
import base64
import contextlib
import os
import random
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import manager, ports, proc, programs, socks, targets, wait  # noqa: E402

MIB = 1 << 20
METHOD = "2022-blake3-aes-128-gcm"
failures = []


def check(good, text):
    print("%-6s %s" % ("ok" if good else "BEYOND", text))
    if not good:
        failures.append(text)


class Running:
    """A manager in a folder of its own."""

    def __init__(self, options, *arguments):
        self.folder = tempfile.TemporaryDirectory(prefix="ss-bench-")
        self.path = os.path.join(self.folder.name, "m.sock")
        self.program = programs.Program(
            [programs.find(options.bin, "ss-manager"), "--manager-address", self.path, "-D",
             os.path.join(self.folder.name, "work"), "--executable",
             programs.find(options.bin, "ss-server"), "-s", "127.0.0.1", "-m", "aes-256-gcm",
             "--workers", options.workers, "-n", "65536", *arguments])
        wait.until(lambda: os.path.exists(self.path), 20)
        self.client = manager.Client(self.path, self.folder.name)
        self.client.ask("ping")

    def tree(self):
        return manager.tree_of(self.program.pid)

    def memory(self):
        return sum(map(proc.private_bytes, self.tree()))

    def descriptors(self):
        return sum(map(proc.descriptors, self.tree()))

    def server(self):
        """The process that has most descriptors."""
        return max(self.tree(), key=proc.descriptors)

    def end(self):
        self.client.close()
        self.program.stop()
        self.folder.cleanup()


def free_range(count):
    """Numbers of ports that are free now."""
    taken = set()
    for name in ("tcp", "tcp6", "udp", "udp6"):
        with contextlib.suppress(OSError), open("/proc/net/" + name) as file:
            next(file)
            taken |= {int(line.split()[1].rsplit(":", 1)[1], 16) for line in file}
    low, high = 1024, 65536
    with contextlib.suppress(OSError), open("/proc/sys/net/ipv4/ip_local_port_range") as file:
        low_local, high_local = map(int, file.read().split())
        taken |= set(range(low_local, high_local + 1)) if high_local - low_local < 40000 else set()
    found = [port for port in range(10000, high) if port not in taken]
    found += [port for port in range(low, 10000) if port not in taken]
    return sorted(found[:count])


def run_ports(options):
    for mode in ("tcp_only", "tcp_and_udp"):
        for count in options.ports:
            running = Running(options)
            empty = running.memory()
            began = time.monotonic()
            added = 0
            for port in free_range(count + 500):
                if added == count:
                    break
                answer = running.client.add(port, "password-%d" % port, mode=mode)
                if answer == "ok":
                    added += 1
                elif "Address already in use" not in running.program.log[-400:]:
                    raise AssertionError("port %d: %s\n%s" % (
                        port, answer, running.program.log[-800:]))
            spent = time.monotonic() - began
            listed = len(running.client.list())
            full = running.memory()
            text = "%d ports, %s: %.2f s, %.1f MiB in all processes (%.1f before), %.1f KiB a port" % (
                listed, mode, spent, full / MIB, empty / MIB, (full - empty) / count / 1024)
            check(listed == count and (count != 1000 or mode != "tcp_only" or full <= 16 * MIB), text)
            began = time.monotonic()
            running.client.ask("ping")
            print("       ping of %d ports: %.1f ms" % (count, 1000 * (time.monotonic() - began)))
            running.end()


def cpu_ns(pid):
    """Of all threads, to the nanosecond."""
    total = 0
    for name in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, name)) as file:
            total += int(file.read().split()[0])
    return total


def key_of(seed):
    return base64.b64encode(random.Random(seed).randbytes(16)).decode()


def handshakes(local, target, server, count):
    """CPU microseconds of the server for each of `count` connections."""
    before = cpu_ns(server)
    for _ in range(count):
        with socks.connect(local, target) as conn:
            conn.sendall(b"x")
            if socks.receive(conn, 1) != b"x":
                raise AssertionError("no echo")
    return (cpu_ns(server) - before) / count / 1000


def run_users(options):
    """The same user, once alone and once as the last of many, on two ports of one server."""
    running = Running(options)
    target = targets.Target(targets.echo)
    alone, many = ports.free_port(), ports.free_port()
    user = {"name": "the one", "password": key_of("the one")}
    for port in (alone, many):
        answer = running.client.add(port, key_of(port), method=METHOD, users=[user])
        if answer != "ok":
            raise AssertionError(answer)
    began = time.monotonic()
    users = [{"name": "user %d" % number, "password": key_of(number)}
             for number in range(options.users - 1)]
    for at in range(0, len(users), 400):
        answer = running.client.ask("adduser: " + manager.json.dumps(
            {"server_port": many, "users": users[at : at + 400]}))
        if answer != "ok":
            raise AssertionError(answer)
    print("       %d users added in %.2f s" % (len(users), time.monotonic() - began))
    began = time.monotonic()
    answer = running.client.ask("adduser: " + manager.json.dumps(
        {"server_port": many, "name": "one more", "password": key_of("one more")}))
    print("       one more: %.1f ms" % (1000 * (time.monotonic() - began)))
    server, local_of = running.server(), {}
    for port in (alone, many):
        local_of[port] = ports.free_port()
        programs.Program(
            [programs.find(options.bin, "ss-local"), "-s", "127.0.0.1", "-p", port, "-l",
             local_of[port], "-m", METHOD, "-k", "%s:%s" % (key_of(port), user["password"])]
        ).await_listening(local_of[port])
    spent = {alone: [], many: []}
    for port in (alone, many):
        handshakes(local_of[port], target.address, server, 200)
    for turn in range(options.rounds):
        for port in (alone, many) if turn % 2 == 0 else (many, alone):
            spent[port].append(handshakes(local_of[port], target.address, server,
                                          options.connections))
    one, all_of_them = statistics.median(spent[alone]), statistics.median(spent[many])
    pairs = statistics.median(b / a for a, b in zip(spent[alone], spent[many]))
    check(pairs <= 1.05, "CPU a connection: 1 user %.1f us, %d users %.1f us, ratio %.3f (median of "
          "%d pairs)" % (one, options.users, all_of_them, pairs, options.rounds))
    print("       memory with %d users: %.1f MiB" % (options.users, running.memory() / MIB))
    running.end()
    target.close()


def run_cycles(options):
    running = Running(options)
    port = ports.free_port()

    def cycle(number):
        if running.client.add(port, "password-%d" % number) != "ok":
            raise AssertionError("not added")
        if running.client.ask("ping") != 'stat: {"%d":0}' % port:
            raise AssertionError("not counted")
        if '"%d"' % port not in running.client.ask("list"):
            raise AssertionError("not listed")
        if running.client.remove(port) != "ok":
            raise AssertionError("not removed")

    def rest():
        return running.memory(), running.descriptors(), len(running.tree())

    for number in range(200):
        cycle(number)
    before = rest()
    began = time.monotonic()
    for number in range(options.cycles):
        cycle(number)
    spent = time.monotonic() - began
    after = rest()
    check(after[1:] == before[1:] and after[0] - before[0] <= MIB // 4,
          "%d cycles in %.1f s: memory %.2f -> %.2f MiB, descriptors %d -> %d, processes %d -> %d"
          % (options.cycles, spent, before[0] / MIB, after[0] / MIB, before[1], after[1],
             before[2], after[2]))
    files = sorted(os.listdir(os.path.join(running.folder.name, "work")))
    check(files == [".ss-manager.state"], "files left: %s" % ", ".join(files))
    running.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--only", choices=("ports", "users", "cycles"))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--ports", type=int, nargs="*", default=[1000, 5000])
    parser.add_argument("--users", type=int, default=10000)
    parser.add_argument("--connections", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--cycles", type=int, default=10000)
    options = parser.parse_args()
    parts = {"ports": run_ports, "users": run_users, "cycles": run_cycles}
    for name, run in parts.items():
        if options.only in (None, name):
            run(options)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
