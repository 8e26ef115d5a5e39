"""Delegation tokens (KIP-48): a user's right to log in, given away for a time.

A token's id and its HMAC, as base64, are a SCRAM user's name and password, with tokenauth=true in the first message;
who logs in so is the owner. As in DelegationTokenManager a token lives until it expires, and may be renewed by its
owner and its renewers until its last day.
"""

from __future__ import annotations

import base64
import hmac
import os
from dataclasses import dataclass
from uuid import uuid4

from kwire.broker.refused import Refused
from kwire.schema import codes

MAX_LIFETIME_MS = 7 * 86_400_000  # delegation.token.max.lifetime.ms
EXPIRY_MS = 86_400_000  # delegation.token.expiry.time.ms
MOST = 10_000


@dataclass(slots=True)
class Token:
    """Users by their names. Times are ms."""

    id: str
    hmac: bytes
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued: int
    expires: int
    ends: int

    @property
    def password(self) -> str:
        return base64.b64encode(self.hmac).decode()

    def concerns(self, user: str) -> bool:
        """Whether the user may renew it and see it."""
        return user == self.owner or user in self.renewers


class Tokens:
    """By id."""

    def __init__(self) -> None:
        self.all: dict[str, Token] = {}
        self._secret = os.urandom(32)

    def create(self, owner: str, requester: str, renewers: tuple[str, ...], lifetime_ms: int, now_ms: int) -> Token:
        """lifetime_ms: below 0 the longest there is. Raises Refused."""
        self.sweep(now_ms)
        if len(self.all) >= MOST:
            raise Refused(codes.POLICY_VIOLATION, f"this broker keeps at most {MOST} tokens")
        name = str(uuid4())
        ends = now_ms + (MAX_LIFETIME_MS if lifetime_ms < 0 else min(lifetime_ms, MAX_LIFETIME_MS))
        mac = hmac.digest(self._secret, name.encode(), "sha512")
        expires = min(ends, now_ms + EXPIRY_MS)
        made = self.all[name] = Token(name, mac, owner, requester, renewers, now_ms, expires, ends)
        return made

    def renew(self, mac: bytes, user: str, period_ms: int, now_ms: int) -> int:
        """When it expires now; period_ms: below 0 the usual. Raises Refused."""
        token = self._of(mac, user)
        if max(token.expires, 0) <= now_ms:
            raise Refused(codes.DELEGATION_TOKEN_EXPIRED, "the token's time is over")
        token.expires = min(token.ends, now_ms + (EXPIRY_MS if period_ms < 0 else period_ms))
        return token.expires

    def expire(self, mac: bytes, user: str, period_ms: int, now_ms: int) -> int:
        """When it expires; period_ms: below 0 it is gone at once. Raises Refused."""
        token = self._of(mac, user)
        if period_ms < 0:
            del self.all[token.id]
            return now_ms
        if token.expires <= now_ms:
            raise Refused(codes.DELEGATION_TOKEN_EXPIRED, "the token's time is over")
        token.expires = min(token.ends, now_ms + period_ms)
        return token.expires

    def sweep(self, now_ms: int) -> None:
        """Forgets those whose time is over."""
        for token in [each for each in self.all.values() if each.expires <= now_ms]:
            del self.all[token.id]

    def _of(self, mac: bytes, user: str) -> Token:
        found = next((each for each in self.all.values() if hmac.compare_digest(each.hmac, mac)), None)
        if found is None:
            raise Refused(codes.DELEGATION_TOKEN_NOT_FOUND, "no token has this HMAC")
        if not found.concerns(user):
            raise Refused(codes.DELEGATION_TOKEN_OWNER_MISMATCH, f"{user} is neither its owner nor a renewer")
        return found
