"""Sockets of another process, borrowed so that their options can be read."""

import contextlib
import ctypes
import errno
import os
import socket
import unittest

_PIDFD_GETFD = 438  # the same on all processors
_libc = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def tcp_sockets(pid):
    """The process's connected TCP sockets; a copy of each, closed afterwards."""
    if not hasattr(os, "pidfd_open"):
        raise unittest.SkipTest("this Python has no pidfd_open")
    try:
        process = os.pidfd_open(pid)
    except OSError as error:
        raise unittest.SkipTest("no pidfd_open here: %s" % error.strerror)
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, process)
        found = []
        for name in os.listdir("/proc/%d/fd" % pid):
            if not os.readlink("/proc/%d/fd/%s" % (pid, name)).startswith("socket:"):
                continue
            copy = _libc.syscall(_PIDFD_GETFD, process, int(name), 0)
            if copy < 0:
                number = ctypes.get_errno()
                if number in (errno.EPERM, errno.ENOSYS):
                    raise unittest.SkipTest(
                        "no right to look at another process's sockets: %s" % os.strerror(number))
                raise OSError(number, os.strerror(number))
            conn = stack.enter_context(socket.socket(fileno=copy))
            if conn.family not in (socket.AF_INET, socket.AF_INET6):
                continue
            if conn.type != socket.SOCK_STREAM:
                continue
            if not conn.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                found.append(conn)
        yield found
