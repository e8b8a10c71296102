"""Readers of bulk: how much came, its digest and how it ended, read fast, slowly or by fits."""

import hashlib
import random
import threading
import time

from . import ends


def steady(_):
    return 1 << 18, 0


def slow(_):
    """So that what is written to it is not all taken."""
    return 1 << 18, 0.005


def stuttering(rng):
    """A byte, a little or a lot, and a pause now and then: writes to it are cut anywhere."""
    return (rng.choice((1, 1, 100, 5000, 16417, 70000, 1 << 20)),
            rng.choice((0, 0, 0, 0.001, 0.001, 0.02)))


class Reader(threading.Thread):
    """Reads to the end in the manner of `how`, which says how much is asked for, and the pause."""

    def __init__(self, conn, how=steady):
        super().__init__(daemon=True)
        self.conn, self.how, self.rng = conn, how, random.Random(1)
        self.total, self.count, self.end = hashlib.sha256(), 0, None
        self.start()

    def run(self):
        while True:
            size, pause = self.how(self.rng)
            try:
                data = self.conn.recv(size)
            except OSError as error:
                self.end = ends.RESET if isinstance(error, ConnectionResetError) else error
                return
            if not data:
                self.end = ends.FIN
                return
            self.total.update(data)
            self.count += len(data)
            if pause:
                time.sleep(pause)  # the slowness is what is tested

    def result(self, seconds=100):
        self.join(seconds)
        return self.count, self.total.hexdigest(), self.end


def whole(text, end=ends.FIN):
    """The result of a reader that got all of `text`."""
    return len(text), hashlib.sha256(text).hexdigest(), end
