"""Other implementations of the protocol, and ours beside them: where they are, what each offers in
which role, and the configuration files that they read."""

import dataclasses
import functools
import json
import os
import re
import subprocess

from . import proc, programs, wait

AEAD = ("aes-128-gcm", "aes-192-gcm", "aes-256-gcm", "chacha20-ietf-poly1305",
        "xchacha20-ietf-poly1305")
EDITION_2022 = ("2022-blake3-aes-128-gcm", "2022-blake3-aes-256-gcm",
                "2022-blake3-chacha20-poly1305", "2022-blake3-chacha8-poly1305")
STREAM = ("aes-128-cfb", "aes-192-cfb", "aes-256-cfb", "aes-128-ctr", "aes-192-ctr",
          "aes-256-ctr", "camellia-128-cfb", "camellia-192-cfb", "camellia-256-cfb", "bf-cfb",
          "chacha20", "chacha20-ietf", "salsa20", "rc4-md5", "none")
METHODS = AEAD + EDITION_2022 + STREAM
# The methods that have identity headers.
IDENTITY = EDITION_2022[:2]
# Those that Mbed TLS may have been built without: then our build lacks them too.
OPTIONAL = ("camellia-128-cfb", "camellia-192-cfb", "camellia-256-cfb", "bf-cfb", "rc4-md5")

START_S = 15


class NotOffered(Exception):
    """The program says that it does not have the method."""


@dataclasses.dataclass
class Server:
    """What a server is to do. `users` are keys whose traffic is opened, `relayed` pairs of the next
    key and the port to which its traffic goes on."""

    method: str
    key: str
    port: int
    users: tuple = ()
    relayed: tuple = ()
    udp: bool = True


@dataclasses.dataclass
class Client:
    """`keys` is the chain: identity keys, then the one that seals."""

    method: str
    keys: tuple
    server_port: int
    port: int

    @property
    def password(self):
        return ":".join(self.keys)


class Peer:
    name = ""
    # What an absent one is installed with.
    package = ""
    # The smallest and largest UDP payloads that pass between two of its own.
    udp_min, udp_max = 0, 60000
    users = False
    relays = False
    udp_at_socks_port = True
    # Whether a server is to have one thread, where it can be told.
    single = False

    def __init__(self, directories=()):
        self.directories = [*directories, os.path.expanduser("~/.cargo/bin"),
                            os.path.expanduser("~/go/bin"),
                            *os.environ.get("PATH", "").split(os.pathsep), "/usr/bin"]

    def path(self, program):
        for directory in self.directories:
            path = os.path.join(directory, program)
            if directory and os.access(path, os.X_OK):
                return path
        return None

    def there(self):
        return all(self.path(program) for program in self.programs)

    def offers(self, role, method):
        raise NotImplementedError

    def lacks(self, what):
        """Checks that it fails between two of its own as well, in the role of `what`."""
        return ()

    def version(self):
        raise NotImplementedError

    def serve(self, server):
        """A running server for the description, ready."""
        command = self.server_command(server)
        return self._start(command, server.port, udp=server.udp)

    def connect(self, client):
        """A running SOCKS5 client for the description, ready."""
        command = self.client_command(client)
        return self._start(command, client.port, udp=self.udp_at_socks_port)

    def refuses_method(self, log):
        """Whether the log of a start that failed says that there is no such method."""
        return False

    def _threads(self):
        """In front of the command of a program in Go."""
        return ["env", "GOMAXPROCS=1"] if self.single else []

    def _start(self, command, port, udp):
        program = programs.Program(command)

        def ready():
            if not program.alive:
                if self.refuses_method(program.log):
                    program.kill()
                    raise NotOffered(program.log)
                program.fail("ended with %s at its start" % program.process.returncode)
            return port in proc.listening_ports(program.pid) and (
                not udp or port in proc.udp_ports(program.pid))

        try:
            wait.until(ready, START_S)
        except wait.Timeout:
            program.kill()
            program.fail("is not ready within %d s" % START_S)
        return program


