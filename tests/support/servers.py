"""Tests with several upstream servers: each with a method and a password of its own."""

import base64
import json
import os
import re

from . import case, ports, programs, wait

METHODS = ["aes-256-gcm", "2022-blake3-aes-256-gcm", "chacha20-ietf-poly1305",
           "2022-blake3-chacha20-poly1305"]


def password_of(number):
    """A key of 32 bytes, which every method takes."""
    return base64.b64encode(bytes([number]) * 32).decode()


class Case(case.Case):
    def server_of(self, number, *arguments, port=None, host="127.0.0.1", **how):
        port = port or ports.free_port()
        method, password = METHODS[number % len(METHODS)], password_of(number)
        server = self.program("ss-server", "-s", host, "-p", port, "-k", password, "-m", method,
                              *arguments, **how)
        server.port, server.host, server.method, server.password = port, host, method, password
        return server.await_listening(port)

    def entries(self, servers, **more):
        """servers[] for these."""
        return [{"server": server.host, "server_port": server.port, "method": server.method,
                 "password": server.password, **more} for server in servers]

    def local_with(self, entries, *arguments, how=None, await_it=True, **settings):
        """ss-local with these servers[]; `settings` stand beside them in its file."""
        path = os.path.join(programs.scratch_directory(), "local.json")
        port = ports.free_port()
        mode = settings.pop("mode", "tcp_only")
        settings["locals"] = [{"local_port": port, "mode": mode}]
        self._write(path, entries, settings)
        local = self.program("ss-local", "-c", path, *arguments, **(how or {}))
        local.port, local.file, local.settings = port, path, settings
        return local.await_listening(port) if await_it else local

    def _write(self, path, entries, settings):
        with open(path, "w") as file:
            json.dump({"servers": entries, **settings}, file)

    def rewrite(self, local, entries):
        """Its file with other servers."""
        self._write(local.file, entries, local.settings)

    def summary(self, local):
        """What SIGUSR1 says of each server, by port."""
        before = len(local.log_lines("traffic: server"))
        local.traffic()
        wait.until(lambda: len(local.log_lines("traffic: server")) > before, 5, "the summary")
        found = {}
        for line in local.log_lines("traffic: server")[before:]:
            tcp, _, udp = line.partition("; UDP ")
            port, chosen, connects, failures = map(int, re.search(
                r":(\d+): chosen (\d+) times, (\d+) connects, (\d+) failures", tcp).groups())
            found[port] = {"chosen": chosen, "connects": connects, "failures": failures,
                           "avoided": "avoided" in tcp, "line": line}
            if udp:
                chosen, failures = map(int, re.search(r"chosen (\d+) times, (\d+) failures",
                                                      udp).groups())
                found[port].update(udp_chosen=chosen, udp_failures=failures,
                                   udp_avoided="avoided" in udp)
        return found
