#!/usr/bin/env python3
"""Thousands of connections that say a little and then stay, in processes of their own: what one
process may open is bounded, and a relay has two descriptors a connection, so neither its clients nor
its targets may share them with each other or with a test.

The file is also what those processes run. They are told on their standard input, a line of JSON
each, and answer with one.
"""

import json
import os
import resource
import select
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import proc, socks, targets, wait  # noqa: E402

RESERVE = 200  # descriptors of a process beside those of connections
PROCESSES = 4


def raise_descriptors():
    """As many as this process may have."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


class _Process:
    """One of those processes, seen from the test. It ends when its standard input does."""

    def __init__(self, role, **settings):
        self._process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), role, json.dumps(settings)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self._process.pid

    def tell(self, **command):
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()

    def answer(self):
        line = self._process.stdout.readline()
        if not line:
            raise AssertionError("a process of the crowd ended with %s" % self._process.wait())
        return json.loads(line)

    def end(self):
        self._process.stdin.close()
        self._process.wait(30)


class Echo:
    """The target: echoes, for all connections together in one process."""

    def __init__(self, host="127.0.0.1"):
        self._process = _Process("echo", host=host)
        self.port = self._process.answer()["port"]
        self.address = (host, self.port)

    def close(self):
        self._process.end()


class Crowd:
    """Clients. `entry`: the address that they dial; `target`: what they ask of a SOCKS5 proxy there,
    None where there is none."""

    def __init__(self, entry, target=None, processes=PROCESSES):
        self._processes = [_Process("clients", entry=entry, target=target)
                           for _ in range(processes)]

    def _all(self, commands):
        for process, command in zip(self._processes, commands):
            process.tell(**command)
        answers = [process.answer() for process, _ in zip(self._processes, commands)]
        for answer in answers:
            if "error" in answer:
                raise AssertionError(answer["error"])
        return answers

    def _shares(self, count):
        parts = len(self._processes)
        return [count // parts + (number < count % parts) for number in range(parts)]

    def open(self, count):
        """So many connections more, each of which has had its echo when this returns."""
        self._all([{"do": "open", "count": share} for share in self._shares(count)])

    def burst(self, count, size):
        """So many connections at once send `size` bytes each, read them back, and close."""
        self._all([{"do": "burst", "count": share, "size": size}
                   for share in self._shares(count)])

    def ended(self):
        """How many of those that are open were closed or reset from the other side."""
        return sum(answer["ended"] for answer in
                   self._all([{"do": "look"}] * len(self._processes)))

    def close(self):
        """Closes all connections; the processes stay."""
        self._all([{"do": "close"}] * len(self._processes))

    def end(self):
        for process in self._processes:
            process.end()


def settle(running):
    """Waits until the programs have no connection any more."""
    for program in running:
        wait.until(lambda: not proc.tcp_connections(program.pid), 60,
                   "%s: the end of its connections" % program.name)


class _Clients:
    """What a process of clients does."""

    def __init__(self, entry, target):
        self.entry, self.target, self.held = tuple(entry), target, []

    def dial(self):
        if self.target:
            return socks.connect(self.entry, self.target, timeout=60)
        return socks.dial(*self.entry, timeout=60)

    def open(self, count):
        for number in range(count):
            conn = self.dial()
            text = b"connection %d" % number
            conn.sendall(text)
            if socks.receive(conn, len(text)) != text:
                raise AssertionError("no echo of connection %d" % number)
            self.held.append(conn)
        return {}

    def _exchange(self, size, problems):
        try:
            with self.dial() as conn:
                block = bytes(1 << 16)
                sender = threading.Thread(target=lambda: [conn.sendall(block)
                                                          for _ in range(size // len(block))])
                sender.start()
                wanted = size // len(block) * len(block)
                while wanted > 0:
                    got = len(conn.recv(1 << 18))
                    if not got:
                        raise ConnectionError("the end came before all bytes")
                    wanted -= got
                sender.join()
        except OSError as error:
            problems.append(str(error))

    def burst(self, count, size):
        problems = []
        threads = [threading.Thread(target=self._exchange, args=(size, problems))
                   for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return {"error": problems[0]} if problems else {}

    def look(self):
        poll = select.poll()
        for conn in self.held:
            poll.register(conn, select.POLLIN)
        return {"ended": len(poll.poll(0))}

    def close(self):
        for conn in self.held:
            conn.close()
        self.held = []
        return {}


def _say(answer):
    print(json.dumps(answer), flush=True)


def main():
    role, settings = sys.argv[1], json.loads(sys.argv[2])
    raise_descriptors()
    if role == "echo":
        _say({"port": targets.EchoLoop(**settings).port})
        sys.stdin.read()
        return
    clients = _Clients(**settings)
    for line in sys.stdin:
        command = json.loads(line)
        try:
            _say(getattr(clients, command.pop("do"))(**command))
        except (OSError, AssertionError) as error:
            _say({"error": "%s: %s" % (type(error).__name__, error)})


if __name__ == "__main__":
    main()
