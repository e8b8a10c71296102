"""A chain of a SOCKS5 client, a server and perhaps a relay between them, and its checks."""

import contextlib
import hashlib
import os
import socket
import struct

from . import peers, ports, socks, targets, udp

# Around the largest chunk of the 2017 methods, and of the 2022 edition.
TCP_SIZES = (1, 16382, 16383, 16384, 65535, 65536, 1 << 20)
TCP_SIZES_FULL = (0, 16385, 65519, 16 << 20)
UDP_SIZES = (1, 16, 100, 512, 1200, 1372)
UDP_SIZES_FULL = (0, 1373, 1400, 1472, 2048, 4000, 9000, 16384, 32768, 60000)
UDP_COUNT, UDP_COUNT_FULL, UDP_WINDOW = 200, 5000, 16
AT_ONCE, AT_ONCE_FULL = 10, 100
PATIENCE_S = 15


def _answer(conn):
    """For each request of a length and bytes: their SHA-256, then the bytes reversed in order."""
    while True:
        head = socks.receive(conn, 8)
        if len(head) < 8:
            return
        (count,) = struct.unpack(">Q", head)
        data = socks.receive(conn, count)
        conn.sendall(hashlib.sha256(data).digest() + data[::-1])


class Targets:
    """What the chains of one run lead to."""

    def __init__(self):
        self.exchange = targets.Target(_answer)
        self.greeter = targets.Target(targets.greeter(b"220 ready\r\n"))
        self.digest = targets.Target(targets.digest)
        self.datagrams = [udp.Target(keep=False), udp.Target(keep=False)]

    def close(self):
        for target in (self.exchange, self.greeter, self.digest, *self.datagrams):
            target.close()


class Chain:
    """Programs that were started from the far end on; `legs` are Servers or Clients with the peer
    that plays each."""

    def __init__(self, *legs):
        self.running = []
        self.peers = [peer for peer, _ in legs]
        self.lacks = {name for peer, what in legs for name in peer.lacks(what)}
        self.local = None
        try:
            for peer, what in legs:
                if isinstance(what, peers.Client):
                    self.running.append(peer.connect(what))
                    self.local = what.port
                else:
                    self.running.append(peer.serve(what))
        except BaseException:
            self.kill()
            raise

    def takes(self, size):
        """Whether each program passes datagrams of this size on."""
        return all(peer.udp_min <= size <= peer.udp_max for peer in self.peers)

    def log(self):
        return "".join("--- %s\n%s\n" % (" ".join(program.arguments), program.log[-20000:])
                       for program in self.running)

    def kill(self):
        for program in self.running:
            program.kill()

    def close(self):
        """Ends the programs; ours must have lived until now and end in good order."""
        problems = []
        for peer, program in zip(self.peers, self.running):
            try:
                if not program.alive:
                    program.fail("ended by itself")
                if isinstance(peer, peers.Ours):
                    status = program.stop()
                    if status != 0:
                        program.fail("ended with %s" % status)
            except AssertionError as error:
                problems.append(str(error))
            finally:
                program.kill()
        if problems:
            raise AssertionError("\n".join(problems))


def _dial(chain, address):
    return contextlib.closing(socks.connect(chain.local, address, timeout=PATIENCE_S))


def _exchange(conn, data):
    conn.sendall(struct.pack(">Q", len(data)) + data)
    if socks.receive(conn, 32) != hashlib.sha256(data).digest():
        raise AssertionError("the target got other bytes than the %d that were sent" % len(data))
    if socks.receive(conn, len(data)) != data[::-1]:
        raise AssertionError("%d bytes came back as others" % len(data))


def tcp_sizes(chain, end, full):
    sizes = TCP_SIZES + (TCP_SIZES_FULL if full else ())
    with _dial(chain, end.exchange.address) as conn:  # one after the other: the nonces go on
        for size in sizes:
            _exchange(conn, os.urandom(size))
    for size in sizes[:3]:
        with _dial(chain, end.exchange.address) as conn:
            _exchange(conn, os.urandom(size))


def tcp_name(chain, end, full):
    """The server resolves, or takes an address that is written as a name."""
    for name in ("localhost", "127.0.0.1".encode()):
        with _dial(chain, (name, end.exchange.port)) as conn:
            _exchange(conn, b"by name")


def tcp_at_once(chain, end, full):
    """Connections that are all open together, each with its own bytes."""
    count = AT_ONCE_FULL if full else AT_ONCE
    with contextlib.ExitStack() as stack:
        conns = [stack.enter_context(_dial(chain, end.exchange.address)) for _ in range(count)]
        blocks = [os.urandom(3000) for _ in conns]
        for conn, block in zip(conns, blocks):
            conn.sendall(struct.pack(">Q", len(block)) + block)
        for conn, block in zip(conns, blocks):
            if socks.receive(conn, 32 + len(block))[32:] != block[::-1]:
                raise AssertionError("a connection got other bytes than its own")


def tcp_server_first(chain, end, full):
    with _dial(chain, end.greeter.address) as conn:
        if socks.receive(conn, 11) != b"220 ready\r\n":
            raise AssertionError("the target's greeting did not come")
        conn.sendall(b"HELO")
        if socks.receive(conn, 4) != b"HELO":
            raise AssertionError("no echo after the greeting")


def tcp_half_close(chain, end, full):
    """The client's end reaches the target, whose answer still comes."""
    payload = os.urandom(100000)
    with _dial(chain, end.digest.address) as conn:
        conn.sendall(payload)
        conn.shutdown(socket.SHUT_WR)
        if socks.receive_all(conn) != hashlib.sha256(payload).digest():
            raise AssertionError("no whole answer after a half-close")


@contextlib.contextmanager
def _associate(chain):
    client = udp.Associate(chain.local, timeout=PATIENCE_S)
    try:
        yield client
    finally:
        client.close()


def _expect(client, target, payload):
    origin, answer = client.receive()
    if origin != target.address:
        raise AssertionError("an answer in the name of %s:%d" % origin)
    if answer != payload:
        raise AssertionError("a datagram of %d bytes came back as another" % len(payload))


def udp_sizes(chain, end, full):
    """To two targets in turn, from one association."""
    sizes = [size for size in UDP_SIZES + (UDP_SIZES_FULL if full else ())
             if chain.takes(size)]
    with _associate(chain) as client:
        for size in sizes:
            for target in end.datagrams:
                payload = os.urandom(size)
                client.send(target.address, payload)
                _expect(client, target, payload)


def udp_many(chain, end, full):
    """Some on the way at once, and not one is lost: the packet numbers go on."""
    count = UDP_COUNT_FULL if full else UDP_COUNT
    target = end.datagrams[0]
    filler = os.urandom(1000)
    with _associate(chain) as client:
        waiting, number = set(), 0
        while number < count or waiting:
            while number < count and len(waiting) < UDP_WINDOW:
                client.send(target.address, struct.pack(">I", number) + filler[: number % 1000])
                waiting.add(number)
                number += 1
            _, answer = client.receive()
            (got,) = struct.unpack_from(">I", answer)
            if answer[4:] != filler[: got % 1000]:
                raise AssertionError("datagram %d came back as another" % got)
            waiting.remove(got)


_CHECKS = (tcp_sizes, tcp_name, tcp_at_once, tcp_server_first, tcp_half_close, udp_sizes, udp_many)


def checks(chain):
    """Those that every program in the chain is able to pass."""
    return [check for check in _CHECKS if check.__name__ not in chain.lacks]


def port():
    return ports.free_port()
