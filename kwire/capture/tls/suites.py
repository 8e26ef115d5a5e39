"""Cipher suites by their numbers: how records are protected and which hash derives the keys, read from their names.

The names are IANA's and follow one grammar: key exchange, WITH, cipher with key length and mode, hash. The hash of an
AEAD suite is that of the key schedule; that of a CBC suite is its MAC's, and SHA256 derives the keys unless it is
SHA384 (RFC 5246 section 5, RFC 5288, RFC 5289, RFC 6655, RFC 7905, RFC 8446 appendix B.4).
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from kwire.schema.shipped import folder_of

CIPHER = re.compile(r"(?:\w+_WITH_)?(AES_(?:128|256)|CHACHA20)_(GCM|CCM_8|CCM|CBC|POLY1305)(?:_(SHA|SHA256|SHA384))?")


class Suite(NamedTuple):
    """mode: gcm, ccm, ccm_8, chacha20, cbc, or empty where kwire does not read its records. key: bytes of a key; mac:
    the hash of a CBC suite's MAC, else empty; hash: of the key schedule."""

    number: int
    name: str
    mode: str = ""
    key: int = 0
    mac: str = ""
    hash: str = "sha256"

    @property
    def tag(self) -> int:
        """The size of an AEAD's tag, bytes."""
        return 8 if self.mode == "ccm_8" else 16


def suite_of(number: int) -> Suite:
    """The suite of a number; an unknown one is named by its number."""
    return _suites().get(number) or Suite(number, f"0x{number:04x}")


@cache
def _suites() -> dict[int, Suite]:
    text = (folder_of("kwire.capture.tls") / "suites.txt").read_text(encoding="ascii")
    pairs = (line.split() for line in text.splitlines() if not line.startswith("#"))
    return {int(number, 16): _read(int(number, 16), name) for number, name in pairs}


def _read(number: int, name: str) -> Suite:
    full = f"TLS_{name}"
    found = CIPHER.fullmatch(name)
    if found is None:
        return Suite(number, full)
    cipher, mode, digest = found.groups()
    key = 16 if cipher == "AES_128" else 32
    mode = "chacha20" if cipher == "CHACHA20" else mode.lower()
    hash = "sha384" if digest == "SHA384" else "sha256"
    mac = {"SHA": "sha1", "SHA256": "sha256", "SHA384": "sha384"}[digest] if mode == "cbc" else ""
    return Suite(number, full, mode, key, mac, hash)
