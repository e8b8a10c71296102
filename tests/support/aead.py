"""The AEADs of the methods and one AES block, for tests: through libcrypto and libsodium, and
ChaCha8 written out."""

import ctypes
import ctypes.util
import struct

from . import shadow

TAG_LEN = 16


def _libcrypto():
    for name in (ctypes.util.find_library("crypto"), "libcrypto.so.3", "libcrypto.so"):
        if name:
            try:
                return ctypes.CDLL(name)
            except OSError:
                continue
    raise RuntimeError("libcrypto is not there")


_crypto = _libcrypto()
for _name in ("EVP_CIPHER_CTX_new", "EVP_get_cipherbyname"):
    getattr(_crypto, _name).restype = ctypes.c_void_p
_sodium = shadow._sodium

_GET_TAG, _SET_TAG = 0x10, 0x11


def _evp(name, key, nonce, text, tag=None, encrypt=True):
    """What the cipher makes of the text, and the tag when it seals."""
    cipher = ctypes.c_void_p(_crypto.EVP_get_cipherbyname(name.encode()))
    context = ctypes.c_void_p(_crypto.EVP_CIPHER_CTX_new())
    try:
        out = ctypes.create_string_buffer(len(text) + 32)
        length = ctypes.c_int()
        ok = _crypto.EVP_CipherInit_ex(context, cipher, None, key, nonce, 1 if encrypt else 0) == 1
        _crypto.EVP_CIPHER_CTX_set_padding(context, 0)
        if tag is not None:
            ok = ok and _crypto.EVP_CIPHER_CTX_ctrl(context, _SET_TAG, TAG_LEN, tag) == 1
        ok = ok and _crypto.EVP_CipherUpdate(context, out, ctypes.byref(length), text,
                                             len(text)) == 1
        count = length.value
        ok = ok and _crypto.EVP_CipherFinal_ex(
            context, ctypes.byref(out, count), ctypes.byref(length)) == 1
        if not ok:
            raise ValueError("a tag does not verify")
        if nonce is None or not encrypt:
            return out.raw[:count]
        found = ctypes.create_string_buffer(TAG_LEN)
        _crypto.EVP_CIPHER_CTX_ctrl(context, _GET_TAG, TAG_LEN, found)
        return out.raw[:count] + found.raw
    finally:
        _crypto.EVP_CIPHER_CTX_free(context)


def encrypt_block(key, block):
    """One AES block."""
    return _evp("aes-%d-ecb" % (8 * len(key)), key, None, block)


def decrypt_block(key, block):
    return _evp("aes-%d-ecb" % (8 * len(key)), key, None, block, encrypt=False)


def _evp_seal(name):
    return lambda key, nonce, text: _evp(name, key, nonce, text)


def _evp_open(name):
    return lambda key, nonce, text: _evp(name, key, nonce, text[:-TAG_LEN], text[-TAG_LEN:], False)


def _sodium_call(verb, key, nonce, text):
    out = ctypes.create_string_buffer(len(text) + TAG_LEN)
    length = ctypes.c_ulonglong()
    size, none, zero = ctypes.c_ulonglong(len(text)), None, ctypes.c_ulonglong(0)
    call = getattr(_sodium, "crypto_aead_xchacha20poly1305_ietf_" + verb)
    if verb == "encrypt":
        failed = call(out, ctypes.byref(length), text, size, none, zero, none, nonce, key)
    else:
        failed = call(out, ctypes.byref(length), none, text, size, none, zero, nonce, key)
    if failed:
        raise ValueError("a tag does not verify")
    return out.raw[: length.value]


def _turn(word, count):
    return (word << count | word >> (32 - count)) & 0xFFFFFFFF


def _chacha_rounds(start, rounds):
    x = list(start)
    for _ in range(rounds // 2):
        for a, b, c, d in ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
                           (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)):
            for first, second in ((16, 12), (8, 7)):
                x[a] = (x[a] + x[b]) & 0xFFFFFFFF
                x[d] = _turn(x[d] ^ x[a], first)
                x[c] = (x[c] + x[d]) & 0xFFFFFFFF
                x[b] = _turn(x[b] ^ x[c], second)
    return x


def _chacha_block(key, nonce, counter, rounds):
    start = struct.unpack("<16I", b"expand 32-byte k" + key + struct.pack("<I", counter) + nonce)
    words = _chacha_rounds(start, rounds)
    return struct.pack("<16I", *((one + two) & 0xFFFFFFFF for one, two in zip(words, start)))


def _poly1305(key, text):
    r = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    total = 0
    for at in range(0, len(text), 16):
        total = (total + int.from_bytes(text[at : at + 16] + b"\1", "little")) * r % (2**130 - 5)
    return ((total + int.from_bytes(key[16:32], "little")) & (2**128 - 1)).to_bytes(16, "little")


def _chacha8_xor(key, nonce, text):
    stream = b"".join(_chacha_block(key, nonce, 1 + number, 8)
                      for number in range((len(text) + 63) // 64))
    return bytes(one ^ two for one, two in zip(text, stream))


def _chacha8_tag(key, nonce, sealed):
    padded = sealed + bytes(-len(sealed) % 16) + struct.pack("<QQ", 0, len(sealed))
    return _poly1305(_chacha_block(key, nonce, 0, 8)[:32], padded)


def _chacha8_seal(key, nonce, text):
    sealed = _chacha8_xor(key, nonce, text)
    return sealed + _chacha8_tag(key, nonce, sealed)


def _chacha8_open(key, nonce, text):
    if _chacha8_tag(key, nonce, text[:-TAG_LEN]) != text[-TAG_LEN:]:
        raise ValueError("a tag does not verify")
    return _chacha8_xor(key, nonce, text[:-TAG_LEN])


def _xchacha8(call):
    """The same under a key of HChaCha8, for a nonce of 24 bytes."""
    def run(key, nonce, text):
        words = _chacha_rounds(
            struct.unpack("<16I", b"expand 32-byte k" + key + nonce[:16]), 8)
        return call(struct.pack("<8I", *words[:4], *words[12:]), bytes(4) + nonce[16:], text)
    return run


class Aead:
    """`seal(key, nonce, text)` and `open(key, nonce, text)`, which raises ValueError."""

    def __init__(self, seal, open_, key_len, nonce_len=12):
        self.seal, self.open = seal, open_
        self.key_len, self.nonce_len = key_len, nonce_len


def _of_evp(name, key_len):
    return Aead(_evp_seal(name), _evp_open(name), key_len)


AES_128 = _of_evp("id-aes128-GCM", 16)
AES_192 = _of_evp("id-aes192-GCM", 24)
AES_256 = _of_evp("id-aes256-GCM", 32)
CHACHA20 = _of_evp("chacha20-poly1305", 32)
XCHACHA20 = Aead(lambda *what: _sodium_call("encrypt", *what),
                 lambda *what: _sodium_call("decrypt", *what), 32, 24)
CHACHA8 = Aead(_chacha8_seal, _chacha8_open, 32)
XCHACHA8 = Aead(_xchacha8(_chacha8_seal), _xchacha8(_chacha8_open), 32, 24)
