"""Datagrams for tests: targets that answer, clients of ss-local and ss-tunnel, sealed packets."""

import ctypes
import ipaddress
import os
import resource
import socket
import struct
import threading

from . import shadow, socks

PAYLOAD_MAX = 65507
PATIENCE_S = 10


def make_socket(host="127.0.0.1", port=0, timeout=PATIENCE_S):
    """A bound datagram socket with room for bursts."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_DGRAM)
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        made.setsockopt(socket.SOL_SOCKET, option, 4 << 20)
    made.bind((host, port))
    made.settimeout(timeout)
    return made


def allow_descriptors(count):
    """Raises this process's own soft limit; False where the hard one is lower."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        return False
    if soft != resource.RLIM_INFINITY and soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    return True


def echo(data, _source):
    return data


def tell(data, source):
    """The source as the target sees it, a blank, and what came."""
    return b"%s#%d " % (source[0].encode(), source[1]) + data


def told(answer):
    """(host, port) and the rest of what `tell` answered."""
    source, rest = answer.split(b" ", 1)
    host, port = source.decode().rsplit("#", 1)
    return (host, int(port)), rest


class Target:
    """A datagram target in a thread of its own. `handler(data, source)` gives what to answer:
    bytes, a list of them, or None. `seen` holds (source, data) of each datagram that came."""

    def __init__(self, handler=echo, host="127.0.0.1", port=0, keep=True):
        self.socket = make_socket(host, port, None)
        self.host, self.port = self.socket.getsockname()[:2]
        self.address = (self.host, self.port)
        self.seen = []
        self.count = 0
        self._handler, self._keep = handler, keep
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while True:
            try:
                data, source = self.socket.recvfrom(1 << 16)
            except OSError:
                return
            if source is None:  # not a datagram of no bytes: the socket is shut down
                return
            self.count += 1
            if self._keep:
                self.seen.append((source[:2], data))
            answers = self._handler(data, source[:2])
            if isinstance(answers, bytes):
                answers = [answers]
            for answer in answers or []:
                try:
                    self.socket.sendto(answer, source)
                except OSError:
                    pass

    def sources(self):
        return [source for source, _ in list(self.seen)]

    def payloads(self):
        return [data for _, data in list(self.seen)]

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._thread.join(PATIENCE_S)
        self.socket.close()


def split_address(data):
    """(host, port) at the front of `data`, and what is behind it."""
    kind = data[0]
    if kind == 3:
        end = 2 + data[1]
        host = data[2:end].decode()
    else:
        end = 1 + {1: 4, 4: 16}[kind]
        host = str(ipaddress.ip_address(data[1:end]))
    (port,) = struct.unpack_from(">H", data, end)
    return (host, port), data[end + 2 :]


def frame(target, payload, fragment=0):
    """A datagram as a SOCKS5 client sends it."""
    return bytes([0, 0, fragment]) + socks.address(*target) + payload


def unframe(datagram):
    """(host, port) of the origin, and the payload."""
    if datagram[:3] != b"\0\0\0":
        raise AssertionError("a SOCKS5 datagram begins with %r" % datagram[:3])
    return split_address(datagram[3:])


def read_reply(conn):
    """The code of a SOCKS5 reply and the (host, port) in it."""
    head = socks.receive(conn, 4)
    if len(head) < 4:
        raise ConnectionError("closed instead of a reply: %r" % head)
    rest = socks.receive(conn, {1: 4, 4: 16}[head[3]] + 2)
    return head[1], split_address(head[3:] + rest)[0]


class Client:
    """A client of ss-tunnel: bare payloads to one address."""

    def __init__(self, entry, source=None, timeout=PATIENCE_S):
        """`entry` is a port of 127.0.0.1 or an address; `source` a host, or a host and a port."""
        self.entry = ("127.0.0.1", entry) if isinstance(entry, int) else entry
        if source is None:
            source = "::1" if ":" in self.entry[0] else "127.0.0.1"
        if isinstance(source, str):
            source = (source, 0)
        self.socket = make_socket(*source, timeout)
        self.address = self.socket.getsockname()[:2]

    def send(self, payload):
        self.socket.sendto(payload, self.entry)

    def receive(self):
        """A payload; it must come from the address that was sent to."""
        data, source = self.socket.recvfrom(1 << 16)
        if source[:2] != self.entry:
            raise AssertionError("an answer from %s instead of %s" % (source, self.entry))
        return data

    def exchange(self, payload):
        self.send(payload)
        return self.receive()

    def close(self):
        self.socket.close()


