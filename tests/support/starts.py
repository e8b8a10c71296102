"""How a connection to a server begins, by method: correct starts, and every way to spoil one.

SIP004 (2017), SIP022 and SIP023 (2022 edition with identity headers). Nothing here is ever sent
as a client would: a test decides which bytes leave, and when."""

import base64
import hashlib
import hmac
import os
import struct
import time

from . import aead, blake3, socks

TAG_LEN = aead.TAG_LEN
_2017 = {"aes-128-gcm": aead.AES_128, "aes-192-gcm": aead.AES_192, "aes-256-gcm": aead.AES_256,
         "chacha20-ietf-poly1305": aead.CHACHA20, "xchacha20-ietf-poly1305": aead.XCHACHA20}
_2022 = {"2022-blake3-aes-128-gcm": aead.AES_128, "2022-blake3-aes-256-gcm": aead.AES_256,
         "2022-blake3-chacha20-poly1305": aead.CHACHA20,
         "2022-blake3-chacha8-poly1305": aead.CHACHA8}
METHODS = (*_2017, *_2022)


class _Direction:
    """Seals or opens one direction: the nonce counts."""

    def __init__(self, cipher, key):
        self._cipher, self._key, self._count = cipher, key, 0

    def _nonce(self):
        nonce = self._count.to_bytes(self._cipher.nonce_len, "little")
        self._count += 1
        return nonce

    def seal(self, plain):
        return self._cipher.seal(self._key, self._nonce(), plain)

    def open(self, sealed):
        return self._cipher.open(self._key, self._nonce(), sealed)


class Edition2017:
    """A method with a password."""

    is_2022 = False

    def __init__(self, method, password):
        self.cipher = _2017[method]
        self.salt_len = self.cipher.key_len
        key, last = b"", b""
        while len(key) < self.cipher.key_len:
            last = hashlib.md5(last + password.encode()).digest()
            key += last
        self.key = key[: self.cipher.key_len]

    def _subkey(self, salt):
        secret = hmac.new(salt, self.key, hashlib.sha1).digest()
        out, last, number = b"", b"", 1
        while len(out) < len(self.key):
            last = hmac.new(secret, last + b"ss-subkey" + bytes([number]), hashlib.sha1).digest()
            out += last
            number += 1
        return out[: len(self.key)]

    def begin(self, salt=None):
        """(salt, direction)"""
        salt = os.urandom(self.salt_len) if salt is None else salt
        return salt, _Direction(self.cipher, self._subkey(salt))

    def start(self, target, payload, first=None, length=None):
        """What a client sends: salt, length, and a chunk with the address and the payload.
        `first` is another plain text for the chunk, `length` another one for its length."""
        salt, out = self.begin()
        plain = socks.address(*target) + payload if first is None else first
        return salt + out.seal(struct.pack(">H", len(plain) if length is None else length)) + \
            out.seal(plain)

    @property
    def proven_at(self):
        """Nothing is proven before the end; see Edition2022."""
        return None

    def answered(self, start, wire):
        """The payload of a whole answer to `start`; ValueError while it is not there or wrong."""
        salt, wire = wire[: self.salt_len], wire[self.salt_len :]
        if len(wire) < 2 + TAG_LEN:
            raise ValueError("incomplete")
        _, into = self.begin(salt)
        (length,) = struct.unpack(">H", into.open(wire[: 2 + TAG_LEN]))
        return into.open(wire[2 + TAG_LEN : 2 + 2 * TAG_LEN + length])

    def bad_headers(self, target):
        """(cause, bytes): sealed with the right key, and yet no request."""
        yield "no address", self.start(target, b"", first=bytes(7))
        yield "unknown address type", self.start(target, b"", first=b"\x02" + bytes(20))
        yield "empty name", self.start(target, b"", first=b"\x03\x00\x00\x50")
        yield "name with a NUL", self.start(target, b"", first=b"\x03\x03a\x00b\x00\x50")
        for length in (0, 0x4000, 0xFFFF):
            yield "length %#x" % length, self.start(target, bytes(50), length=length)

    def bad_clocks(self, target):
        """There is no time in a start."""
        return ()


