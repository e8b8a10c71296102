"""Stopping a program for a moment, so that it sees several events in one round of its loop."""

import contextlib
import os
import signal

from . import wait


def _state(pid, thread):
    with open("/proc/%d/task/%s/stat" % (pid, thread)) as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def _is_stopped(pid):
    return all(_state(pid, thread) == "T" for thread in os.listdir("/proc/%d/task" % pid))


@contextlib.contextmanager
def stopped(program):
    """Inside, no thread of the program runs; its kernel side goes on."""
    program.process.send_signal(signal.SIGSTOP)
    try:
        wait.until(lambda: _is_stopped(program.pid), 10, "the program's stop")
        yield
    finally:
        program.process.send_signal(signal.SIGCONT)
