"""What the programs of several builds weigh, stripped, and what they are linked with.

    python3 tests/bench/size.py default=build/bin slim=build-slim/bin minimal=build-minimal/bin
        [--programs ss-server,ss-local] [--map build-minimal/ss-server.map] [--json FILE]

--map reads a map of the linker (-Wl,-Map=FILE, from a build without SS_LTO) and says what weighs what.
"""

import argparse
import collections
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import sizes  # noqa: E402

PIECE = re.compile(r"^ (\.\S+)\s+0x[0-9a-f]+\s+0x([0-9a-f]+) (\S+)", re.M)
LOADED = (".text", ".rodata", ".data", ".init", ".eh_frame")


def weights(path):
    """Bytes in the file by library, as the map has them."""
    with open(path) as file:
        text = file.read().split("Linker script and memory map", 1)[1]
    # A long name stands on a line of its own.
    text = re.sub(r"^( \.\S+)\n\s+", r"\1 ", text, flags=re.M)
    found = collections.Counter()
    for section, size, source in PIECE.findall(text):
        if section.startswith(LOADED):
            archive = re.search(r"([^/]+)\.a\(", source)
            found[archive.group(1) if archive else os.path.basename(source)] += int(size, 16)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="*", metavar="NAME=FOLDER")
    parser.add_argument("--programs", default="ss-server,ss-local,ss-tunnel,ss-redir,ss-manager")
    parser.add_argument("--map")
    parser.add_argument("--json")
    options = parser.parse_args()

    found = {}
    for build in options.builds:
        name, folder = build.split("=", 1)
        for program in options.programs.split(","):
            path = os.path.join(folder, program)
            if not os.access(path, os.X_OK):
                print("%-10s %-11s not there" % (name, program))
                continue
            one = {"bytes": sizes.stripped(path), "libraries": sizes.libraries(path)}
            found.setdefault(name, {})[program] = one
            print("%-10s %-11s %7.1f KiB  %s" % (name, program, one["bytes"] / 1024,
                                                " ".join(one["libraries"])))
    report = {"builds": found}
    if options.map:
        report["weights"] = dict(weights(options.map).most_common())
        for name, size in report["weights"].items():
            print("%-32s %7.1f KiB" % (name, size / 1024))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(report, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