def write_json(content):
    path = os.path.join(programs.scratch_directory(), "config.json")
    with open(path, "w") as file:
        json.dump(content, file, indent=2)
    return path


def _output(*command):
    run = subprocess.run(command, capture_output=True, text=True, timeout=30)
    return run.stdout + run.stderr


def classic_server(server):
    """The file that the classic suite, its successors and ours share."""
    content = {"server": "127.0.0.1", "server_port": server.port, "method": server.method,
               "password": server.key, "mode": "tcp_and_udp" if server.udp else "tcp_only",
               "timeout": 60}
    users = [{"name": "user%d" % number, "password": key}
             for number, key in enumerate(server.users)]
    users += [{"name": "next%d" % number, "password": key, "server": "127.0.0.1",
               "server_port": port} for number, (key, port) in enumerate(server.relayed)]
    if users:
        content["users"] = users
    return content


def classic_client(client):
    return {"server": "127.0.0.1", "server_port": client.server_port, "method": client.method,
            "password": client.password, "local_address": "127.0.0.1",
            "local_port": client.port, "mode": "tcp_and_udp", "timeout": 60}


class Ours(Peer):
    name = "ours"
    programs = ("ss-local", "ss-server")
    users = relays = True

    def __init__(self, directory, workers=2):
        super().__init__([directory])
        self.directories = [directory]
        self.workers = workers

    def offers(self, role, method):
        return True

    def version(self):
        return "this build"

    def server_command(self, server):
        return [self.path("ss-server"), "--workers", self.workers, "-c",
                write_json(classic_server(server))]

    def client_command(self, client):
        return [self.path("ss-local"), "--workers", self.workers, "-c",
                write_json(classic_client(client))]

    def refuses_method(self, log):
        return "invalid cipher name" in log or "not offered" in log


class Libev(Peer):
    name = "shadowsocks-libev"
    package = "Debian: shadowsocks-libev"
    programs = ("ss-local", "ss-server")
    udp_max = 1372

    def __init__(self, directories=()):
        super().__init__(directories)
        if not directories:
            self.directories = ["/usr/bin"]  # not a build of ours that is in PATH

    def lacks(self, what):
        return ("tcp_half_close",)  # when one direction ends, it closes both

    def offers(self, role, method):
        # Mbed TLS, with which Debian builds it, is asked for the rest at the start.
        return method in AEAD or method in STREAM and method != "none"

    def version(self):
        for line in _output(self.path("ss-server"), "-h").splitlines():
            if line.startswith("shadowsocks-libev"):
                return line.split()[1]
        return ""

    def server_command(self, server):
        return [self.path("ss-server"), "-u", "-c", write_json(classic_server(server))]

    def client_command(self, client):
        return [self.path("ss-local"), "-u", "-c", write_json(classic_client(client))]

    def refuses_method(self, log):
        return "not found in crypto library" in log


class Rust(Peer):
    name = "shadowsocks-rust"
    package = "cargo: shadowsocks-rust"
    programs = ("sslocal", "ssserver")
    users = True
    udp_min = 1

    @functools.cached_property
    def _methods(self):
        text = _output(self.path("ssserver"), "--help").split("possible values:", 1)[-1]
        return {word.strip() for word in text.split("]", 1)[0].split(",")}

    def offers(self, role, method):
        return method in self._methods

    def version(self):
        return _output(self.path("ssserver"), "--version").split()[-1]

    def server_command(self, server):
        # Users are read in the list of servers alone.
        return [self.path("ssserver"), "-c", write_json(
            {"servers": [classic_server(server)], "no_delay": True,
             **({"runtime": {"mode": "single_thread"}} if self.single else {})})]

    def client_command(self, client):
        return [self.path("sslocal"), "-c", write_json(
            {**classic_client(client), "no_delay": True})]


