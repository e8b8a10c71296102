"""Servers, the helper and the manager are killed at random moments while commands come: whatever was
answered with `ok` holds, and the rest is as before the command or as after it."""

import json
import os
import random
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from support import case, manager, wait  # noqa: E402

SECONDS = 6


class Crash:
    """`may_be` holds for each port the passwords that it may have, None for no port at all."""

    def kill_something(self, chance, started):
        if chance.random() < 0.4:
            threading.Timer(chance.random() * 0.01, started.process.kill).start()
            return
        below = manager.tree_of(started.pid)[1:]
        if below:
            try:
                os.kill(chance.choice(below), signal.SIGKILL)
            except ProcessLookupError:
                pass

    def revive(self, started):
        if started.process.poll() is None:
            return started
        self.crash(started)
        return self.manager()

    def command(self, client, text):
        """The answer; None when there is none to be had."""
        try:
            client.send(text)
            return client.receive(12)
        except OSError:
            return None

    def test_random_moments(self):
        seed = int(os.environ.get("SS_TEST_SEED", "0")) or random.SystemRandom().getrandbits(32)
        print("seed %d" % seed)
        chance = random.Random(seed)
        started = self.manager()
        numbers = self.free_ports(20)
        may_be = {port: {None} for port in numbers}
        kills = 0
        until = time.monotonic() + SECONDS
        while time.monotonic() < until or kills < 4:
            if chance.random() < (0.03 if time.monotonic() < until else 0.3):
                self.kill_something(chance, started)
                kills += 1
            client = manager.Client(self.socket_path, self.folder)
            port = chance.choice(numbers)
            password = "pw%d" % chance.randrange(10**6) if chance.random() < 0.7 else None
            if password:
                answer = self.command(client, "add: " + json.dumps(
                    {"server_port": port, "password": password}))
            else:
                answer = self.command(client, "remove: " + json.dumps({"server_port": port}))
            client.close()
            may_be[port] = {password} if answer == b"ok" else may_be[port] | {password}
            started = self.revive(started)
        time.sleep(0.02)  # a kill that is still on its way
        started = self.revive(started)
        client = self.client()

        def served():
            return {int(entry["server_port"]): entry["password"] for entry in client.list()}

        def as_it_may_be():
            have = served()
            return all(have.get(port) in may_be[port] for port in numbers)

        # Ports whose old server had not let go yet are tried again.
        try:
            wait.until(as_it_may_be, 30)
        except wait.Timeout:
            have = served()
            self.fail({port: (have.get(port), may_be[port]) for port in numbers
                       if have.get(port) not in may_be[port]})


class OneProcess(Crash, manager.OneProcess, manager.ManagerCase):
    pass


class ProcessPerPort(Crash, manager.ProcessPerPort, manager.ManagerCase):
    pass


if __name__ == "__main__":
    case.main()
