"""A SOCKS5 client (RFC 1928), whole or in pieces."""

import ipaddress
import socket
import struct

GREETING = b"\x05\x01\x00"
CONNECT, BIND, ASSOCIATE = 1, 2, 3


class Refused(AssertionError):
    def __init__(self, code):
        super().__init__("SOCKS5 reply %d" % code)
        self.code = code


def address(host, port):
    """ATYP, address and port as they stand in a request and in a Shadowsocks header."""
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        name = host.encode() if isinstance(host, str) else host
        return b"\x03" + bytes([len(name)]) + name + struct.pack(">H", port)
    return (b"\x01" if ip.version == 4 else b"\x04") + ip.packed + struct.pack(">H", port)


def request(host, port, command=CONNECT):
    return bytes([5, command, 0]) + address(host, port)


def receive(conn, count):
    """Exactly `count` bytes, or fewer when the stream ends before."""
    parts = []
    while count > 0:
        part = conn.recv(min(count, 1 << 18))
        if not part:
            break
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def receive_all(conn):
    parts = []
    while True:
        part = conn.recv(1 << 18)
        if not part:
            return b"".join(parts)
        parts.append(part)


def read_reply(conn):
    """The reply code; the address in it is read and dropped."""
    head = receive(conn, 4)
    if len(head) < 4:
        raise ConnectionError("closed instead of a reply: %r" % head)
    length = {1: 4, 3: None, 4: 16}[head[3]]
    if length is None:
        length = receive(conn, 1)[0]
    receive(conn, length + 2)
    return head[1]


def dial(host, port, timeout=10, family=None):
    conn = socket.create_connection((host, port), timeout)
    conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return conn


def connect(proxy, target, timeout=10, first=b""):
    """A connection through the proxy (a port of 127.0.0.1, or an address) to `target`.

    `first` travels in the same segment as the request.
    """
    if isinstance(proxy, int):
        proxy = ("127.0.0.1", proxy)
    conn = dial(*proxy, timeout)
    try:
        conn.sendall(GREETING + request(*target) + first)
        answer = receive(conn, 2)
        if answer != b"\x05\x00":
            raise ConnectionError("greeting answered with %r" % answer)
        code = read_reply(conn)
        if code != 0:
            raise Refused(code)
    except BaseException:
        conn.close()
        raise
    return conn


def reset(conn):
    """Closes with RST instead of FIN."""
    try:
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    finally:
        conn.close()
