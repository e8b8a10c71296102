"""Questions to name servers, and a name server that has an answer to every name, UDP and TCP."""

import hashlib
import ipaddress
import os
import shutil
import socket
import struct
import threading

from . import dns_stub, ports, programs, socks, wait

A = dns_stub.A


def address_of(name):
    """The address that `Everything` and our dnsmasq have for a name: 10.x.y.z from its digest."""
    return "10.%d.%d.%d" % tuple(hashlib.sha256(name.encode()).digest()[:3])


def question(number, name, kind=A):
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack(">HHHHHH", number, 0x0100, 1, 0, 0, 0) + labels + struct.pack(
        ">BHH", 0, kind, 1)


def read_answer(message):
    """(id, name, addresses) of an answer to one question."""
    number, _, _, count, _, _ = struct.unpack_from(">HHHHHH", message)
    name, _, at = dns_stub._question(message)
    found = []
    for _ in range(count):
        while message[at] and message[at] < 0xC0:
            at += 1 + message[at]
        at += 2 if message[at] else 1
        kind, _, _, length = struct.unpack_from(">HHIH", message, at)
        at += 10
        if kind == A:
            found.append(str(ipaddress.ip_address(message[at : at + length])))
        at += length
    return number, name, found


def ask_tcp(conn, message):
    """Sends a question over TCP and reads the answer."""
    conn.sendall(struct.pack(">H", len(message)) + message)
    (length,) = struct.unpack(">H", socks.receive(conn, 2))
    return socks.receive(conn, length)


class Everything:
    """Answers on one port of 127.0.0.1, over UDP and TCP."""

    def __init__(self):
        self.port = ports.free_port()
        self.address = ("127.0.0.1", self.port)
        self.udp_names, self.tcp_names = [], []
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(self.address)
        self.tcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.tcp.bind(self.address)
        self.tcp.listen(64)
        for run in (self._run_udp, self._run_tcp):
            threading.Thread(target=run, daemon=True).start()

    def close(self):
        for listening in (self.udp, self.tcp):
            try:
                listening.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            listening.close()

    def _answer(self, message, names):
        name, _, end = dns_stub._question(message)
        names.append(name)
        return (message[:2] + struct.pack(">HHHHH", 0x8180, 1, 1, 0, 0) + message[12:end] +
                struct.pack(">HHHIH", 0xC00C, A, 1, 0, 4) +
                ipaddress.ip_address(address_of(name)).packed)

    def _run_udp(self):
        while True:
            try:
                message, client = self.udp.recvfrom(4096)
            except OSError:
                return
            if client is None:
                return
            self.udp.sendto(self._answer(message, self.udp_names), client)

    def _run_tcp(self):
        while True:
            try:
                conn, _ = self.tcp.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(conn,), daemon=True).start()

    def _serve(self, conn):
        with conn:
            while True:
                head = socks.receive(conn, 2)
                if len(head) < 2:
                    return
                message = socks.receive(conn, struct.unpack(">H", head)[0])
                answer = self._answer(message, self.tcp_names)
                conn.sendall(struct.pack(">H", len(answer)) + answer)


def dnsmasq(names, *more, port=None, addresses=("127.0.0.1",)):
    """(program, port) of a real name server that knows `names` as address_of; None without one.
    `more` are further options of it."""
    path = shutil.which("dnsmasq") or "/usr/sbin/dnsmasq"
    if not os.access(path, os.X_OK):
        return None
    port = port or ports.free_port()
    arguments = ["--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts",
                 "--bind-interfaces", "--listen-address=" + ",".join(addresses), "--pid-file=",
                 "--log-facility=-", "--port=%d" % port]
    if os.geteuid() == 0:
        arguments.append("--user=root")
    arguments += ["--address=/%s/%s" % (name, address_of(name)) for name in names]
    program = programs.Program([path, *arguments, *more])

    def serves():
        if not program.alive:
            program.fail("ended at its start")
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait.until(serves, 10, "dnsmasq")
    return program, port
