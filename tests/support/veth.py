"""Two network namespaces of the test's own with a link of 1,500 bytes between them."""

import contextlib
import ctypes
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import unittest

from . import netns

# ioctl and its commands (linux/sockios.h, linux/ethtool.h): segmentation and its reverse.
SIOCETHTOOL = 0x8946
ETHTOOL_SGSO, ETHTOOL_SGRO = 0x24, 0x2C

NEAR, FAR = "192.0.2.1", "192.0.2.2"
NEAR_NAME, FAR_NAME = "near0", "far0"


def _run(*command, namespace=None):
    try:
        subprocess.run(command, check=True, capture_output=True,
                       preexec_fn=(lambda: _move(namespace)) if namespace else None)
    except subprocess.CalledProcessError as error:
        raise unittest.SkipTest("%s: %s" % (" ".join(command), error.stderr.decode().strip()))


def _move(namespace):
    if netns._libc.setns(namespace, netns._CLONE_NEWNET) != 0:
        raise OSError("setns failed")


class Link:
    """This process (before it has threads) is at the near end from here on."""

    def __init__(self):
        if not shutil.which("ip"):
            raise unittest.SkipTest("no ip command on this machine")
        netns.enter()
        far = os.open("/proc/self/ns/net", os.O_RDONLY)
        # A second one; its right comes from the first, so it can always be had.
        if netns._libc.unshare(netns._CLONE_NEWNET) != 0:
            raise unittest.SkipTest("no right to make a network namespace")
        self.near = os.open("/proc/self/ns/net", os.O_RDONLY)
        self.far = far
        os.set_inheritable(self.far, True)
        _run("ip", "link", "set", "lo", "up")
        _run("ip", "link", "add", NEAR_NAME, "type", "veth", "peer", "name", FAR_NAME)
        _run("ip", "link", "set", FAR_NAME, "netns", "/proc/%d/fd/%d" % (os.getpid(), self.far))
        for name, address, namespace in ((NEAR_NAME, NEAR, None), (FAR_NAME, FAR, self.far)):
            _run("ip", "address", "add", address + "/24", "dev", name, namespace=namespace)
            _run("ip", "link", "set", name, "up", namespace=namespace)

    def offload(self, on):
        """Generic segmentation offload, and receive offload, of both devices."""
        for name, namespace in ((NEAR_NAME, self.near), (FAR_NAME, self.far)):
            _move(namespace)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as by:
                for command in (ETHTOOL_SGSO, ETHTOOL_SGRO):
                    value = ctypes.create_string_buffer(struct.pack("II", command, on))
                    request = struct.pack("16sP", name.encode(), ctypes.addressof(value))
                    fcntl.ioctl(by, SIOCETHTOOL, request)
        _move(self.near)

    @contextlib.contextmanager
    def far_end(self):
        """Sockets that are made inside are at the far end."""
        _move(self.far)
        try:
            yield
        finally:
            _move(self.near)

    def prepare(self):
        """For programs that are to run at the far end."""
        _move(self.far)
