"""Access control lists for the measurements: every kind of rule is passed, and none hits the target
but where a client is to bypass its server."""

import json

from support import acl

# The last pattern is interpreted, as all are where memory may not be made executable.
NOT_HIT = ("192.0.2.0/24\n2001:db8::/32\n||not.test\n|hit.test\n^ne(v+)er[0-9]*\\.\n"
           "(*NO_JIT)^([a-z.]+)+[0-9]$\n")

# A literal that the server's list refuses.
BLOCKED = "198.51.100.1"


def arguments(way, nameserver):
    """(for ss-server, for ss-local). `way` is None, "proxy" or "bypass"; with `nameserver` the
    target is a name, which ss-local looks up as well."""
    if way is None:
        return [], []
    server = "[black_list]\n%s[outbound_block_list]\n%s%s\n" % (NOT_HIT, NOT_HIT, BLOCKED)
    local = "[bypass_list]\n%s%s" % (NOT_HIT, "127.0.0.0/8\n" if way == "bypass" else "")
    config = {"dns": nameserver} if nameserver else {}
    return (["--acl", acl.write(server)],
            ["--acl", acl.write(local), "-c", acl.write(json.dumps(config), "local.json")])
