"""Logging in: SASL PLAIN and SCRAM as a state machine for one connection (RFC 4616, RFC 5802, KIP-43, KIP-152).

The order is that of Kafka's SaslServerAuthenticator: ApiVersions and SaslHandshake come first; after a handshake v0 the
tokens are bare frames, after v1 they travel in SaslAuthenticate; then everything else is allowed.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import re
from typing import NamedTuple

from kwire.broker.tokens import Token, Tokens
from kwire.payloads.scram import HASHES, client_proof, salted_password, server_proof

MECHANISMS = ("PLAIN", *HASHES)
ITERATIONS = 4096  # the least that RFC 7677 allows, as Kafka's default is
FIRST = re.compile(r"[ny],(?:a=[^,]*)?,(n=([^,]*),r=([\x21-\x2b\x2d-\x7e]+)(?:,.*)?)")


class LoginFailed(Exception):
    """The login failed; the text is what the client is told."""


class Credential(NamedTuple):
    """What a broker keeps of a SCRAM password."""

    salt: bytes
    iterations: int
    salted: bytes


class Users:
    """Names and passwords. With none, nobody needs to log in. SCRAM credentials may be added and taken away later."""

    def __init__(self, passwords: dict[str, str]) -> None:
        self.passwords = passwords
        self._secret = os.urandom(32)
        self.tokens = Tokens()
        self.given: dict[tuple[str, str], Credential | None] = {}  # user and mechanism; None: taken away

    def keep(self, user: str, mechanism: str, credential: Credential | None) -> None:
        """A credential that counts from now on; None takes it away."""
        if credential is not None or user in self.passwords:
            self.given[user, mechanism] = credential
        else:
            self.given.pop((user, mechanism), None)

    def iterations(self, user: str, mechanism: str) -> int | None:
        """Those of the user's credential, None if there is none."""
        if (user, mechanism) in self.given:
            given = self.given[user, mechanism]
            return None if given is None else given.iterations
        return ITERATIONS if user in self.passwords else None

    def names(self) -> list[str]:
        """Who has a credential of some mechanism."""
        every = {*self.passwords, *(user for user, _ in self.given)}
        return sorted(user for user in every if any(self.iterations(user, each) for each in HASHES))

    def hint(self, user: str, mechanism: str) -> tuple[bytes, int]:
        """Salt and iterations, as they are told to anybody."""
        given = self.given.get((user, mechanism))
        return (given.salt, given.iterations) if given else (self.salt(user), ITERATIONS)

    def salted(self, user: str, mechanism: str) -> bytes | None:
        """The salted password, None for who may not log in so."""
        if self.iterations(user, mechanism) is None:
            return None
        given = self.given.get((user, mechanism))
        if given is not None:
            return given.salted
        return salted_password(self.passwords[user], self.salt(user), ITERATIONS, HASHES[mechanism])

    def __bool__(self) -> bool:
        return bool(self.passwords)

    def salt(self, user: str) -> bytes:
        """The same for every login of a user, and no other in kind for one who does not exist."""
        return hmac.digest(self._secret, user.encode("utf-8", "surrogateescape"), "sha256")[:16]


class ServerLogin:
    """One connection's login. user: who has logged in; bare: the next frame is a token without a header; by_token: with
    a delegation token."""

    def __init__(self, users: Users) -> None:
        self.users = users
        self.user: str | None = None
        self.mechanism: str | None = None
        self.bare = self.by_token = False
        self._scram: ScramServer | None = None

    def handshake(self, mechanism: str, version: int) -> bool:
        """Whether the mechanism is one of ours."""
        if mechanism not in MECHANISMS:
            return False
        self.mechanism, self._scram, self.bare = mechanism, None, version == 0
        return True

    def token(self, data: bytes) -> bytes:
        """The answer to a client's token; self.user is set when it was the last one. Raises LoginFailed."""
        if self.mechanism == "PLAIN":
            return self._plain(data)
        if self.mechanism is None:
            raise LoginFailed("SaslAuthenticate request received before a SaslHandshake")
        if self._scram is None:
            self._scram = ScramServer(self.users, self.mechanism)
            return self._scram.first(data)
        answer = self._scram.final(data)
        self.by_token = self._scram.delegated is not None
        self._done(self._scram.delegated.owner if self._scram.delegated else self._scram.user)
        return answer

    def _plain(self, data: bytes) -> bytes:
        parts = data.decode("utf-8", "replace").split("\0")
        if len(parts) != 3:
            raise LoginFailed(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        authorization, user, password = parts
        expected = self.users.passwords.get(user)
        same = hmac.compare_digest(password.encode(), (expected or "").encode())
        if expected is None or not same:
            raise LoginFailed("Authentication failed: Invalid username or password")
        if authorization not in ("", user):
            raise LoginFailed(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self._done(user)
        return b""

    def _done(self, user: str) -> None:
        self.user, self.bare = user, False


class ScramServer:
    """The server's side of RFC 5802, without channel binding."""

    def __init__(self, users: Users, mechanism: str) -> None:
        self.users, self.mechanism, self.hash = users, mechanism, HASHES[mechanism]
        self.user = self._nonce = self._said = ""
        self.delegated: Token | None = None
        self._by_token = False

    def first(self, data: bytes) -> bytes:
        """The client's first message to the server's. Raises LoginFailed."""
        match = FIRST.fullmatch(data.decode("utf-8", "replace"))
        if not match:
            raise LoginFailed(f"{self.mechanism}: the client's first message cannot be read")
        bare, name, nonce = match[1], match[2], match[3]
        self.user = name.replace("=2C", ",").replace("=3D", "=")
        self._nonce = nonce + base64.b64encode(os.urandom(18)).decode()
        self._by_token = "tokenauth=true" in bare.split(",")[2:]
        salt, iterations = self.users.hint(self.user, self.mechanism)
        if self._by_token:
            self.delegated = self.users.tokens.all.get(self.user)
            salt, iterations = self.users.salt(self.user), ITERATIONS
        answer = f"r={self._nonce},s={base64.b64encode(salt).decode()},i={iterations}"
        self._said = f"{bare},{answer}"
        return answer.encode()

    def final(self, data: bytes) -> bytes:
        """The client's proof to the server's signature. Raises LoginFailed."""
        text = data.decode("utf-8", "replace")
        without, _, proof = text.rpartition(",p=")
        fields = dict(part.split("=", 1) for part in without.split(",") if "=" in part)
        why = "Authentication failed during authentication due to invalid credentials with SASL mechanism"
        wrong = LoginFailed(f"{why} {self.mechanism}")
        if fields.get("r") != self._nonce:
            raise wrong
        salted = self._salted()
        message = f"{self._said},{without}".encode()
        expected = client_proof(salted or b"", message, self.hash)
        try:
            given = base64.b64decode(proof, validate=True)
        except (ValueError, binascii.Error):
            raise wrong from None
        if salted is None or not hmac.compare_digest(given, expected):
            raise wrong
        return b"v=" + base64.b64encode(server_proof(salted, message, self.hash))

    def _salted(self) -> bytes | None:
        """What the client must have made of its password, None for who may not log in."""
        if not self._by_token:
            return self.users.salted(self.user, self.mechanism)
        if self.delegated is None:
            return None
        return salted_password(self.delegated.password, self.users.salt(self.user), ITERATIONS, self.hash)
