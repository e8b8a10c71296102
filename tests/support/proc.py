"""What /proc says about a process: memory, CPU time, descriptors, sockets."""

import os
import time

_TICK = os.sysconf("SC_CLK_TCK")

ESTABLISHED, SYN_SENT, FIN_WAIT1, FIN_WAIT2 = "01", "02", "04", "05"
TIME_WAIT, CLOSE_WAIT, LISTEN = "06", "08", "0A"


def status(pid):
    with open("/proc/%d/status" % pid) as file:
        return dict(line.rstrip("\n").split(":", 1) for line in file if ":" in line)


def _kib(fields, name):
    return int(fields[name].split()[0]) * 1024


def private_bytes(pid):
    """RssAnon + RssShmem: what the process alone costs; file pages are shared and clean."""
    fields = status(pid)
    return _kib(fields, "RssAnon") + _kib(fields, "RssShmem")


def resident_bytes(pid):
    return _kib(status(pid), "VmRSS")


def cpu_seconds(pid):
    """User and system time of all threads since the start."""
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def cpu_share(pid, seconds):
    """Share of one core that the process uses during the next `seconds`."""
    return cpu_shares([pid], seconds)[0]


def cpu_shares(pids, seconds):
    before = [cpu_seconds(pid) for pid in pids]
    start = time.monotonic()
    time.sleep(seconds)  # the span of the measurement, not a wait for readiness
    span = time.monotonic() - start
    return [(cpu_seconds(pid) - used) / span for pid, used in zip(pids, before)]


def descriptors(pid):
    return len(os.listdir("/proc/%d/fd" % pid))


def _inodes(pid):
    found = set()
    for name in os.listdir("/proc/%d/fd" % pid):
        try:
            link = os.readlink("/proc/%d/fd/%s" % (pid, name))
        except OSError:
            continue
        if link.startswith("socket:["):
            found.add(link[8:-1])
    return found


def _table(pid, protocol):
    for name in (protocol, protocol + "6"):
        try:
            with open("/proc/%d/net/%s" % (pid, name)) as file:
                next(file)
                for line in file:
                    yield line.split()
        except FileNotFoundError:
            continue


def tcp_sockets(pid):
    """(state, local port, remote port) of each TCP socket that the process holds open."""
    own = _inodes(pid)
    return [
        (row[3], int(row[1].rsplit(":", 1)[1], 16), int(row[2].rsplit(":", 1)[1], 16))
        for row in _table(pid, "tcp")
        if row[9] in own
    ]


def tcp_timers(pid):
    """The kernel's running timer ("02": keep-alive, "00": none) of each established connection."""
    return [kind for kind, _ in tcp_timers_left(pid)]


def tcp_timers_left(pid):
    """The same, each with the hundredths of a second until it strikes."""
    own = _inodes(pid)
    timers = [row[5].split(":") for row in _table(pid, "tcp")
              if row[9] in own and row[3] == ESTABLISHED]
    return [(kind, int(left, 16)) for kind, left in timers]


def tcp_connections(pid):
    """The TCP sockets of the process that do not listen."""
    return [entry for entry in tcp_sockets(pid) if entry[0] != LISTEN]


def listening_ports(pid):
    return {port for state, port, _ in tcp_sockets(pid) if state == LISTEN}


def udp_ports(pid):
    own = _inodes(pid)
    return {
        int(row[1].rsplit(":", 1)[1], 16) for row in _table(pid, "udp") if row[9] in own
    }


def threads(pid):
    return len(os.listdir("/proc/%d/task" % pid))
