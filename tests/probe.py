#!/usr/bin/env python3
"""Attacks a server with every kind of bad start, and fails when it gives away which was which.

    probe.py --server 127.0.0.1:8388 --method aes-256-gcm --key PASSWORD
    probe.py --server 127.0.0.1:8388 --method 2022-blake3-aes-128-gcm --key BASE64[:BASE64...]

Random bytes of 0 to 1,000, recorded starts again, at once and later, each bit and each cut of a
correct start, headers that are sealed correctly and wrong, clocks of the past and the future,
single slow bytes; each with the connection kept open and some with its sending side ended.
Compared are the ending (nothing, FIN, RST, or worse: data) and its time (at once, after seconds,
at the server's deadline). Of the 2022 edition, a connection that says nothing and one that proved
its key and then stops are kept apart from the others: an outsider cannot make the latter.

A correct client must be served before and after. The server has to reach an echo target: one that
this program opens on loopback, or --target.

    --udp       datagrams instead: no bad one may be answered in any way, a repeated one not a
                second time, and none reach the target; with --pid, the server's process (on this
                machine) may not come to have more sockets either
    --passes-on (with --udp) it is a relay, which takes sessions of its users whatever they say
    --full      every length, every bit; a sample otherwise
    --later S   the last replays come at least S seconds after the record (61: its clock is stale)
    --expect    "drain" (FIN at the deadline) or "reset" (RST at once): that, and not only all alike
    --timing    also compares the distributions of times for each cause with that of random bytes
                (Kolmogorov-Smirnov); fails where they differ beyond chance and the medians by more
                than --slack microseconds, which is what a path over a network hides
"""

import argparse
import collections
import contextlib
import functools
import math
import os
import random
import socket
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import probing, probing_udp, socks, starts, targets, udp  # noqa: E402
from support.probing import Probe  # noqa: E402

PAYLOAD = b"GET / HTTP/1.0\r\n\r\n"
EXPECTED = {"drain": ("FIN", "deadline"), "reset": ("RST", "at once")}


class Refused(Exception):
    """What the server did, that it should not have done."""


