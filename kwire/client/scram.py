"""The client's side of SCRAM (RFC 5802, KIP-84), without I/O: messages out, messages in.

Names are escaped as the RFC says; passwords are taken as UTF-8 without SASLprep, as Kafka's ScramFormatter does.
"""

from __future__ import annotations

import base64
import binascii
import secrets

from kwire.errors import KwireError
from kwire.payloads.scram import HASHES, MAX_ITERATIONS, client_proof, salted_password, server_signature

MIN_ITERATIONS = 4096


class ScramClient:
    """first(), then final(challenge), then check(end): each in its turn. Raises KwireError for a server that cheats."""

    def __init__(self, mechanism: str, username: str, password: str, nonce: str | None = None) -> None:
        self._hash, self._password = HASHES[mechanism], password
        self._nonce = nonce or secrets.token_urlsafe(24)
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={self._nonce}".encode()
        self._tokens: list[bytes] = []

    def first(self) -> bytes:
        self._tokens = [b"n,," + self._bare]
        return self._tokens[0]

    def final(self, challenge: bytes) -> bytes:
        """The proof that the password is known."""
        parts = dict(part.split(b"=", 1) for part in challenge.split(b",") if b"=" in part)
        try:
            nonce, rounds = parts[b"r"].decode(), int(parts[b"i"])
            salt = base64.b64decode(parts[b"s"], validate=True)
        except (KeyError, ValueError, binascii.Error) as error:
            raise KwireError("the broker's SCRAM challenge cannot be read") from error
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise KwireError("the broker's SCRAM nonce does not go on from ours")
        if not MIN_ITERATIONS <= rounds <= MAX_ITERATIONS:
            allowed = f"{MIN_ITERATIONS:,} to {MAX_ITERATIONS:,}"
            raise KwireError(f"the broker's SCRAM challenge wants {rounds:,} iterations; {allowed} are done")
        without = b"c=" + base64.b64encode(b"n,,") + b",r=" + nonce.encode()
        salted = salted_password(self._password, salt, rounds, self._hash)
        proof = client_proof(salted, b",".join((self._bare, challenge, without)), self._hash)
        self._tokens += [challenge, without + b",p=" + base64.b64encode(proof)]
        return self._tokens[-1]

    def check(self, end: bytes) -> None:
        """The server's proof, or its refusal."""
        if end.startswith(b"e="):
            raise KwireError(f"SCRAM refused: {end[2:].decode('utf-8', 'replace')}")
        verdict = server_signature([*self._tokens, end], self._password)
        if verdict != "right":
            raise KwireError(f"the broker's SCRAM signature is {verdict or 'missing'}")