class SingBox(Peer):
    name = "sing-box"
    package = "go install: github.com/sagernet/sing-box"
    programs = ("sing-box",)
    users = relays = True
    udp_max = 9000  # 16 KiB with all headers
    udp_at_socks_port = False  # a port for each association
    _client_streams = ("aes-128-cfb", "aes-192-cfb", "aes-256-cfb", "aes-128-ctr", "aes-192-ctr",
                       "aes-256-ctr", "chacha20-ietf", "rc4-md5")

    def offers(self, role, method):
        if method in AEAD or method in EDITION_2022[:3] or method == "none":
            return True
        return role == "client" and method in self._client_streams

    def lacks(self, what):
        # With "none" its header waits for the first bytes of the application.
        late = isinstance(what, Client) and what.method == "none"
        return ("tcp_half_close", "tcp_server_first") if late else ("tcp_half_close",)

    def version(self):
        # What `sing-box version` shows is only set by its own build script.
        with open(self.path("sing-box"), "rb") as file:
            found = re.search(rb"mod\tgithub.com/sagernet/sing-box\t(\S+)", file.read())
        return found.group(1).decode() if found else ""

    def server_command(self, server):
        inbound = {"type": "shadowsocks", "tag": "in", "listen": "127.0.0.1",
                   "listen_port": server.port, "method": server.method, "password": server.key}
        if server.users:
            inbound["users"] = [{"name": "user%d" % number, "password": key}
                                for number, key in enumerate(server.users)]
        if server.relayed:
            inbound["destinations"] = [
                {"name": "next%d" % number, "password": key, "server": "127.0.0.1",
                 "server_port": port} for number, (key, port) in enumerate(server.relayed)]
        return self._run([inbound], [{"type": "direct", "tag": "out"}])

    def client_command(self, client):
        inbound = {"type": "socks", "tag": "in", "listen": "127.0.0.1",
                   "listen_port": client.port}
        outbound = {"type": "shadowsocks", "tag": "out", "server": "127.0.0.1",
                    "server_port": client.server_port, "method": client.method,
                    "password": client.password}
        return self._run([inbound], [outbound])

    def _run(self, inbounds, outbounds):
        return [*self._threads(), self.path("sing-box"), "run", "-c", write_json(
            {"log": {"level": "info", "disabled": False}, "inbounds": inbounds,
             "outbounds": outbounds, "route": {"default_domain_resolver": "hosts"},
             "dns": {"servers": [{"type": "hosts", "tag": "hosts",
                                  "predefined": {"localhost": ["127.0.0.1"]}}]}})]


class Go(Peer):
    name = "shadowsocks-go"
    package = "go install: github.com/database64128/shadowsocks-go"
    programs = ("shadowsocks-go",)
    users = True
    udp_max = 1372  # of its MTU

    def offers(self, role, method):
        return method in IDENTITY or method == "none"

    def version(self):
        # The first line is the name and the version; what it was built from and how follow.
        return _output(self.path("shadowsocks-go"), "-version").split()[1]

    def server_command(self, server):
        listener = self._listener(server.port, server.method)
        if server.method != "none":
            listener["psk"] = server.key
        if server.users:
            listener["uPSKStorePath"] = write_json(
                {"user%d" % number: key for number, key in enumerate(server.users)})
        return self._run([listener], [])

    def client_command(self, client):
        upstream = {"name": "out", "protocol": client.method, "enableTCP": True,
                    "enableUDP": True, "mtu": 1500,
                    "endpoint": "127.0.0.1:%d" % client.server_port}
        if client.method != "none":
            upstream["psk"] = client.keys[-1]
            upstream["iPSKs"] = list(client.keys[:-1])
        return self._run([self._listener(client.port, "socks5")], [upstream])

    def _listener(self, port, protocol):
        address = "127.0.0.1:%d" % port
        return {"name": "in", "protocol": protocol, "mtu": 1500,
                "tcpListeners": [{"network": "tcp", "address": address}],
                "udpListeners": [{"network": "udp", "address": address}]}

    def _run(self, servers, clients):
        return [*self._threads(), self.path("shadowsocks-go"), "-confPath", write_json(
            {"servers": servers, "clients": clients})]


OTHERS = (Libev, Rust, Go, SingBox)
