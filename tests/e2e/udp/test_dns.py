"""R38: DNS through ss-tunnel, by UDP and by TCP; every client gets its own answers."""

import os
import re
import shutil
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from support import case, dns, proc, socks, udp_case  # noqa: E402

SAME_ID = 0x1234


class Dns(udp_case.UdpCase):
    def start(self):
        self.names = self.closing(dns.Everything())
        return self.tunnel(self.server(), self.names.address)

    def test_two_clients_with_one_id(self):
        tunnel = self.start()
        clients = [self.client(tunnel) for _ in range(2)]
        for turn in range(20):
            names = ["client%d.turn%d.test" % (number, turn) for number in range(2)]
            for client, name in zip(clients, names):
                client.send(dns.question(SAME_ID, name))
            for client, name in zip(clients, names):
                self.assertEqual(dns.read_answer(client.receive()),
                                 (SAME_ID, name, [dns.address_of(name)]))

    def test_one_client_with_one_id_for_two_names(self):
        tunnel = self.start()
        client = self.client(tunnel)
        names = ["a.test", "b.test"]
        for name in names:
            client.send(dns.question(SAME_ID, name))
        found = [dns.read_answer(client.receive()) for _ in names]
        self.assertEqual(sorted(name for _, name, _ in found), names)

    def test_tcp(self):
        tunnel = self.start()
        conns = [socks.dial("127.0.0.1", tunnel.port) for _ in range(2)]
        for number, conn in enumerate(conns):
            self.addCleanup(conn.close)
            name = "tcp%d.test" % number
            self.assertEqual(dns.read_answer(dns.ask_tcp(conn, dns.question(SAME_ID, name))),
                             (SAME_ID, name, [dns.address_of(name)]))
        self.assertEqual(self.names.tcp_names, ["tcp0.test", "tcp1.test"])

    def test_both_at_the_same_time(self):
        """Several clients of each kind, all with the same ids."""
        tunnel = self.start()
        problems = []

        def by_udp(who):
            client = self.client(tunnel)
            return client.exchange

        def by_tcp(who):
            conn = socks.dial("127.0.0.1", tunnel.port)
            self.addCleanup(conn.close)
            return lambda message: dns.ask_tcp(conn, message)

        def run(make, who):
            try:
                exchange = make(who)
                for number in range(100):
                    name = "n%d.%s.test" % (number, who)
                    answer = dns.read_answer(exchange(dns.question(number, name)))
                    if answer != (number, name, [dns.address_of(name)]):
                        raise AssertionError("%s got %r for %s" % (who, answer, name))
            except Exception as error:
                problems.append("%s: %r" % (who, error))

        threads = [threading.Thread(target=run, args=(make, "%s%d" % (make.__name__[3:], number)))
                   for make in (by_udp, by_tcp) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(problems, [])

    def test_real_programs(self):
        """dig through ss-tunnel to dnsmasq."""
        names = ["one.test", "two.test"]
        if not shutil.which("dig"):
            self.skipTest("no dig on this machine")
        found = dns.dnsmasq(names)
        if not found:
            self.skipTest("no dnsmasq on this machine")
        server_program, port = found
        self.addCleanup(server_program.kill)
        tunnel = self.tunnel(self.server(), ("127.0.0.1", port))
        for name in names:
            for way in ("+notcp", "+tcp"):
                run = subprocess.run(["dig", "@127.0.0.1", "-p", str(tunnel.port), "+short",
                                      "+time=5", "+tries=1", way, name],
                                     capture_output=True, text=True)
                self.assertEqual(run.stdout.split(), [dns.address_of(name)], run.stderr)


class Off(udp_case.UdpCase):
    @udp_case.better("it says nothing")
    def test_the_log_says_so(self):
        """Without -u one line says that there is no UDP, and there is none."""
        server = case.Case.server(self)
        tunnel = case.Case.tunnel(self, server, ("127.0.0.1", 53))
        self.assertNotIn(tunnel.port, proc.udp_ports(tunnel.pid))
        lines = [line for line in tunnel.log_lines() if re.search("udp", line, re.I)]
        self.assertEqual(len(lines), 1, tunnel.log)


if __name__ == "__main__":
    udp_case.main()
