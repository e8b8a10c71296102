"""Two servers more for the clients under measurement."""

from support import hole, ports, programs


class MoreServers:
    """`arguments` go to a client; the servers end with stop(). With `silent` one is dead: lost
    datagrams, which nobody sends again here, would end the measurement."""

    def __init__(self, options, common, silent):
        self.arguments, self.programs, self._hole = [], [], None
        if not options.servers:
            return
        listening = [self._start(options, common) for _ in range(1 if silent else 2)]
        if silent:
            self._hole = hole.Hole()
            listening.append(self._hole.port)
        self.arguments = ["--balance", "random"]
        for port in listening:
            self.arguments += ["-s", "127.0.0.1:%d" % port]

    def _start(self, options, common):
        port = ports.free_port()
        program = programs.Program(
            [programs.find(options.bin, "ss-server"), "-s", "127.0.0.1", "-p", port, *common])
        self.programs.append(program.await_listening(port))
        return port

    def stop(self):
        for program in self.programs:
            program.stop()
        if self._hole:
            self._hole.close()
