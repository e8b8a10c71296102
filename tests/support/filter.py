"""Ports of a test's own network namespace from which nothing comes, not even a refusal."""

import shutil
import subprocess
import unittest

_TABLE = "inet drops"


def _nft(rules):
    result = subprocess.run(["nft", "-f", "-"], input=rules, text=True, capture_output=True)
    if result.returncode:
        raise unittest.SkipTest("nft cannot filter here: " + result.stderr.strip())


class Filter:
    """What is sent to a dropped port is lost on its way in. Only inside netns.enter()."""

    def __init__(self):
        if not shutil.which("nft"):
            raise unittest.SkipTest("no nft command on this machine")
        self._dropped = set()
        _nft("table %s { chain input { type filter hook input priority 0; }; }\n" % _TABLE)

    def _apply(self):
        rules = "flush chain %s input\n" % _TABLE
        for family, protocol, port in sorted(self._dropped):
            match = "" if family is None else "meta nfproto %s " % family
            rules += "add rule %s input %s%s dport %d drop\n" % (_TABLE, match, protocol, port)
        _nft(rules)

    def drop(self, port, protocol="tcp", family=None):
        """`family`: ipv4 or ipv6 alone."""
        self._dropped.add((family, protocol, port))
        self._apply()

    def let(self, port, protocol="tcp", family=None):
        self._dropped.discard((family, protocol, port))
        self._apply()

    def close(self):
        _nft("delete table %s\n" % _TABLE)
