"""Datagrams of a client by method: correct ones, every way to spoil one, and the answers.

SIP004 (2017); SIP022 and SIP023 (2022 edition: sessions, identity headers)."""

import os
import struct
import time

from . import aead, blake3, socks, starts, udp

TAG_LEN = aead.TAG_LEN
_WHOLE = {aead.CHACHA20: aead.XCHACHA20, aead.CHACHA8: aead.XCHACHA8}


class Session2017:
    """Under these methods datagrams have nothing in common."""

    is_2022 = False

    def __init__(self, method, password):
        self.edition = starts.of(method, password)

    def _seal(self, plain):
        salt, into = self.edition.begin()
        cipher = self.edition.cipher
        return salt + cipher.seal(into._key, bytes(cipher.nonce_len), plain)

    def seal(self, target, payload):
        return self._seal(socks.address(*target) + payload)

    def open(self, wire):
        """(host, port) of the origin, and the payload; ValueError when it is none."""
        salt, sealed = wire[: self.edition.salt_len], wire[self.edition.salt_len :]
        _, into = self.edition.begin(salt)
        cipher = self.edition.cipher
        return udp.split_address(cipher.open(into._key, bytes(cipher.nonce_len), sealed))

    def bad(self, target, strange=True):
        """(cause, datagram): sealed with the right key, and yet no request."""
        address = socks.address(*target)
        for length in range(len(address)):
            yield "address that is cut", self._seal(address[:length])
        yield "unknown address type", self._seal(b"\2" + address[1:] + b"x")
        yield "empty name", self._seal(b"\3\0\0\x50" + bytes(8))
        yield "name with a NUL", self._seal(b"\3\3a\0b\0\x50" + bytes(8))


class Session2022:
    """One session of a client; `chain` is its keys in base64, parted by colons."""

    is_2022 = True

    def __init__(self, method, chain):
        self.edition = starts.of(method, chain)
        self.whole = _WHOLE.get(self.edition.cipher)  # one message under the key itself
        self.id = os.urandom(8)
        self.next = 0

    def _subkey(self, key, session):
        return blake3.derive_key("shadowsocks 2022 session subkey", key + session, len(key))

    def seal(self, target, payload, number=None, now=None, kind=0, body=None, keys=None,
             identity=True, session=None):
        """The next packet, or the one with this number, with whatever is given put in place of the
        right thing; `body` is all that follows the time stamp."""
        keys = keys or self.edition.keys
        if number is None:
            number, self.next = self.next, self.next + 1
        ids = (session or self.id) + struct.pack(">Q", number)
        now = int(time.time()) if now is None else now
        body = b"\0\0" + socks.address(*target) + payload if body is None else body
        plain = struct.pack(">BQ", kind, now) + body
        if self.whole:
            nonce = os.urandom(24)
            return nonce + self.whole.seal(keys[-1], nonce, ids + plain)
        head = aead.encrypt_block(keys[0], ids)
        for key, following in zip(keys, keys[1:]) if identity else ():
            name = bytes(one ^ two for one, two in zip(blake3.digest(following)[:16], ids))
            head += aead.encrypt_block(key, name)
        return head + self.edition.cipher.seal(self._subkey(keys[-1], ids[:8]), ids[4:], plain)

    def open(self, wire):
        """(host, port) of the origin, and the payload; ValueError when it is no answer to us."""
        key = self.edition.keys[-1]
        if self.whole:
            plain = self.whole.open(key, wire[:24], wire[24:])[16:]
        else:
            ids = aead.decrypt_block(key, wire[:16])
            plain = self.edition.cipher.open(self._subkey(key, ids[:8]), ids[4:], wire[16:])
        kind, now, session, padding = struct.unpack_from(">BQ8sH", plain)
        if kind != 1 or abs(now - time.time()) > 31 or session != self.id:
            raise ValueError("the head of the answer is not that of an answer to this session")
        return udp.split_address(plain[19 + padding :])

    def bad(self, target, strange=True):
        """`strange`: of sessions that nobody knows, too, which a server that passes on takes."""
        address = socks.address(*target)
        cases = [("type of an answer", {"kind": 1}), ("unknown type", {"kind": 255}),
                 ("padding beyond the end", {"body": b"\xff\xff" + address + b"x"}),
                 ("nothing but padding", {"body": b"\0\x14" + bytes(20)}),
                 ("empty name", {"body": b"\0\0\3\0\0\x50" + bytes(8)}),
                 ("unknown address type", {"body": b"\0\0\2" + bytes(30)}),
                 ("another key", {"keys": self._other_keys()})]
        for length in range(len(address)):
            cases.append(("address that is cut", {"body": b"\0\0" + address[:length]}))
        if len(self.edition.keys) > 1:
            cases += [("no identity header", {"identity": False}),
                      ("another server's key", {"keys": self._other_keys(0)})]
        now = int(time.time())
        for cause, moment in (("stale by 33 s", now - 33), ("stale by a day", now - 86400),
                              ("no time", 0), ("future by 33 s", now + 33),
                              ("future by a day", now + 86400), ("end of time", 2**64 - 1)):
            cases.append((cause, {"now": moment}))
        for cause, what in cases:
            yield cause, self.seal(target, b"x", **what)
            if strange:
                yield cause, self.seal(target, b"x", session=os.urandom(8), number=0, **what)

    def _other_keys(self, place=-1):
        keys = list(self.edition.keys)
        keys[place] = os.urandom(len(keys[place]))
        return keys


def session(method, key):
    made = Session2022 if method.startswith("2022-") else Session2017
    return made(method, key)
