"""Bounds of time, for behaviour that is a time."""

import time


def seconds_of(action):
    start = time.monotonic()
    action()
    return time.monotonic() - start


def within(test, limit, action):
    """`action` takes at most `limit` seconds; on a busy machine the second run counts as well."""
    spans = []
    for _ in range(2):
        spans.append(seconds_of(action))
        if spans[-1] <= limit:
            return spans[-1]
    test.fail("took %s s, more than %g s twice" % (" and ".join("%.2f" % s for s in spans), limit))