class Attack:
    def __init__(self, options):
        self.server = options.server
        self.full = options.full
        self.method = starts.of(options.method, options.key)
        self.target = options.target
        self.deadline = None
        self.patience = options.patience

    # A correct client.

    def exchange(self, payload=PAYLOAD, **how):
        """(what was sent, the connection, what came), after a correct start was answered."""
        start = self.method.start(self.target, payload, **how)
        conn = socket.create_connection(self.server, 10)
        conn.sendall(start)
        wire = b""
        try:
            while True:
                data = conn.recv(1 << 16)
                if not data:
                    raise Refused("a correct client is not served")
                wire += data
                with contextlib.suppress(ValueError):
                    if self.method.answered(start, wire) == payload:
                        return start, conn, wire
        except OSError as error:
            raise Refused("a correct client is not served: %s" % error) from error

    def serves(self):
        self.exchange()[1].close()
        if self.method.is_2022:
            for offset in (-28, 28):  # else the starts with wrong clocks would prove nothing
                self.exchange(now=int(time.time()) + offset)[1].close()

    # What is sent.

    def group(self, length):
        """A start from which the server learned that its sender has the key may be waited on."""
        proven = self.method.proven_at
        return "proven, incomplete" if proven is not None and length >= proven else "bad start"

    def bad_starts(self):
        """(cause, group, function that makes the bytes): made late, for clocks have to be right."""

        def start():
            return self.method.start(self.target, PAYLOAD)

        def flipped(place, bit):
            spoilt = bytearray(start())
            spoilt[place] ^= 1 << bit
            return bytes(spoilt)

        lengths = range(1, 1001) if self.full else sorted(
            {*range(1, 130, 3), 200, 299, 300, 500, 999, 1000, *random.sample(range(1, 1001), 20)})
        for length in [*lengths, 30000]:
            yield "random bytes", "bad start", functools.partial(os.urandom, length)
        for place in range(len(start())):
            for bit in range(8) if self.full else [random.randrange(8)]:
                yield "flipped bit", "bad start", functools.partial(flipped, place, bit)
        for cut in range(1, len(start())):
            yield "cut", self.group(cut), lambda cut=cut: start()[:cut]
        for maker in (self.method.bad_headers, self.method.bad_clocks):
            for number, (cause, _) in enumerate(maker(self.target)):
                yield cause, "bad start", functools.partial(
                    lambda maker, number: list(maker(self.target))[number][1], maker, number)
        yield "right salt, then random bytes", "bad start", \
            lambda: start()[: self.method.salt_len] + os.urandom(200)

    def replays(self, start, when):
        """A recorded start again: whole, cut, with more behind it, with a byte changed. Its salt is
        refused as soon as it is seen, whatever follows or lacks."""
        cause = "replay " + when
        yield cause, "bad start", lambda: start
        yield cause, "bad start", lambda: start + os.urandom(100)
        yield cause + ", changed", "bad start", lambda: start[:-1] + bytes([start[-1] ^ 1])
        for cut in (self.method.salt_len, self.method.salt_len + 1, len(start) - 1):
            yield cause + ", cut", "bad start", functools.partial(start.__getitem__, slice(cut))

    def slow(self):
        span = self.deadline or 3
        pause = span / 60
        for cause, data in (("slow random bytes", os.urandom(40)),
                            ("slow, with a flipped bit",
                             os.urandom(1) + self.method.start(self.target, PAYLOAD)[1:40])):
            yield Probe(cause, "bad start", tuple((pause, bytes([value])) for value in data))

    # The rounds.

    def measure_deadline(self):
        """When the server ends a connection that says nothing."""
        silent = [Probe("nothing", "nothing", ()) for _ in range(3)]
        probing.run(silent, self.server, self.patience)
        ended = [probe.after for probe in silent if probe.ending != "none"]
        if ended:
            self.deadline = statistics.median(ended)
            self.patience = min(self.patience, self.deadline * 1.3 + 2)
        return silent

    def probes(self, plans):
        """Each bad start kept open; a sample of them half-closed as well."""
        chosen = plans if self.full else random.sample(plans, min(60, len(plans)))
        probes = [Probe(cause, group, ((0, make),)) for cause, group, make in plans]
        probes += [Probe(cause, group + ", then FIN", ((0, make),), fin=True)
                   for cause, group, make in chosen]
        random.shuffle(probes)
        return probes

    def first_round(self):
        """All but what needs time to pass, beside a session that goes on."""
        start, conn, wire = self.exchange(self.address_in_payload())
        probes = self.probes([*self.bad_starts(), *self.replays(start, "at once"),
                              ("its own answer", "bad start", lambda: wire)])
        probes += [*self.slow(), Probe("nothing", "nothing, then FIN", (), fin=True)]
        probing.run(probes, self.server, self.patience)
        conn.close()
        return probes

    def address_in_payload(self):
        """Sent back by the target, it makes the answer a request: to a server that forgets what it
        said itself."""
        return socks.address(*self.target) + PAYLOAD

    def second_round(self, recorded):
        probes = self.probes([
            plan for start, wire in recorded
            for plan in [*self.replays(start, "later"),
                         ("its own answer, later", "bad start", wire)]])
        probing.run(probes, self.server, self.patience)
        return probes

    def record(self):
        found = []
        for _ in range(3):
            start, conn, wire = self.exchange(self.address_in_payload())
            conn.close()
            found.append((start, wire))
        return found

    # What it shows.

    def time_class(self, probe):
        if probe.ending == "none":
            return "never"
        if probe.since_sent < (min(1.0, self.deadline / 3) if self.deadline else 1.0):
            return "at once"
        if self.deadline and abs(probe.after - self.deadline) < max(0.8, self.deadline / 8):
            return "deadline"
        return "seconds"

    def outcome(self, probe):
        return probe.ending, self.time_class(probe)

    def compared(self, probe):
        """The probes that have to look alike: all of the older methods, whatever was sent."""
        if self.method.is_2022:
            return probe.group
        return "kept open, then FIN" if probe.fin else "kept open"

    def judge(self, probes):
        """{group: {outcome: [probe]}}"""
        found = {}
        for probe in probes:
            found.setdefault(self.compared(probe), {}).setdefault(
                self.outcome(probe), []).append(probe)
        return found

    def again(self, probes):
        """A loaded machine is late now and then: what is the exception in its group gets a second
        try, unless it is a replay, which is not the same the second time."""
        odd = []
        for outcomes in self.judge(probes).values():
            usual = max(outcomes.values(), key=len)
            odd += [probe for others in outcomes.values() if others is not usual
                    for probe in others if probe.ending == usual[0].ending]
        if odd and len(odd) < 20:
            probing.run(odd, self.server, self.patience)


