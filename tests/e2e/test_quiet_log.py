"""R83: ordinary network events log nothing at the normal level; what repeats is limited."""

import os
import socket
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import case, dns_stub, ports, socks, targets  # noqa: E402

REFUSED = int(os.environ.get("SS_TEST_CONNECTIONS", "10000"))


class QuietLog(case.Case):
    def refused(self, local, target, count, at_once=20):
        """Connections whose target refuses them."""
        out = socks.GREETING + socks.request(*target) + b"x"

        errors = []

        def some(share):
            for _ in range(share):
                try:
                    with socket.create_connection(("127.0.0.1", local.port), 20) as conn:
                        conn.sendall(out)
                        socks.receive_all(conn)
                except ConnectionError:
                    continue  # the refusal may come as a reset
                except OSError as error:
                    errors.append(error)
                    return

        threads = [threading.Thread(target=some, args=(count // at_once,)) for _ in range(at_once)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])

    def test_ten_thousand_refused_targets(self):
        server, local = self.chain()
        start = [len(program.log_lines()) for program in (server, local)]
        self.refused(local, ("127.0.0.1", ports.closed_port()), REFUSED)
        for program, lines in zip((server, local), start):
            self.assertLess(len(program.log_lines()) - lines, 20, program.log)

    def test_server_that_refuses(self):
        """Repeated errors towards the upstream server are limited, too."""
        local = self.local(ports.closed_port())
        start = len(local.log_lines())
        self.refused(local, ("127.0.0.1", 80), 1000)
        self.assertLess(len(local.log_lines()) - start, 20, local.log)

    def test_reset_and_unknown_names(self):
        stub = dns_stub.Stub({})
        self.addCleanup(stub.close)
        server, local = self.chain(["-d", stub.nameserver])
        start = [len(program.log_lines()) for program in (server, local)]
        resetting = self.target(socks.reset)
        self.refused(local, resetting.address, 200)
        self.refused(local, ("none.test", 80), 200)
        self.refused(local, ("255.255.255.255", 80), 100)
        for program, lines in zip((server, local), start):
            self.assertLess(len(program.log_lines()) - lines, 30, program.log)

    def test_clients_that_reset(self):
        echo = self.target(targets.echo)
        server, local = self.chain()
        self.assert_works(local, echo)
        start = [len(program.log_lines()) for program in (server, local)]
        for _ in range(200):
            conn = socks.connect(local.port, echo.address)
            conn.sendall(b"x" * 1000)
            conn.recv(1)
            socks.reset(conn)
        local.await_no_sessions()
        server.await_no_sessions()
        for program, lines in zip((server, local), start):
            new = [line for line in program.log_lines()[lines:] if "traffic:" not in line]
            self.assertEqual(new, [])


if __name__ == "__main__":
    case.main()
