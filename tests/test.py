#!/usr/bin/env python3
"""The use that scripts have made of the suite for years: three programs, one file, glued options.

    test.py --bin build/bin

One configuration file with a key that nobody knows starts ss-local -v, ss-server -v -u and
ss-tunnel -v -u -l1082 -L..., a page is fetched through each, and SIGINT ends them with 0.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import ports, programs, targets  # noqa: E402

BODY = os.urandom(100000)


def fetch(*way):
    environment = {name: value for name, value in os.environ.items()
                   if not name.lower().endswith("_proxy")}
    run = subprocess.run(["curl", "-sS", "--max-time", "20", "--noproxy", "", *way],
                         capture_output=True, env=environment)
    if run.returncode != 0 or run.stdout != BODY:
        raise AssertionError("curl %s: status %d, %d bytes, %s" % (
            " ".join(way), run.returncode, len(run.stdout), run.stderr.decode(errors="replace")))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    options = parser.parse_args()
    if not shutil.which("curl"):
        print("SKIPPED: curl is not there")
        sys.exit(77)

    web = targets.Target(targets.http_like(BODY))
    server, local, tunnel = (ports.free_port() for _ in range(3))
    for method in ("aes-256-gcm", "chacha20-ietf-poly1305"):
        directory = programs.scratch_directory()
        path = os.path.join(directory, "config.json")
        with open(path, "w") as file:
            json.dump({"server": "127.0.0.1", "server_port": server, "local_port": local,
                       "password": "barfoo!", "timeout": 60, "method": method,
                       "local": "127.0.0.1", "fast_open": False}, file)
        running = [
            programs.Program([programs.find(options.bin, "ss-local"), "-v", "-c", path])
            .await_listening(local),
            programs.Program([programs.find(options.bin, "ss-server"), "-v", "-u", "-c", path])
            .await_listening(server),
            programs.Program([programs.find(options.bin, "ss-tunnel"), "-v", "-u", "-l%d" % tunnel,
                              "-L127.0.0.1:%d" % web.port, "-c", path]).await_listening(tunnel),
        ]
        try:
            for socks in ("--socks5", "--socks5-hostname"):
                fetch(socks, "127.0.0.1:%d" % local, "http://localhost:%d/" % web.port)
            fetch("http://127.0.0.1:%d/" % tunnel)
        except AssertionError:
            for program in running:
                print("--- %s\n%s" % (program.name, program.log))
            raise
        for program in running:
            status = program.stop(signal.SIGINT)
            if status != 0:
                program.fail("SIGINT ended it with %s" % status)
        print("ok %s" % method)


if __name__ == "__main__":
    main()
