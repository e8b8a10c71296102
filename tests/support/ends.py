"""How streams end, and what must have happened before they do."""

import fcntl
import struct

from . import proc, wait

FIN, RESET = "fin", "reset"
_SIOCOUTQ = 0x5411


def read_to_end(conn):
    """What still comes, and whether a FIN or an RST is behind it. Waits as long as `conn` does."""
    parts = []
    while True:
        try:
            data = conn.recv(1 << 18)
        except ConnectionResetError:
            return b"".join(parts), RESET
        if not data:
            return b"".join(parts), FIN
        parts.append(data)


def acknowledged(conn):
    """Whether the peer's kernel has all that was sent."""
    return struct.unpack("i", fcntl.ioctl(conn, _SIOCOUTQ, bytes(4)))[0] == 0


def await_acknowledged(conn, seconds=30):
    wait.until(lambda: acknowledged(conn), seconds, "the peer's acknowledgement")


def unread(program, port):
    """Bytes that lie in the program's sockets on this local port and that it has not read."""
    count = 0
    with open("/proc/%d/net/tcp" % program.pid) as file:
        next(file)
        for row in map(str.split, file):
            if row[1].endswith(":%04X" % port) and row[3] != proc.LISTEN:
                count += int(row[4].split(":")[1], 16)
    return count


def await_reset_arrived(program, port, seconds=10):
    """Waits until no connection of the program (which may be stopped) to the port is alive."""

    def gone():
        return all(remote != port for _, _, remote in proc.tcp_connections(program.pid))

    wait.until(gone, seconds, "the reset's arrival")