def causes(probes, limit=6):
    counts = {}
    for probe in probes:
        counts[probe.cause] = counts.get(probe.cause, 0) + 1
    names = ["%s (%d)" % item if item[1] > 1 else item[0] for item in counts.items()]
    rest = len(names) - limit
    return ", ".join(names[:limit]) + (" and %d more" % rest if rest > 0 else "")


def report(groups, expected):
    """Prints what was seen; true when each group has one outcome, and the expected one."""
    good = True
    for group, outcomes in sorted(groups.items()):
        alike = len(outcomes) == 1 and "data" not in {ending for ending, _ in outcomes}
        if expected and group in ("bad start", "kept open"):
            alike = alike and EXPECTED[expected] in outcomes
        good = good and alike
        print("%-4s %s" % ("ok" if alike else "FAIL", group))
        for (ending, when), probes in sorted(outcomes.items(), key=lambda item: -len(item[1])):
            seconds = sorted(probe.after for probe in probes)
            print("       %4d  %-4s %-9s %6.2f to %.2f s  %s" % (
                len(probes), ending, when, seconds[0], seconds[-1],
                causes(probes, 6 if alike else 20)))
    return good


# Distributions.


def kolmogorov_smirnov(one, two):
    """(largest distance of the two empirical distributions, probability of as large a one)"""
    one, two = sorted(one), sorted(two)
    at = [0, 0]
    distance = 0.0
    while at[0] < len(one) and at[1] < len(two):
        value = min(one[at[0]], two[at[1]])
        while at[0] < len(one) and one[at[0]] <= value:
            at[0] += 1
        while at[1] < len(two) and two[at[1]] <= value:
            at[1] += 1
        distance = max(distance, abs(at[0] / len(one) - at[1] / len(two)))
    root = math.sqrt(len(one) * len(two) / (len(one) + len(two)))
    term = (root + 0.12 + 0.11 / root) * distance
    total = 2 * sum((-1) ** (k - 1) * math.exp(-2 * (k * term) ** 2) for k in range(1, 101))
    return distance, min(1.0, max(0.0, total)) if term > 0.2 else 1.0


def timing_samples(attack):
    """{cause: function that makes the bytes}; all are as long as a correct start."""
    method, target = attack.method, attack.target

    def start(**how):
        return method.start(target, PAYLOAD, **how)

    length = len(start())

    def flipped(place):
        def make():
            spoilt = bytearray(start())
            spoilt[place] ^= 1
            return bytes(spoilt)
        return make

    recorded, conn, _ = attack.exchange()
    conn.close()
    body = len(start()) - len(PAYLOAD) - 16
    found = {"random bytes": lambda: os.urandom(length), "first bit": flipped(0),
             "last bit of the first tag": flipped(
                 (method.proven_at or method.salt_len + 18) - 1),
             "bit of the body": flipped(body), "replay": lambda: recorded}
    if method.is_2022:
        found["stale clock"] = lambda: start(now=int(time.time()) - 3600)
        found["wrong type"] = lambda: start(kind=1)
        if len(method.keys) > 1:
            other = method.keys[:-1] + [os.urandom(len(method.keys[-1]))]
            found["unknown user"] = lambda: start(keys=other)
    return found


