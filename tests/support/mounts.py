"""A mount namespace of the test's own: files of /etc that only it and its programs see."""

import ctypes
import os
import unittest

_CLONE_NEWNS = 0x00020000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 1 << 18
_libc = ctypes.CDLL(None, use_errno=True)


def enter():
    """Moves this process (before it has threads, after netns.enter) into a new namespace."""
    if _libc.unshare(_CLONE_NEWNS) != 0:
        raise unittest.SkipTest("no right to make a mount namespace")
    if _libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None) != 0:
        raise unittest.SkipTest("mounts can't be made private: %s" % os.strerror(ctypes.get_errno()))


def cover(path, text, directory):
    """Puts a file of ours in the place of `path`; returns ours, whose content may be rewritten."""
    ours = os.path.join(directory, os.path.basename(path))
    with open(ours, "w") as file:
        file.write(text)
    real = os.path.realpath(path)
    if _libc.mount(ours.encode(), real.encode(), None, _MS_BIND, None) != 0:
        raise unittest.SkipTest("%s can't be covered: %s" % (path,
                                                             os.strerror(ctypes.get_errno())))
    return ours
