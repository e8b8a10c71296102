"""BLAKE3 of short inputs (one chunk, up to 1,024 bytes): hash and key derivation."""

import struct

_IV = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB,
       0x5BE0CD19)
_ORDER = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
_CHUNK_START, _CHUNK_END, _ROOT, _CONTEXT, _MATERIAL = 1, 2, 8, 32, 64
_MASK = 0xFFFFFFFF
# Columns, then diagonals.
_LANES = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
          (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))


def _turn(word, count):
    return (word >> count | word << (32 - count)) & _MASK


def _compress(chaining, block, length, flags):
    v = [*chaining, *_IV[:4], 0, 0, length, flags]  # the chunk's number is 0
    words = list(struct.unpack("<16I", block.ljust(64, b"\0")))
    for _ in range(7):
        for place, (a, b, c, d) in enumerate(_LANES):
            for word, first, second in ((words[2 * place], 16, 12), (words[2 * place + 1], 8, 7)):
                v[a] = (v[a] + v[b] + word) & _MASK
                v[d] = _turn(v[d] ^ v[a], first)
                v[c] = (v[c] + v[d]) & _MASK
                v[b] = _turn(v[b] ^ v[c], second)
        words = [words[place] for place in _ORDER]
    return [v[place] ^ v[place + 8] for place in range(8)]


def _chunk(key, data, mode):
    if len(data) > 1024:
        raise ValueError("more than a chunk")
    blocks = [data[at : at + 64] for at in range(0, len(data), 64)] or [b""]
    chaining = key
    for number, block in enumerate(blocks):
        flags = mode | (_CHUNK_START if number == 0 else 0)
        if number == len(blocks) - 1:
            flags |= _CHUNK_END | _ROOT
        chaining = _compress(chaining, block, len(block), flags)
    return struct.pack("<8I", *chaining)


def digest(data):
    """The 32-byte hash."""
    return _chunk(_IV, data, 0)


def derive_key(context, material, length=32):
    """Up to 32 bytes of a key for the context, a text."""
    key = struct.unpack("<8I", _chunk(_IV, context.encode(), _CONTEXT))
    return _chunk(key, material, _MATERIAL)[:length]
