"""R82: an optional socket option that the kernel refuses costs one warning, never the program."""

import ctypes
import os
import platform
import struct
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, socks, targets  # noqa: E402

# What a listener cannot do without.
SOL_SOCKET, SO_REUSEADDR, SO_ERROR, SO_LINGER = 1, 2, 4, 13
IPPROTO_IPV6, IPV6_V6ONLY = 41, 26
KEPT = ((SOL_SOCKET, SO_REUSEADDR), (SOL_SOCKET, SO_LINGER), (IPPROTO_IPV6, IPV6_V6ONLY))

NUMBERS = {"x86_64": 54, "aarch64": 208, "riscv64": 208}
ENOPROTOOPT = 92
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000


def refuse_options():
    """Runs in the child: from here on setsockopt fails for all options but KEPT."""
    program = [(LOAD, 0, 0, 0), (JUMP_EQUAL, 1, 0, NUMBERS[platform.machine()]),
               (RETURN, 0, 0, ALLOW)]
    for level, option in KEPT:
        program += [(LOAD, 0, 0, 24), (JUMP_EQUAL, 0, 3, level), (LOAD, 0, 0, 32),
                    (JUMP_EQUAL, 0, 1, option), (RETURN, 0, 0, ALLOW)]
    program += [(RETURN, 0, 0, ERRNO | ENOPROTOOPT)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in program))

    class Filter(ctypes.Structure):
        _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    libc = ctypes.CDLL(None)
    rules = Filter(len(program), ctypes.cast(code, ctypes.c_void_p))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
            PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(rules), 0, 0):
        os._exit(98)


class SocketOptions(case.Case):
    def setUp(self):
        super().setUp()
        if platform.machine() not in NUMBERS:
            raise unittest.SkipTest("the filter is not written for this processor")

    def assert_works_with(self, *arguments):
        echo = self.target(targets.echo)
        server = self.server(*arguments, prepare=refuse_options)
        local = self.local(server, *arguments, prepare=refuse_options)
        for _ in range(10):
            conn = socks.connect(local.port, echo.address)
            self.addCleanup(conn.close)
            self.assert_echoes(conn, os.urandom(20000))
        for program in (server, local):
            self.assertFalse(program.log_lines(" ERROR: "), program.log)
            warnings = [line.split(" WARN: ", 1)[1] for line in program.log_lines(" WARN: ")]
            self.assertEqual(len(warnings), len(set(warnings)), "a warning comes twice")
            # One for each option, however many connections there were.
            self.assertLess(len(warnings), 10, program.log)
            self.assertGreater(len(warnings), 0, "nothing says that options are refused")

    def test_plain(self):
        self.assert_works_with()

    def test_with_all_options_asked_for(self):
        self.assert_works_with("--fast-open", "--reuse-port", "--mptcp", "--no-delay")


if __name__ == "__main__":
    case.main()