class Associate:
    """A SOCKS5 client with UDP: a control connection, and a socket that datagrams leave by."""

    def __init__(self, proxy, request=("0.0.0.0", 0), source=None, timeout=PATIENCE_S, login=None):
        """`proxy` is a port of 127.0.0.1 or an address; `source` the host that both come from."""
        self.proxy = ("127.0.0.1", proxy) if isinstance(proxy, int) else proxy
        if source is None:
            source = "::1" if ":" in self.proxy[0] else "127.0.0.1"
        self.conn = socket.create_connection(self.proxy, timeout, (source, 0))
        try:
            if login is None:
                self.conn.sendall(socks.GREETING)
                wanted = b"\x05\x00"
            else:
                user, password = (text.encode() for text in login)
                self.conn.sendall(b"\x05\x01\x02")
                if socks.receive(self.conn, 2) != b"\x05\x02":
                    raise ConnectionError("a login is not wanted")
                self.conn.sendall(bytes([1, len(user)]) + user + bytes([len(password)]) + password)
                wanted = b"\x01\x00"
            answer = socks.receive(self.conn, 2)
            if answer != wanted:
                raise ConnectionError("greeting answered with %r" % answer)
            self.socket = make_socket(source, 0, timeout)
            self.address = self.socket.getsockname()[:2]
            if request == "own":
                request = self.address
            self.conn.sendall(socks.request(*request, socks.ASSOCIATE))
            code, self.relay = read_reply(self.conn)
            if code != 0:
                raise socks.Refused(code)
        except BaseException:
            self.close()
            raise

    def send(self, target, payload, by=None):
        """`by`: another socket than the client's own."""
        (by or self.socket).sendto(frame(target, payload), self.relay)

    def receive(self, by=None):
        """(host, port) of the origin, and the payload."""
        data, source = (by or self.socket).recvfrom(1 << 16)
        if source[:2] != self.relay:
            raise AssertionError("an answer from %s instead of %s" % (source, self.relay))
        return unframe(data)

    def exchange(self, target, payload, by=None):
        self.send(target, payload, by)
        return self.receive(by)

    def close_control(self):
        self.conn.close()

    def close(self):
        self.conn.close()
        if hasattr(self, "socket"):
            self.socket.close()


def _cipher(name, key, text, nonce):
    out = ctypes.create_string_buffer(len(text) + shadow.TAG_LEN)
    length = ctypes.c_ulonglong()
    call = getattr(shadow._sodium, "crypto_aead_chacha20poly1305_ietf_" + name)
    none, zero = None, ctypes.c_ulonglong(0)
    if name == "encrypt":
        failed = call(out, ctypes.byref(length), text, ctypes.c_ulonglong(len(text)), none, zero,
                      none, nonce, key)
    else:
        failed = call(out, ctypes.byref(length), none, text, ctypes.c_ulonglong(len(text)), none,
                      zero, nonce, key)
    if failed:
        raise ValueError("a tag does not verify")
    return out.raw[: length.value]


def seal_plain(password, plain, salt=None):
    """A packet of chacha20-ietf-poly1305 with anything in it."""
    salt = os.urandom(shadow.SALT_LEN) if salt is None else salt
    key = shadow.subkey(shadow.master_key(password), salt)
    return salt + _cipher("encrypt", key, plain, bytes(12))


def seal(password, address, payload, salt=None):
    """A packet to a target for a server, or from an origin for a client."""
    return seal_plain(password, socks.address(*address) + payload, salt)


def unseal(password, packet):
    """(host, port) and payload of a packet."""
    salt, sealed = packet[: shadow.SALT_LEN], packet[shadow.SALT_LEN :]
    key = shadow.subkey(shadow.master_key(password), salt)
    return split_address(_cipher("decrypt", key, sealed, bytes(12)))


class Prober:
    """A Shadowsocks client that sends packets, or any bytes, straight to a server."""

    def __init__(self, server, password, source=None, timeout=PATIENCE_S):
        self.server = ("127.0.0.1", server) if isinstance(server, int) else server
        if source is None:
            source = "::1" if ":" in self.server[0] else "127.0.0.1"
        self.password = password
        self.socket = make_socket(source, 0, timeout)

    def send_raw(self, packet):
        self.socket.sendto(packet, self.server)

    def send(self, target, payload):
        self.send_raw(seal(self.password, target, payload))

    def receive(self):
        data, source = self.socket.recvfrom(1 << 16)
        if source[:2] != self.server:
            raise AssertionError("an answer from %s instead of %s" % (source, self.server))
        return unseal(self.password, data)

    def exchange(self, target, payload):
        self.send(target, payload)
        return self.receive()

    def waiting(self):
        """Whether a datagram has come that nobody has read."""
        self.socket.setblocking(False)
        try:
            self.socket.recv(1, socket.MSG_PEEK)
            return True
        except BlockingIOError:
            return False
        finally:
            self.socket.settimeout(PATIENCE_S)

    def close(self):
        self.socket.close()


class Upstream:
    """The UDP side of a Shadowsocks server, played by the test."""

    def __init__(self, password, host="127.0.0.1", timeout=PATIENCE_S):
        self.password = password
        self.socket = make_socket(host, 0, timeout)
        self.port = self.socket.getsockname()[1]
        self.client = None

    def receive(self):
        """(host, port) of the target, and the payload; `client` is whom it came from."""
        data, self.client = self.socket.recvfrom(1 << 16)
        return unseal(self.password, data)

    def answer(self, origin, payload):
        self.answer_raw(seal(self.password, origin, payload))

    def answer_raw(self, packet):
        self.socket.sendto(packet, self.client)

    def close(self):
        self.socket.close()
