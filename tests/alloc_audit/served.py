"""How the server under measurement is told what to serve, and by whom it is started."""

import os
import tempfile

from support import manager, peers, plugins, ports, programs, wait

LIMITS = {"quota": 1 << 50, "quota_period": 3600, "rate": 1 << 34, "max_connections": 100000,
          "expires": 1 << 40}


def add_arguments(parser):
    parser.add_argument("--limits", action="store_true",
                        help="the server's port has limits that are never reached, and under a 2022 "
                             "AES method a user with limits of its own")
    parser.add_argument("--users", choices=("opened", "relayed"),
                        help="the clients are a user of the server, opened there or passed on to "
                             "another server (2022 AES methods)")
    parser.add_argument("--manager", choices=("one", "each"),
                        help="ss-manager starts the server: one for all ports, or one a port")
    parser.add_argument("--result", help="a file for the counts, as JSON")


class Served:
    """What the port gives (`chain`: the clients' keys) and the server's `words` for it."""

    def __init__(self, options, udp):
        self.port, self.options, self.udp = ports.free_port(), options, udp
        self.next = None
        key = programs.key_for(options.bin, options.method)
        config = {"server": "127.0.0.1", "server_port": self.port, "method": options.method,
                  "password": key, "mode": "tcp_and_udp" if udp else "tcp_only"}
        limits = LIMITS if options.limits else {}
        config.update(limits)
        self.key, self.chain = key, key
        if options.users or options.limits and options.method.startswith("2022-blake3-aes"):
            user = programs.key_for(options.bin, options.method)
            config["users"] = [{"name": "ann", "password": user, **limits}]
            if options.users == "relayed":
                self.next = self._start_next(user)
                config["users"][0].update(server="127.0.0.1", server_port=self.next.port)
            self.chain = key + ":" + user
        if options.limits or options.users:
            self.words = ["-c", peers.write_json({"servers": [config]})]
        else:
            self.words = ["-s", "127.0.0.1", "-p", self.port, "-k", key, "-m", options.method,
                          *(["-u"] if udp else [])]
        self.words += ["--workers", options.workers]

    def _start_next(self, key):
        """The server of a user whose traffic is passed on; it is not measured."""
        port = ports.free_port()
        program = programs.Program(
            [programs.find(self.options.bin, "ss-server"), "-s", "127.0.0.1", "-p", port, "-k", key,
             "-m", self.options.method, *(["-u"] if self.udp else [])]).await_listening(port)
        program.port = port
        return program

    def start(self, audit, *arguments):
        """The server, by ss-manager if that is wanted."""
        if self.options.manager:
            return Managed(self, audit, *arguments)
        return programs.Program([programs.find(self.options.bin, "ss-server"), *self.words,
                                 *arguments], env=audit.env)

    def stop(self):
        if self.next:
            self.next.stop()


class Managed:
    """ss-server as ss-manager starts it. It stands where a program does."""

    name = "ss-server"

    def __init__(self, served, audit, *arguments):
        options = served.options
        self.folder = tempfile.TemporaryDirectory(prefix="ss-audit-")
        # The counters are the server's: the manager must not load the shim as well.
        self._wrapper = os.path.join(self.folder.name, "measured-server")
        with open(self._wrapper, "w") as file:
            file.write("#!/bin/sh\nexec env %s %s \"$@\"\n" % (
                " ".join("%s=%s" % pair for pair in audit.env.items()),
                os.path.abspath(programs.find(options.bin, "ss-server"))))
        os.chmod(self._wrapper, 0o755)
        address = os.path.join(self.folder.name, "m.sock")
        layout = ["--process-per-port"] if options.manager == "each" else []
        self._manager = programs.Program(
            [programs.find(options.bin, "ss-manager"), "--manager-address", address, "-D",
             os.path.join(self.folder.name, "work"), "--executable", self._wrapper, "-s",
             "127.0.0.1", "-m", options.method, "--workers", options.workers,
             *(["-u"] if served.udp else []), *layout, *arguments])
        wait.until(lambda: os.path.exists(address), 10, "the manager's socket")
        self._client = manager.Client(address, self.folder.name)
        answer = self._client.add(served.port, served.key, method=options.method)
        if answer != "ok":
            self._manager.fail("`add` was answered with %r" % answer)
        self.pid = wait.until(self._find, 10, "the manager's server")

    def _find(self):
        for pid in plugins.descendants(self._manager.pid):
            try:
                if os.path.basename(os.readlink("/proc/%d/exe" % pid)) == "ss-server":
                    return pid
            except OSError:
                continue
        return None

    def await_listening(self, *_ports):
        return self  # `add` was answered

    @property
    def log(self):
        return self._manager.log

    def stop(self):
        self._client.close()
        self._manager.stop()
        self.folder.cleanup()
