#!/usr/bin/env python3
"""A plugin (SIP003, SIP003u) for tests: writes down what it was given, and relays or ends on demand.

It is told what to do by variables that the program under test hands on with its environment:

    FIXTURE_RECORD  the file that gets a line of JSON for each start, and for each connection or
                    flow of datagrams that it relays
    FIXTURE_ROLE    "client" or "server": which of the two addresses it listens on
    FIXTURE_ACT     what the first start does, the second, and so on, with commas between; the last
                    one counts for all that follow (default: relay)
                        relay               relays until it is ended
                        stay                does nothing until it is ended
                        exit:STATUS[:S]     ends, after S seconds of relaying
                        kill:SIGNAL[:S]     the same, by a signal
    FIXTURE_CUT     not empty: cuts the streams anew, the first bytes one by one
    FIXTURE_BROOD   not empty: has two children of its own, one of which leaves group and session
                    and does not heed SIGTERM
    FIXTURE_UDP     not empty: relays datagrams, too
    FIXTURE_NO_TCP  not empty: relays no streams
"""

import json
import os
import random
import selectors
import signal
import socket
import sys
import threading
import time


def record(**what):
    path = os.environ.get("FIXTURE_RECORD")
    if path:
        line = json.dumps(what).encode() + b"\n"
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        os.write(fd, line)  # one call, so that lines of several processes do not mix
        os.close(fd)


def status_line(name):
    with open("/proc/self/status") as file:
        return next(line.split(":", 1)[1].strip() for line in file if line.startswith(name + ":"))


def tell_of_start(brood):
    descriptors = []
    for name in os.listdir("/proc/self/fd"):
        try:
            descriptors.append((int(name), os.readlink("/proc/self/fd/" + name)))
        except OSError:
            continue  # the folder that is being read
    record(what="start", pid=os.getpid(), parent=os.getppid(), group=os.getpgrp(),
           uid=os.getuid(), folder=os.getcwd(), words=sys.argv[1:], brood=brood,
           name=open("/proc/self/cmdline", "rb").read().split(b"\0")[1].decode(),
           environment={name: value for name, value in os.environ.items()
                        if name.startswith("SS_")},
           descriptors=sorted(number for number, _ in descriptors),
           input=dict(descriptors).get(0), blocked=status_line("SigBlk"))


def acts():
    """What this start is to do."""
    plan = os.environ.get("FIXTURE_ACT", "relay").split(",")
    path = os.environ.get("FIXTURE_RECORD")
    before = 0
    if path and os.path.exists(path):
        with open(path) as file:
            before = sum('"what": "start"' in line for line in file)
    return plan[min(before, len(plan) - 1)].split(":")


def have_children():
    """Two that sleep, by their process ids."""
    pids = []
    for leaves in (False, True):
        pid = os.fork()
        if pid == 0:
            if leaves:
                os.setsid()
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.execvp("sleep", ["sleep", "1000"])
        pids.append(pid)
    return pids


def address(name):
    return os.environ["SS_%s_HOST" % name].split("|")[0], int(os.environ["SS_%s_PORT" % name])


def sides():
    """(to listen on, to connect to)"""
    local, remote = address("LOCAL"), address("REMOTE")
    return (remote, local) if os.environ.get("FIXTURE_ROLE") == "server" else (local, remote)


def pass_on(source, sink, cut):
    """One direction until its end, which is passed on."""
    passed = 0
    try:
        while True:
            data = source.recv(65536)
            if not data:
                sink.shutdown(socket.SHUT_WR)
                return
            while data:
                # The first bytes come one by one, and apart in time.
                count = 1 if cut and passed < 60 else random.randint(1, 3000) if cut else len(data)
                sink.sendall(data[:count])
                passed += len(data[:count])
                data = data[count:]
                if cut and passed < 60:
                    time.sleep(0.0005)
    except OSError:
        for side in (source, sink):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def relay(conn, target, cut):
    record(what="tcp", pid=os.getpid())
    with conn:
        try:
            other = socket.create_connection(target, 10)
        except OSError:
            return
        other.settimeout(None)
        for side in (conn, other):
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with other:
            back = threading.Thread(target=pass_on, args=(other, conn, cut), daemon=True)
            back.start()
            pass_on(conn, other, cut)
            back.join()


def family(host):
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def serve_tcp(listening, target):
    cut = bool(os.environ.get("FIXTURE_CUT"))
    server = socket.socket(family(listening[0]))
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(listening)
    server.listen(512)
    while True:
        conn, _ = server.accept()
        threading.Thread(target=relay, args=(conn, target, cut), daemon=True).start()


def serve_udp(listening, target):
    """Each source has a socket of its own towards the other side."""
    here = socket.socket(family(listening[0]), socket.SOCK_DGRAM)
    here.bind(listening)
    flows = {}
    ready = selectors.DefaultSelector()
    ready.register(here, selectors.EVENT_READ, None)
    while True:
        for key, _ in ready.select():
            data, source = key.fileobj.recvfrom(65536)
            if key.data is not None:
                here.sendto(data, key.data)
                continue
            if source not in flows:
                record(what="udp", pid=os.getpid())
                flows[source] = socket.socket(family(target[0]), socket.SOCK_DGRAM)
                flows[source].connect(target)
                ready.register(flows[source], selectors.EVENT_READ, source)
            flows[source].send(data)


def end(act):
    if act[0] == "exit":
        os._exit(int(act[1]))
    os.kill(os.getpid(), int(act[1]))


def main():
    act = acts()
    brood = have_children() if os.environ.get("FIXTURE_BROOD") else []
    print("the plugin writes to its output", flush=True)
    print("the plugin writes to its errors", file=sys.stderr, flush=True)
    tell_of_start(brood)
    ends = act[0] in ("exit", "kill")
    if ends and len(act) == 2:
        end(act)
    if act[0] == "stay":
        signal.pause()
    relays = [] if os.environ.get("FIXTURE_NO_TCP") else [serve_tcp]
    relays += [serve_udp] if os.environ.get("FIXTURE_UDP") else []
    for serve in relays:
        threading.Thread(target=serve, args=sides(), daemon=True).start()
    if ends:
        time.sleep(float(act[2]))
        end(act)
    signal.pause()


if __name__ == "__main__":
    main()
