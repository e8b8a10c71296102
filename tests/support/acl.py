"""Access control lists in tests: targets that tell who came, and which way that was."""

import json
import os
import socket

from . import case, dns_stub, programs, shadow, targets, udp, udp_case

# The server's own source address, so that targets can tell it from a client program.
SERVER_SOURCE = "127.0.0.9"
PROXY, DIRECT, REFUSED = "proxy", "direct", "refused"

_scratch = None


def write(text, name="list.acl"):
    """A file of its own with this text; gone when this process ends."""
    global _scratch
    if _scratch is None:
        _scratch = programs.scratch_directory()
    directory = os.path.join(_scratch, str(len(os.listdir(_scratch))))
    os.mkdir(directory)
    path = os.path.join(directory, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def tell(conn):
    """A target's handler: says in a line where the connection is from, then echoes."""
    conn.sendall(conn.getpeername()[0].encode() + b"\n")
    targets.echo(conn)


class AclCase(udp_case.UdpCase):
    """ss-server with a source address of its own behind ss-local, UDP too, and a name server for
    each."""

    def setUp(self):
        super().setUp()
        self.near = self.closing(dns_stub.Stub())  # ss-local's
        self.far = self.closing(dns_stub.Stub())  # ss-server's

    def name(self, name, *addresses):
        for stub in (self.near, self.far):
            stub.records[name] = list(addresses)

    def asked(self, stub):
        return {name for name, _, _ in stub.queries}

    def acl_server(self, rules=None, *arguments, **how):
        if rules is not None:
            arguments += ("--acl", write(rules))
        source = how.pop("source", SERVER_SOURCE)
        return self.server("-d", self.far.nameserver, "-b", source, *arguments, **how)

    def acl_local(self, server, rules=None, *arguments, **how):
        if rules is not None:
            arguments += ("--acl", write(rules))
        config = write(json.dumps({"dns": self.near.nameserver}), "local.json")
        return self.local(server, "-c", config, *arguments, **how)

    def teller(self, host="127.0.0.1", port=0):
        return self.target(tell, host=host, port=port)

    def udp_teller(self, host="127.0.0.1", port=0):
        return self.udp_target(udp.tell, host=host, port=port)

    def way(self, local, host, port, source=SERVER_SOURCE):
        """How a TCP connection gets there."""
        conn = self.connect(local, (host, port))
        try:
            line = b""
            while not line.endswith(b"\n"):
                byte = conn.recv(1)
                if not byte:
                    return REFUSED
                line += byte
            self.assert_echoes(conn)
        except ConnectionError:
            return REFUSED
        finally:
            conn.close()
        return PROXY if line == source.encode() + b"\n" else DIRECT

    def udp_way(self, associate, host, port, source=SERVER_SOURCE, seconds=udp.PATIENCE_S):
        """The same of a datagram; None when no answer comes within the time."""
        associate.socket.settimeout(seconds)
        try:
            _, answer = associate.exchange((host, port), b"whence?")
        except socket.timeout:
            return None
        (seen, _), rest = udp.told(answer)
        self.assertEqual(rest, b"whence?")
        return PROXY if seen == source else DIRECT

    def assert_denied(self, server, source, host="127.0.0.1"):
        """The server closes a connection from there without a byte, and says so."""
        with socket.create_connection((host, server.port), 10, (source, 0)) as conn:
            try:
                self.assertEqual(conn.recv(1), b"")
            except ConnectionError:
                pass
        server.await_log("Access denied from %s" % source)

    def assert_taken(self, server, source):
        """A client from there reaches a target."""
        conn = self.closing(shadow.Connection(server.port, case.PASSWORD, source=source))
        conn.request(self.teller().address, b"taken")
        expected = SERVER_SOURCE.encode() + b"\ntaken"
        self.assertEqual(conn.receive(len(expected)), expected)

    def assert_ways(self, local, expected):
        """`expected`: (host, port) -> way."""
        got = {place: self.way(local, *place) for place in expected}
        self.assertEqual(got, expected)
