"""R84: sockets are bound before privileges are dropped, a port below 1024 for TCP and UDP."""

import os
import pwd
import socket
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, proc, programs, wait  # noqa: E402
from support.case import settings  # noqa: E402


def low_port():
    """A port below 1024 that is free for both protocols."""
    for port in range(1023, 600, -1):
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            try:
                tcp.bind(("127.0.0.1", port))
                udp.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise unittest.SkipTest("no port below 1024 is free")


@unittest.skipUnless(os.geteuid() == 0, "only root has privileges to drop")
class LowPort(case.Case):
    def test_both_protocols_are_bound_and_the_user_is_switched(self):
        port = low_port()
        server = programs.Program(
            [programs.find(settings.bin, "ss-server"), "-s", "127.0.0.1", "-p", port, "-k", "pw",
             "-m", "aes-256-gcm", "-u", "-a", "nobody", "--workers", settings.workers])
        self.addCleanup(server.stop)
        server.await_listening(port)
        nobody = pwd.getpwnam("nobody").pw_uid
        wait.until(lambda: proc.status(server.pid)["Uid"].split() == [str(nobody)] * 4, 5)
        self.assertIn(port, proc.udp_ports(server.pid))


if __name__ == "__main__":
    case.main()
