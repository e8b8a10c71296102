"""A log that nobody reads loses lines; the program goes on."""

import fcntl
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, ports, proc, shadow, socks, targets, wait  # noqa: E402

CONNECTIONS = 300
PIPE_SIZE = 16384
F_SETPIPE_SZ = 1031


class LogPipe(case.Case):
    def start(self, name, *arguments):
        """The program with a pipe for its log, and the pipe's reading end."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        os.set_blocking(reader, False)
        fcntl.fcntl(writer, F_SETPIPE_SZ, PIPE_SIZE)

        def onto_pipe():
            os.dup2(writer, 1)
            os.dup2(writer, 2)

        port = ports.free_port()
        local = name == "ss-local"
        program = self.program(name, "-k", case.PASSWORD, "-m", shadow.METHOD, "-v", "-s",
                               "127.0.0.1", "-l" if local else "-p", port, *arguments,
                               prepare=onto_pipe)
        os.close(writer)
        program.port = port
        wait.until(lambda: port in proc.listening_ports(program.pid), 20, "listening")
        return program, reader

    def read_all(self, reader):
        text = b""
        while True:
            try:
                part = os.read(reader, 1 << 16)
            except BlockingIOError:
                return text
            if not part:
                return text
            text += part

    def assert_goes_on(self, program, reader, exchange):
        for number in range(CONNECTIONS):
            try:
                exchange()
            except OSError as error:
                self.fail("connection %d: %r" % (number, error))
        text = self.read_all(reader)
        # Lines that fit are whole, and those that follow are not cut off from the log for good.
        self.assertIn(b" DEBUG: ", text)
        self.assertGreater(len(text), PIPE_SIZE // 4)
        self.assertEqual(text[-1:], b"\n")
        exchange()
        wait.until(lambda: b" DEBUG: " in self.read_all(reader), 10, "a new line")

    def test_server(self):
        echo = self.target(targets.echo)
        server, reader = self.start("ss-server")

        def exchange():
            conn = shadow.Connection(server.port, case.PASSWORD)
            with conn.socket:
                conn.request(echo.address, b"hello")
                self.assertEqual(conn.receive(5), b"hello")

        self.assert_goes_on(server, reader, exchange)

    def test_local(self):
        echo = self.target(targets.echo)
        server = self.server("-m", shadow.METHOD)
        local, reader = self.start("ss-local", "-p", server.port)

        def exchange():
            with socks.connect(local.port, echo.address, first=b"hello") as conn:
                self.assertEqual(socks.receive(conn, 5), b"hello")

        self.assert_goes_on(local, reader, exchange)


if __name__ == "__main__":
    case.main()
