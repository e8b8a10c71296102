#!/usr/bin/env python3
"""The tables of docs/performance.md, in Markdown, out of what compare.py has written.

    tables.py docs/measurements/tcp-*.json

A figure is the median of the rounds; a ratio, ours to the other, that of the rounds' ratios.
"""

import argparse
import itertools
import json
import types

import compare

SPEED, CLIENT, SERVER = "bytes_per_second", "front_cpu_s_per_gb", "back_cpu_s_per_gb"
HEAD = {
    "short": ("connections/s", "client µs", "server µs", 1e3),
    None: ("GB/s", "client s/GB", "server s/GB", 1e9),
}


def print_table(measured):
    speed, client, server, unit = HEAD.get(measured["load"], HEAD[None])
    print("| method | chain | %s | spread | %s | %s | ours ÷ it: speed | client CPU | server CPU |" %
          (speed, client, server))
    print("|---|---|---|---|---|---|---|---|---|")
    groups = itertools.groupby(measured["results"],
                               key=lambda result: (result["method"], result["direction"]))
    for (method, _), results in groups:
        chains = [types.SimpleNamespace(name=result["chain"], rounds=result["rounds"])
                  for result in results]
        label = method
        for chain in chains:
            line = "| %s | %s | %s | %.0f%% | %s | %s |" % (
                label, chain.name, number(compare.median(chain, SPEED) / unit), 100 * compare.spread(chain, SPEED), number(compare.median(chain, CLIENT)),
                number(compare.median(chain, SERVER)))
            if chain is chains[0]:
                print(line + " | | |")
            else:
                print(line + " %s | %s | %s |" % tuple(
                    number(compare.ratio(chains[0], chain, what))
                    for what in (SPEED, CLIENT, SERVER)))
            label = ""


def number(value):
    return "%.0f" % value if value >= 100 else "%.1f" % value if value >= 10 else "%.2f" % value \
        if value >= 1 else "%.3f" % value


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="+")
    for name in parser.parse_args().file:
        with open(name) as file:
            measured = json.load(file)
        direction = "/".join(sorted({result["direction"] for result in measured["results"]}))
        print("\n%s: %s, %s, %d streams, %d workers, %d rounds of %d s, load before %.1f\n" % (
            name, measured["load"], direction, measured["streams"], measured["workers"],
            measured["rounds"], measured["seconds"], measured["machine"]["load_before"]))
        print_table(measured)


if __name__ == "__main__":
    main()
