"""A name server for tests: records from a table, over UDP and TCP, with faults by name."""

import ipaddress
import socket
import struct
import threading

from . import ports

A, CNAME, SOA, AAAA = 1, 5, 6, 28
NOERROR, SERVFAIL, NXDOMAIN, REFUSED = 0, 2, 3, 5
UDP_MAX = 512  # longer answers are cut, as RFC 1035 has it


class Stub:
    """Answers on host:port. `queries` holds (name, type, source port) of each UDP question."""

    def __init__(self, records=None, ttl=0, host="127.0.0.1", port=0):
        """`records`: name -> list of addresses as text; "*.x.test" is every name below x.test."""
        self.records = {name.lower(): list(found) for name, found in (records or {}).items()}
        self.ttl = ttl
        self.ttls = {}  # name -> time to live, instead
        self.negative_ttl = None  # an SOA record with this minimum comes with a "no"
        self.aliases = {}  # name -> the name that it is another one for
        self.delays = {}  # name -> seconds before the answer
        self.codes = {}  # name -> response code
        self.silent = set()  # names that get no answer at all
        self.cut = set()  # names whose answer is truncated on UDP
        self.mangled = {}  # name -> what is done to the bytes of the answer
        self.queries = []
        self.tcp_queries = []
        self.host = host
        self.family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.socket = self.listener = None
        self.port = port or ports.free_port()
        self.up()

    @property
    def nameserver(self):
        return ("[%s]:%d" if ":" in self.host else "%s:%d") % (self.host, self.port)

    def up(self):
        """Begins to answer, at the same port as before if there was one."""
        self.socket = socket.socket(self.family, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self.socket.bind((self.host, self.port))
        self.listener = socket.socket(self.family, socket.SOCK_STREAM)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((self.host, self.port))
        self.listener.listen(64)
        threading.Thread(target=self._run, args=(self.socket,), daemon=True).start()
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def close(self):
        for sock in (self.socket, self.listener):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            sock.close()

    down = close

    def count(self, name):
        """The questions for a name so far."""
        return sum(1 for asked, _, _ in list(self.queries) if asked == name)

    def _run(self, sock):
        while True:
            try:
                question, client = sock.recvfrom(4096)
            except OSError:
                return
            if not question:
                if sock.fileno() < 0:
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
            if name in self.cut or len(answer) > UDP_MAX:
                answer = _truncate(answer, end)
            if name in self.mangled:
                answer = self.mangled[name](answer)
            delay = self.delays.get(name, 0)
            if delay:
                timer = threading.Timer(delay, self._send, (sock, answer, client))
                timer.daemon = True
                timer.start()
            else:
                self._send(sock, answer, client)

    @staticmethod
    def _send(sock, answer, client):
        try:
            sock.sendto(answer, client)
        except OSError:
            pass

    def _accept(self, listener):
        while True:
            try:
                conn, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(conn,), daemon=True).start()

    def _serve(self, conn):
        with conn:
            try:
                while True:
                    head = _receive(conn, 2)
                    question = _receive(conn, *struct.unpack(">H", head))
                    name, kind, end = _question(question)
                    self.tcp_queries.append((name, kind))
                    if name in self.silent:
                        continue
                    answer = self._answer(question, name, kind, end)
                    conn.sendall(struct.pack(">H", len(answer)) + answer)
            except (OSError, IndexError, UnicodeDecodeError, struct.error):
                return

    def _find(self, name):
        found = self.records.get(name)
        while found is None and "." in name:
            name = name.split(".", 1)[1]
            found = self.records.get("*." + name)
        return found

    def _ttl(self, name):
        return self.ttls.get(name, self.ttl)

    def _answer(self, question, name, kind, end):
        code = self.codes.get(name, NOERROR)
        owner, answers = b"\xc0\x0c", []
        while name in self.aliases and code == NOERROR:
            target = _wire(self.aliases[name])
            answers.append(_record(owner, CNAME, self._ttl(name), target))
            name, owner = self.aliases[name], target
        known = self._find(name)
        if known is None and code == NOERROR:
            code = NXDOMAIN
        found = 0
        for text in known or [] if code == NOERROR else []:
            ip = ipaddress.ip_address(text)
            if (ip.version == 4) == (kind == A) and kind in (A, AAAA):
                answers.append(_record(owner, kind, self._ttl(name), ip.packed))
                found += 1
        authorities = []
        if not found and code in (NOERROR, NXDOMAIN) and self.negative_ttl is not None:
            numbers = struct.pack(">IIIII", 1, 3600, 3600, 3600, self.negative_ttl)
            authorities.append(_record(b"\0", SOA, 3600, b"\0\0" + numbers))
        head = question[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, len(answers),
                                          len(authorities), 0)
        return head + question[12:end] + b"".join(answers + authorities)


def _record(owner, kind, ttl, data):
    return owner + struct.pack(">HHIH", kind, 1, ttl, len(data)) + data


def _wire(name):
    labels = [label.encode() for label in name.split(".")]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def _truncate(answer, end):
    """The header with its "cut" bit and the question, and nothing else."""
    return answer[:2] + bytes([answer[2] | 2, answer[3]]) + b"\0\1" + bytes(6) + answer[12:end]


def _receive(conn, count):
    data = b""
    while len(data) < count:
        more = conn.recv(count - len(data))
        if not more:
            raise OSError("ended")
        data += more
    return data


def _question(message):
    at, labels = 12, []
    while message[at]:
        labels.append(message[at + 1 : at + 1 + message[at]].decode("ascii", "replace"))
        at += 1 + message[at]
    (kind,) = struct.unpack_from(">H", message, at + 1)
    return ".".join(labels).lower(), kind, at + 5
