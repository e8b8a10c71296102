"""Free ports of the loopback interface that no other test of this machine takes meanwhile."""

import atexit
import random
import socket

_claims = {}
atexit.register(lambda: [claim.close() for claim in _claims.values()])

# Below the range from which the kernel takes the ports of outgoing connections.
_FIRST, _LAST = 10000, 32000


def _free(port, family, kind, host):
    with socket.socket(family, kind) as probe:
        if family == socket.AF_INET6:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def free_port():
    """A port that is free on every address, TCP and UDP, held for this process until it ends."""
    for _ in range(2000):
        port = random.randint(_FIRST, _LAST)
        if port in _claims:
            continue
        # An abstract socket is a claim that other test processes see and that never outlives us.
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind("\0ss-test-port-%d" % port)
        except OSError:
            claim.close()
            continue
        kinds = (socket.SOCK_STREAM, socket.SOCK_DGRAM)
        families = [(socket.AF_INET, "0.0.0.0")]
        if socket.has_ipv6 and have_ipv6():
            families.append((socket.AF_INET6, "::"))
        if all(_free(port, family, kind, host) for family, host in families for kind in kinds):
            _claims[port] = claim
            return port
        claim.close()
    raise RuntimeError("no free port found")


def is_free(port):
    """Whether a TCP port of 127.0.0.1 can be bound now."""
    return _free(port, socket.AF_INET, socket.SOCK_STREAM, "127.0.0.1")


def closed_port():
    """A port on which nothing listens, and nothing of these tests will."""
    return free_port()


def have_ipv6():
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
        return True
    except OSError:
        return False