def compare_timing(attack, count, slack):
    """True when no cause's times differ from those of random bytes beyond chance and slack."""
    makers = timing_samples(attack)
    times = {cause: [] for cause in makers}
    if attack.method.is_2022:
        # Made beforehand, so that the work of making leaves no trace in our own times, and not
        # long before, so that clocks stay as they are meant.
        for first in range(0, count, 50):
            made = [(cause, make()) for cause, make in makers.items()
                    for _ in range(min(50, count - first))]
            random.shuffle(made)
            for cause, data in made:
                times[cause].append(probing.time_to_end(data, attack.server, attack.patience))
    else:  # the end comes at the deadline: many are awaited together
        probes = [Probe(cause, "", ((0, make()),))
                  for cause, make in makers.items() for _ in range(count)]
        random.shuffle(probes)
        probing.run(probes, attack.server, attack.patience)
        for probe in probes:
            times[probe.cause].append(probe.after)
    bound = 0.001 / (len(times) - 1)
    good = True
    usual = statistics.median(times["random bytes"]) * 1e6
    for cause, sample in times.items():
        distance, chance = kolmogorov_smirnov(times["random bytes"], sample)
        shift = statistics.median(sample) * 1e6 - usual
        alike = chance >= bound or abs(shift) <= slack
        good = good and alike
        print("%-4s %-26s median %11.1f us, shift %+8.1f  distance %.3f  chance %.2g%s" % (
            "ok" if alike else "FAIL", cause, usual + shift, shift, distance, chance,
            "" if chance >= bound else "  (more than chance)"))
    return good


def attack_udp(options):
    echo = udp.Target(keep=False) if options.target is None else options.target
    attack = probing_udp.Attack(options.server, options.method, options.key, echo, options.pid,
                                options.full, options.passes_on)
    try:
        count = attack.run()
    except probing_udp.Refused as error:
        print("FAIL %s" % error)
        return False
    for text, times in collections.Counter(attack.wrong).items():
        print("FAIL %s%s" % (text, " (%d)" % times if times > 1 else ""))
    print("%d datagrams: %s" % (count, "some had consequences" if attack.wrong else
                                "none was answered, and nothing of them is left"))
    return not attack.wrong


def address(text):
    host, port = text.rsplit(":", 1)
    return host.strip("[]"), int(port)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, type=address, metavar="HOST:PORT")
    parser.add_argument("--method", required=True)
    parser.add_argument("--key", required=True, help="password; 2022: keys in base64")
    parser.add_argument("--target", type=address, metavar="HOST:PORT")
    parser.add_argument("--patience", type=float, default=75, metavar="S",
                        help="longest wait for an end (default: %(default)s)")
    parser.add_argument("--later", type=float, default=0, metavar="S")
    parser.add_argument("--expect", choices=EXPECTED)
    parser.add_argument("--udp", action="store_true")
    parser.add_argument("--pid", type=int)
    parser.add_argument("--passes-on", action="store_true")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--timing", action="store_true")
    parser.add_argument("--samples", type=int, default=300, help="of each cause, for --timing")
    parser.add_argument("--slack", type=float, default=5.0, metavar="US")
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()

    seed = options.seed if options.seed is not None else random.randrange(1 << 32)
    random.seed(seed)
    if options.udp:
        print("%s at %s:%d, UDP, seed %d" % (options.method, *options.server, seed))
        sys.exit(0 if attack_udp(options) else 1)
    echo = None
    if options.target is None:
        echo = targets.Target(targets.echo)
        options.target = echo.address
    attack = Attack(options)
    print("%s at %s:%d, seed %d" % (options.method, *options.server, seed))
    try:
        attack.serves()
        recorded, since = attack.record(), time.monotonic()
        probes = attack.measure_deadline()
        probes += attack.first_round()
        time.sleep(max(0.0, since + options.later - time.monotonic()))  # the age that is asked for
        probes += attack.second_round(recorded)
        attack.again(probes)
        good = report(attack.judge(probes), options.expect)
        if options.timing:
            good = compare_timing(attack, options.samples, options.slack) and good
        attack.serves()
    except (Refused, OSError) as error:
        print("FAIL %s" % error)
        sys.exit(1)
    print("%d probes, deadline %s: %s" % (
        len(probes), "%.1f s" % attack.deadline if attack.deadline else "none",
        "all causes look alike" if good else "causes can be told apart"))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
