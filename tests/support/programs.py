"""Starting the programs under test, waiting until they serve, and ending them for certain."""

import atexit
import ctypes
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

from . import proc, wait

_SANITIZER_REPORT = re.compile(
    r"ERROR: AddressSanitizer|ERROR: LeakSanitizer|runtime error:|WARNING: ThreadSanitizer|"
    r"AddressSanitizer:DEADLYSIGNAL|UndefinedBehaviorSanitizer"
)

_running = set()
_libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1


class ProgramError(AssertionError):
    pass


def _end_all():
    for program in list(_running):
        program.kill()


atexit.register(_end_all)


def _on_signal(number, _frame):
    _end_all()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


if threading.current_thread() is threading.main_thread():
    for _number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(_number, _on_signal)


_kinds = {}


def sanitizer(path):
    """"address", "thread" or "" : what the program at `path` was built with."""
    path = os.path.realpath(path)
    if path not in _kinds:
        with open(path, "rb") as file:
            content = file.read()
        kind = ""
        if b"__tsan_init" in content:
            kind = "thread"
        elif b"__asan_init" in content:
            kind = "address"
        _kinds[path] = kind
    return _kinds[path]


def scratch_directory():
    """A directory that is removed when this process ends."""
    path = tempfile.mkdtemp(prefix="ss-test-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


_scratch = None


def _scratch_file(name):
    global _scratch
    if _scratch is None:
        _scratch = scratch_directory()
    return tempfile.NamedTemporaryFile(dir=_scratch, prefix=name + "-", suffix=".log", delete=False)


class Program:
    """One running program. Its log is a file that failures print."""

    def __init__(self, arguments, env=None, descriptors=None, prepare=None, cwd=None):
        """`descriptors`: soft and hard RLIMIT_NOFILE. `prepare` runs in the child before exec."""
        self.arguments = [str(argument) for argument in arguments]
        self.name = os.path.basename(self.arguments[0])
        self.log_path = _scratch_file(self.name).name
        self._log = open(self.log_path, "wb")
        parent = os.getpid()

        def child():
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)
            if descriptors:
                resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
            if prepare:
                prepare()

        environment = dict(os.environ)
        for name in list(environment):
            if name.lower().endswith("_proxy"):
                del environment[name]
        environment.setdefault("ASAN_OPTIONS", "detect_stack_use_after_return=1")
        environment.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
        environment.setdefault("TSAN_OPTIONS", "halt_on_error=0:second_deadlock_stack=1")
        if env:
            environment.update(env)
        self.process = subprocess.Popen(
            self.arguments,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env=environment,
            preexec_fn=child,
            cwd=cwd,
        )
        self.pid = self.process.pid
        _running.add(self)

    @property
    def log(self):
        with open(self.log_path, "rb") as file:
            return file.read().decode("utf-8", "replace")

    def log_lines(self, containing=""):
        return [line for line in self.log.splitlines() if containing in line]

    @property
    def alive(self):
        return self.process.poll() is None

    def fail(self, text):
        raise ProgramError(
            "%s (pid %d): %s\n--- %s\n%s--- end of log"
            % (self.name, self.pid, text, " ".join(self.arguments), self.log)
        )

    def await_log(self, text, seconds=10, count=1):
        """Waits for the `count`th log line that contains `text` and returns it."""

        def found():
            lines = self.log_lines(text)
            if len(lines) >= count:
                return lines[count - 1]
            if not self.alive:
                self.fail("ended with %s before its log said %r" % (self.process.returncode, text))
            return None

        try:
            return wait.until(found, seconds, repr(text))
        except wait.Timeout:
            self.fail("no line with %r within %g s" % (text, seconds))

    def await_listening(self, *ports, seconds=20):
        """Waits until the program says that it listens, and the kernel agrees for `ports`."""
        self.await_log("listening at", seconds)

        def listening():
            if not self.alive:
                self.fail("ended with %s at its start" % self.process.returncode)
            return set(ports) <= proc.listening_ports(self.pid)

        try:
            wait.until(listening, seconds)
        except wait.Timeout:
            self.fail("does not listen on %s" % (ports,))
        return self

    def traffic(self, seconds=5):
        """Totals that the program logs on SIGUSR1 (ours only)."""
        count = len(self.log_lines("traffic: sessions"))
        self.process.send_signal(signal.SIGUSR1)
        line = self.await_log("traffic: sessions", seconds, count + 1)
        numbers = [int(number) for number in re.findall(r"\d+", line.split("traffic: ", 1)[1])]
        return dict(zip(("open", "total", "received", "sent"), numbers))

    def await_no_sessions(self, seconds=10):
        try:
            wait.until(lambda: self.traffic()["open"] == 0, seconds)
        except wait.Timeout:
            self.fail("still has open sessions")

    def check_sanitizers(self):
        if _SANITIZER_REPORT.search(self.log):
            self.fail("a sanitizer reports")

    def wait_end(self, seconds=10):
        """The exit status, once the program has ended by itself."""
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.fail("does not end within %g s" % seconds)
        self._forget()
        return status

    def stop(self, number=signal.SIGTERM, seconds=20):
        """Ends it in good order and returns the exit status; a second call does nothing."""
        if self not in _running:
            return self.process.returncode
        if self.alive:
            self.process.send_signal(number)
        status = self.wait_end(seconds)
        self.check_sanitizers()
        return status

    def kill(self):
        if self.alive:
            self.process.kill()
        self.process.wait()
        self._forget()

    def _forget(self):
        _running.discard(self)
        self._log.close()


def find(directory, name):
    path = os.path.join(directory, name)
    if not os.access(path, os.X_OK):
        sys.exit("%s is not there; give its folder with --bin" % path)
    return path


def key_for(directory, method):
    """A password, or under the 2022 methods, which take none, a key of the right length."""
    if not method.startswith("2022-"):
        return "barfoo!"
    return subprocess.run([find(directory, "ss-server"), "--gen-key", method], check=True,
                          capture_output=True, text=True).stdout.strip()
