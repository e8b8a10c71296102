"""A Shadowsocks client for probing: chacha20-ietf-poly1305 (SIP004) through libsodium.

It seals and opens chunk by chunk, so that a test decides what is in which chunk and segment.
"""

import ctypes
import ctypes.util
import hashlib
import hmac
import os
import socket
import struct

from . import socks

METHOD = "chacha20-ietf-poly1305"
KEY_LEN = SALT_LEN = 32
TAG_LEN = 16
CHUNK_MAX = 0x3FFF


def _library():
    names = [ctypes.util.find_library("sodium"), "libsodium.so.26", "libsodium.so.23"]
    for name in names:
        if name:
            try:
                return ctypes.CDLL(name)
            except OSError:
                continue
    raise RuntimeError("libsodium is not there")


_sodium = _library()
if _sodium.sodium_init() < 0:
    raise RuntimeError("libsodium does not start")


def master_key(password):
    """EVP_BytesToKey with MD5, as the password methods have it."""
    password = password.encode()
    key, last = b"", b""
    while len(key) < KEY_LEN:
        last = hashlib.md5(last + password).digest()
        key += last
    return key[:KEY_LEN]


def subkey(key, salt):
    secret = hmac.new(salt, key, hashlib.sha1).digest()
    out, last = b"", b""
    number = 1
    while len(out) < KEY_LEN:
        last = hmac.new(secret, last + b"ss-subkey" + bytes([number]), hashlib.sha1).digest()
        out += last
        number += 1
    return out[:KEY_LEN]


class Sealer:
    """One direction: the salt, then sealed chunks."""

    def __init__(self, password, salt=None):
        self.salt = os.urandom(SALT_LEN) if salt is None else salt
        self._key = subkey(master_key(password), self.salt)
        self._nonce = 0

    def _seal(self, plain):
        out = ctypes.create_string_buffer(len(plain) + TAG_LEN)
        length = ctypes.c_ulonglong()
        _sodium.crypto_aead_chacha20poly1305_ietf_encrypt(
            out, ctypes.byref(length), plain, ctypes.c_ulonglong(len(plain)), None,
            ctypes.c_ulonglong(0), None, self._nonce.to_bytes(12, "little"), self._key)
        self._nonce += 1
        return out.raw[: length.value]

    def chunk(self, plain):
        return self._seal(struct.pack(">H", len(plain))) + self._seal(plain)

    def chunks(self, plain):
        return b"".join(
            self.chunk(plain[at : at + CHUNK_MAX]) for at in range(0, len(plain), CHUNK_MAX)
        )


class Opener:
    """The other direction: takes wire bytes in any pieces and gives the plain ones."""

    def __init__(self, password):
        self._master = master_key(password)
        self._key = None
        self._nonce = 0
        self._wire = b""
        self._length = None
        self.salt = None

    def _open(self, sealed):
        out = ctypes.create_string_buffer(max(1, len(sealed) - TAG_LEN))
        length = ctypes.c_ulonglong()
        if _sodium.crypto_aead_chacha20poly1305_ietf_decrypt(
            out, ctypes.byref(length), None, sealed, ctypes.c_ulonglong(len(sealed)), None,
            ctypes.c_ulonglong(0), self._nonce.to_bytes(12, "little"), self._key):
            raise ValueError("a tag does not verify")
        self._nonce += 1
        return out.raw[: length.value]

    def feed_chunks(self, wire):
        """The payload of each chunk that is whole by now."""
        self._wire += wire
        found = []
        if self._key is None:
            if len(self._wire) < SALT_LEN:
                return found
            self.salt, self._wire = self._wire[:SALT_LEN], self._wire[SALT_LEN:]
            self._key = subkey(self._master, self.salt)
        while True:
            if self._length is None:
                if len(self._wire) < 2 + TAG_LEN:
                    return found
                head, self._wire = self._wire[: 2 + TAG_LEN], self._wire[2 + TAG_LEN :]
                (self._length,) = struct.unpack(">H", self._open(head))
            if len(self._wire) < self._length + TAG_LEN:
                return found
            end = self._length + TAG_LEN
            body, self._wire = self._wire[:end], self._wire[end:]
            self._length = None
            found.append(self._open(body))

    def feed(self, wire):
        return b"".join(self.feed_chunks(wire))

    @property
    def at_edge(self):
        return not self._wire and self._length is None


def first_packet(password, target, payload=b"", salt=None):
    """Salt and one chunk that holds the address and the payload."""
    sealer = Sealer(password, salt)
    return sealer.salt + sealer.chunk(socks.address(*target) + payload)


class Connection:
    """A connection to a Shadowsocks server."""

    def __init__(self, server, password, timeout=10, source=None):
        """`source`: the host that it comes from."""
        self.socket = socket.create_connection(("127.0.0.1", server), timeout,
                                               (source or "127.0.0.1", 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sealer = Sealer(password)
        self.opener = Opener(password)
        self._plain = b""
        self._salt_sent = False

    def send(self, plain):
        wire = self.sealer.chunks(plain)
        if not self._salt_sent:
            wire = self.sealer.salt + wire
            self._salt_sent = True
        self.socket.sendall(wire)

    def request(self, target, payload=b""):
        self.send(socks.address(*target) + payload)

    def receive(self, count):
        while len(self._plain) < count:
            wire = self.socket.recv(1 << 16)
            if not wire:
                break
            self._plain += self.opener.feed(wire)
        out, self._plain = self._plain[:count], self._plain[count:]
        return out

    def close(self):
        self.socket.close()
