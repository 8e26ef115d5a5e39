"""SCRAM (RFC 5802, section 3; KIP-84): its proofs, and what an exchange proves whose password is given on purpose.

The server signature proves that the server knew the password's keys. The hash follows from its length: 32 bytes are
SHA-256, 64 are SHA-512.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
BY_LENGTH = {32: "sha256", 64: "sha512"}
MAX_ITERATIONS = 1_000_000  # a server's claim; more would only burn time


def salted_password(password: str, salt: bytes, rounds: int, name: str) -> bytes:
    """What both sides make of a password. name: of the hash."""
    return hashlib.pbkdf2_hmac(name, password.encode(), salt, rounds)


def client_proof(salted: bytes, message: bytes, name: str) -> bytes:
    """What shows the server that the client knows the password. message: the exchange up to the proof."""
    key = hmac.digest(salted, b"Client Key", name)
    signature = hmac.digest(hashlib.new(name, key).digest(), message, name)
    return bytes(a ^ b for a, b in zip(key, signature, strict=True))


def server_proof(salted: bytes, message: bytes, name: str) -> bytes:
    """The same of the server: its signature."""
    return hmac.digest(hmac.digest(salted, b"Server Key", name), message, name)


def server_signature(tokens: Iterable[bytes], password: str) -> str | None:
    """What the tokens of one exchange, in order, say: "right", "wrong: …", or None where they are no whole exchange."""
    found = list(tokens)
    for first, challenge, final, end in zip(found, found[1:], found[2:], found[3:], strict=False):
        if first[:1] in b"ny" and challenge.startswith(b"r=") and b",p=" in final and end.startswith(b"v="):
            return _check(first, challenge, final, end, password)
    return None


def _check(first: bytes, challenge: bytes, final: bytes, end: bytes, password: str) -> str:
    bare = first.split(b",", 2)[2] if first.count(b",") >= 2 else first
    parts = dict(part.split(b"=", 1) for part in challenge.split(b",") if b"=" in part)
    try:
        salt = base64.b64decode(parts[b"s"], validate=True)
        rounds = int(parts[b"i"])
        given = base64.b64decode(end[2:].split(b",")[0], validate=True)
    except (KeyError, ValueError, binascii.Error):
        return "not to be checked: the messages do not parse"
    name = BY_LENGTH.get(len(given))
    if name is None or not 0 < rounds <= MAX_ITERATIONS:
        return "not to be checked: an unknown hash, or too many iterations"
    message = b",".join((bare, challenge, final.rsplit(b",p=", 1)[0]))
    proof = server_proof(salted_password(password, salt, rounds, name), message, name)
    right = hmac.compare_digest(proof, given)
    return "right" if right else "wrong: another password, or another server"