class Edition2022:
    """A method with keys: `chain` is base64, parted by colons."""

    is_2022 = True

    def __init__(self, method, chain):
        self.cipher = _2022[method]
        self.salt_len = self.cipher.key_len
        self.keys = [base64.b64decode(text) for text in chain.split(":")]
        if any(len(key) != self.cipher.key_len for key in self.keys):
            raise SystemExit("a key of %s has %d bytes, in base64" % (method, self.cipher.key_len))

    def begin(self, salt=None, keys=None):
        salt = os.urandom(self.salt_len) if salt is None else salt
        key = (keys or self.keys)[-1]
        subkey = blake3.derive_key("shadowsocks 2022 session subkey", key + salt, len(key))
        return salt, _Direction(self.cipher, subkey)

    def _identity(self, salt, keys):
        for key, following in zip(keys, keys[1:]):
            subkey = blake3.derive_key("shadowsocks 2022 identity subkey", key + salt, len(key))
            yield aead.encrypt_block(subkey, blake3.digest(following)[:16])

    def start(self, target, payload, now=None, kind=0, variable=None, length=None, keys=None,
              identity=True):
        """What a client sends, with whatever is given put in place of the right thing."""
        keys = keys or self.keys
        salt, out = self.begin(keys=keys)
        if variable is None:
            padding = b"" if payload else os.urandom(100)
            variable = socks.address(*target) + struct.pack(">H", len(padding)) + padding + payload
        now = int(time.time()) if now is None else now
        fixed = struct.pack(">BQH", kind, now, len(variable) if length is None else length)
        head = b"".join(self._identity(salt, keys)) if identity else b""
        return salt + head + out.seal(fixed) + out.seal(variable)

    @property
    def proven_at(self):
        """From this many bytes of a start on, its sender has shown the key: what is missing then
        may be waited for."""
        return self.salt_len + 16 * (len(self.keys) - 1) + 11 + TAG_LEN

    def answered(self, start, wire):
        salt_len = self.salt_len
        head_len = 1 + 8 + salt_len + 2
        if len(wire) < salt_len + head_len + TAG_LEN:
            raise ValueError("incomplete")
        _, into = self.begin(wire[:salt_len])
        wire = wire[salt_len:]
        head = into.open(wire[: head_len + TAG_LEN])
        kind, now = struct.unpack_from(">BQ", head)
        (length,) = struct.unpack_from(">H", head, 9 + salt_len)
        if kind != 1 or abs(now - time.time()) > 31 or head[9 : 9 + salt_len] != start[:salt_len]:
            raise AssertionError("the head of the answer is not that of an answer to this")
        rest = wire[head_len + TAG_LEN :]
        return into.open(rest[: length + TAG_LEN])

    def bad_headers(self, target):
        address = socks.address(*target)
        yield "type of an answer", self.start(target, b"x", kind=1)
        yield "unknown type", self.start(target, b"x", kind=7)
        yield "neither payload nor padding", self.start(target, b"", variable=address + bytes(2))
        yield "padding beyond the chunk", self.start(
            target, b"", variable=address + b"\x03\x84" + bytes(10))
        yield "no padding length", self.start(target, b"", variable=address)
        yield "unknown address type", self.start(target, b"", variable=b"\x02" + bytes(40))
        yield "empty name", self.start(target, b"", variable=b"\x03\x00\x00\x50" + bytes(40))
        yield "empty variable header", self.start(target, b"", variable=b"")
        if len(self.keys) > 1:
            other = self.keys[:-1] + [os.urandom(len(self.keys[-1]))]
            yield "unknown user", self.start(target, b"x", keys=other)
            yield "no identity header", self.start(target, b"x", identity=False)

    def bad_clocks(self, target):
        """(cause, bytes): correct, but for their time."""
        now = int(time.time())
        for cause, moment in (("stale by 33 s", now - 33), ("stale by an hour", now - 3600),
                              ("stale by a day", now - 86400), ("no time", 0),
                              ("future by 33 s", now + 33), ("future by an hour", now + 3600),
                              ("future by a day", now + 86400), ("end of time", 2**64 - 1),
                              ("sign bit", 2**63)):
            yield cause, self.start(target, b"x", now=moment)


def of(method, key):
    """The edition that has the method, bound to a password or a chain of keys."""
    if method in _2017:
        return Edition2017(method, key)
    if method in _2022:
        return Edition2022(method, key)
    raise SystemExit("%s has no authentication: there is no start that could fail" % method
                     if not method.startswith("2022") else "%s is unknown" % method)
