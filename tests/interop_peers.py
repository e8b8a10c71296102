#!/usr/bin/env python3
"""Our programs against each other implementation that is installed, in both roles.

    interop_peers.py --bin build/bin                       every peer that is found
    interop_peers.py --bin build/bin --only sing-box       one of them; may be repeated
    interop_peers.py --bin build/bin --full                larger, more and longer
    interop_peers.py --bin build/bin --peer sing-box=DIR   where a peer is looked for first

TCP and UDP through every method that both know, identity headers one and two deep, our relay
between two of theirs and theirs between two of ours. Prints a table for each peer: pass, FAIL,
"not offered" (by the peer) or "not built" (ours, because Mbed TLS here is without the cipher; any
other method has to be in our build). An absent peer is named as skipped; tests/peers.sh installs
them. The exit status is 77 when none was there."""

import argparse
import base64
import os
import subprocess
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import peers, peers_chain  # noqa: E402
from support.peers import Client, Server  # noqa: E402

PASSWORD = "barfoo!"


def key_length(method):
    return 16 if "128" in method else 32


def new_key(method):
    """A random key where the method has keys, else the password."""
    if not method.startswith("2022-"):
        return PASSWORD
    return base64.b64encode(os.urandom(key_length(method))).decode()


def direct(method, client, server):
    """A client and a server."""
    key, port, local = new_key(method), peers_chain.port(), peers_chain.port()
    return ((server, Server(method, key, port)), (client, Client(method, (key,), port, local)))


def one_header(method, client, server):
    """A server with users; the client is the second of them."""
    identity, *users = (new_key(method) for _ in range(4))
    port, local = peers_chain.port(), peers_chain.port()
    return ((server, Server(method, identity, port, users=tuple(users))),
            (client, Client(method, (identity, users[1]), port, local)))


def relayed(method, client, relay, server):
    """One header, taken off by a relay in front of a server with one key."""
    identity, key, other = (new_key(method) for _ in range(3))
    port, front, local = (peers_chain.port() for _ in range(3))
    return ((server, Server(method, key, port)),
            (relay, Server(method, identity, front,
                           relayed=((other, peers_chain.port()), (key, port)))),
            (client, Client(method, (identity, key), front, local)))


def two_headers(method, client, relay, server):
    """Two headers: the first is for the relay, the second for the server with users behind it."""
    outer, inner, *users = (new_key(method) for _ in range(4))
    port, front, local = (peers_chain.port() for _ in range(3))
    return ((server, Server(method, inner, port, users=tuple(users))),
            (relay, Server(method, outer, front, relayed=((inner, port),))),
            (client, Client(method, (outer, inner, users[1]), front, local)))


def mixed(method, client, relay, server):
    """A relay that also has users of its own: the client is one of those."""
    outer, inner, user = (new_key(method) for _ in range(3))
    port, front, local = (peers_chain.port() for _ in range(3))
    return ((server, Server(method, inner, port)),
            (relay, Server(method, outer, front, users=(user,), relayed=((inner, port),))),
            (client, Client(method, (outer, user), front, local)))


