"""A network namespace of the test's own: its settings and filters touch nobody else."""

import ctypes
import fcntl
import os
import socket
import struct
import unittest

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_libc = ctypes.CDLL(None, use_errno=True)


def enter():
    """Moves this process (before it has threads) into a new namespace with its loopback up."""
    uid, gid = os.getuid(), os.getgid()
    if _libc.unshare(_CLONE_NEWNET) != 0:
        if _libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
            raise unittest.SkipTest("no right to make a network namespace")
        for name, text in (("setgroups", "deny"), ("uid_map", "0 %d 1" % uid),
                           ("gid_map", "0 %d 1" % gid)):
            with open("/proc/self/" + name, "w") as file:
                file.write(text)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = bytearray(struct.pack("16sH22x", b"lo", 0))
        fcntl.ioctl(control, _SIOCGIFFLAGS, request)
        (flags,) = struct.unpack_from("H", request, 16)
        struct.pack_into("H", request, 16, flags | _IFF_UP)
        fcntl.ioctl(control, _SIOCSIFFLAGS, bytes(request))


def move(namespace):
    """Takes this thread to the namespace of a descriptor."""
    if _libc.setns(namespace, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns failed")


def sysctl(name, value):
    path = "/proc/sys/" + name.replace(".", "/")
    try:
        with open(path, "w") as file:
            file.write(str(value))
    except OSError as error:
        raise unittest.SkipTest("%s cannot be set: %s" % (name, error.strerror))


def counters(group):
    """A group (TcpExt, MPTcpExt) of this namespace's network statistics."""
    for name in ("netstat", "snmp"):
        with open("/proc/self/net/" + name) as file:
            rows = file.read().splitlines()
        for names, values in zip(rows[::2], rows[1::2]):
            if names.startswith(group + ":"):
                return dict(zip(names.split()[1:], map(int, values.split()[1:])))
    return {}
