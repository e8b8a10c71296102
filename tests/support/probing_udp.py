"""Every kind of bad datagram against a server: none is answered, a repeat not a second time, and
none leaves anything behind."""

import os
import random

from . import packets, proc, udp

PAYLOAD = b"a datagram of a correct client"
BATCH = 40  # more might not fit into the server's socket, and be lost without being looked at


class Refused(Exception):
    """A correct client is not served."""


class Attack:
    """`pid` is that of the server, where it may be looked at; `target` answers with what it gets,
    and is an udp.Target where what reaches it is to be counted."""

    def __init__(self, server, method, key, target, pid=None, full=False, passes_on=False):
        self.server, self.pid, self.full, self.passes_on = server, pid, full, passes_on
        self.target = getattr(target, "address", target)
        self.counted = target if hasattr(target, "address") else None
        self.method, self.key = method, key
        self.client = packets.session(method, key)
        self.socket = self._socket()
        self.asked = 0
        self.wrong = []

    def _socket(self):
        made = udp.make_socket("::1" if ":" in self.server[0] else "127.0.0.1")
        made.connect(self.server)  # so that an ICMP error is seen as well
        return made

    def exchange(self):
        """One datagram of a correct client, and its answer: (sent, answer)."""
        payload = PAYLOAD + b" %d" % self.asked
        self.asked += 1
        datagram = self.client.seal(self.target, payload)
        self.socket.send(datagram)
        try:
            while True:
                answer = self.socket.recv(1 << 16)
                if self.client.open(answer) == (self.target, payload):
                    return datagram, answer
                self.wrong.append("a correct client hears an answer once more")
        except (OSError, ValueError) as error:
            raise Refused("a correct client is not served: %s" % error) from error

    # What is sent.

    def bad(self):
        """(cause, datagram)"""
        good = self.client.seal(self.target, PAYLOAD)
        lengths = range(1001) if self.full else [*range(130), 200, 300, 500, 999, 1000]
        for length in [*lengths, 1400, 9000, 60000]:
            yield "random bytes", os.urandom(length)
        for place in range(len(good)):
            for bit in range(8) if self.full else [random.randrange(8)]:
                yield "flipped bit", \
                    good[:place] + bytes([good[place] ^ 1 << bit]) + good[place + 1 :]
        for cut in range(len(good)):
            yield "cut", good[:cut]
        yield "a byte more", good + b"\0"
        yield "twice in one", good + good
        yield from self.client.bad(self.target, strange=not self.passes_on)

    def repeats(self):
        """(cause, datagram): what was answered before, and the answers."""
        for _ in range(5):
            datagram, answer = self.exchange()
            for _ in range(3):
                yield "replay", datagram
            yield "its own answer", answer
            yield "replay, changed", datagram[:-1] + bytes([datagram[-1] ^ 1])
            yield "replay, changed in front", bytes([datagram[0] ^ 1]) + datagram[1:]
            yield "replay, cut", datagram[:-1]

    # What comes of it.

    def _heard(self, sock):
        sock.setblocking(False)
        try:
            return "%d bytes" % len(sock.recv(1 << 16))
        except BlockingIOError:
            return None
        except OSError as error:
            return str(error)

    def _pour(self, plans):
        """Each cause from a socket of its own. The server has looked at all of a batch when it
        answers what was sent behind it."""
        sockets = {}
        for first in range(0, len(plans), BATCH):
            for cause, datagram in plans[first : first + BATCH]:
                if cause not in sockets:
                    sockets[cause] = self._socket()
                try:
                    sockets[cause].send(datagram)
                except ConnectionError as error:  # of one before
                    self.wrong.append("%s: %s" % (cause, error))
            self.exchange()
        self.exchange()  # whatever was to be answered has been by now
        for cause, sock in sockets.items():
            heard = self._heard(sock)
            if heard:
                self.wrong.append("%s is answered: %s" % (cause, heard))
            sock.close()
        return len(plans)

    def _sockets(self):
        return None if self.pid is None else (
            proc.descriptors(self.pid), len(proc.udp_ports(self.pid)))

    def run(self):
        """How many datagrams were sent; `wrong` says what was not as it must be."""
        self.exchange()
        before = self._sockets()
        count = self._pour(list(self.bad()))
        repeats = list(self.repeats())
        count += self._pour(repeats)
        random.shuffle(repeats)
        count += self._pour(repeats)
        if before != self._sockets():
            self.wrong.append("descriptors and UDP ports were %s and are %s" %
                              (before, self._sockets()))
        if self.counted is not None and self.counted.count != self.asked:
            self.wrong.append("%d datagrams reached the target, and %d were correct" %
                              (self.counted.count, self.asked))
        extra = self._heard(self.socket)
        if extra:
            self.wrong.append("a correct client hears more than its answers: " + extra)
        self.socket.close()
        return count
