#!/usr/bin/env python3
"""Allocations of all programs in all ways of use, once they are warm: it must be none.

    matrix.py --bin build/bin --shim build/lib/libss_alloc_audit.so [--json FILE] [--jobs 2]
              [--methods a,b] [--only WORD]

Runs measure_alloc.py, measure_alloc_udp.py and measure_alloc_redir.py: every method with literal and
named targets, over TCP and UDP, direct and with access control lists (through the server, and around it),
with a reload in between where targets are named; ss-redir in the same way; and with a few methods
what else changes the path: several upstream servers, limits, users, plugins, two workers, servers of
ss-manager, bad connections, names that are new each time. Prints a table; the exit status is 1 unless all is 0. What can't run
here is named. --only takes the cases whose name has the word in it.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from support import peers  # noqa: E402

NAME = "target.test"
SOME = ("aes-256-gcm", "chacha20-ietf-poly1305", "2022-blake3-aes-256-gcm", "aes-256-cfb", "none")
SCRIPTS = {"tcp": ("measure_alloc.py", ["--connections", "40"]),
           "udp": ("measure_alloc_udp.py", ["--datagrams", "600"]),
           "redir": ("measure_alloc_redir.py", ["--connections", "40", "--datagrams", "600"])}
SKIPPED = 77

Case = collections.namedtuple("Case", "way transport method arguments")


def every_method(method):
    for transport in ("tcp", "udp"):
        for way in (None, "proxy", "bypass"):
            for named in (False, True):
                words = (["--acl", way] if way else []) + (
                    ["--target", NAME, "--reload"] if named else [])
                yield Case("%s, %s" % ({None: "direct", "proxy": "lists", "bypass": "bypass"}[way],
                                       "named, reload" if named else "literal"),
                           transport, method, words)
    for tcp in ("redirect", "tproxy"):
        for named in (False, True):
            words = ["--tcp", tcp] + (["--server", "name.test", "--reload"] if named else [])
            yield Case("%s, %s" % (tcp, "named server, reload" if named else "literal server"),
                       "redir", method, words)


def some_methods(method):
    for transport in ("tcp", "udp"):
        yield Case("three servers", transport, method, ["--servers"])
        yield Case("limits", transport, method, ["--limits"])
        yield Case("two workers", transport, method, ["--workers", "2"])
        yield Case("ss-manager, one server", transport, method, ["--manager", "one"])
        yield Case("ss-manager, one a port", transport, method, ["--manager", "each"])
        if method in peers.IDENTITY:
            yield Case("users", transport, method, ["--users", "opened"])
            yield Case("users of a next server", transport, method, ["--users", "relayed"])
    yield Case("bad connections", "tcp", method, ["--bad"])
    yield Case("bad connections, two workers", "tcp", method, ["--bad", "--workers", "2"])
    yield Case("new names", "tcp", method,
               ["--target", NAME, "--fresh", "--connections", "1500"])
    yield Case("plugins", "tcp", method, ["--plugin"])
    yield Case("two workers", "redir", method, ["--workers", "2"])


def run(options, case):
    """(exit status, {program: counts}, what was printed)"""
    script, words = SCRIPTS[case.transport]
    with tempfile.NamedTemporaryFile(prefix="ss-audit-", suffix=".json") as result:
        done = subprocess.run(
            [sys.executable, os.path.join(HERE, script), "--bin", options.bin, "--shim",
             options.shim, "--method", case.method, "--result", result.name, *words,
             *case.arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        counts = json.load(result) if os.path.getsize(result.name) else {}
    return done.returncode, counts, done.stdout


def lacks(options, method):
    """Whether this build does not have the method: some are of a library's choice."""
    if method not in peers.OPTIONAL:
        return False
    done = subprocess.run([os.path.join(options.bin, "ss-server"), "--check-config", "-s",
                           "127.0.0.1", "-p", "1", "-k", "x", "-m", method], capture_output=True)
    return done.returncode != 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--shim", required=True)
    parser.add_argument("--methods", type=lambda text: text.split(","), default=peers.METHODS)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json")
    options = parser.parse_args()

    cases, absent = [], [method for method in options.methods if lacks(options, method)]
    for method in options.methods:
        if method not in absent:
            cases += every_method(method)
            cases += some_methods(method) if method in SOME else []
    cases = [case for case in cases if options.only in case.way + " " + case.transport]

    rows, failed, skipped = collections.OrderedDict(), [], []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for case, (status, counts, text) in zip(cases, pool.map(lambda case: run(options, case),
                                                                cases)):
            if status == SKIPPED:
                skipped.append("%s, %s, %s: %s" % (*case[:3], text.strip()))
                continue
            if status != 0 or not counts:
                failed.append(case)
                print("-- %s, %s, %s: exit status %d\n%s" % (*case[:3], status, text), flush=True)
            row = rows.setdefault((case.transport, case.way), {})
            for program, found in counts.items():
                total = row.setdefault(program, collections.Counter())
                total.update(found)
                total["methods"] += 1

    print("%-6s %-32s %-10s %8s %12s %11s %12s" % ("over", "way", "program", "methods",
                                                  "connections", "datagrams", "allocations"))
    for (transport, way), row in rows.items():
        for program, total in row.items():
            print("%-6s %-32s %-10s %8d %12d %11d %12d" % (
                transport, way, program, total["methods"], total["connections"],
                total["datagrams"], total["allocations"]))
    for line in skipped:
        print("skipped: " + line)
    for method in absent:
        print("skipped: this build does not have " + method)
    print("%d runs, %d failed" % (len(cases), len(failed)))
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"methods": [method for method in options.methods if method not in absent],
                       "runs": len(cases), "failed": [case._asdict() for case in failed],
                       "skipped": skipped,
                       "rows": [{"over": transport, "way": way, "program": program, **total}
                                for (transport, way), row in rows.items()
                                for program, total in row.items()]}, file, indent=1)
            file.write("\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