class Run:
    """What is tried with one peer, and what came of it."""

    def __init__(self, ours, peer, ends, full):
        self.ours, self.peer, self.ends, self.full = ours, peer, ends, full
        self.failures = []
        self.passed = 0

    def cell(self, what, legs):
        """One chain through all checks: what stands in the table."""
        try:
            chain = peers_chain.Chain(*legs)
        except peers.NotOffered as refused:
            if not self.ours.refuses_method(str(refused)):
                return "not offered"
            if legs[0][1].method in peers.OPTIONAL:
                return "not built"
            return self.fail(what, "our build does not have the method: %s" % refused, "")
        except AssertionError as error:
            return self.fail(what, "start: %s" % error, "")
        failed = []
        for check in peers_chain.checks(chain):
            try:
                check(chain, self.ends, self.full)
            except Exception:
                failed.append("%s: %s" % (check.__name__, traceback.format_exc(limit=-3)))
        log = chain.log()
        try:
            chain.close()
        except AssertionError as error:
            failed.append("at the end: %s" % error)
        if failed:
            return self.fail(what, "\n".join(failed), log)
        self.passed += 1
        return "pass"

    def fail(self, what, why, log):
        self.failures.append(what)
        print("FAIL %s: %s\n%s\n%s" % (self.peer.name, what, why, log))
        sys.stdout.flush()
        return "FAIL"

    def method(self, method):
        """(their client with our server, our client with their server)"""
        theirs, ours = "not offered", "not offered"
        if self.peer.offers("client", method):
            theirs = self.cell("%s, their client" % method, direct(method, self.peer, self.ours))
        if self.peer.offers("server", method):
            ours = self.cell("%s, their server" % method, direct(method, self.ours, self.peer))
        return theirs, ours

    def identity(self, method):
        """(what, outcome) for the chains with identity headers."""
        ours, peer = self.ours, self.peer
        plans = [("theirs, 1 header, ours", one_header, (peer, ours)),
                 ("ours, 1 header, theirs", one_header, (ours, peer)),
                 ("theirs, our relay, theirs", relayed, (peer, ours, peer)),
                 ("theirs, our relay, theirs, 2 headers", two_headers, (peer, ours, peer)),
                 ("theirs, our relay, ours, 2 headers", two_headers, (peer, ours, ours)),
                 ("ours, our relay, theirs, 2 headers", two_headers, (ours, ours, peer)),
                 ("theirs, 1 header, our relay with users", mixed, (peer, ours, peer)),
                 ("ours, their relay, ours", relayed, (ours, peer, ours)),
                 ("ours, their relay, ours, 2 headers", two_headers, (ours, peer, ours))]
        for what, make, cast in plans:
            if make is not one_header and make is not mixed and cast[1] is peer and \
                    not peer.relays or make in (one_header, two_headers) and \
                    cast[-1] is peer and not peer.users:
                yield what, "not offered"
            else:
                yield what, self.cell("%s, %s" % (method, what), make(method, *cast))


def show(title, head, rows):
    """A table as it can stand in docs/interop.md."""
    widths = [max(len(row[place]) for row in [head, *rows]) for place in range(len(head))]
    print("\n%s\n" % title)
    for number, row in enumerate([head, *rows]):
        print("| %s |" % " | ".join(text.ljust(width) for text, width in zip(row, widths)))
        if number == 0:
            print("|%s|" % "|".join("-" * (width + 2) for width in widths))
    sys.stdout.flush()


def try_peer(ours, peer, methods, ends, full):
    start = time.monotonic()
    title = "%s %s" % (peer.name, peer.version())
    print("== %s" % title)
    run = Run(ours, peer, ends, full)
    rows = [(method, *run.method(method)) for method in methods]
    show(title, ("method", "theirs to ours", "ours to theirs"), rows)
    chosen = [method for method in methods if method in peers.IDENTITY]
    if chosen and peer.offers("client", chosen[0]):
        columns = [list(run.identity(method)) for method in chosen]
        rows = [(what, *(column[number][1] for column in columns))
                for number, (what, _) in enumerate(columns[0])]
        show("%s, identity headers" % title, ("chain", *chosen), rows)
    print("%s: %d passed, %d failed in %.0f s" % (
        peer.name, run.passed, len(run.failures), time.monotonic() - start))
    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of our programs")
    parser.add_argument("--only", action="append", choices=[kind.name for kind in peers.OTHERS])
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=DIR")
    parser.add_argument("--methods", default=",".join(peers.METHODS))
    parser.add_argument("--workers", default="2", help="of our programs")
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()

    places = dict(text.split("=", 1) for text in options.peer)
    ours = peers.Ours(options.bin, options.workers)
    if not ours.there():
        sys.exit("our programs are not in %s" % options.bin)
    ends = peers_chain.Targets()
    runs = []
    for kind in peers.OTHERS:
        if options.only and kind.name not in options.only:
            continue
        peer = kind([places[kind.name]] if kind.name in places else ())
        if not peer.there():
            print("SKIPPED: %s is not here (%s; tests/peers.sh installs it)" % (
                peer.name, peer.package))
            continue
        runs.append(try_peer(ours, peer, options.methods.split(","), ends, options.full))
    ends.close()
    failures = ["%s: %s" % (run.peer.name, what) for run in runs for what in run.failures]
    for failure in failures:
        print("FAILED %s" % failure)
    print("%d passed, %d failed" % (sum(run.passed for run in runs), len(failures)))
    if failures:
        sys.exit(1)
    if not runs:
        sys.exit(77)


if __name__ == "__main__":
    main()
