"""A port that neither takes nor refuses: its queue is full, so the kernel drops every SYN."""

import select
import socket
import unittest


class Hole:
    def __init__(self, host="127.0.0.1", port=0):
        self.listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((host, port))
        self.listener.listen(0)
        self.port = self.listener.getsockname()[1]
        self._filling = []
        near = "127.0.0.1" if host == "0.0.0.0" else host
        while len(self._filling) < 8:
            conn = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            conn.setblocking(False)
            conn.connect_ex((near, self.port))
            self._filling.append(conn)
            if not select.select([], [conn], [], 0.3)[1]:
                return
        self.close()
        raise unittest.SkipTest("a listener with a full queue still takes connections here")

    def close(self):
        for conn in self._filling:
            conn.close()
        self.listener.close()
