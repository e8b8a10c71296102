"""Waiting for something to become true, with a deadline instead of a guess."""

import time


class Timeout(AssertionError):
    pass


def until(condition, seconds, what="the condition"):
    """Returns the first true value of condition(); Timeout when there is none in time."""
    deadline = time.monotonic() + seconds
    pause = 0.002
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Timeout("%s did not come within %g s" % (what, seconds))
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)
