"""The tests' own cryptography, against the published and recorded vectors."""

import base64
import json
import os
import sys
import unittest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)
from support import aead, blake3, starts  # noqa: E402
import probe  # noqa: E402

CIPHERS = {"aes-128-gcm": aead.AES_128, "aes-192-gcm": aead.AES_192, "aes-256-gcm": aead.AES_256,
           "chacha20-poly1305": aead.CHACHA20, "chacha20-ietf-poly1305": aead.CHACHA20,
           "xchacha20-poly1305": aead.XCHACHA20, "xchacha20-ietf-poly1305": aead.XCHACHA20,
           "chacha8-poly1305": aead.CHACHA8, "xchacha8-poly1305": aead.XCHACHA8}


def vectors(name):
    with open(os.path.join(TESTS, "vectors", name)) as file:
        return json.load(file)


def unhex(text):
    return bytes.fromhex(text)


class Support(unittest.TestCase):
    def test_blake3(self):
        known = vectors("kdf.json")["blake3"]
        count = 0
        for case in known["cases"]:
            if case["len"] > 1024:
                continue
            data = bytes(number % 251 for number in range(case["len"]))
            self.assertEqual(blake3.digest(data).hex(), case["hash"])
            self.assertEqual(blake3.derive_key(known["contexts"][0], data).hex(),
                             case["derive_session"][:64])
            count += 1
        self.assertGreater(count, 10)

    def test_aead_and_block(self):
        known = vectors("primitives.json")
        for case in known["aes_block"]:
            self.assertEqual(
                aead.encrypt_block(unhex(case["key"]), unhex(case["plain"])).hex(), case["cipher"])
        seen = set()
        for case in known["aead"]:
            cipher = CIPHERS.get(case["alg"])
            if cipher is None or case["aad"]:
                continue
            key, nonce, plain = (unhex(case[name]) for name in ("key", "nonce", "plain"))
            self.assertEqual(cipher.seal(key, nonce, plain).hex(), case["sealed"], case["alg"])
            self.assertEqual(cipher.open(key, nonce, unhex(case["sealed"])), plain)
            seen.add(cipher)
        self.assertEqual(seen, set(CIPHERS.values()))

    def test_starts_of_2022(self):
        """Built anew from the salt, time and keys of recorded requests."""
        count = 0
        for case in vectors("aead2022-tcp.json")["request"]:
            if case["padding"] or "hex" not in case["initial_payload"]:
                continue
            # Sent text has the alphabet and padding that this decoder wants.
            chain = ":".join(base64.b64encode(unhex(key)).decode()
                             for key in [*case["ipsks"], case["psk"]])
            method = starts.of(case["method"], chain)
            begin, salt = method.begin, unhex(case["salt"])
            method.begin = lambda keys=None: begin(salt, keys)
            payload = unhex(case["initial_payload"]["hex"])
            if not payload:
                continue
            made = method.start((case["host"], case["port"]), payload, now=case["timestamp"])
            self.assertEqual(made.hex(), case["wire"][: 2 * case["head_len"]], case["id"])
            count += 1
        self.assertGreater(count, 3)

    def test_distributions(self):
        """Equal samples are likely, shifted ones are not."""
        one = [number / 1000 for number in range(300)]
        self.assertGreater(probe.kolmogorov_smirnov(one, one)[1], 0.99)
        self.assertLess(probe.kolmogorov_smirnov(one, [value + 0.1 for value in one])[1], 1e-6)


if __name__ == "__main__":
    unittest.main()
