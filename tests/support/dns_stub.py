"""A name server for tests: UDP, records from a table, delays and failures by name."""

import ipaddress
import socket
import struct
import threading

A, AAAA = 1, 28
NOERROR, SERVFAIL, NXDOMAIN, REFUSED = 0, 2, 3, 5


class Stub:
    """Answers on 127.0.0.1 (or `host`), at `port`. `queries` holds (name, type, source port) of each question."""

    def __init__(self, records=None, ttl=0, host="127.0.0.1", port=0):
        """`records`: name -> list of addresses as text."""
        self.records = {name.lower(): list(found) for name, found in (records or {}).items()}
        self.ttl = ttl
        self.delays = {}  # name -> seconds before the answer
        self.codes = {}  # name -> response code
        self.silent = set()  # names that get no answer at all
        self.queries = []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self.socket.bind((host, port))
        self.port = self.socket.getsockname()[1]
        self.nameserver = "%s:%d" % (host, self.port)
        threading.Thread(target=self._run, daemon=True).start()

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()

    def _run(self):
        while True:
            try:
                question, client = self.socket.recvfrom(4096)
            except OSError:
                return
            if not question:
                if self.socket.fileno() < 0:
                    return
                continue
            try:
                name, kind, end = _question(question)
            except (IndexError, UnicodeDecodeError, struct.error):
                continue  # not a question: random datagrams may come here too
            self.queries.append((name, kind, client[1]))
            if name in self.silent:
                continue
            answer = self._answer(question, name, kind, end)
            delay = self.delays.get(name, 0)
            if delay:
                timer = threading.Timer(delay, self._send, (answer, client))
                timer.daemon = True
                timer.start()
            else:
                self._send(answer, client)

    def _send(self, answer, client):
        try:
            self.socket.sendto(answer, client)
        except OSError:
            pass

    def _answer(self, question, name, kind, end):
        code = self.codes.get(name, NOERROR)
        known = self.records.get(name)
        if known is None and code == NOERROR:
            code = NXDOMAIN
        answers = []
        for text in known or [] if code == NOERROR else []:
            ip = ipaddress.ip_address(text)
            if (ip.version == 4) == (kind == A) and kind in (A, AAAA):
                answers.append(
                    struct.pack(">HHHIH", 0xC00C, kind, 1, self.ttl, len(ip.packed)) + ip.packed
                )
        head = question[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, len(answers), 0, 0)
        return head + question[12:end] + b"".join(answers)


def _question(message):
    at, labels = 12, []
    while message[at]:
        labels.append(message[at + 1 : at + 1 + message[at]].decode("ascii", "replace"))
        at += 1 + message[at]
    (kind,) = struct.unpack_from(">H", message, at + 1)
    return ".".join(labels).lower(), kind, at + 5
