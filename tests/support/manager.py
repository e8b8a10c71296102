"""ss-manager under test: started in a folder of its own, asked over its socket."""

import contextlib
import itertools
import json
import os
import re
import shutil
import socket

from . import case, ports, programs, udp, wait

settings = case.settings
_numbers = itertools.count()


class Client:
    """One that asks a manager: over a local socket with a name of its own, or over UDP."""

    def __init__(self, address, folder=None):
        self.address = address
        self.path = None
        if isinstance(address, str):
            self.path = os.path.join(folder, "client-%d-%d" % (os.getpid(), next(_numbers)))
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self.socket.bind(self.path)
            os.chmod(self.path, 0o777)  # a manager that runs as another user answers too
        else:
            self.socket = udp.make_socket(address[0])

    def close(self):
        self.socket.close()
        if self.path and os.path.exists(self.path):
            os.unlink(self.path)

    def send(self, text):
        self.socket.sendto(text if isinstance(text, bytes) else text.encode(), self.address)

    def receive(self, seconds=20):
        self.socket.settimeout(seconds)
        try:
            return self.socket.recv(1 << 17)
        except socket.timeout:
            return None

    def ask(self, text, seconds=20):
        """The answer, as text."""
        self.send(text)
        answer = self.receive(seconds)
        if answer is None:
            raise AssertionError("no answer to %r" % text[:200])
        return answer.decode()

    def ask_in_order(self, *texts):
        """Of commands without an answer the next one's comes: all of those that come, with a `ping`
        behind the last, whose answer is left out."""
        for text in texts:
            self.send(text)
        self.send("ping")
        answers = []
        while True:
            answer = self.receive()
            if answer is None:
                raise AssertionError("no answer to `ping`")
            if answer.startswith(b"stat: "):
                return answers
            answers.append(answer.decode())

    def add(self, port, password, **members):
        return self.ask("add: " + json.dumps({"server_port": port, "password": password, **members}))

    def remove(self, port):
        return self.ask("remove: " + json.dumps({"server_port": port}))

    def ping(self):
        """Bytes by port."""
        answer = self.ask("ping")
        if not answer.startswith("stat: "):
            raise AssertionError("`ping` was answered with %r" % answer)
        return {int(port): total for port, total in json.loads(answer[6:]).items()}

    def list(self, command="list"):
        """All entries, of as many datagrams as it takes: a `ping` behind it tells the end."""
        self.send(command)
        self.send("ping")
        entries = []
        while True:
            answer = self.receive()
            if answer is None:
                raise AssertionError("no answer to %r" % command)
            if answer.startswith(b"stat: "):
                self._drain()
                return entries
            entries += json.loads(answer)

    def _drain(self):
        """What a long `ping` had more."""
        self.socket.setblocking(False)
        try:
            while True:
                self.socket.recv(1 << 17)
        except BlockingIOError:
            pass

    def users(self, port):
        found = self.list("users: " + json.dumps({"server_port": port}))
        return {user["name"]: user for user in found}


def processes_with(text):
    """Numbers of the processes whose command line has the text."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open("/proc/%s/cmdline" % name, "rb") as file:
                    if text.encode() in file.read():
                        found.append(int(name))
            except OSError:
                continue
    return found


def children_of(pid):
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name) as file:
                    if int(file.read().rsplit(")", 1)[1].split()[1]) == pid:
                        found.append(int(name))
            except (OSError, IndexError):
                continue
    return found


def tree_of(pid):
    """The process and all below it."""
    found = [pid]
    for child in children_of(pid):
        found += tree_of(child)
    return found


class ManagerCase(case.Case):
    """`layout`: options that every manager of the case gets."""

    layout = ()

    def setUp(self):
        super().setUp()
        self.folder = programs.scratch_directory()
        self.socket_path = os.path.join(self.folder, "m.sock")
        self.workdir = os.path.join(self.folder, "work")

    def tearDown(self):
        super().tearDown()
        wait.until(lambda: not processes_with(self.folder + "/"), 5,
                   "the end of all processes of the manager")
        shutil.rmtree(self.folder, ignore_errors=True)

    def manager(self, *arguments, ready=True, address=None, hosts=("127.0.0.1",), method=True,
                executable=None, workers=True, **how):
        """`workers`: whether it is given --workers, which its servers must know then."""
        words = ["--manager-address", address or self.socket_path, "-D", self.workdir]
        words += ["--executable", executable or programs.find(settings.bin, "ss-server")]
        for host in hosts:
            words += ["-s", host]
        if method:
            words += ["-m", settings.method]
        words += [*self.layout, *arguments]
        if workers:
            started = self.program("ss-manager", *words, **how)
        else:
            started = programs.Program([programs.find(settings.bin, "ss-manager"), *words], **how)
            self._programs.append(started)
        if ready:
            self.await_manager(started)
        return started

    def crash(self, program):
        """SIGKILL."""
        program.kill()
        self._programs.remove(program)

    def await_manager(self, manager):
        """Waits until it answers."""
        def answers():
            if not manager.alive:
                manager.fail("ended with %s at its start" % manager.process.returncode)
            if not os.path.exists(self.socket_path):
                return False
            with contextlib.closing(Client(self.socket_path, self.folder)) as client:
                try:
                    client.send("ping")
                except OSError:
                    return False
                return client.receive(5) is not None

        wait.until(answers, 20, "the manager's answer")
        return manager

    def client(self, address=None):
        client = Client(address or self.socket_path, self.folder)
        self.addCleanup(client.close)
        return client

    def free_ports(self, count):
        found = set()
        while len(found) < count:
            found.add(ports.free_port())
        return sorted(found)

    def relay(self, port, password=case.PASSWORD, method=None, arguments=()):
        """ss-local for a port of the manager."""
        local = ports.free_port()
        started = self.program("ss-local", "-s", "127.0.0.1", "-p", port, "-l", local, "-k",
                               password, "-m", method or settings.method, *arguments)
        started.port = local
        return started.await_listening(local)

    def assert_served(self, port, target, password=case.PASSWORD, method=None):
        """One exchange through the port."""
        local = self.relay(port, password, method)
        self.assert_works(local, target)
        local.stop()

    def logged(self, manager, pattern, seconds=5):
        """A log line that fits."""
        try:
            return wait.until(lambda: re.search(pattern, manager.log), seconds)
        except wait.Timeout:
            manager.fail("no line fits %r" % pattern)

    def state(self):
        """Records of the state file."""
        with open(os.path.join(self.workdir, ".ss-manager.state"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]


class OneProcess:
    """Mixed in: one server has all ports."""

    layout = ()
    live = True  # counters are those of the moment


class ProcessPerPort:
    layout = ("--process-per-port",)
    live = False  # they are reported every five seconds
