#!/bin/sh
# Holds the programs against the recorded behaviour of the classic ones:
#
#   sh tests/dropin.sh BIN [argument of the runner]...
#
# The drop-in conformance suite is no part of this tree. It is looked for in the folder that
# SS_DROPIN names, or else in ../shared/dropin beside the checkout. Every row that differs must be
# named in docs/differences.md.
# 0: so it is; 1: a row is unexplained; 77: nothing was compared, and a line says why.
set -eu

skip()
{
    echo "dropin: skipped: $1"
    exit 77
}

[ $# -ge 1 ] || { echo "usage: sh tests/dropin.sh BIN [argument of the runner]..." >&2; exit 2; }
bin=$1
shift
root=$(cd "$(dirname "$0")/.." && pwd)
suite=${SS_DROPIN:-$root/../shared/dropin}

[ -f "$suite/run.py" ] || skip "no drop-in suite in ${SS_DROPIN:-../shared/dropin}"
command -v python3 >/dev/null || skip "python3 is missing"
classic=$(command -v ss-server) || skip "the classic programs that play the other end are missing"

rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
# Its status tells whether any row differs, which is judged below; without rows it was a fault.
python3 "$suite/run.py" --bin "$bin" --peer "$(dirname "$classic")" \
    --group cli --group config --group acl --group start --group effect --group socks --group signal \
    --group redir --group nat --group manager --per-port-args=--process-per-port \
    --json "$rows" "$@" >/dev/null || [ $? -eq 1 ]

python3 - "$rows" "$root/docs/differences.md" <<'JUDGE'
import json
import re
import sys


class Patterns:
    """Names of cases where `*` stands for anything."""

    def __init__(self, names):
        self.names = [(name, re.compile(".*".join(map(re.escape, name.split("*"))) + r"\Z"))
                      for name in names]

    def match(self, case):
        return any(pattern.match(case) for _, pattern in self.names)


def decided(path):
    """What stands in backquotes behind "Cases:", to the end of that paragraph."""
    with open(path, encoding="utf-8") as page:
        for paragraph in re.findall(r"Cases:(.*?)(?=\n\s*\n|\n\s*\d+\. |\Z)", page.read(), re.S):
            for name in re.findall(r"`([^`]+)`", paragraph):
                yield re.sub(r"\s+", " ", name)


with open(sys.argv[1], encoding="utf-8") as handle:
    rows = [row for row in json.load(handle) if row["kind"] in ("same", "better")]
decisions = Patterns(decided(sys.argv[2]))
counts = {"decided": 0, "UNEXPLAINED": 0}
for row in rows:
    if row["kind"] == "same" and decisions.match(row["case"]):
        verdict = "decided"
    else:
        verdict = "UNEXPLAINED"
    counts[verdict] += 1
    print("%-11s %-6s %s [%s]" % (verdict, row["kind"], row["case"], row["field"]))
    if verdict == "UNEXPLAINED":
        print("    expected  %s\n    got       %s" % (json.dumps(row["expected"]), json.dumps(row["got"])))
print("dropin: %d rows differ: %d decided, %d unexplained"
      % (len(rows), counts["decided"], counts["UNEXPLAINED"]))
sys.exit(1 if counts["UNEXPLAINED"] else 0)
JUDGE
